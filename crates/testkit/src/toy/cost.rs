//! The analytic cost of the toy kernel, with its minimum in closed form.

use super::kernel::ScaleConfig;
use tilewright_core::expr::Value;
use tilewright_core::problem::Problem;
use tilewright_core::space::{Config, Point};

/// Seconds of one call.
const CALL_S: f64 = 1e-6;
/// Seconds of one byte.
const BYTE_S: f64 = 1e-10;

fn fact(fields: &Config, name: &str) -> usize {
    fields.get(name).and_then(Value::as_int).map_or(0, |i| i.unsigned_abs() as usize)
}

/// The configuration with the least cost for `n` elements on a device with that many registers.
///
/// It is legal whenever the device has a register: a step of `width * unroll` fits, and there are at least 64 elements
/// a chunk.
pub fn target(n: usize, registers: usize) -> ScaleConfig {
    let fitting = |limit: usize, most: usize| {
        let mut value = 1;
        while value * 2 <= limit.min(most) {
            value *= 2;
        }
        value
    };
    let width = fitting((n / 256).min(registers), 8);
    let unroll = fitting(registers / width, 8);
    let chunks = fitting(n / 64, 8);
    let prefetch = if n < 4096 { 1 } else { 16 };
    ScaleConfig { width, unroll, chunks, prefetch, backward: false }
}

/// Seconds that a point of the toy kernel takes: a floor by bytes, times one plus the squared distances (in powers of
/// two) of every parameter from [`target`]. Strictly above the optimum for every other point.
pub fn cost_s(problem: &dyn Problem, point: &[u16]) -> f64 {
    let input = problem.input();
    let n = fact(&input, "n");
    let element_bytes = if input.get("dtype").and_then(Value::as_str) == Some("f64") { 8.0 } else { 4.0 };
    let best = target(n, registers(problem));
    let config = problem.space().config(point);
    let apart = |name: &str, best: usize| ((fact(&config, name) as f64) / best as f64).log2().powi(2);
    let backward = config.get("order").and_then(Value::as_str) == Some("backward");
    let penalty = 0.20 * apart("width", best.width)
        + 0.10 * apart("unroll", best.unroll)
        + 0.05 * apart("chunks", best.chunks)
        + 0.02 * apart("prefetch", best.prefetch)
        + if backward { 0.5 } else { 0.0 };
    (CALL_S + 2.0 * n as f64 * element_bytes * BYTE_S) * (1.0 + penalty)
}

fn registers(problem: &dyn Problem) -> usize {
    problem.device().fact("registers").map_or(1, |r| r.max(1).unsigned_abs() as usize)
}

/// The point with the least cost, and that cost: [`target`] where the space allows it, else the best of a full walk
/// (a restricted space). None if nothing is legal.
pub fn optimum(problem: &dyn Problem) -> Option<(Point, f64)> {
    let best = target(fact(&problem.input(), "n"), registers(problem));
    let fields = Config(vec![
        ("width".into(), Value::from(best.width)),
        ("unroll".into(), Value::from(best.unroll)),
        ("chunks".into(), Value::from(best.chunks)),
        ("prefetch".into(), Value::from(best.prefetch)),
        ("order".into(), Value::from("forward")),
    ]);
    let space = problem.space();
    match fields.to_point(space.params(), None) {
        Ok(point) if space.is_legal(&point) => Some((point.clone(), cost_s(problem, &point))),
        _ => walk(problem),
    }
}

fn walk(problem: &dyn Problem) -> Option<(Point, f64)> {
    let mut best: Option<(Point, f64)> = None;
    problem.space().for_each_legal(|point| {
        let cost = cost_s(problem, point);
        if best.as_ref().is_none_or(|(_, least)| cost < *least) {
            best = Some((Point::from(point), cost));
        }
        true
    });
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy;

    #[test]
    fn the_closed_form_is_the_minimum_of_the_walk() {
        for n in [0, 1, 2, 63, 64, 100, 255, 256, 511, 1000, 4096, 10_000, 1 << 20] {
            let problem = toy::problem(n);
            let (point, seconds) = optimum(&problem).expect("something is legal");
            assert_eq!(walk(&problem), Some((point.clone(), seconds)), "n = {n}");
            let mut ties = 0;
            problem.space().for_each_legal(|p| {
                ties += u32::from(cost_s(&problem, p) <= seconds);
                true
            });
            assert_eq!(ties, 1, "the optimum for n = {n} is not unique");
        }
    }

    #[test]
    fn tiny_spaces_have_the_size_asked_for() {
        for points in 0..=3 {
            let problem = toy::tiny_problem(points);
            assert_eq!(problem.space().count_legal(), points as u64);
            assert_eq!(optimum(&problem).is_some(), points > 0);
        }
    }
}
