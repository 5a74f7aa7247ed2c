//! A solution that is known to be one by its residual, and how far another one may be from it.

use super::SOLVED;
use super::krylov::{BiCgStab, Cg, Method};
use super::precondition::{BlockJacobi, FactorisedInverse, Jacobi};
use crate::description::Failure;
use crate::device::Device;
use crate::isa::Isa;
use crate::matrix::Csr;

/// Corrections, each of which takes away eight digits of the residual.
const CORRECTIONS: usize = 4;
/// Relative residual of a reference.
const ACCURATE: f64 = 1e-11;
/// Steps of inverse iteration.
const STEPS: usize = 5;
/// How far the estimate of the inverse's norm may be below it.
const SAFETY: f64 = 10.0;

/// A solution and the largest error of one whose residual is small enough. Where no method solves the system, nothing is known of
/// its solutions but that they are finite.
pub(super) fn solution(m: &Csr, rhs: &[f64]) -> (Vec<f64>, f32) {
    let unknown = || (vec![0.0; m.rows()], f32::INFINITY);
    let Some(x) = accurate(m, rhs) else { return unknown() };
    let Some(inverse) = norm_of_inverse(m) else { return unknown() };
    (x, (SAFETY * inverse * SOLVED * norm(rhs)) as f32)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// By whichever method comes to an end.
fn solved(m: &Csr, rhs: &[f64]) -> Option<Vec<f64>> {
    type Solve = fn(&Csr, &[f64], &Device, &mut [f64]) -> Result<(), Failure>;
    let methods: [Solve; 6] = [
        Cg::solve::<BlockJacobi>,
        Cg::solve::<FactorisedInverse>,
        Cg::solve::<Jacobi>,
        BiCgStab::solve::<BlockJacobi>,
        BiCgStab::solve::<FactorisedInverse>,
        BiCgStab::solve::<Jacobi>,
    ];
    let device = Device::single(Isa::BASE);
    let mut x = vec![0.0; m.rows()];
    methods.iter().any(|solve| solve(m, rhs, &device, &mut x).is_ok()).then_some(x)
}

/// Iterative refinement: the residual is computed in twice the precision, so that it judges whatever found the solution.
fn accurate(m: &Csr, rhs: &[f64]) -> Option<Vec<f64>> {
    let (mut x, goal) = (vec![0.0; m.rows()], ACCURATE * norm(rhs));
    for _ in 0..CORRECTIONS {
        let residual: Vec<f64> = (0..m.rows()).map(|row| -m.exact_product(row, &x, rhs[row]).0).collect();
        if norm(&residual) <= goal {
            return Some(x);
        }
        let correction = solved(m, &residual)?;
        x.iter_mut().zip(correction).for_each(|(x, c)| *x += c);
    }
    None
}

/// The norm of a symmetric matrix's inverse by inverse iteration.
fn norm_of_inverse(m: &Csr) -> Option<f64> {
    let mut v: Vec<f64> = (0..m.rows()).map(|i| 1.0 + (i * 7919 % 101) as f64 / 101.0).collect();
    let mut found = 0.0;
    for _ in 0..STEPS {
        let size = norm(&v);
        if size == 0.0 {
            break;
        }
        v.iter_mut().for_each(|x| *x /= size);
        v = solved(m, &v)?;
        found = f64::max(found, norm(&v));
    }
    Some(found)
}
