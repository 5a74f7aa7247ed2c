//! Data for GEMM.

use super::epilogue::Bias;
use super::input::{GemmInput, ScalarClass};
use crate::filling;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, BufferSpec, Filling, Role, Workload};
use tilewright_core::dtype::DType;

/// How many elements of a long row of A are expected not to be zero, where sums have few bits.
const TERMS: usize = 64;

/// Position of A among the buffers.
pub const A: usize = 0;
/// Position of B among the buffers.
pub const B: usize = 1;
/// Position of C among the buffers.
pub const C: usize = 2;
/// Position of the bias, where there is one.
pub const BIAS: usize = 3;
/// Position of alpha among the scalars.
pub const ALPHA: usize = 0;
/// Position of beta among the scalars.
pub const BETA: usize = 1;

/// Buffers of exactly the length that BLAS requires, so that a read beyond it is a read beyond the buffer. The padding
/// between columns and between products of A and B is NaN: using it shows. C is NaN where beta = 0: reading it shows. Integers have
/// a large number in place of NaN. Operands of which [infinities](super::Accuracy) need not be kept have NaN in place of those.
///
/// Where sums are f16, with eleven bits, integers are signs, and most of a long row of A is zero: so deep reductions have exact sums
/// too, and no bound hides a part of them that is left out.
pub(super) fn make(input: &GemmInput, filling: Filling, seed: u64) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut buffers = Vec::new();
    let specs = specs(input);
    let is_finite = !input.accuracy.keeps_infinities();
    let few_bits = filling == Filling::Exact && input.types.accumulator == DType::F16;
    for (operand, spec) in specs.iter().enumerate() {
        let len = spec.len;
        let elements = if operand == BIAS { Elements::all(len) } else { Elements::new(input, operand, len) };
        let mut buffer = Buffer::zeroed(spec.dtype, len);
        filling::fill(&mut buffer, |i| {
            let is_drawn = spec.role != Role::Out && elements.contains(i);
            let value =
                if is_drawn { filling::draw(&mut rng, filling, spec.dtype) } else { filling::poison(spec.dtype) };
            match value {
                _ if few_bits && is_drawn && operand == A && rng.random_range(0..input.k.max(1)) >= TERMS => 0.0,
                _ if few_bits => value.clamp(-1.0, 1.0),
                _ if is_finite && operand < C && value.is_infinite() => f64::NAN,
                _ => value,
            }
        });
        buffers.push(buffer);
    }
    Workload { specs, buffers, scalars: scalars(input) }
}

/// The buffers without their contents.
pub(super) fn specs(input: &GemmInput) -> Vec<BufferSpec> {
    let role = if input.beta == ScalarClass::Zero { Role::Out } else { Role::InOut };
    let names =
        ["a", "b", "c"].into_iter().zip([Role::In, Role::In, role]).zip(input.lens()).zip(input.operand_types());
    let operands = names.map(|(((name, role), len), dtype)| BufferSpec { name, dtype, len, role });
    let bias = BufferSpec { name: "bias", dtype: input.types.output, len: input.bias_len(), role: Role::In };
    operands.chain((input.epilogue.bias != Bias::None).then_some(bias)).collect()
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
    /// All of a buffer's.
    fn all(len: usize) -> Self {
        Self { ld: len.max(1), rows: len, marked: Vec::new() }
    }

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
