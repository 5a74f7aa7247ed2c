//! Breadth-first search from a few sources.

mod drive;
mod phases;

use crate::description::{DataFeature, Description, Variant, exactly, size, spec};
use crate::generate::{graphs, rng};
use crate::matrix::{Seen, market, some, spread};
use crate::source::{Fault, Field, Generator, at_least};
use rand::Rng;
use std::collections::VecDeque;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// Neighbours of every vertex.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Where each vertex's neighbours start, and where the last one's end.
    pub starts: Vec<u32>,
    /// Neighbours, ascending for each vertex.
    pub targets: Vec<u32>,
}

impl Graph {
    /// An undirected graph. Loops and edges that stand twice are dropped.
    ///
    /// # Panics
    /// On an end that is no vertex.
    pub fn of_edges(vertices: usize, edges: &[(u32, u32)]) -> Self {
        let mut all: Vec<(u32, u32)> =
            edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).filter(|(a, b)| a != b).collect();
        all.sort_unstable();
        all.dedup();
        let mut starts = vec![0; vertices + 1];
        for &(from, _) in &all {
            starts[from as usize + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        Self { starts, targets: all.into_iter().map(|(_, to)| to).collect() }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Neighbours of a vertex.
    #[inline(always)]
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.targets[self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize]
    }
}

/// Searches of one run, each from a source of its own.
const SOURCES: usize = 2;

/// Sources at random, with neighbours where that is possible.
fn sources(graph: &Graph, seed: u64) -> Vec<u32> {
    let mut rng = rng("sources", seed);
    let vertices = graph.vertices() as u32;
    // Where a graph has next to no edges, a source without neighbours is what there is.
    let mut draw = || {
        let mut tries = (0..32).map(|_| rng.random_range(0..vertices));
        tries.find(|&v| !graph.neighbours(v).is_empty()).unwrap_or(vertices / 2)
    };
    if vertices == 0 { Vec::new() } else { (0..SOURCES).map(|_| draw()).collect() }
}

/// The label of what was not reached.
pub const UNREACHED: u32 = u32::MAX;

/// Breadth-first search: `starts` and `targets` of the graph, `sources`, and the `distances` of every vertex from each source, -1
/// (all bits set) where it was not reached.
pub struct Bfs;

/// Beamer's thresholds: one over the share of all vertices that the frontier must exceed to turn round.
const SHARES: [i64; 4] = [5, 10, 20, 40];

impl Description for Bfs {
    const NAME: &'static str = "bfs";
    const FIELD: &'static str = "graph";
    const DRAWN: (f64, f64) = (1500.0, 4e5);
    const ELEMENT_BYTES: f64 = 24.0;
    /// Where a vertex begins and its distances; an edge stands at both ends.
    const BUFFERS: (f64, f64) = (4.0 + 4.0 * SOURCES as f64, 8.0);
    type Data = Graph;

