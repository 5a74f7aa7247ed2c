//! Named task sets: the inputs that a comparison runs.

mod conv;
mod deepbench;
mod small;

use tilewright_core::computation::InputError;
use tilewright_core::expr::Value;
use tilewright_core::id::ComputationId;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;
use tilewright_ops::gemm::Layout;

/// One input of a task set.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Unique within its set, e.g. `deepbench-fwd-16`.
    pub name: String,
    /// Fields of the input; those that are left out have their defaults.
    pub input: Config,
}

impl Task {
    /// For tables: the sizes and the other fields of the input, `2560x16x2560 tn`. The element type stands elsewhere.
    pub fn shape(&self) -> String {
        let fields = || self.input.0.iter().filter(|(name, _)| name != "dtype").map(|(_, value)| value);
        let sizes: Vec<String> = fields().filter(|v| v.as_int().is_some()).map(Value::to_string).collect();
        let words = fields().filter(|v| v.as_int().is_none()).map(Value::to_string);
        std::iter::once(sizes.join("x")).filter(|s| !s.is_empty()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// A named set of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskSet {
    /// The 17 GEMM inputs of Table 4 of "Input-Aware Auto-Tuning of Compute-Bound HPC Kernels" (SC17).
    IsaacTable4,
    /// Square GEMMs from 256 to 4096, each in all four layouts.
    Squares,
    /// GEMM shapes that tiling gets wrong: primes, 2^k ± 1, 1-wide, tall, flat and deep, each in all four layouts.
    Edges,
    /// Products of sizes up to 64, one by one.
    Small,
    /// The same, 1,000 of each in one call.
    SmallBatch,
    /// The 14 convolutions of Table 5 of the same paper.
    IsaacTable5,
    /// The convolutions of DeepBench, named by what they come from.
    DeepBench,
    /// The products of DeepBench, by the same name.
    DeepBenchProducts,
    /// What any computation says that people have. See [`Computation::representative`](tilewright_core::computation::Computation::representative).
    Representative,
}

/// The name of a task set that a computation does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tasks: {computation} has no set `{name}`: it has {}", known.join(", "))]
pub struct UnknownTaskSet {
    /// What was asked for.
    pub name: String,
    /// The computation.
    pub computation: ComputationId,
    /// The names of its sets.
    pub known: Vec<&'static str>,
}

impl TaskSet {
    /// The sets of a computation, the usual one first.
    pub fn of(computation: &ComputationId) -> &'static [Self] {
        match computation.as_str() {
            "gemm" => &[
                Self::IsaacTable4,
                Self::Squares,
                Self::Edges,
                Self::Small,
                Self::SmallBatch,
                Self::DeepBenchProducts,
                Self::Representative,
            ],
            "conv" => &[Self::IsaacTable5, Self::DeepBench, Self::Representative],
            _ => &[Self::Representative],
        }
    }

    /// The set of this name, or the usual one.
    ///
    /// # Errors
    /// The computation has no set of this name.
    pub fn named(computation: &ComputationId, name: Option<&str>) -> Result<Self, UnknownTaskSet> {
        let sets = Self::of(computation);
        let Some(name) = name else { return Ok(sets[0]) };
        sets.iter().copied().find(|set| set.name() == name).ok_or_else(|| UnknownTaskSet {
            name: name.to_owned(),
            computation: computation.clone(),
            known: sets.iter().map(|set| set.name()).collect(),
        })
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::IsaacTable4 => "isaac-table4",
            Self::Edges => "edges",
            Self::Squares => "squares",
            Self::Small => "small",
            Self::SmallBatch => "small-batch",
            Self::IsaacTable5 => "isaac-table5",
            Self::DeepBench | Self::DeepBenchProducts => "deepbench",
            Self::Representative => "representative",
        }
    }

