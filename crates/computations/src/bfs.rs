//! Breadth-first search from a few sources.

mod drive;
mod phases;

use crate::computation::{Computation, InputFeature, Named, Variant, Work};
use crate::generate::{self, graphs, rng};
use crate::matrix::{some, spread};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Neighbours of every vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        self.starts.len() - 1
    }

    /// Neighbours of a vertex.
    #[inline(always)]
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.targets[self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize]
    }

    /// Numbers of neighbours.
    pub fn degrees(&self) -> impl Iterator<Item = usize> + Clone {
        self.starts.windows(2).map(|w| (w[1] - w[0]) as usize)
    }
}

/// A graph, and where searches begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The graph.
    pub graph: Graph,
    /// One search begins at each.
    pub sources: Vec<u32>,
}

impl Search {
    /// Sources at random, with neighbours where that is possible.
    pub fn of(graph: Graph, count: usize, seed: u64) -> Self {
        let mut rng = rng("sources", seed);
        let vertices = graph.vertices() as u32;
        // Where a graph has next to no edges, a source without neighbours is what there is.
        let mut draw = || {
            let mut tries = (0..32).map(|_| rng.random_range(0..vertices));
            tries.find(|&v| !graph.neighbours(v).is_empty()).unwrap_or(vertices / 2)
        };
        let sources = if vertices == 0 { Vec::new() } else { (0..count).map(|_| draw()).collect() };
        Self { graph, sources }
    }
}

/// The label of what was not reached.
pub const UNREACHED: u32 = u32::MAX;

/// Breadth-first search: the distance of every vertex from each source.
pub struct Bfs;

fn work(s: &Search, edge_traffic: f64, atomics_per_vertex: f64, skipped: f64) -> Work {
    let edges = s.graph.targets.len() as f64 * (1.0 - skipped);
    let vertices = s.graph.vertices() as f64;
    Work {
        atomics: atomics_per_vertex * vertices,
        streamed: (1.0 + edge_traffic) * edges + 3.0 * vertices,
        cached: edges,
        other: 2.0 * edges + 4.0 * vertices,
        ..Work::default()
    }
}

impl Computation for Bfs {
    const NAME: &'static str = "bfs";
    type Input = Search;
    type Output = Vec<u32>;

    fn variants() -> Vec<Variant<Search, Vec<u32>>> {
        let legal = |_: &Search| Ok(());
        vec![
            Variant {
                name: "ec-fused",
                legal,
                prepare: |s| drive::fused::<phases::ExpandContract>(s),
                work: |s| work(s, 0.0, 1.0, 0.0),
            },
            Variant {
                name: "ec-iterative",
                legal,
                prepare: |s| drive::iterative::<phases::ExpandContract>(s),
                work: |s| work(s, 0.0, 1.0, 0.0),
            },
            Variant {
                name: "ce-fused",
                legal,
                prepare: |s| drive::fused::<phases::ContractExpand>(s),
                work: |s| work(s, 2.0, 0.0, 0.0),
            },
            Variant {
                name: "ce-iterative",
                legal,
                prepare: |s| drive::iterative::<phases::ContractExpand>(s),
                work: |s| work(s, 2.0, 0.0, 0.0),
            },
            Variant {
                name: "2-phase-fused",
                legal,
                prepare: |s| drive::fused::<phases::TwoPhase>(s),
                work: |s| work(s, 2.0, 1.0, 0.0),
            },
            Variant {
                name: "2-phase-iterative",
                legal,
                prepare: |s| drive::iterative::<phases::TwoPhase>(s),
                work: |s| work(s, 2.0, 1.0, 0.0),
            },
            Variant {
                name: "direction-fused",
                legal,
                prepare: |s| drive::fused::<phases::Direction>(s),
                work: |s| work(s, 0.0, 0.5, 0.5),
            },
            Variant {
                name: "direction-iterative",
                legal,
                prepare: |s| drive::iterative::<phases::Direction>(s),
                work: |s| work(s, 0.0, 0.5, 0.5),
            },
        ]
    }

    fn features() -> Vec<InputFeature<Search>> {
        let plain = |name, of: fn(&Search) -> f64| InputFeature { name, flag: false, of };
        // Of some vertices: all of them take as long as a search.
        fn degrees(s: &Search) -> (f64, f64, f64) {
            spread(some(s.graph.vertices(), 128).map(|v| s.graph.neighbours(v as u32).len()))
        }
        vec![
            plain("avg_out_deg", |s| s.graph.targets.len() as f64 / s.graph.vertices().max(1) as f64),
            plain("deg_sd", |s| degrees(s).1),
            plain("max_deviation", |s| degrees(s).2),
            plain("vertices", |s| s.graph.vertices() as f64),
            plain("edges", |s| s.graph.targets.len() as f64),
            // Degrees do not tell a grid from a random graph: how fast a frontier grows decides.
            plain("look_levels", |s| look(s).0),
            plain("look_growth", |s| look(s).1),
        ]
    }

