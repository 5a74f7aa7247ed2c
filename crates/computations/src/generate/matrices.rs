//! Sparse matrices: stencils, bands, scattered diagonals, blocks, meshes, power laws, R-MAT.

use super::rng;
use crate::matrix::Csr;
use rand::Rng;
use rand::seq::SliceRandom;

type Entries = Vec<(u32, u32, f64)>;

/// A stencil on a grid: 5 points in two dimensions, 7 or 27 in three. Symmetric, the diagonal is the sum of the others'
/// sizes plus `shift`.
pub fn stencil(points: usize, side: usize, shift: f64) -> Csr {
    let depth = if points == 5 { 1 } else { side };
    let at = |x: usize, y: usize, z: usize| ((z * side + y) * side + x) as u32;
    let mut entries = Entries::new();
    for z in 0..depth {
        for y in 0..side {
            for x in 0..side {
                let row = at(x, y, z);
                let mut sum = shift;
                for (dx, dy, dz) in neighbours(points) {
                    let moved = |v: usize, d: i64, most: usize| v.checked_add_signed(d as isize).filter(|&v| v < most);
                    let place = (moved(x, dx, side), moved(y, dy, side), moved(z, dz, depth));
                    sum += 1.0;
                    if let (Some(x), Some(y), Some(z)) = place {
                        entries.push((row, at(x, y, z), -1.0));
                    }
                }
                entries.push((row, row, sum));
            }
        }
    }
    let rows = side * side * depth;
    Csr::of_entries(rows, rows, entries)
}

fn neighbours(points: usize) -> Vec<(i64, i64, i64)> {
    let all = (0..27).map(|i| (i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1)).filter(|&d| d != (0, 0, 0));
    let axes = |d: &(i64, i64, i64)| d.0.abs() + d.1.abs() + d.2.abs();
    all.filter(|d| match points {
        5 => axes(d) == 1 && d.2 == 0,
        7 => axes(d) == 1,
        _ => true,
    })
    .collect()
}

/// Entries near the diagonal, each present with probability `density`.
pub fn banded(rows: usize, half_width: usize, density: f64, seed: u64) -> Csr {
    let mut rng = rng("banded", seed);
    let mut entries = Entries::new();
    for row in 0..rows {
        for column in row.saturating_sub(half_width)..(row + half_width + 1).min(rows) {
            if row == column || rng.random_bool(density) {
                entries.push((row as u32, column as u32, rng.random_range(-1.0..1.0)));
            }
        }
    }
    Csr::of_entries(rows, rows, entries)
}

/// Full diagonals at random distances.
pub fn diagonals(rows: usize, count: usize, seed: u64) -> Csr {
    let mut rng = rng("diagonals", seed);
    let mut offsets: Vec<i64> = (0..count).map(|_| rng.random_range(-(rows as i64) / 2..=rows as i64 / 2)).collect();
    offsets.push(0);
    offsets.sort_unstable();
    offsets.dedup();
    let mut entries = Entries::new();
    for row in 0..rows {
        for column in offsets.iter().filter_map(|o| row.checked_add_signed(*o as isize)).filter(|&c| c < rows) {
            entries.push((row as u32, column as u32, rng.random_range(-1.0..1.0)));
        }
    }
    Csr::of_entries(rows, rows, entries)
}

/// The same number of entries in every row, anywhere.
pub fn uniform(rows: usize, per_row: usize, seed: u64) -> Csr {
    let entries = scattered(rows, per_row, &mut rng("uniform", seed));
    Csr::of_entries(rows, rows, entries)
}

/// So many entries in every row of a square, anywhere.
fn scattered(rows: usize, per_row: usize, rng: &mut impl Rng) -> Entries {
    let count = rows as u32;
    let rows = (0..count).flat_map(|row| std::iter::repeat_n(row, per_row));
    rows.map(|row| (row, rng.random_range(0..count), rng.random_range(-1.0..1.0))).collect()
}

/// So many entries anywhere in a rectangle; those at the same place are added up.
pub fn sparse(rows: usize, cols: usize, entries: usize, seed: u64) -> Csr {
    let mut rng = rng("sparse", seed);
    let count = if rows == 0 || cols == 0 { 0 } else { entries };
    let mut draw = || (rng.random_range(0..rows as u32), rng.random_range(0..cols as u32), rng.random_range(-1.0..1.0));
    Csr::of_entries(rows, cols, (0..count).map(|_| draw()).collect())
}

