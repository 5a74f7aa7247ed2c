//! The kernel.

use super::blueprint::{self, Blueprint};
use super::default;
use super::host::HostSmall;
use super::space::{Config, description};
use crate::LINE;
use crate::codegen::vector::Width;
use crate::dot::{is_thin, lies_along_k};
use crate::kernel::{THREADED, steps_of_work};
use crate::sets::{is_half_line, share_a_set};
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput};

/// Above what `gemm.cpu-dot` says of all that it is made for.
const BEFORE_DOT: f64 = 3.0;

/// Vectors of k of so tiny a C.
const TINY: usize = 8;

/// Whether reductions are so short that summing the lanes of dot products takes longer than transposing an operand: less than two
/// vectors where these are half a line, of products with a vector alone; where a vector is a line, as many vectors of k as the shorter
/// side of C has elements, of those sides that dot products are for, and more where C has no more elements than a vector: 1 x 1 x 57 took a
/// third of the time, in f64.
fn is_brief(device: &DeviceSpec, input: &GemmInput) -> bool {
    let vector = device.fact("vec_max").map_or(16, |bytes| bytes as usize);
    let (lanes, short) = (vector / input.dtype().size(), input.m.min(input.n));
    if vector >= LINE {
        let most = if input.m.saturating_mul(input.n) <= lanes { TINY * lanes } else { lanes * short };
        return lies_along_k(input) && is_thin(short, lanes) && input.k <= most;
    }
    // Rows of the other kind of matrix lie along the result, which a sum of its rows is made of.
    let sums_rows = if input.m == 1 { input.layout.b_transposed() } else { !input.layout.a_transposed() };
    let is_vector = short == 1 && !sums_rows;
    // On a Zen 3 13 to 15 steps in f32 took 0.7 of the time in the mean, 16 to 20 0.7 to 1.3, 24 1.25; in f64 up to 7 steps took
    // 0.1 to 0.9, 8 1.1 to 1.2.
    let most = match input.dtype() {
        DType::F32 => 15,
        DType::F64 => 7,
        _ => 0,
    };
    is_half_line(vector) && is_vector && input.k <= most
}

/// The kernel `gemm.cpu-small`.
#[derive(Debug, Default)]
pub struct CpuSmall(());

/// A legal (device, input, configuration) with everything derived from it.
#[derive(Clone, Debug)]
pub struct SmallPlan {
    pub(super) blueprint: Blueprint,
}

impl CpuSmall {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }
}

