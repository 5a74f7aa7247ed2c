//! Named task sets: the GEMM inputs that a comparison runs.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Which operands are transposed, as in BLAS: the first letter is A, the second is B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
pub struct Layout {
    /// A is stored k × m and used transposed.
    pub a_transposed: bool,
    /// B is stored n × k and used transposed.
    pub b_transposed: bool,
}

impl Layout {
    /// Neither operand transposed.
    pub const NN: Layout = Layout { a_transposed: false, b_transposed: false };
    /// B transposed.
    pub const NT: Layout = Layout { a_transposed: false, b_transposed: true };
    /// A transposed.
    pub const TN: Layout = Layout { a_transposed: true, b_transposed: false };
    /// Both transposed.
    pub const TT: Layout = Layout { a_transposed: true, b_transposed: true };
    /// All four.
    pub const ALL: [Layout; 4] = [Layout::NN, Layout::NT, Layout::TN, Layout::TT];

    /// `nn`, `nt`, `tn` or `tt`.
    pub fn as_str(self) -> &'static str {
        match (self.a_transposed, self.b_transposed) {
            (false, false) => "nn",
            (false, true) => "nt",
            (true, false) => "tn",
            (true, true) => "tt",
        }
    }
}

impl From<Layout> for &'static str {
    fn from(layout: Layout) -> Self {
        layout.as_str()
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One GEMM of a task set: C (m × n) from A and B with inner size k, column-major, packed leading dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Task {
    /// Unique within its set, e.g. `deepbench-fwd-16`.
    pub name: String,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Inner size.
    pub k: usize,
    /// Transposes.
    pub layout: Layout,
}

impl Task {
    fn new(name: impl Into<String>, m: usize, n: usize, k: usize, layout: Layout) -> Task {
        Task { name: name.into(), m, n, k, layout }
    }

    /// Floating-point operations of one call: a multiply and an add for each of m·n·k.
    pub fn flops(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }

    /// The input in the words of the command line: `m=512 n=512 k=512 layout=nt`.
    pub fn input(&self) -> String {
        format!("m={} n={} k={} layout={}", self.m, self.n, self.k, self.layout)
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

    /// The tasks, in the order of their source.
    pub fn tasks(self) -> Vec<Task> {
        match self {
            TaskSet::IsaacTable4 => isaac_table4(),
            TaskSet::Edges => edges(),
        }
    }
}

impl FromStr for TaskSet {
    type Err = UnknownTaskSet;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        TaskSet::ALL
            .into_iter()
            .find(|set| set.name() == name)
            .ok_or_else(|| UnknownTaskSet { name: name.to_owned() })
    }
}

fn isaac_table4() -> Vec<Task> {
    let mut tasks = Vec::with_capacity(17);
    for size in [512, 1024, 2048] {
        tasks.push(Task::new(format!("linpack-{size}"), size, size, size, Layout::NT));
    }
    for (pass, layout) in [("fwd", Layout::NN), ("bwd", Layout::TN)] {
        for batch in [16, 32, 64, 128] {
            tasks.push(Task::new(format!("deepbench-{pass}-{batch}"), 2560, batch, 2560, layout));
        }
    }
    for channels in [32, 64, 256] {
        tasks.push(Task::new(format!("ica-{channels}"), channels, channels, 60_000, Layout::NT));
    }
    for (iteration, size) in [(0, 4096), (64, 3456), (100, 896)] {
        tasks.push(Task::new(format!("lapack-svd-{iteration}"), size, size, 32, Layout::NT));
    }
    tasks
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

fn edges() -> Vec<Task> {
    let shapes = EDGE_SHAPES.iter();
    shapes
        .flat_map(|&(name, m, n, k)| {
            Layout::ALL.map(|layout| Task::new(format!("{name}-{layout}"), m, n, k, layout))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn table4_is_the_papers() {
        let tasks = TaskSet::IsaacTable4.tasks();
        assert_eq!(tasks.len(), 17);
        let has = |m, n, k, layout| tasks.iter().any(|t| (t.m, t.n, t.k, t.layout) == (m, n, k, layout));
        for size in [512, 1024, 2048] {
            assert!(has(size, size, size, Layout::NT));
        }
        for n in [16, 32, 64, 128] {
            assert!(has(2560, n, 2560, Layout::NN) && has(2560, n, 2560, Layout::TN));
        }
        for c in [32, 64, 256] {
            assert!(has(c, c, 60_000, Layout::NT));
        }
        for size in [4096, 3456, 896] {
            assert!(has(size, size, 32, Layout::NT));
        }
        let flops: f64 = tasks.iter().map(Task::flops).sum();
        assert_eq!(flops, 34_859_925_504.0 + 0.0);
    }

    #[test]
    fn names_are_unique_and_parse() {
        for set in TaskSet::ALL {
            let tasks = set.tasks();
            let names: HashSet<_> = tasks.iter().map(|t| t.name.as_str()).collect();
            assert_eq!(names.len(), tasks.len(), "{}", set.name());
            assert_eq!(set.name().parse(), Ok(set));
        }
        let error = "isaac".parse::<TaskSet>().unwrap_err();
        assert!(error.to_string().contains("isaac-table4"), "{error}");
    }

    #[test]
    fn edges_cover_all_layouts() {
        let tasks = TaskSet::Edges.tasks();
        assert_eq!(tasks.len(), 4 * EDGE_SHAPES.len());
        for layout in Layout::ALL {
            assert!(tasks.iter().any(|t| t.layout == layout && t.n == 1));
        }
        assert_eq!(tasks[0].input(), "m=7 n=11 k=13 layout=nn");
    }
}
