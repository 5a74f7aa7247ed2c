//! Conformance of anything that draws legal points.

use crate::toy;
use crate::violation::{Conformity, ensure};
use std::collections::BTreeSet;
use tilewright_core::problem::Problem;
use tilewright_core::space::{BoundSpace, Point};

const SUITE: &str = "sampler";

/// Draws from a space with a seed: the next legal point, or none when the sampler has given up.
pub type Draw<'s> = Box<dyn FnMut() -> Option<Point> + 's>;

/// Makes a sampler for a space from a seed.
pub type Make<'m> = &'m dyn for<'s> Fn(&'s BoundSpace, u64) -> Draw<'s>;

/// Holds a sampler to its contract on the toy kernel.
///
/// Checked: legal points only; the same seed draws the same, another seed draws otherwise; every legal point of a small
/// space turns up, every value of every parameter of a large one; an empty space ends.
///
/// # Errors
/// The first broken promise.
pub fn sampler(make: Make<'_>) -> Conformity {
    let empty = toy::tiny_problem(0);
    let drawn = make(empty.space(), 1)();
    ensure!(drawn.is_none(), "empty-space-ends", "{drawn:?} drawn from a space without legal points");
    for points in 1..=3 {
        let problem = toy::tiny_problem(points);
        let distinct: BTreeSet<_> = take(make, problem.space(), 1, 300)?.into_iter().collect();
        ensure!(
            distinct.len() == points,
            "small-spaces-are-covered",
            "{} of {points} points in 300 draws",
            distinct.len()
        );
    }
    let problem = toy::problem(5000);
    let space = problem.space();
    let first = take(make, space, 1, 500)?;
    ensure!(first.len() == 500, "draws-enough", "{} of 500 draws gave a point", first.len());
    ensure!(first == take(make, space, 1, 500)?, "sampler-repeats", "two series of seed 1 differ");
    ensure!(first != take(make, space, 2, 500)?, "sampler-follows-seed", "seeds 1 and 2 draw the same series");
    for (i, param) in space.params().iter().enumerate() {
        let seen: BTreeSet<u16> = first.iter().map(|p| p[i]).collect();
        ensure!(
            seen.len() == param.values.len(),
            "values-are-covered",
            "{} of {} values of {:?} in 500 draws",
            seen.len(),
            param.values.len(),
            param.name
        );
    }
    Ok(())
}

fn take(make: Make<'_>, space: &BoundSpace, seed: u64, count: usize) -> Result<Vec<Point>, crate::Violation> {
    let mut draw = make(space, seed);
    let points: Vec<Point> = std::iter::from_fn(&mut *draw).take(count).collect();
    for point in &points {
        ensure!(space.is_legal(point), "draws-legal-points", "{point:?}");
    }
    Ok(points)
}
