//! Data for GEMM.

use super::input::{GemmInput, ScalarClass};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, BufferSpec, Filling, Role, Workload};
use tilewright_core::dtype::DType;

/// Position of A among the buffers.
pub const A: usize = 0;
/// Position of B among the buffers.
pub const B: usize = 1;
/// Position of C among the buffers.
pub const C: usize = 2;
/// Position of alpha among the scalars.
pub const ALPHA: usize = 0;
/// Position of beta among the scalars.
pub const BETA: usize = 1;

/// Largest absolute value of [`Filling::Exact`] data.
const EXACT_MAX: i32 = 4;

/// Buffers of exactly the length that BLAS requires, so that a read beyond it is a read beyond the buffer. The padding
/// between columns of A and B is NaN: using it shows. C is NaN where beta = 0: reading it shows.
pub(super) fn make(input: &GemmInput, filling: Filling, seed: u64) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut buffers = Vec::new();
    let specs = specs(input);
    let rows = [input.a_stored().0, input.b_stored().0, input.m];
    for (spec, (rows, ld)) in specs.iter().zip(rows.into_iter().zip([input.lda, input.ldb, input.ldc])) {
        let len = spec.len;
        let mut buffer = Buffer::zeroed(input.dtype, len);
        let mut value = |i: usize| {
            if spec.role == Role::Out || i % ld >= rows { f64::NAN } else { draw(&mut rng, filling) }
        };
        // Typed once and not per element: large inputs have tens of millions of them.
        match input.dtype {
            DType::F32 => {
                buffer.as_mut_slice::<f32>().iter_mut().enumerate().for_each(|(i, x)| *x = value(i) as f32);
            }
            DType::F64 => buffer.as_mut_slice::<f64>().iter_mut().enumerate().for_each(|(i, x)| *x = value(i)),
            _ => (0..len).for_each(|i| buffer.set_f64(i, value(i))),
        }
        buffers.push(buffer);
    }
    Workload { specs, buffers, scalars: scalars(input) }
}

/// The buffers without their contents.
pub(super) fn specs(input: &GemmInput) -> Vec<BufferSpec> {
    let role = if input.beta == ScalarClass::Zero { Role::Out } else { Role::InOut };
    let matrices = [
        ("a", input.a_stored(), input.lda, Role::In),
        ("b", input.b_stored(), input.ldb, Role::In),
        ("c", (input.m, input.n), input.ldc, role),
    ];
    let spec = |(name, (rows, columns), ld, role)| BufferSpec {
        name,
        dtype: input.dtype,
        len: GemmInput::stored_len(rows, columns, ld),
        role,
    };
    matrices.map(spec).into()
}

pub(super) fn scalars(input: &GemmInput) -> Vec<f64> {
    vec![representative(input.alpha, -1.5), representative(input.beta, 0.75)]
}

/// Both representatives of `Other` keep integer data exact.
fn representative(class: ScalarClass, other: f64) -> f64 {
    match class {
        ScalarClass::Zero => 0.0,
        ScalarClass::One => 1.0,
        ScalarClass::Other => other,
    }
}

fn draw(rng: &mut ChaCha8Rng, filling: Filling) -> f64 {
    match filling {
        Filling::Real => f64::from(rng.random_range(-1f32..1.0)),
        Filling::Exact => f64::from(rng.random_range(-EXACT_MAX..=EXACT_MAX)),
        Filling::Special => match rng.random_range(0..200u32) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => f64::from(rng.random_range(-1f32..1.0)),
        },
    }
}
