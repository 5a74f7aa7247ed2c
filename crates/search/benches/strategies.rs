//! What a proposal costs on a space of 10^5 points, and how fast a whole space is gone through.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::sync::Arc;
use tilewright_core::measurement::Measurement;
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, Symbols};
use tilewright_search::run::{Budget, run};
use tilewright_search::{Listing, Setup, Strategy};

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

fn proposals(c: &mut Criterion) {
    let setup = Setup::new(Arc::new(Listing::new(&space()).expect("the space is small")));
    println!("{} points", setup.listing.len());
    let mut group = c.benchmark_group("400 evaluations");
    group.sample_size(10);
    for strategy in [Strategy::Random, Strategy::Local, Strategy::Annealing, Strategy::Genetic, Strategy::Guided] {
        group.bench_function(strategy.name(), |b| {
            b.iter_batched(
                || strategy.make(&setup, 1),
                |mut search| {
                    let evaluate = &mut |p: &Point| (Ok(Measurement::recorded(cost(p))), 0.0);
                    run(&mut *search, &Budget::evaluations(400), 1, evaluate)
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
    c.bench_function("every point", |b| {
        b.iter(|| {
            let mut search = Strategy::Exhaustive.make(&setup, 1);
            run(&mut *search, &Budget::NONE, 1024, &mut |p| (Ok(Measurement::recorded(cost(p))), 0.0))
        });
    });
}

criterion_group!(benches, proposals);
criterion_main!(benches);