    /// The stage of a campaign that compares on the usual set of a computation.
    pub const fn stage(self) -> &'static str {
        match self {
            Self::IsaacTable4 => "table4",
            Self::IsaacTable5 => "table5",
            Self::Squares
            | Self::Edges
            | Self::Small
            | Self::SmallBatch
            | Self::DeepBench
            | Self::DeepBenchProducts
            | Self::Representative => "tasks",
        }
    }

    /// The tasks in the order of their source, with these fields fixed. Those of GEMM are column-major with tight leading
    /// dimensions, alpha = 1 and beta = 0; of convolutions layout and direction are the usual ones where they are not fixed.
    ///
    /// # Errors
    /// A fixed field that is no field of the inputs.
    pub fn tasks(self, kernel: &dyn AnyKernel, fixed: &Config) -> Result<Vec<Task>, InputError> {
        let shapes = match self {
            Self::IsaacTable4 => isaac_table4(),
            Self::Squares => squares(),
            Self::Edges => edges(),
            Self::DeepBenchProducts => deepbench::shapes(),
            Self::Small => return Ok(small::tasks(false, fixed)),
            Self::SmallBatch => return Ok(small::tasks(true, fixed)),
            Self::IsaacTable5 => return Ok(convolutions(conv::isaac_table5(), fixed)),
            Self::DeepBench => return Ok(convolutions(conv::deepbench(), fixed)),
            Self::Representative => {
                let named = |(at, input): (usize, Config)| Task { name: format!("representative-{}", at + 1), input };
                return Ok(kernel.representative(fixed)?.into_iter().enumerate().map(named).collect());
            }
        };
        let task = |(name, [m, n, k], layout): Shape| {
            let sizes = [("m", m), ("n", n), ("k", k)].map(|(name, size)| (name, Value::from(size)));
            let fields = sizes.into_iter().chain([("layout", layout.name().into())]);
            let fields = fields.map(|(name, value)| (name.to_owned(), value));
            Task { name, input: Config(fields.chain(fixed.0.iter().cloned()).collect()) }
        };
        Ok(shapes.into_iter().map(task).collect())
    }
}

/// Tasks of convolutions, in which what is fixed takes the place of what the set says.
fn convolutions(sets: Vec<(String, conv::Sizes)>, fixed: &Config) -> Vec<Task> {
    let task = |(name, sizes): (String, conv::Sizes)| {
        let fields = conv::NAMES.into_iter().zip(sizes).filter(|(name, _)| fixed.get(name).is_none());
        let fields = fields.map(|(name, size)| (name.to_owned(), Value::from(size)));
        Task { name, input: Config(fields.chain(fixed.0.iter().cloned()).collect()) }
    };
    sets.into_iter().map(task).collect()
}

/// A name, m n k, and a layout.
type Shape = (String, [usize; 3], Layout);

fn isaac_table4() -> Vec<Shape> {
    let mut shapes = Vec::with_capacity(17);
    for size in [512, 1024, 2048] {
        shapes.push((format!("linpack-{size}"), [size; 3], Layout::Nt));
    }
    for (pass, layout) in [("fwd", Layout::Nn), ("bwd", Layout::Tn)] {
        for batch in [16, 32, 64, 128] {
            shapes.push((format!("deepbench-{pass}-{batch}"), [2560, batch, 2560], layout));
        }
    }
    for channels in [32, 64, 256] {
        shapes.push((format!("ica-{channels}"), [channels, channels, 60_000], Layout::Nt));
    }
    for (iteration, size) in [(0, 4096), (64, 3456), (100, 896)] {
        shapes.push((format!("lapack-svd-{iteration}"), [size, size, 32], Layout::Nt));
    }
    shapes
}

/// (name, m, n, k) of the edge shapes; each is run in all four layouts.
const EDGE_SHAPES: [(&str, usize, usize, usize); 18] = [
    ("prime-small", 7, 11, 13),
    ("prime", 97, 101, 103),
    ("prime-large", 509, 503, 499),
    ("pow2-minus", 63, 63, 63),
    ("pow2-plus", 65, 65, 65),
    ("pow2-minus-large", 511, 511, 511),
    ("pow2-plus-large", 513, 513, 513),
    ("pow2-mixed", 255, 257, 129),
    ("one", 1, 1, 1),
    ("row", 1, 1021, 257),
    ("column", 1021, 1, 257),
    ("outer", 509, 511, 1),
    ("dot", 1, 1, 65_537),
    ("two-wide", 1025, 2, 1023),
    ("tall", 8191, 17, 31),
    ("flat", 17, 8191, 31),
    ("deep", 17, 19, 32_769),
    ("thin-outer", 1023, 1025, 3),
];

/// Sides from what a second-level cache holds to what no cache does, in all four layouts.
fn squares() -> Vec<Shape> {
    let in_all_layouts = |size| Layout::ALL.map(|layout| (format!("square-{size}-{layout}"), [size; 3], layout));
    [256, 512, 1024, 2048, 4096].into_iter().flat_map(in_all_layouts).collect()
}

