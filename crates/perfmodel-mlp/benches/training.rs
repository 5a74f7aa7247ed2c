//! One pass over 20,000 rows.
//!
//! `cargo bench -p tilewright-perfmodel-mlp --bench training`

mod synthetic;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::predictor::Fit;
use tilewright_perfmodel_mlp::{Layout, MlpFit, Settings};

fn epoch(c: &mut Criterion) {
    let data = synthetic::training_set(2000, 10, &mut ChaCha8Rng::seed_from_u64(1));
    let mut group = c.benchmark_group("epoch");
    group.throughput(Throughput::Elements(data.len() as u64)).sample_size(10);
    for layout in ["64-128-64", "64-128-192-256-192-128-64"] {
        let layout: Layout = layout.parse().expect("a layout");
        let settings = Settings { layout: layout.clone(), epochs: 1, ..Settings::default() };
        let fit = MlpFit { settings, screen: None };
        group.bench_function(BenchmarkId::from_parameter(&layout), |b| {
            b.iter(|| fit.fit(&data, 1).expect("the rows are sound"));
        });
    }
    group.finish();
}

criterion_group!(benches, epoch);
criterion_main!(benches);
