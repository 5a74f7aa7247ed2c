//! What exhaustive search costs beside the model: the walk over a legal space of about a million points, the walk with
//! features, and the whole search with a model that costs next to nothing.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tilewright_core::problem::Problem;
use tilewright_search::{Options, exhaustive};

#[path = "../tests/fixture/mod.rs"]
mod fixture;

fn million(c: &mut Criterion) {
    let problem = fixture::wide(fixture::gemm_space(12, 48 * 1024));
    let legal = problem.space().count_legal();
    let mut group = c.benchmark_group(format!("{legal}_legal_of_{}", problem.space().cartesian()));
    group.throughput(Throughput::Elements(legal)).sample_size(10);
    group.bench_function("count", |b| b.iter(|| black_box(problem.space().count_legal())));
    group.bench_function("walk", |b| {
        b.iter(|| {
            let mut sum = 0u64;
            problem.space().for_each_legal(|p| {
                sum += u64::from(p[0]);
                true
            });
            sum
        });
    });
    group.bench_function("walk_with_features", |b| {
        let mut rows = Vec::new();
        b.iter(|| {
            problem.space().for_each_legal(|p| {
                problem.config_features(p, &mut rows);
                if rows.len() > 100_000 {
                    rows.clear();
                }
                true
            });
            black_box(rows.len())
        });
    });
    group.bench_function("top_20_dense", |b| {
        let scorer = fixture::Weighted::new(&problem, 3);
        b.iter(|| exhaustive(&problem, &scorer, &Options::top(20)));
    });
    group.bench_function("top_20_screened", |b| {
        let scorer = fixture::Weighted::new(&problem, 3).screened(0.2);
        b.iter(|| exhaustive(&problem, &scorer, &Options::top(20)));
    });
    group.finish();
}

fn bind(c: &mut Criterion) {
    c.bench_function("bind_and_first_legal", |b| {
        b.iter(|| fixture::gemm_space(black_box(12), 48 * 1024).first_legal())
    });
}

criterion_group!(benches, million, bind);
criterion_main!(benches);
