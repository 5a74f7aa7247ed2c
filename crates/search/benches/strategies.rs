//! What a proposal costs on a space of 10^5 points, and how fast a whole space is gone through.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tilewright_core::measurement::{Measurement, Outcome};
use tilewright_core::objective::Objective;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, Symbols};
use tilewright_search::drive::{Budget, Recorded, drive};
use tilewright_search::{Setup, Strategy};

/// About 10^5 legal points of 8 parameters.
fn space() -> BoundSpace {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let params = names.map(|n| Param::ints(n, [1, 2, 4, 8, 16]));
    let space = ParamSpace::builder().params(params).rule("r", RuleGroup::User, "a * b * c * d <= 256", "");
    space.build().and_then(|s| s.bind(&Symbols::new())).expect("the space is sound")
}

fn cost(point: &Point) -> f64 {
    1.0 + point.0.iter().enumerate().map(|(i, v)| (f64::from(*v) - i as f64 * 0.5).powi(2)).sum::<f64>()
}

fn look_up(point: &Point) -> Option<(Outcome, f64)> {
    Some((Ok(Measurement::recorded(cost(point))), 0.0))
}

fn proposals(c: &mut Criterion) {
    let space = space();
    let setup = Setup::new(&space);
    println!("{} points", setup.listing.get().expect("the space is small").len());
    let mut group = c.benchmark_group("400 evaluations");
    group.sample_size(10);
    for strategy in [Strategy::Random, Strategy::Local, Strategy::Annealing, Strategy::Genetic, Strategy::Guided] {
        group.bench_function(strategy.name(), |b| {
            b.iter_batched(
                || strategy.make(&setup, 1).expect("the space is small"),
                |mut search| {
                    let budget = Budget::evaluations(400);
                    drive(&mut *search, strategy.name(), &Objective::default(), &budget, &mut Recorded::new(1, look_up))
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
    c.bench_function("every point", |b| {
        b.iter(|| {
            let mut search = Strategy::Exhaustive.make(&setup, 1).expect("the space is small");
            let mut recorded = Recorded::new(1024, look_up);
            drive(&mut *search, "exhaustive", &Objective::default(), &Budget::NONE, &mut recorded)
        });
    });
}

criterion_group!(benches, proposals);
criterion_main!(benches);