    const GENERATORS: &'static [Generator<Graph>] = GENERATORS;
    const AWKWARD: &'static [&'static str] = &[
        "graph=erdos-renyi,vertices=0,edges=0,seed=1",
        "graph=erdos-renyi,vertices=1,edges=0,seed=1",
        "graph=erdos-renyi,vertices=7,edges=0,seed=1",
        "graph=erdos-renyi,vertices=499,edges=300,seed=1",
        "graph=grid,width=61,height=1",
        "graph=stars,count=3,leaves=50",
        "graph=cliques,count=5,size=9",
    ];
    const FEATURES: &'static [DataFeature<Graph>] = &[
        size("avg_out_deg", |g| g.targets.len() as f64 / g.vertices().max(1) as f64),
        size("deg_sd", |g| degrees(g).1),
        size("max_deviation", |g| degrees(g).2),
        size("vertices", |g| g.vertices() as f64),
        size("edges", |g| g.targets.len() as f64),
        // Degrees do not tell a grid from a random graph: how fast a frontier grows decides.
        size("look_levels", |g| look(g).0),
        size("look_growth", |g| look(g).1),
    ];

    /// The pattern of a square matrix, both ways.
    fn read(file: &[u8]) -> Option<Result<Graph, Fault>> {
        Some(market::parse(file).map(|m| {
            let edges: Vec<_> = m.entries().map(|(r, c, _)| (r as u32, c as u32)).collect();
            Graph::of_edges(m.rows().max(m.cols), &edges)
        }))
    }

    fn work(g: &Graph) -> Work {
        let (vertices, edges) = (g.vertices() as f64, g.targets.len() as f64);
        Work { flops: 0.0, bytes: SOURCES as f64 * (8.0 * vertices + 4.0 * edges) }
    }

    fn specs(g: &Graph) -> Vec<BufferSpec> {
        let sources = if g.vertices() == 0 { 0 } else { SOURCES };
        vec![
            spec("starts", DType::I32, g.starts.len(), Role::In),
            spec("targets", DType::I32, g.targets.len(), Role::In),
            spec("sources", DType::I32, sources, Role::In),
            spec("distances", DType::I32, sources * g.vertices(), Role::Out),
        ]
    }

    fn fill(g: &Graph, _: Filling, seed: u64, buffers: &mut [Buffer]) {
        if let [starts, targets, to, ..] = buffers {
            starts.as_mut_slice::<u32>().copy_from_slice(&g.starts);
            targets.as_mut_slice::<u32>().copy_from_slice(&g.targets);
            to.as_mut_slice::<u32>().copy_from_slice(&sources(g, seed));
        }
    }

    fn reference(g: &Graph, before: &Buffers) -> ExpectedBuffer {
        let mut all = Vec::new();
        for &source in before[2].as_slice::<u32>() {
            let mut distance = vec![-1.0; g.vertices()];
            distance[source as usize] = 0.0;
            let mut queue = VecDeque::from([source]);
            while let Some(v) = queue.pop_front() {
                for &w in g.neighbours(v) {
                    if distance[w as usize] < 0.0 {
                        distance[w as usize] = distance[v as usize] + 1.0;
                        queue.push_back(w);
                    }
                }
            }
            all.extend(distance);
        }
        exactly(3, all)
    }

    fn variants() -> Vec<Variant<Graph>> {
        use drive::{fused, iterative};
        use phases::{ContractExpand, Direction, ExpandContract, TwoPhase};
        let turning = |name, prepare| Variant::new(name, prepare).param("share", &SHARES, 20);
        vec![
            Variant::new("ec-fused", fused::<ExpandContract>),
            Variant::new("ec-iterative", iterative::<ExpandContract>),
            Variant::new("ce-fused", fused::<ContractExpand>),
            Variant::new("ce-iterative", iterative::<ContractExpand>),
            Variant::new("2-phase-fused", fused::<TwoPhase>),
            Variant::new("2-phase-iterative", iterative::<TwoPhase>),
            turning("direction-fused", fused::<Direction>),
            turning("direction-iterative", iterative::<Direction>),
        ]
    }
}

const VERTICES: u64 = 1 << 26;