/// The shortest row of [`power_law`], before lengths are rounded.
fn power_law_scale(mean: f64, exponent: f64) -> f64 {
    mean * (exponent - 2.0).max(0.1) / (exponent - 1.0)
}

/// The mean length of a row of [`power_law`]: that of Pareto's distribution, cut off at the longest.
pub fn power_law_length(mean: f64, exponent: f64, longest: f64) -> f64 {
    let (scale, alpha) = (power_law_scale(mean, exponent), exponent - 1.0);
    if longest <= scale {
        return longest;
    }
    let tail = if (alpha - 1.0).abs() < 1e-6 {
        (longest / scale).ln()
    } else {
        ((longest / scale).powf(1.0 - alpha) - 1.0) / (1.0 - alpha)
    };
    scale * (1.0 + tail)
}

/// Rows whose lengths follow a power law with this exponent, at most `longest`.
pub fn power_law(rows: usize, mean: f64, exponent: f64, longest: usize, seed: u64) -> Csr {
    let mut rng = rng("power-law", seed);
    let mut entries = Entries::new();
    let scale = power_law_scale(mean, exponent);
    for row in 0..rows as u32 {
        let u: f64 = rng.random_range(1e-9..1.0);
        let length = (scale * u.powf(-1.0 / (exponent - 1.0))).round() as usize;
        for _ in 0..length.min(longest).min(rows) {
            entries.push((row, rng.random_range(0..rows as u32), rng.random_range(-1.0..1.0)));
        }
    }
    Csr::of_entries(rows, rows, entries)
}

/// Chakrabarti, Zhan and Faloutsos's recursive matrix with the probabilities 0.57, 0.19, 0.19, 0.05, `2^scale` rows.
pub fn rmat(scale: u32, per_row: usize, seed: u64) -> Csr {
    let mut rng = rng("rmat", seed);
    let rows = 1usize << scale;
    let mut entries = Entries::new();
    for _ in 0..rows * per_row {
        let (row, column) = (0..scale).fold((0, 0), |(row, column), _| {
            let u: f64 = rng.random();
            let (down, right) = match u {
                u if u < 0.57 => (0, 0),
                u if u < 0.76 => (0, 1),
                u if u < 0.95 => (1, 0),
                _ => (1, 1),
            };
            (row << 1 | down, column << 1 | right)
        });
        entries.push((row, column, rng.random_range(-1.0..1.0)));
    }
    Csr::of_entries(rows, rows, entries)
}

/// Dense blocks of this size, `per_row` of them in every row of blocks, one on the diagonal.
pub fn blocks(count: usize, size: usize, per_row: usize, seed: u64) -> Csr {
    let mut rng = rng("blocks", seed);
    let mut entries = Entries::new();
    for block in 0..count {
        for k in 0..per_row {
            let other = if k == 0 { block } else { rng.random_range(0..count) };
            for i in 0..size {
                for j in 0..size {
                    let place = ((block * size + i) as u32, (other * size + j) as u32);
                    entries.push((place.0, place.1, rng.random_range(-1.0..1.0)));
                }
            }
        }
    }
    Csr::of_entries(count * size, count * size, entries)
}

/// Linear finite elements on a triangulated square whose points are shaken and numbered at random within windows of
/// `mixing` points: a stiffness matrix plus `mass` on the diagonal. Symmetric and positive definite for `mass > 0`.
pub fn mesh(side: usize, mixing: usize, mass: f64, seed: u64) -> Csr {
    let mut rng = rng("mesh", seed);
    let count = side * side;
    let mut number: Vec<u32> = (0..count as u32).collect();
    number.chunks_mut(mixing.max(1)).for_each(|window| window.shuffle(&mut rng));
    let mut shaken = |i: usize| {
        let (x, y) = ((i % side) as f64, (i / side) as f64);
        (x + rng.random_range(-0.3..0.3), y + rng.random_range(-0.3..0.3))
    };
    let points: Vec<(f64, f64)> = (0..count).map(&mut shaken).collect();
    let mut entries: Entries = number.iter().map(|&n| (n, n, mass)).collect();
    for y in 0..side.saturating_sub(1) {
        for x in 0..side - 1 {
            let corner = y * side + x;
            element([corner, corner + 1, corner + side], &points, &number, &mut entries);
            element([corner + 1, corner + side + 1, corner + side], &points, &number, &mut entries);
        }
    }
    Csr::of_entries(count, count, entries)
}

