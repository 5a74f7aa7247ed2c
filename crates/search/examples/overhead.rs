//! What a proposal costs by strategy, and how fast a whole space is gone through.
//!
//! ```text
//! cargo run --release -p tilewright-search --example overhead
//! ```
//!
//! A space of about 10^5 legal points; 400 evaluations that take no time. One line a strategy: microseconds of asking for a
//! point and telling its outcome, mean and greatest, making the search not counted; at last evaluations a second over every
//! point.

use std::error::Error;
use std::time::{Duration, Instant};
use tilewright_core::measurement::Measurement;
use tilewright_core::objective::Objective;
use tilewright_core::space::{Param, ParamSpace, Point, RuleGroup, Symbols};
use tilewright_search::drive::{Budget, Recorded, drive};
use tilewright_search::{Setup, Strategy};

const EVALUATIONS: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let params = names.map(|n| Param::ints(n, [1, 2, 4, 8, 16]));
    let space = ParamSpace::builder().params(params).rule("r", RuleGroup::User, "a * b * c * d <= 256", "").build()?;
    let space = space.bind(&Symbols::new())?;
    let setup = Setup::new(&space);
    println!(
        "{} points, {EVALUATIONS} evaluations\n\n| strategy | mean us | greatest us |\n|---|---|---|",
        setup.listing.get()?.len()
    );
    for strategy in Strategy::ALL {
        let (mean, most) = proposals(strategy, &setup)?;
        println!("| {strategy} | {:.1} | {:.1} |", 1e6 * mean.as_secs_f64(), 1e6 * most.as_secs_f64());
    }
    let mut search = Strategy::Exhaustive.make(&setup, 1)?;
    let start = Instant::now();
    let mut recorded = Recorded::new(1024, |p: &Point| Some((Ok(Measurement::recorded(cost(p))), 0.0)));
    let trace = drive(&mut *search, "exhaustive", &Objective::default(), &Budget::NONE, &mut recorded)?;
    println!("\nevery point: {:.2e} evaluations/s", trace.evaluations as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

/// Mean and greatest time of a proposal and its outcome.
fn proposals(strategy: Strategy, setup: &Setup<'_>) -> Result<(Duration, Duration), Box<dyn Error>> {
    let mut search = strategy.make(setup, 1)?;
    let (mut total, mut most, mut count) = (Duration::ZERO, Duration::ZERO, 0);
    while count < EVALUATIONS {
        let start = Instant::now();
        let asked = search.ask(1);
        let Some(point) = asked.into_iter().next() else { break };
        let outcome = Ok(Measurement::recorded(cost(&point)));
        search.tell(&[(point, outcome)]);
        let took = start.elapsed();
        (total, most, count) = (total + took, most.max(took), count + 1);
    }
    Ok((total / count.max(1) as u32, most))
}

fn cost(point: &Point) -> f64 {
    1.0 + point.0.iter().enumerate().map(|(i, v)| (f64::from(*v) - i as f64 * 0.5).powi(2)).sum::<f64>()
}