const GENERATORS: &[Generator<Graph>] = &[
    Generator {
        name: "grid",
        fields: &[Field::whole("width", 1, VERTICES), Field::whole("height", 1, VERTICES)],
        rows: |n| n.real("width") * n.real("height"),
        elements: |n| 2.0 * n.real("width") * n.real("height"),
        make: |n| graphs::grid(n.whole("width"), n.whole("height")),
        draw: |dice, edges| {
            let width = at_least((edges / 2.0).powf(dice.between(0.3, 0.7)), 2.0);
            vec![width, at_least(edges / 2.0 / width, 2.0)]
        },
    },
    Generator {
        name: "rmat",
        fields: &[Field::whole("scale", 1, 26), Field::whole("per_vertex", 0, 1 << 16), Field::seed()],
        rows: |n| n.real("scale").exp2(),
        elements: |n| n.real("scale").exp2() * n.real("per_vertex"),
        make: |n| graphs::rmat(n.whole("scale") as u32, n.whole("per_vertex"), n.seed()),
        draw: |dice, edges| {
            let per = at_least(dice.log(2.0, 24.0), 2.0);
            vec![at_least((edges / per).log2(), 4.0), per, dice.seed()]
        },
    },
    Generator {
        name: "erdos-renyi",
        fields: &[Field::whole("vertices", 0, VERTICES), Field::whole("edges", 0, 1 << 27), Field::seed()],
        rows: |n| n.real("vertices"),
        elements: |n| n.real("edges"),
        make: |n| graphs::uniform(n.whole("vertices"), n.whole("edges"), n.seed()),
        draw: |dice, edges| vec![at_least(edges / dice.log(0.8, 30.0), 20.0), edges.round(), dice.seed()],
    },
    Generator {
        name: "small-world",
        fields: &[
            Field::whole("vertices", 1, VERTICES),
            Field::whole("near", 1, 1 << 16),
            Field::real("far", 0.0, 1.0),
            Field::seed(),
        ],
        rows: |n| n.real("vertices"),
        elements: |n| n.real("vertices") * n.real("near"),
        make: |n| graphs::small_world(n.whole("vertices"), n.whole("near"), n.real("far"), n.seed()),
        draw: |dice, edges| {
            let near = at_least(dice.log(2.0, 20.0), 2.0);
            vec![at_least(edges / near, 20.0), near, dice.decimal(0.003, 0.3), dice.seed()]
        },
    },
    Generator {
        name: "cliques",
        fields: &[Field::whole("count", 1, VERTICES), Field::whole("size", 1, 1 << 14)],
        rows: |n| n.real("count") * n.real("size"),
        elements: |n| n.real("count") * n.real("size").powi(2) / 2.0,
        make: |n| graphs::cliques(n.whole("count"), n.whole("size")),
        draw: |dice, edges| {
            let size = at_least(dice.log(4.0, 200.0f64.min(edges.sqrt())), 2.0);
            vec![at_least(edges / (size * size / 2.0), 2.0), size]
        },
    },
    Generator {
        name: "stars",
        fields: &[Field::whole("count", 1, VERTICES), Field::whole("leaves", 0, VERTICES)],
        rows: |n| n.real("count") * (n.real("leaves") + 1.0),
        elements: |n| n.real("count") * (n.real("leaves") + 1.0),
        make: |n| graphs::stars(n.whole("count"), n.whole("leaves")),
        draw: |dice, edges| {
            let count = at_least(dice.log(1.0, 300.0), 1.0);
            vec![count, at_least(edges / count, 3.0)]
        },
    },
];

/// Mean, standard deviation and largest distance from the mean, of degrees of some vertices: all of them take as long as a search.
fn degrees(g: &Graph) -> (f64, f64, f64) {
    spread(some(g.vertices(), 128).map(|v| g.neighbours(v as u32).len()))
}

/// Vertices after which a look around a source ends.
const LOOK: usize = 160;

/// Levels, and vertices a level, of the search from a source until [`LOOK`] vertices were seen, or all.
fn look(g: &Graph) -> (f64, f64) {
    let Some(source) = sources(g, 0).first().copied() else { return (0.0, 0.0) };
    let mut seen = Seen::new(g.vertices());
    seen.mark(source as usize);
    let (mut queue, mut levels, mut from) = (vec![source], 0u32, 0);
    while from < queue.len() && queue.len() < LOOK {
        let to = queue.len();
        for at in from..to {
            // Of a vertex with many neighbours, the first ones are enough.
            for &v in g.neighbours(queue[at]).iter().take(LOOK) {
                if seen.mark(v as usize) {
                    queue.push(v);
                }
            }
        }
        (from, levels) = (to, levels + 1);
    }
    (f64::from(levels), queue.len() as f64 / f64::from(levels.max(1)))
}
