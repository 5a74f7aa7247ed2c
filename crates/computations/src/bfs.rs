//! Breadth-first search from a few sources.

mod drive;
mod phases;

use crate::computation::{Computation, InputFeature, Named, Variant, Work};
use crate::generate::{graphs, rng};
use crate::matrix::spread;
use rand::Rng;

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
        fn degrees(s: &Search) -> (f64, f64, f64) {
            spread(s.graph.degrees())
        }
        vec![
            plain("avg_out_deg", |s| degrees(s).0),
            plain("deg_sd", |s| degrees(s).1),
            plain("max_deviation", |s| degrees(s).2),
            plain("vertices", |s| s.graph.vertices() as f64),
            plain("edges", |s| s.graph.targets.len() as f64),
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
        type Make = Box<dyn Fn() -> Graph + Send + Sync>;
        let mut all: Vec<(&'static str, String, Make)> = Vec::new();
        for (width, height) in [(12, 9), (40, 40), (90, 100), (160, 150), (400, 20), (2000, 5), (230, 240), (6000, 1)] {
            all.push(("grid", format!("{width},{height}"), Box::new(move || graphs::grid(width, height))));
        }
        for (seed, (scale, per)) in
            [(8, 4), (10, 8), (11, 16), (12, 4), (12, 24), (13, 8), (14, 4), (14, 12), (15, 3), (13, 2)]
                .into_iter()
                .enumerate()
        {
            all.push((
                "rmat",
                format!("{scale},{per},{seed}"),
                Box::new(move || graphs::rmat(scale, per, seed as u64)),
            ));
        }
        for (seed, (vertices, edges)) in [
            (300, 600),
            (1000, 8000),
            (5000, 10_000),
            (5000, 60_000),
            (16_000, 24_000),
            (16_000, 120_000),
            (30_000, 40_000),
            (2000, 90_000),
            (40_000, 100_000),
            (9000, 30_000),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || graphs::uniform(vertices, edges, seed as u64);
            all.push(("erdos-renyi", format!("{vertices},{edges},{seed}"), Box::new(make)));
        }
        for (seed, (vertices, near, far)) in [
            (2000, 2, 0.01),
            (8000, 4, 0.1),
            (20_000, 3, 0.05),
            (10_000, 10, 0.02),
            (30_000, 2, 0.3),
            (4000, 20, 0.001),
            (12_000, 6, 0.01),
        ]
        .into_iter()
        .enumerate()
        {
            let make = move || graphs::small_world(vertices, near, far, seed as u64);
            all.push(("small-world", format!("{vertices},{near},{far},{seed}"), Box::new(make)));
        }
        for (count, size) in [(10, 20), (100, 30), (20, 120), (400, 12), (5, 300), (1500, 6)] {
            all.push(("cliques", format!("{count},{size}"), Box::new(move || graphs::cliques(count, size))));
        }
        for (count, leaves) in [(1, 3000), (4, 800), (40, 300), (300, 60), (2, 20_000), (2000, 10)] {
            all.push(("stars", format!("{count},{leaves}"), Box::new(move || graphs::stars(count, leaves))));
        }
        let named = |(family, arguments, make): (_, String, Make)| {
            Named::new(family, &arguments, move || Search::of(make(), 2, 1))
        };
        all.into_iter().map(named).collect()
    }
}