    fn reference(s: &Search) -> Vec<u32> {
        let mut all = Vec::new();
        for &source in &s.sources {
            let mut distance = vec![UNREACHED; s.graph.vertices()];
            distance[source as usize] = 0;
            let mut queue = std::collections::VecDeque::from([source]);
            while let Some(v) = queue.pop_front() {
                for &w in s.graph.neighbours(v) {
                    if distance[w as usize] == UNREACHED {
                        distance[w as usize] = distance[v as usize] + 1;
                        queue.push_back(w);
                    }
                }
            }
            all.extend(distance);
        }
        all
    }

    fn judge(s: &Search, expected: &Vec<u32>, found: &Vec<u32>) -> Result<(), String> {
        let at = expected.iter().zip(found).position(|(e, f)| e != f);
        let at = at.or_else(|| (expected.len() != found.len()).then_some(found.len()));
        let n = s.graph.vertices().max(1);
        let shown = |at: usize| {
            format!("source {}, vertex {}: {:?} instead of {:?}", at / n, at % n, found.get(at), expected.get(at))
        };
        at.map_or(Ok(()), |at| Err(shown(at)))
    }

    fn inputs() -> Vec<Named<Search>> {
        generate::collection("graphs", 200, |rng, seed| {
            let edges = generate::sized(rng, 1500.0, 40_000.0);
            let (family, arguments, make) = draw(rng, edges, seed);
            Named::new(family, &arguments, move || Search::of(make(), 2, 1))
        })
    }
}

/// Makes a graph.
type Make = Box<dyn Fn() -> Graph + Send + Sync>;

/// A graph with about so many edges.
fn draw(rng: &mut ChaCha8Rng, edges: f64, seed: u64) -> (&'static str, String, Make) {
    let within = |v: f64, least: f64| v.round().max(least) as usize;
    match seed % 6 {
        0 => {
            let width = within((edges / 2.0).powf(rng.random_range(0.3..0.7)), 2.0);
            let height = within(edges / 2.0 / width as f64, 2.0);
            ("grid", format!("{width},{height}"), Box::new(move || graphs::grid(width, height)))
        }
        1 => {
            let per = within(generate::sized(rng, 2.0, 24.0), 2.0);
            let scale = (edges / per as f64).log2().round().max(6.0) as u32;
            ("rmat", format!("{scale},{per},{seed}"), Box::new(move || graphs::rmat(scale, per, seed)))
        }
        2 => {
            let vertices = within(edges / generate::sized(rng, 0.8, 30.0), 60.0);
            let edges = edges as usize;
            let make = move || graphs::uniform(vertices, edges, seed);
            ("erdos-renyi", format!("{vertices},{edges},{seed}"), Box::new(make))
        }
        3 => {
            let near = within(generate::sized(rng, 2.0, 20.0), 2.0);
            let far = f64::from(within(generate::sized(rng, 3.0, 300.0), 1.0) as u32) / 1000.0;
            let vertices = within(edges / near as f64, 60.0);
            let make = move || graphs::small_world(vertices, near, far, seed);
            ("small-world", format!("{vertices},{near},{far},{seed}"), Box::new(make))
        }
        4 => {
            let size = within(generate::sized(rng, 12.0, 200.0), 2.0);
            let count = within(edges / (size * size / 2) as f64, 2.0);
            ("cliques", format!("{count},{size}"), Box::new(move || graphs::cliques(count, size)))
        }
        _ => {
            let count = within(generate::sized(rng, 1.0, 300.0), 1.0);
            let leaves = within(edges / count as f64, 3.0);
            ("stars", format!("{count},{leaves}"), Box::new(move || graphs::stars(count, leaves)))
        }
    }
}

/// Vertices after which a look around a source ends.
const LOOK: usize = 160;

/// Levels, and vertices a level, of the search from the first source until [`LOOK`] vertices were seen, or all.
fn look(s: &Search) -> (f64, f64) {
    let Some(&source) = s.sources.first() else { return (0.0, 0.0) };
    let mut seen = vec![0u64; s.graph.vertices().div_ceil(64)];
    let mut mark = |v: u32| {
        let (word, bit) = (&mut seen[v as usize / 64], 1 << (v % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    };
    mark(source);
    let (mut queue, mut levels, mut from) = (vec![source], 0u32, 0);
    while from < queue.len() && queue.len() < LOOK {
        let to = queue.len();
        for at in from..to {
            // Of a vertex with many neighbours, the first ones are enough.
            for &v in s.graph.neighbours(queue[at]).iter().take(LOOK) {
                if mark(v) {
                    queue.push(v);
                }
            }
        }
        (from, levels) = (to, levels + 1);
    }
    (f64::from(levels), queue.len() as f64 / f64::from(levels.max(1)))
}
