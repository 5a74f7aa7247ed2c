//! What one choice costs, for each method: five variants of a sparse product, and thirty configurations of a dense one. Inputs take
//! turns; `cold` writes other memory before each choice.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tilewright_core::choice::{Case, ChoiceSet, FitSelector, Trial};
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::selector::{Candidate, VariantOrder};
use tilewright_variant_select::blend::Blend;
use tilewright_variant_select::fixed::BestFixed;
use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::process::CostProcess;
use tilewright_variant_select::regression::Regression;
use tilewright_variant_select::softmax::Softmax;
use tilewright_variant_select::svm::Svm;
use tilewright_variant_select::trees::BoostedTrees;

/// A number from 0 to 1 for each index.
fn noise(i: u32) -> f64 {
    f64::from(i.wrapping_mul(2_654_435_761) >> 8) / f64::from(1u32 << 24)
}

/// Eleven features of the input, five named variants.
fn formats() -> ChoiceSet {
    let input = (0..11).map(|i| Feature::size(&format!("x{i}"))).collect();
    let mut data = ChoiceSet::new(FeatureSchema { input, config: Vec::new() });
    for case in 0..800u32 {
        let features: Vec<f32> = (0..11).map(|i| (10.0 * noise(11 * case + i)).exp() as f32).collect();
        let trial = |v: usize| Trial {
            candidate: Candidate { variant: format!("v{v}"), features: Vec::new() },
            cost: Some(1.0 + f64::from(features[v]).powf(0.3) * noise(v as u32 + 7)),
        };
        data.push(Case { trials: (0..5).map(trial).collect(), features, group: case }).expect("a sound case");
    }
    data
}

/// Three sizes, thirty configurations of three tiles.
fn tiles() -> ChoiceSet {
    let input = ["m", "n", "k"].map(Feature::size).to_vec();
    let config = ["block_m", "block_n", "block_k"].map(Feature::size).to_vec();
    let mut data = ChoiceSet::new(FeatureSchema { input, config });
    for case in 0..400u32 {
        let size = |i: u32| (16.0 * (6.0 * noise(3 * case + i)).exp()).round() as f32;
        let features = vec![size(0), size(1), size(2)];
        let trial = |c: u32| {
            let tile = |step: u32| (16 << (c / step % 3)) as f32;
            let own = vec![tile(1), tile(3), tile(9)];
            let pieces: f32 = features.iter().zip(&own).map(|(x, t)| (x / t).ceil() * t).product();
            let cost = f64::from(pieces) * (1.0 + 8.0 / f64::from(own[0] * own[1]).sqrt()) + 1e6 * noise(c);
            Trial { candidate: Candidate { variant: format!("c{c}"), features: own }, cost: Some(cost) }
        };
        data.push(Case { trials: (0..30).map(trial).collect(), features, group: case }).expect("a sound case");
    }
    data
}

/// More than the caches of a core hold.
const EVICTED: usize = 16 << 20;

fn bench(c: &mut Criterion) {
    let mut other = vec![0u8; EVICTED];
    let svm = Svm { widths: vec![2.0], penalties: vec![10.0], ..Svm::default() };
    let methods: [(&str, &dyn FitSelector); 8] = [
        ("fixed", &BestFixed),
        ("softmax", &Softmax::default()),
        ("regression", &Regression::default()),
        ("svm", &svm),
        ("forest", &CostForest::default()),
        ("trees", &BoostedTrees::default()),
        ("process", &CostProcess::default()),
        ("blend", &Blend::default()),
    ];
    for (set, data) in [("5 formats", formats()), ("30 tiles", tiles())] {
        let mut group = c.benchmark_group(set);
        for (name, method) in methods {
            let selector = method.fit(&data, 0).expect("the cases are sound");
            let of = |c: &Case| c.trials.iter().map(|t| t.candidate.clone()).collect::<Vec<_>>();
            let cases: Vec<_> = data.cases().iter().map(|c| (c.features.clone(), of(c))).collect();
            let (mut order, mut at) = (VariantOrder::new(), 0);
            let mut choose = || {
                at = (at + 1) % cases.len();
                let (features, candidates) = &cases[at];
                selector.rank(black_box(features), candidates, &mut order);
                black_box(order[0])
            };
            group.bench_function(name, |b| b.iter(&mut choose));
            let mut evict = || {
                other.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                black_box(&other);
            };
            group.bench_function(format!("{name} cold"), |b| {
                b.iter_batched(&mut evict, |()| choose(), BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1));
    targets = bench
}
criterion_main!(benches);
