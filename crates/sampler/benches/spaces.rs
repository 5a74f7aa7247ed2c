//! Building and asking legal sets.
//!
//! The spaces are two GEMMs written with core's rules, and every T1 description named in `TILEWRIGHT_T1` (paths, separated
//! by colons).

use criterion::{Criterion, criterion_group, criterion_main};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use tilewright_core::space::Point;
use tilewright_sampler::{Description, LegalSet, Nearness};

#[path = "../tests/spaces/mod.rs"]
mod spaces;

fn described() -> Vec<(String, Description)> {
    let (_, isaac) = spaces::isaac_gemm_f32().expect("a well-formed space");
    let (_, work_group) = spaces::work_group_gemm().expect("a well-formed space");
    let mut out = vec![
        ("isaac".to_owned(), Description::from(&isaac)),
        ("work-group".to_owned(), Description::from(&work_group)),
    ];
    let files = std::env::var("TILEWRIGHT_T1").unwrap_or_default();
    for path in files.split(':').filter(|p| !p.is_empty()) {
        let text = std::fs::read_to_string(path).expect("a readable file");
        out.push((path.to_owned(), Description::from_t1(&text).expect("a T1 description")));
    }
    out
}

fn build(c: &mut Criterion) {
    for (name, description) in described() {
        let set = LegalSet::new(&description).expect("a space");
        println!("{name}: {} of {} legal, {} nodes, {} bytes", set.count(), set.cartesian(), set.nodes(), set.bytes());
        c.bench_function(&format!("{name}/build"), |b| b.iter(|| LegalSet::new(black_box(&description))));
        c.bench_function(&format!("{name}/list"), |b| b.iter(|| set.list()));
    }
}

fn ask(c: &mut Criterion) {
    for (name, description) in described() {
        let set = LegalSet::new(&description).expect("a space");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let points: Vec<Point> = (0..4_096).filter_map(|_| set.sample(&mut rng)).collect();
        let numbers: Vec<u64> = points.iter().filter_map(|p| set.index_of(p)).collect();
        let mut row = vec![0; set.params().len()];
        let mut at = 0;
        let mut next = move || {
            at = (at + 1) % 4_096;
            at
        };
        c.bench_function(&format!("{name}/contains"), |b| b.iter(|| set.contains(&points[next()])));
        c.bench_function(&format!("{name}/index_of"), |b| b.iter(|| set.index_of(&points[next()])));
        c.bench_function(&format!("{name}/point"), |b| b.iter(|| set.write_point(numbers[next()], &mut row)));
        c.bench_function(&format!("{name}/sample"), |b| b.iter(|| set.sample_into(&mut rng, &mut row)));
        for nearness in [Nearness::Hamming, Nearness::StrictlyAdjacent] {
            let id = format!("{name}/{nearness:?}");
            c.bench_function(&id, |b| b.iter(|| set.neighbours(&points[next()], nearness)));
        }
    }
}

criterion_group!(benches, build, ask);
criterion_main!(benches);
