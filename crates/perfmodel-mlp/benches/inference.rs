//! Dense and screened inference, in GFLOP/s and as a share of the machine's measured peak.
//!
//! `cargo bench -p tilewright-perfmodel-mlp --bench inference`

mod synthetic;

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pulp::{Arch, Simd, WithSimd};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use tilewright_core::predictor::Fit;
use tilewright_perfmodel_mlp::{Layout, Mlp, MlpFit, Settings};

const ROWS: usize = 100_000;

/// Independent chains of fused multiply-adds in registers: what the machine can do at most.
struct PeakLoop {
    steps: usize,
}

impl WithSimd for PeakLoop {
    type Output = u64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> u64 {
        const CHAINS: usize = 12;
        let factor = simd.splat_f32s(black_box(0.999));
        let summand = simd.splat_f32s(black_box(1e-3));
        let mut sums = [summand; CHAINS];
        for _ in 0..self.steps {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(factor, *sum, summand);
            }
        }
        black_box(sums);
        (2 * CHAINS * S::F32_LANES * self.steps) as u64
    }
}

/// Best of several runs of all threads together, in flop/s.
fn peak() -> f64 {
    let once = || {
        let start = Instant::now();
        let flops: u64 = (0..rayon::current_num_threads())
            .into_par_iter()
            .with_max_len(1)
            .map(|_| Arch::new().dispatch(PeakLoop { steps: 3_000_000 }))
            .sum();
        flops as f64 / start.elapsed().as_secs_f64()
    };
    (0..20).map(|_| once()).fold(0.0, f64::max)
}

/// Speed does not depend on how good the weights are.
fn model(layout: &Layout) -> Mlp {
    let data = synthetic::training_set(40, 10, &mut ChaCha8Rng::seed_from_u64(1));
    let settings = Settings { layout: layout.clone(), epochs: 1, ..Settings::default() };
    MlpFit { settings, screen: None }.fit(&data, 1).expect("the rows are sound")
}

/// An input's features, and config features of its rows.
fn drawn() -> (Vec<f32>, Vec<f32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let input = synthetic::Input::draw(&mut rng);
    let rows = synthetic::config_rows(&input, ROWS, &mut rng);
    (input.features(), rows)
}

fn inference(c: &mut Criterion) {
    let peak = peak();
    eprintln!("peak: {:.1} GFLOP/s on {} threads", peak / 1e9, rayon::current_num_threads());
    let mut group = c.benchmark_group("inference");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    for layout in ["32-32", "64-32", "64-128-64", "64-128-192-256-192-128-64"] {
        let layout: Layout = layout.parse().expect("a layout");
        let (model, (input, rows)) = (model(&layout), drawn());
        let scorer = model.bind_features(&input).expect("the features fit");
        let mut out = vec![0.0; ROWS];
        let mut best = f64::INFINITY;
        group.bench_function(BenchmarkId::from_parameter(&layout), |b| {
            b.iter(|| {
                let start = Instant::now();
                scorer.score(&rows, &mut out);
                best = best.min(start.elapsed().as_secs_f64());
            });
        });
        if best.is_infinite() {
            continue; // filtered out
        }
        let rate = (scorer.flops_per_row() * ROWS as u64) as f64 / best;
        eprintln!(
            "{layout}: {:.1} GFLOP/s, {:.1} % of the peak, {:.3} s a million rows (best run)",
            rate / 1e9,
            100.0 * rate / peak,
            best * 1e6 / ROWS as f64
        );
    }
    group.finish();
}

criterion_group!(benches, inference);
criterion_main!(benches);
