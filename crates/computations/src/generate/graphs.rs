//! Undirected graphs: grids, R-MAT, Erdős-Rényi, and what lies between.

use super::{matrices, rng};
use crate::bfs::Graph;
use rand::Rng;

/// A grid of squares.
pub fn grid(width: usize, height: usize) -> Graph {
    let mut edges = Vec::new();
    for at in 0..width * height {
        if (at + 1) % width != 0 {
            edges.push((at as u32, at as u32 + 1));
        }
        if at + width < width * height {
            edges.push((at as u32, (at + width) as u32));
        }
    }
    Graph::of_edges(width * height, &edges)
}

/// Every pair of an R-MAT matrix is an edge.
pub fn rmat(scale: u32, per_vertex: usize, seed: u64) -> Graph {
    let matrix = matrices::rmat(scale, per_vertex, seed);
    let edges: Vec<_> = matrix.entries().map(|(r, c, _)| (r as u32, c as u32)).collect();
    Graph::of_edges(matrix.rows(), &edges)
}

/// Erdős and Rényi's graph with a fixed number of edges.
pub fn uniform(vertices: usize, edges: usize, seed: u64) -> Graph {
    let mut rng = rng("erdos-renyi", seed);
    let mut end = || rng.random_range(0..vertices as u32);
    let count = if vertices == 0 { 0 } else { edges };
    let edges: Vec<_> = (0..count).map(|_| (end(), end())).collect();
    Graph::of_edges(vertices, &edges)
}

/// A ring where each vertex knows the next `near` ones, and some of the links lead anywhere (Watts and Strogatz).
pub fn small_world(vertices: usize, near: usize, far: f64, seed: u64) -> Graph {
    let mut rng = rng("small-world", seed);
    let mut edges = Vec::new();
    for v in 0..vertices {
        for k in 1..=near {
            let other = if rng.random_bool(far) { rng.random_range(0..vertices) } else { (v + k) % vertices };
            edges.push((v as u32, other as u32));
        }
    }
    Graph::of_edges(vertices, &edges)
}

/// Complete groups of vertices in a chain.
pub fn cliques(count: usize, size: usize) -> Graph {
    let mut edges = Vec::new();
    for clique in 0..count {
        let first = (clique * size) as u32;
        for a in 0..size as u32 {
            edges.extend((a + 1..size as u32).map(|b| (first + a, first + b)));
        }
        if clique + 1 < count {
            edges.push((first, first + size as u32));
        }
    }
    Graph::of_edges(count * size, &edges)
}

/// A few vertices that know very many others.
pub fn stars(count: usize, leaves: usize) -> Graph {
    let mut edges = Vec::new();
    for star in 0..count {
        let hub = (star * (leaves + 1)) as u32;
        edges.extend((1..=leaves as u32).map(|leaf| (hub, hub + leaf)));
        if star > 0 {
            edges.push((hub - 1, hub));
        }
    }
    Graph::of_edges(count * (leaves + 1), &edges)
}
