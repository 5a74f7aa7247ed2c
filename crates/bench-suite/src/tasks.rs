//! Named task sets: the GEMM inputs that a comparison runs.

use std::str::FromStr;

use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout};

/// One GEMM of a task set: column-major, tight leading dimensions, alpha = 1, beta = 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Unique within its set, e.g. `deepbench-fwd-16`.
    pub name: String,
    /// Shape, element type and layout.
    pub input: GemmInput,
}

impl Task {
    /// Floating-point operations of one call, a fused multiply-add counted as two.
    pub fn flops(&self) -> f64 {
        Gemm.work(&self.input).flops
    }

    /// For tables: `2560x16x2560 tn`.
    pub fn shape(&self) -> String {
        let GemmInput { m, n, k, layout, .. } = self.input;
        format!("{m}x{n}x{k} {layout}")
    }
}

/// A named set of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskSet {
    /// The 17 GEMM inputs of Table 4 of "Input-Aware Auto-Tuning of Compute-Bound HPC Kernels" (SC17).
    IsaacTable4,
    /// Shapes that tiling gets wrong: primes, 2^k ± 1, 1-wide, tall, flat and deep, each in all four layouts.
    Edges,
}

/// The name of a task set that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tasks: unknown set `{name}`; known: {}", TaskSet::names().join(", "))]
pub struct UnknownTaskSet {
    /// What was asked for.
    pub name: String,
}

impl TaskSet {
    /// Every set.
    pub const ALL: [TaskSet; 2] = [TaskSet::IsaacTable4, TaskSet::Edges];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TaskSet::IsaacTable4 => "isaac-table4",
            TaskSet::Edges => "edges",
        }
    }

    /// The names of all sets.
    pub fn names() -> Vec<&'static str> {
        TaskSet::ALL.iter().map(|set| set.name()).collect()
    }

    /// The tasks in `dtype` (f32 or f64), in the order of their source.
    pub fn tasks(self, dtype: DType) -> Vec<Task> {
        let shapes = match self {
            TaskSet::IsaacTable4 => isaac_table4(),
            TaskSet::Edges => edges(),
        };
        let task = |(name, [m, n, k], layout): Shape| Task { name, input: GemmInput::new(m, n, k, dtype, layout) };
        shapes.into_iter().map(task).collect()
    }
}

impl FromStr for TaskSet {
    type Err = UnknownTaskSet;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        TaskSet::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| UnknownTaskSet { name: name.to_owned() })
    }
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

fn edges() -> Vec<Shape> {
    let in_all_layouts =
        |&(name, m, n, k): &_| Layout::ALL.map(|layout| (format!("{name}-{layout}"), [m, n, k], layout));
    EDGE_SHAPES.iter().flat_map(in_all_layouts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn table4_is_the_papers() {
        let tasks = TaskSet::IsaacTable4.tasks(DType::F32);
        assert_eq!(tasks.len(), 17);
        let has = |m, n, k, layout| tasks.iter().any(|t| t.input == GemmInput::new(m, n, k, DType::F32, layout));
        for size in [512, 1024, 2048] {
            assert!(has(size, size, size, Layout::Nt));
        }
        for n in [16, 32, 64, 128] {
            assert!(has(2560, n, 2560, Layout::Nn) && has(2560, n, 2560, Layout::Tn));
        }
        for c in [32, 64, 256] {
            assert!(has(c, c, 60_000, Layout::Nt));
        }
        for size in [4096, 3456, 896] {
            assert!(has(size, size, 32, Layout::Nt));
        }
        let flops: f64 = tasks.iter().map(Task::flops).sum();
        assert_eq!(flops, 19_595_788_288.0 + 6_291_456_000.0 + 8_478_720_000.0 + 1_889_533_952.0);
    }

    #[test]
    fn names_are_unique_and_parse() {
        for set in TaskSet::ALL {
            let tasks = set.tasks(DType::F64);
            let names: HashSet<_> = tasks.iter().map(|t| t.name.as_str()).collect();
            assert_eq!(names.len(), tasks.len(), "{}", set.name());
            assert_eq!(set.name().parse(), Ok(set));
        }
        let error = "isaac".parse::<TaskSet>().unwrap_err();
        assert!(error.to_string().contains("isaac-table4"), "{error}");
    }

    #[test]
    fn edges_cover_all_layouts() {
        let tasks = TaskSet::Edges.tasks(DType::F32);
        assert_eq!(tasks.len(), 4 * EDGE_SHAPES.len());
        for layout in Layout::ALL {
            assert!(tasks.iter().any(|t| t.input.layout == layout && t.input.n == 1));
        }
        assert_eq!(tasks[0].shape(), "7x11x13 nn");
    }
}