/// Adds the stiffness of one triangle.
fn element(corners: [usize; 3], points: &[(f64, f64)], number: &[u32], entries: &mut Entries) {
    let p = corners.map(|c| points[c]);
    let edge = |i: usize| (p[(i + 2) % 3].0 - p[(i + 1) % 3].0, p[(i + 2) % 3].1 - p[(i + 1) % 3].1);
    let area2 = (edge(0).0 * edge(1).1 - edge(0).1 * edge(1).0).abs().max(0.05);
    for i in 0..3 {
        for j in 0..3 {
            let stiffness = (edge(i).0 * edge(j).0 + edge(i).1 * edge(j).1) / (2.0 * area2);
            entries.push((number[corners[i]], number[corners[j]], stiffness));
        }
    }
}

/// Short rows and some that are full.
pub fn with_full_rows(rows: usize, per_row: usize, full: usize, seed: u64) -> Csr {
    let mut rng = rng("full-rows", seed);
    let mut entries = scattered(rows, per_row, &mut rng);
    for _ in 0..full {
        let row = rng.random_range(0..rows as u32);
        entries.extend((0..rows as u32).map(|c| (row, c, rng.random_range(-1.0..1.0))));
    }
    Csr::of_entries(rows, rows, entries)
}

/// `D A D` with diagonals of `D` spread over this many powers of ten: symmetric as `A` is, and badly scaled.
pub fn scaled(matrix: &Csr, powers: f64, seed: u64) -> Csr {
    let mut rng = rng("scaled", seed);
    let scale: Vec<f64> =
        (0..matrix.rows()).map(|_| 10f64.powf(rng.random_range(-powers / 2.0..=powers / 2.0))).collect();
    let mut out = matrix.clone();
    for (at, (row, column, value)) in matrix.entries().enumerate() {
        out.values[at] = value * scale[row] * scale[column];
    }
    out
}

/// Symmetric positive definite blocks that are nearly singular, and weak links from each block to the next.
pub fn coupled_blocks(count: usize, size: usize, coupling: f64, seed: u64) -> Csr {
    let mut rng = rng("coupled-blocks", seed);
    let mut entries = Entries::new();
    for block in 0..count {
        let first = (block * size) as u32;
        let v: Vec<f64> = (0..size).map(|_| rng.random_range(0.5..1.5)).collect();
        for i in 0..size {
            for j in 0..size {
                let own = if i == j { 0.1 + 2.0 * coupling } else { 0.0 };
                entries.push((first + i as u32, first + j as u32, v[i] * v[j] + own));
            }
        }
        let next = (block + 1) * size;
        if next < count * size {
            for i in 0..size as u32 {
                let value = coupling * rng.random_range(-1.0..1.0);
                entries.push((first + i, next as u32 + i, value));
                entries.push((next as u32 + i, first + i, value));
            }
        }
    }
    Csr::of_entries(count * size, count * size, entries)
}

/// A random symmetric matrix whose diagonal exceeds the sum of the others' sizes by this share of it, or falls short.
pub fn dominant(rows: usize, per_row: usize, excess: f64, seed: u64) -> Csr {
    let mut rng = rng("dominant", seed);
    let (mut entries, mut sums) = (Entries::new(), vec![0.0; rows]);
    for row in 0..rows {
        for _ in 0..per_row.div_ceil(2) {
            let column = rng.random_range(0..rows);
            if column == row {
                continue;
            }
            let value: f64 = rng.random_range(-1.0..1.0);
            entries.push((row as u32, column as u32, value));
            entries.push((column as u32, row as u32, value));
            sums[row] += value.abs();
            sums[column] += value.abs();
        }
    }
    entries.extend(sums.iter().enumerate().map(|(i, s)| (i as u32, i as u32, s * (1.0 + excess) + 1e-3)));
    Csr::of_entries(rows, rows, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a matrix will hold is told before it is made, also where its exponent has no mean.
    #[test]
    fn lengths_of_a_power_law_are_foretold() {
        for (mean, exponent, longest) in [(8.0, 1.5, 500), (8.0, 2.0, 500), (10.0, 2.5, 1000), (6.0, 4.0, 1000)] {
            let rows = 20_000;
            let made = power_law(rows, mean, exponent, longest, 3).nonzeros() as f64 / rows as f64;
            let told = power_law_length(mean, exponent, longest as f64);
            assert!((made / told - 1.0).abs() < 0.1, "{exponent}: {made} {told}");
        }
        assert!(power_law_length(1e4, 3.0, 5.0) <= 5.0);
    }
}
