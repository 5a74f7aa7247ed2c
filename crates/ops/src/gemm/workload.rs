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
/// between columns and between products of A and B is NaN: using it shows. C is NaN where beta = 0: reading it shows.
pub(super) fn make(input: &GemmInput, filling: Filling, seed: u64) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut buffers = Vec::new();
    let specs = specs(input);
    for (operand, spec) in specs.iter().enumerate() {
        let len = spec.len;
        let elements = Elements::new(input, operand, len);
        let mut buffer = Buffer::zeroed(spec.dtype, len);
        let mut value = |i: usize| {
            if spec.role == Role::Out || !elements.contains(i) { f64::NAN } else { draw(&mut rng, filling, spec.dtype) }
        };
        // Typed once and not per element: large inputs have tens of millions of them.
        match spec.dtype {
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
    let names =
        ["a", "b", "c"].into_iter().zip([Role::In, Role::In, role]).zip(input.lens()).zip(input.operand_types());
    names.map(|(((name, role), len), dtype)| BufferSpec { name, dtype, len, role }).collect()
}

pub(super) fn scalars(input: &GemmInput) -> Vec<f64> {
    vec![representative(input.alpha, -1.5), representative(input.beta, 0.75)]
}

/// Which elements of a buffer belong to a matrix, and are not padding.
struct Elements {
    ld: usize,
    rows: usize,
    /// By element, where products of a batch lie any distance apart.
    marked: Vec<bool>,
}

impl Elements {
    fn new(input: &GemmInput, operand: usize, len: usize) -> Self {
        let (rows, columns) = [input.a_stored(), input.b_stored(), (input.m, input.n)][operand];
        let ld = [input.lda, input.ldb, input.ldc][operand];
        let mut marked = Vec::new();
        if input.batch.count > 1 {
            marked = vec![false; len];
            for product in (0..input.batch.count).take_while(|_| len > 0) {
                let from = input.batch.offsets(product)[operand];
                (0..columns).for_each(|j| marked[from + j * ld..][..rows].fill(true));
            }
        }
        Self { ld, rows, marked }
    }

    fn contains(&self, i: usize) -> bool {
        self.marked.get(i).copied().unwrap_or(i % self.ld < self.rows)
    }
}

/// Both representatives of `Other` keep integer data exact.
fn representative(class: ScalarClass, other: f64) -> f64 {
    match class {
        ScalarClass::Zero => 0.0,
        ScalarClass::One => 1.0,
        ScalarClass::Other => other,
    }
}

fn draw(rng: &mut ChaCha8Rng, filling: Filling, dtype: DType) -> f64 {
    match filling {
        Filling::Real => real(rng, dtype),
        Filling::Exact => f64::from(rng.random_range(-EXACT_MAX..=EXACT_MAX)),
        Filling::Special => match rng.random_range(0..200u32) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => real(rng, dtype),
        },
    }
}

/// Uniform with all bits of the type's significand: binary32 would hide a kernel that narrows binary64, and sums of its products
/// would be exact there.
fn real(rng: &mut ChaCha8Rng, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => rng.random_range(-1.0..1.0),
        _ => f64::from(rng.random_range(-1f32..1.0)),
    }
}