fn edges() -> Vec<Shape> {
    let in_all_layouts =
        |&(name, m, n, k): &_| Layout::ALL.map(|layout| (format!("{name}-{layout}"), [m, n, k], layout));
    EDGE_SHAPES.iter().flat_map(in_all_layouts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;
    use tilewright_core::device::DeviceSpec;
    use tilewright_core::problem::Erased;
    use tilewright_cpu::{CpuDevice, CpuGemm};

    fn gemm() -> (Erased<CpuGemm>, Arc<DeviceSpec>, Config) {
        let device = CpuDevice::new(1).unwrap();
        (Erased::new(CpuGemm::new()), device.spec().clone(), Config::parse("dtype=f64").unwrap())
    }

    #[test]
    fn table4_is_the_papers() {
        let (kernel, device, fixed) = gemm();
        let tasks = TaskSet::IsaacTable4.tasks(&kernel, &fixed).unwrap();
        assert_eq!(tasks.len(), 17);
        let shapes: HashSet<String> = tasks.iter().map(Task::shape).collect();
        for size in [512, 1024, 2048] {
            assert!(shapes.contains(&format!("{size}x{size}x{size} nt")));
        }
        for n in [16, 32, 64, 128] {
            assert!(["nn", "tn"].iter().all(|layout| shapes.contains(&format!("2560x{n}x2560 {layout}"))));
        }
        assert!([32, 64, 256].iter().all(|c| shapes.contains(&format!("{c}x{c}x60000 nt"))));
        assert!([4096, 3456, 896].iter().all(|size| shapes.contains(&format!("{size}x{size}x32 nt"))));
        let flops = |task: &Task| kernel.problem(&device, &task.input).unwrap().work().flops;
        let all = 19_595_788_288.0 + 6_291_456_000.0 + 8_478_720_000.0 + 1_889_533_952.0;
        assert_eq!(tasks.iter().map(flops).sum::<f64>(), all);
    }

    #[test]
    fn sets_have_names_and_unique_tasks_that_are_inputs() {
        let (kernel, device, fixed) = gemm();
        let of = kernel.computation();
        for &set in TaskSet::of(&of) {
            let tasks = set.tasks(&kernel, &fixed).unwrap();
            let names: HashSet<_> = tasks.iter().map(|t| t.name.as_str()).collect();
            assert_eq!(names.len(), tasks.len(), "{}", set.name());
            assert_eq!(TaskSet::named(&of, Some(set.name())), Ok(set));
            let dtype = |t: &Task| kernel.problem(&device, &t.input).unwrap().input().get("dtype").unwrap().to_string();
            assert!(tasks.iter().all(|t| dtype(t) == "f64"));
        }
        assert_eq!(TaskSet::named(&of, None), Ok(TaskSet::IsaacTable4));
        let error = TaskSet::named(&ComputationId::new("sort"), Some("edges")).unwrap_err();
        assert!(error.to_string().contains("representative"), "{error}");
    }

    #[test]
    fn deepbench_has_the_products_of_its_list() {
        let (kernel, _, fixed) = gemm();
        let tasks = TaskSet::DeepBenchProducts.tasks(&kernel, &fixed).unwrap();
        let shapes: HashSet<String> = tasks.iter().map(Task::shape).collect();
        assert_eq!((tasks.len(), shapes.len()), (168, 168));
        for shape in
            ["35x8457x2560 nn", "7680x5481x2560 nt", "512x8x500000 tn", "8448x48000x2816 tn", "1024x700x512 nn"]
        {
            assert!(shapes.contains(shape), "{shape}");
        }
    }

    #[test]
    fn edges_cover_all_layouts() {
        let (kernel, _, fixed) = gemm();
        let tasks = TaskSet::Edges.tasks(&kernel, &fixed).unwrap();
        assert_eq!(tasks.len(), 4 * EDGE_SHAPES.len());
        for layout in Layout::ALL {
            assert!(tasks.iter().any(|t| t.shape().contains(&format!("x1x257 {layout}"))));
        }
        assert_eq!(tasks[0].shape(), "7x11x13 nn");
        let named = Task { name: "m".into(), input: Config::parse("matrix=banded,rows=500,half=2").unwrap() };
        assert_eq!(named.shape(), "500x2 banded");
    }
}