impl Kernel for CpuSmall {
    type Of = Gemm;
    type Plan = SmallPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.cpu-small.5")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &description().space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&GemmInput::PLAIN)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        GemmInput::derivations()
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> SmallPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        let config = Config::of(at).unwrap_or_else(|| unreachable!("{at:?} is no legal point of gemm.cpu-small"));
        let evex = device.facts.get("vec_max").is_some_and(|bytes| *bytes >= Width::Z.bytes() as i64);
        SmallPlan { blueprint: Blueprint::new(blueprint::straightened(input), config, evex) }
    }

    fn generate(&self, plan: &SmallPlan) -> Program {
        let workspace = plan.blueprint.workspace() as u64;
        Program::host(Arc::new(HostSmall::new(&plan.blueprint)), workspace)
    }

    fn feature_names(&self) -> Vec<Feature> {
        description().feature_names()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        description().features(at, out);
    }

    /// A single product that is large enough for several threads may be better off with them, one of numbers of 8 bytes from half as many on where
    /// vectors are half a line; and where there is little to do but to
    /// write long columns of a C beyond the first-level cache, a kernel with several panels of A is ahead of the one panel of this one, unless
    /// vectors are half a line and columns fall into different sets of the cache: 256 x 500 x 15 tt in f32 took 0.77 of the time on a Zen 3.
    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        let fact = |name| device.facts.get(name).and_then(|value| usize::try_from(*value).ok());
        let is_line = fact("vec_max").is_some_and(|bytes| bytes >= LINE);
        let is_single = input.batch.count == 1;
        let l1 = fact("l1d_bytes");
        let near = l1.filter(|_| is_line && is_single);
        let pitch = input.ldc * input.types.output.size();
        let shares_a_set = l1.is_none_or(|l1| share_a_set(input.n, pitch, l1));
        let is_ahead = fact("vec_max").is_some_and(is_half_line) && is_single && !shares_a_set;
        if !is_ahead && default::writes_columns(input, near) && blueprint::straightened(input).layout.a_transposed() {
            return 0.0;
        }
        let alone = device.facts.get("threads").is_none_or(|threads| *threads == 1);
        let elements = input.m.saturating_mul(input.n);
        let written = elements.saturating_mul(input.types.output.size());
        // As measured on a Zen 3: on two threads 56 x 56 x 56 to 65 x 65 x 65 in f64 took 0.6 to 1.2 of the time.
        let numbers = if fact("vec_max").is_some_and(is_half_line) { input.dtype().size().div_ceil(4) } else { 1 };
        let steps = steps_of_work(input.k, written, l1.unwrap_or(usize::MAX)).saturating_mul(numbers);
        let shared = elements.saturating_mul(steps);
        if !(alone || !is_single || shared <= THREADED) {
            return 0.0;
        }
        if is_brief(device, input) && is_single { BEFORE_DOT } else { 1.0 }
    }

    fn default_point(&self, _: &DeviceSpec, input: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(&blueprint::straightened(input), space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axpy::CpuAxpy;
    use crate::dot::CpuDot;
    use crate::proofs::device;
    use tilewright_core::problem::{Bound, Problem};
    use tilewright_ops::gemm::Layout;

    /// The kernel that leads of those for vectors and this one, where it takes the input.
    fn leading(vec_max: i64, [m, n, k]: [usize; 3], layout: Layout) -> &'static str {
        let (device, input) = (device(vec_max, 1), GemmInput::new(m, n, k, DType::F32, layout));
        let (small, dot, axpy) = (CpuSmall::new(), CpuDot::new(), CpuAxpy::new());
        let suits = [
            ("small", small.accepts(&input).is_ok(), small.suits(&device, &input)),
            ("dot", dot.accepts(&input).is_ok(), dot.suits(&device, &input)),
            ("axpy", axpy.accepts(&input).is_ok(), axpy.suits(&device, &input)),
        ];
        let taken = suits.into_iter().rev().filter(|(_, takes, suits)| *takes && *suits > 0.0);
        taken.max_by(|a, b| a.2.total_cmp(&b.2)).map_or("none", |(name, ..)| name)
    }

    #[test]
    fn a_vector_times_short_rows_is_a_small_product() {
        assert_eq!(leading(32, [1, 500, 8], Layout::Nn), "small");
        assert_eq!(leading(32, [500, 1, 15], Layout::Tn), "small");
        assert_eq!(leading(32, [500, 1, 16], Layout::Tn), "dot");
        let brief = |vec_max, k, dtype| is_brief(&device(vec_max, 1), &GemmInput::new(1, 300, k, dtype, Layout::Nn));
        assert_eq!([7, 8].map(|k| brief(32, k, DType::F64)), [true, false]);
        assert!(!brief(16, 7, DType::F32) && !brief(16, 7, DType::F64));
        // Of lines: as many vectors of k as C has rows, and a vector is read once either way.
        assert_eq!(leading(64, [1, 500, 16], Layout::Nn), "small");
        assert_eq!(leading(64, [1, 500, 17], Layout::Nn), "dot");
        assert_eq!(leading(64, [3, 500, 48], Layout::Tn), "small");
        assert_eq!(leading(64, [3, 500, 49], Layout::Tn), "dot");
        // Squares are no dot products, and what is worth several threads is left to who has them.
        let suits = |threads, m, k| {
            CpuSmall::new().suits(&device(64, threads), &GemmInput::new(m, m, k, DType::F32, Layout::Tn))
        };
        assert_eq!(
            [suits(1, 64, 64), suits(8, 64, 64), suits(8, 128, 128), suits(8, 12, 192)],
            [1.0, 1.0, 0.0, BEFORE_DOT]
        );
        // A number of 8 bytes takes as long as two of 4.
        let double =
            |vec_max, m| CpuSmall::new().suits(&device(vec_max, 2), &GemmInput::new(m, m, m, DType::F64, Layout::Nn));
        assert_eq!([double(32, 48), double(32, 56), double(64, 56)], [1.0, 0.0, 1.0]);
        // Where rows lie along the result there are no sums of lanes to be spared.
        assert_eq!(leading(32, [3000, 1, 7], Layout::Nn), "axpy");
    }

    #[test]
    fn columns_are_not_transposed_where_vectors_of_half_a_line_can_run_along_them() {
        let axis = |vec_max, size: (usize, usize, usize)| {
            let input = GemmInput::new(size.0, size.1, size.2, DType::F32, Layout::Nt);
            let problem = Bound::new(Arc::new(CpuSmall::new()), Arc::new(device(vec_max, 1)), input).unwrap();
            let config = problem.space().config(&problem.default_point().unwrap());
            config.get("axis").unwrap().to_string()
        };
        assert_eq!([axis(32, (255, 512, 16)), axis(32, (91, 207, 3)), axis(32, (99, 436, 14))], ["m"; 3]);
        // Few rows fill no vector.
        assert_eq!(axis(32, (3, 312, 20)), "n");
    }

    #[test]
    fn steps_that_evict_each_other_are_read_by_tiles_of_a_line() {
        let tile = |vec_max, lda, k, dtype| {
            let input = GemmInput { lda, ..GemmInput::new(512, 9, k, dtype, Layout::Nn) };
            let problem = Bound::new(Arc::new(CpuSmall::new()), Arc::new(device(vec_max, 1)), input).unwrap();
            let config = problem.space().config(&problem.default_point().unwrap());
            ["m_s", "n_s"].map(|name| config.get(name).unwrap().to_string())
        };
        assert_eq!([tile(32, 512, 200, DType::F64), tile(32, 512, 200, DType::F32)], [["8", "5"], ["16", "5"]]);
        // Steps that are spread, few steps, and other vectors.
        assert_eq!([tile(32, 544, 200, DType::F64), tile(32, 512, 8, DType::F64)], [["16", "3"]; 2]);
        let others = [16, 64].map(|vec_max| [512, 544].map(|lda| tile(vec_max, lda, 200, DType::F64)));
        assert!(others.iter().all(|[crowded, spread]| crowded == spread));
    }

    #[test]
    fn long_columns_of_few_steps_are_small_products_where_vectors_are_half_a_line() {
        let product = |(m, n, k), layout| GemmInput::new(m, n, k, DType::F32, layout);
        let suits = |vec_max, input: &GemmInput| CpuSmall::new().suits(&device(vec_max, 1), input) > 0.0;
        let short = product((300, 150, 10), Layout::Tt);
        assert_eq!([16, 32, 64].map(|vec_max| suits(vec_max, &short)), [false, true, false]);
        let several = GemmInput { batch: tilewright_ops::gemm::Batch { count: 4, ..short.batch }, ..short };
        assert!(!suits(32, &several));
        // Columns of C that share a set are left to who has several panels of A, where they are more than the set holds.
        let written = |m, n| suits(32, &GemmInput::new(m, n, 10, DType::F64, Layout::Tn));
        assert_eq!([written(512, 100), written(511, 100)], [false, true]);
        let apart = |n| GemmInput { ldc: 1024, ..product((500, n, 10), Layout::Tn) };
        assert_eq!([100, 8].map(|n| suits(32, &apart(n))), [false, true]);
    }

    #[test]
    fn few_columns_are_summed_by_rows_where_memory_is_waited_for() {
        assert_eq!(leading(32, [319, 2, 600], Layout::Nn), "axpy");
        assert_ne!(leading(32, [319, 4, 600], Layout::Nn), "axpy");
        assert_ne!(leading(32, [30_000, 3, 600], Layout::Nn), "axpy");
        assert_eq!(leading(32, [30_000, 2, 600], Layout::Nn), "axpy");
        assert_eq!(leading(16, [30_000, 4, 600], Layout::Nn), "axpy");
        assert_eq!(leading(64, [319, 4, 600], Layout::Nn), "axpy");
        // Two passes over C, or three.
        assert_eq!(leading(64, [2000, 4, 12], Layout::Nn), "axpy");
        assert_ne!(leading(64, [2000, 4, 13], Layout::Nn), "axpy");
        assert_eq!([12, 13].map(|k| leading(64, [2000, 3, k], Layout::Nn) == "axpy"), [true, false]);
    }
}
