//! Conjugate gradients, and stabilised bi-conjugate gradients (van der Vorst), preconditioned.

use super::precondition::{Preconditioner, product};
use super::{MOST_ITERATIONS, SOLVED, TOLERANCE};
use crate::description::{Failure, Routine};
use crate::device::Device;
use crate::isa::Isa;
use crate::isa::on_isa;
use crate::matrix::Csr;
use std::sync::Arc;

/// A method that solves with any preconditioner.
pub(super) trait Method: Copy + Send + Sync + 'static {
    fn solve<P: Preconditioner>(m: &Csr, b: &[f64], device: &Device, x: &mut [f64]) -> Result<(), Failure>;
}

/// A method with a preconditioner. The last thing is a look at the residual itself: what is no solution is never taken for one.
pub(super) fn prepare<M: Method, P: Preconditioner>(matrix: &Arc<Csr>, _: &[i64]) -> Routine {
    let m = matrix.clone();
    Box::new(move |device, inputs, output| {
        let (isa, b, x) = (device.isa(), inputs[3].as_slice::<f64>(), output.as_mut_slice::<f64>());
        M::solve::<P>(&m, b, device, x)?;
        let mut off = vec![0.0; b.len()];
        product(device, &m, x, &mut off);
        add(isa, &mut off, -1.0, b);
        let residual = (dot(isa, &off, &off) / dot(isa, b, b).max(f64::MIN_POSITIVE)).sqrt();
        if residual <= SOLVED { Ok(()) } else { Err(Failure::Drifted { residual, wanted: SOLVED }) }
    })
}

#[inline(always)]
fn dot_lanes(a: &[f64], b: &[f64]) -> f64 {
    let ((whole_a, rest_a), (whole_b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in whole_a.iter().zip(whole_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f64>()
}

fn dot(isa: Isa, a: &[f64], b: &[f64]) -> f64 {
    on_isa!(isa, dot_lanes(a, b))
}

/// `a = a + s b`.
fn add(isa: Isa, a: &mut [f64], s: f64, b: &[f64]) {
    on_isa!(isa, a.iter_mut().zip(b).for_each(|(a, b)| *a += s * b));
}

/// `a = b + s a`.
fn scale_add(isa: Isa, a: &mut [f64], s: f64, b: &[f64]) {
    on_isa!(isa, a.iter_mut().zip(b).for_each(|(a, b)| *a = b + s * *a));
}

/// A divisor; zero and what is not finite end the method.
fn divisor(value: f64, iteration: usize, what: &'static str) -> Result<f64, Failure> {
    if value != 0.0 && value.is_finite() { Ok(value) } else { Err(Failure::Breakdown { iteration, what }) }
}

fn gave_up(residual: f64) -> Result<(), Failure> {
    Err(Failure::NotConverged { iterations: MOST_ITERATIONS, residual, wanted: TOLERANCE })
}

/// Sets `x` to zero and gives the norm of the right side; nothing if `x` is the solution already.
fn start(b: &[f64], device: &Device, x: &mut [f64]) -> Option<f64> {
    x.fill(0.0);
    let norm = dot(device.isa(), b, b).sqrt();
    (norm != 0.0).then_some(norm)
}

/// Conjugate gradients: one product an iteration; for positive definite matrices.
#[derive(Clone, Copy)]
pub(super) struct Cg;

impl Method for Cg {
    fn solve<P: Preconditioner>(m: &Csr, b: &[f64], device: &Device, x: &mut [f64]) -> Result<(), Failure> {
        let (isa, n) = (device.isa(), b.len());
        let Some(norm) = start(b, device, x) else { return Ok(()) };
        let mut inverse = P::of(m)?;
        let (mut r, mut z, mut q) = (b.to_vec(), vec![0.0; n], vec![0.0; n]);
        inverse.apply(device, &r, &mut z);
        let mut p = z.clone();
        let mut rz = dot(isa, &r, &z);
        let mut residual = 1.0;
        for iteration in 0..MOST_ITERATIONS {
            product(device, m, &p, &mut q);
            let curvature = divisor(dot(isa, &p, &q), iteration, "curvature along the direction")?;
            if curvature < 0.0 {
                return Err(Failure::Breakdown { iteration, what: "negative curvature" });
            }
            let step = rz / curvature;
            add(isa, x, step, &p);
            add(isa, &mut r, -step, &q);
            residual = dot(isa, &r, &r).sqrt() / norm;
            if residual <= TOLERANCE {
                return Ok(());
            }
            inverse.apply(device, &r, &mut z);
            let next = dot(isa, &r, &z);
            scale_add(isa, &mut p, next / divisor(rz, iteration, "residual times preconditioned residual")?, &z);
            rz = next;
        }
        gave_up(residual)
    }
}

/// Stabilised bi-conjugate gradients: two products an iteration; for any matrix.
#[derive(Clone, Copy)]
pub(super) struct BiCgStab;

impl Method for BiCgStab {
    fn solve<P: Preconditioner>(m: &Csr, b: &[f64], device: &Device, x: &mut [f64]) -> Result<(), Failure> {
        let (isa, n) = (device.isa(), b.len());
        let Some(norm) = start(b, device, x) else { return Ok(()) };
        let mut inverse = P::of(m)?;
        let zeros = vec![0.0; n];
        let (mut r, shadow) = (b.to_vec(), b.to_vec());
        let (mut p, mut v, mut t) = (b.to_vec(), zeros.clone(), zeros.clone());
        let (mut p_hat, mut s_hat) = (zeros.clone(), zeros);
        let mut rho = dot(isa, &shadow, &r);
        let mut residual = 1.0;
        for iteration in 0..MOST_ITERATIONS {
            inverse.apply(device, &p, &mut p_hat);
            product(device, m, &p_hat, &mut v);
            let alpha = rho / divisor(dot(isa, &shadow, &v), iteration, "shadow residual times direction")?;
            add(isa, &mut r, -alpha, &v);
            add(isa, x, alpha, &p_hat);
            residual = dot(isa, &r, &r).sqrt() / norm;
            if residual <= TOLERANCE {
                return Ok(());
            }
            inverse.apply(device, &r, &mut s_hat);
            product(device, m, &s_hat, &mut t);
            let omega = dot(isa, &t, &r) / divisor(dot(isa, &t, &t), iteration, "norm of the second product")?;
            add(isa, x, omega, &s_hat);
            add(isa, &mut r, -omega, &t);
            residual = dot(isa, &r, &r).sqrt() / norm;
            if residual <= TOLERANCE {
                return Ok(());
            }
            let next = dot(isa, &shadow, &r);
            let beta = next / divisor(rho, iteration, "rho")? * (alpha / divisor(omega, iteration, "omega")?);
            add(isa, &mut p, -omega, &v);
            scale_add(isa, &mut p, beta, &r);
            rho = next;
        }
        gave_up(residual)
    }
}
