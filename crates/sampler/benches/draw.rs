//! The cost of a legal point, by sampler, on a space where one candidate in 2,500 is legal.

use criterion::{Criterion, criterion_group, criterion_main};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_sampler::{Categorical, Chained, Sampler, Settings, Uniform};

#[path = "../tests/spaces/mod.rs"]
mod spaces;

fn draw(c: &mut Criterion) {
    let settings = Settings { warmup: 100, ..Settings::default() };
    for (name, (space, bound)) in [
        ("isaac", spaces::isaac_gemm_f32().expect("a well-formed space")),
        ("work-group", spaces::work_group_gemm().expect("a well-formed space")),
    ] {
        let samplers: [(&str, Box<dyn Sampler>); 3] = [
            ("uniform", Box::new(Uniform::default())),
            ("categorical", Box::new(Categorical::new(&space, settings))),
            ("chained", Box::new(Chained::new(&space, settings))),
        ];
        for (kind, mut sampler) in samplers {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            for _ in 0..settings.warmup {
                sampler.draw(&bound, &mut rng).expect("legal points");
            }
            let candidates = sampler.acceptance().clone();
            c.bench_function(&format!("{name}/{kind}"), |b| b.iter(|| sampler.draw(&bound, &mut rng)));
            let seen = sampler.acceptance().since(&candidates);
            println!("{name}/{kind}: {:.2} candidates a point", 1.0 / seen.rate());
        }
    }
}

criterion_group!(benches, draw);
criterion_main!(benches);
