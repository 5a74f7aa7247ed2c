//! The kernel.

use super::driver::{Blueprint, is_row};
use super::space::{self, Config, description};
use crate::LINE;
use crate::exec::parts::HostParts;
use crate::kernel::reads_short_runs;
use crate::sets::{PAGE, is_about, is_half_line};
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput, ScalarClass};

/// The kernel `gemm.cpu-axpy`.
#[derive(Debug, Default)]
pub struct CpuAxpy(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct AxpyPlan {
    pub(super) blueprint: Blueprint,
}

/// Longest of the shorter side of C: scalars of more columns leave no registers for sums.
const THIN: usize = 4;

/// So many columns of C pay anyway, columns of so many vectors at least, and this is the longest side that `gemm.cpu-small` takes.
const FEW: usize = 2;
const VECTORS: usize = 4;
const SMALL: usize = 512;

impl CpuAxpy {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuAxpy {
    type Of = Gemm;
    type Plan = AxpyPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu-axpy.2")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &description().space
    }

    /// A few columns of C of an A that is stored plain, or a single tight row of C of a B that is stored transposed.
    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&GemmInput::PLAIN)?;
        let GemmInput { m, n, layout, .. } = *input;
        if input.batch.count > 1 {
            let message = format!("{} products at once: there is code for one", input.batch.count);
            return Err(InputError::new("batch", message));
        }
        if is_row(input) {
            return Ok(());
        }
        if n > m.min(THIN) {
            let message =
                format!("{m} x {n}: columns are added to at most {THIN} columns of C, or to one tight row of it");
            return Err(InputError::new("n", message));
        }
        if layout.a_transposed() {
            return Err(InputError::new("layout", format!("{layout}: columns of A are read along m, as of nn")));
        }
        Ok(())
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        GemmInput::derivations()
    }

    fn plan(&self, _: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> AxpyPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu-axpy"));
        AxpyPlan { blueprint: Blueprint::new(input.clone(), config) }
    }

    fn generate(&self, plan: &AxpyPlan) -> Program {
        let blueprint = plan.blueprint.clone();
        Program::host(Arc::new(HostParts::new(&plan.blueprint.input, blueprint.config.vec, blueprint)), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        description().feature_names()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        description().features(at, out);
    }

    /// Long columns of a matrix that the first-level cache does not hold, or that `gemm.cpu-small` has no code for: strips of it would
    /// cost `gemm.cpu` more than sums that go to C and back cost here. Each column of C brings such sums, which only a matrix from beyond
    /// the second-level cache hides; where vectors are less than a line, they are twice as many, and only the wait for memory hides them;
    /// where vectors are half a line, only if the matrix has few columns.
    /// Where vectors are lines, a C that is only written is asked for before, so that two passes over it cost no more than strips.
    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        let fact = |name, usual| device.fact(name).and_then(|x| usize::try_from(x).ok()).unwrap_or(usual);
        let (es, across, long) = (input.dtype().size(), input.m.min(input.n), input.m.max(input.n));
        let vector = fact("vec_max", 16);
        let (l2, matrix) = (fact("l2_bytes", 512 << 10), long.saturating_mul(input.k * es));
        let cached = if vector < LINE { fact("l3_bytes", 8 << 20) / 2 } else { l2 };
        let threads = fact("threads", 1);
        // The threads of `gemm.cpu` mostly divide the reduction there. Of columns longer than two pages this kernel was as fast, and faster of a
        // single one of a matrix that stays in one second-level cache: 600 x 1 x 700 nn in f32 took 0.7 of the time. On a Zen 3, whose vectors are
        // half a line, two threads were faster so of a single column longer than a page: 1500 x 1 x 700 took 0.85 of the time, 555 x 1 x 3333 1.2.
        // They were of one of a matrix from memory: 700 x 1 x 8000 took 0.65. They were of one or two where columns of the matrix crowd few sets
        // of the first-level cache: 1025 x 2 x 1023 took 0.6 of the time, 512 x 1 x 3000 0.85, and 1000 x 2 x 1023 1.4.
        let crowds = is_about(es * if is_row(input) { input.ldb } else { input.lda }, PAGE / 2);
        let is_half = is_half_line(vector);
        let is_faster = match across {
            1 => matrix <= l2 || (is_half && (crowds || matrix > cached || 2 * long * es > threads * PAGE)),
            2 => is_half && crowds,
            _ => false,
        };
        if long * es <= 2 * PAGE && !is_faster && reads_short_runs(threads, [long, across, input.k], es, l2) {
            return 0.0;
        }
        let fills = long * es >= VECTORS * vector;
        let streams = long > SMALL || matrix >= 2 * fact("l1d_bytes", 32 << 10);
        let passes = input.k.div_ceil(space::most_columns(across, vector));
        // Of many columns from memory `gemm.cpu` took 0.7 to 0.9 of the time on a Zen 3 beside three or four of C, on one thread and two; of 20 to 64 1.7
        // times as long.
        let hides = across <= FEW
            || (matrix > cached && (!is_half || input.k <= 64))
            || (vector >= LINE && passes <= 2 && input.beta == ScalarClass::Zero);
        if fills && streams && hides { 2.0 } else { 0.0 }
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        space::default_point(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proofs::device;
    use std::sync::Arc;
    use tilewright_core::dtype::DType;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_ops::gemm::Layout;

    #[test]
    fn a_column_is_summed_by_columns_on_threads_where_they_are_long_far_or_crowd_few_sets() {
        let suits = |vec_max, (m, n, k), dtype| {
            let input = GemmInput::new(m, n, k, dtype, Layout::Nn);
            CpuAxpy::new().suits(&device(vec_max, 2), &input) > 0.0
        };
        let long = [((1500, 1, 3000), DType::F32), ((1000, 1, 2000), DType::F64), ((700, 1, 8000), DType::F32)];
        let crowded = [((1025, 2, 1023), DType::F32), ((511, 2, 1000), DType::F64), ((514, 1, 1023), DType::F32)];
        let others = [((1000, 2, 1023), DType::F32), ((555, 1, 3333), DType::F32), ((1025, 4, 5000), DType::F32)];
        let of = |vec_max, inputs: [((usize, usize, usize), DType); 3]| {
            inputs.map(|(size, dtype)| suits(vec_max, size, dtype))
        };
        assert_eq!((of(32, long), of(32, crowded), of(32, others)), ([true; 3], [true; 3], [false; 3]));
        assert_eq!([16, 64].map(|vec_max| (of(vec_max, long), of(vec_max, crowded))), [([false; 3], [false; 3]); 2]);
    }

    #[test]
    fn few_columns_of_a_matrix_from_memory_are_summed_beside_three() {
        let suits = |vec_max, k| {
            CpuAxpy::new().suits(&device(vec_max, 1), &GemmInput::new(150_000, 3, k, DType::F32, Layout::Nn)) > 0.0
        };
        assert_eq!([(32, 64), (32, 65), (16, 65)].map(|(vec_max, k)| suits(vec_max, k)), [true, false, true]);
    }

    #[test]
    fn short_columns_from_beyond_the_second_level_cache_ask_for_those_behind() {
        let prefetch = |vec_max, lda| {
            let input = GemmInput { lda, ..GemmInput::new(500, 1, 3000, DType::F32, Layout::Nn) };
            let problem = Bound::new(Arc::new(CpuAxpy::new()), Arc::new(device(vec_max, 1)), input).unwrap();
            let config = problem.space().config(&problem.default_point().unwrap());
            config.get("prefetch").unwrap().to_string()
        };
        assert_eq!(
            [(32, 512), (32, 513), (16, 512), (64, 512)].map(|(vec_max, lda)| prefetch(vec_max, lda)),
            ["64", "8", "8", "8"]
        );
    }
}
