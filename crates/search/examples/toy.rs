//! The toy kernel, searched with a model and by measuring.
//!
//! ```text
//! cargo run --release -p tilewright-search --example toy
//! ```

use tilewright_core::measurement::Measurement;
use tilewright_core::objective::Objective;
use tilewright_core::predictor::{Fit, Predictor};
use tilewright_core::problem::Problem;
use tilewright_core::search::Search;
use tilewright_core::space::Point;
use tilewright_search::strategy::{Local, Random};
use tilewright_search::{Options, Setup, Strategy, exhaustive};
use tilewright_testkit::toy;

/// Measures at most `budget` points that a strategy asks for; the best time.
fn measure(problem: &dyn Problem, mut search: Box<dyn Search + '_>, budget: usize) -> f64 {
    let mut left = budget;
    while left > 0 {
        let points = search.ask(left.min(8));
        if points.is_empty() {
            break;
        }
        left -= points.len();
        let seconds = |p: &Point| Ok(Measurement::recorded(toy::cost_s(problem, p)));
        let outcomes: Vec<_> = points.into_iter().map(|p| (p.clone(), seconds(&p))).collect();
        search.tell(&outcomes);
    }
    search.best().points.first().map_or(f64::INFINITY, |(_, cost)| *cost)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let problem = toy::problem(10_000);
    let (_, optimum) = toy::optimum(&problem).ok_or("nothing is legal")?;

    let model = toy::LogLinearFit.fit(&toy::training_set(&[500, 3_000, 50_000], 200, 1), 1)?;
    let scorer = model.bind(&problem)?;
    let found = exhaustive(&problem, &*scorer, &Options::top(5));
    println!("{} legal points, the model's best five:", found.statistics.legal);
    for (point, predicted) in &found.ranked.points {
        let share = optimum / toy::cost_s(&problem, point);
        println!("  {}: {predicted:.3e} s expected, {share:.3} of the optimum", problem.space().config(point));
    }

    let (space, objective) = (problem.space(), Objective::default());
    let starts: Vec<Point> = found.ranked.points.into_iter().map(|(p, _)| p).collect();
    for (name, best) in [
        ("every point in order", measure(&problem, Strategy::Exhaustive.make(&Setup::new(space), 0)?, usize::MAX)),
        ("40 at random", measure(&problem, Box::new(Random::new(space, objective.clone(), 1)), 40)),
        (
            "40 around the model's best",
            measure(&problem, Box::new(Local::new(space, objective.clone(), starts, 1)), 40),
        ),
    ] {
        println!("{name}: {:.3} of the optimum", optimum / best);
    }
    Ok(())
}
