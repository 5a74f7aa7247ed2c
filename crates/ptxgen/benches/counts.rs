//! What symbolic counts cost: to make them for a plan, and to evaluate all of them at new sizes.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tilewright_core::dtype::DType;
use tilewright_core::kernel::Kernel;
use tilewright_core::space::Config;
use tilewright_ops::gemm::{GemmInput, Layout};
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::target::Target;

fn counts(c: &mut Criterion) {
    let (kernel, target) = (SimtGemm::new(), "sm_90".parse::<Target>().expect("a target"));
    let cases = [
        ("default", GemmInput::new(2560, 2560, 2560, DType::F32, Layout::Nn), ""),
        ("skinny, transposed", GemmInput::new(2561, 16, 2563, DType::F32, Layout::Tt), ""),
        ("eight slices", GemmInput::new(35, 8457, 2560, DType::F32, Layout::Tn), "k_g=8,split=ordered"),
        ("copies", GemmInput::new(2560, 2560, 2560, DType::F64, Layout::Nt), "load=async,stages=3"),
    ];
    for (name, input, config) in cases {
        let device = target.spec();
        let default = kernel.default_point(&device, &input).expect("a default");
        let config = Config::parse(config).expect("words");
        let point = config.to_point(kernel.space().params(), Some(&default)).expect("values");
        let Ok(plan) = kernel.plan(&device, &input, &kernel.decode(&point)) else {
            eprintln!("{name}: not legal, left out");
            continue;
        };
        let counts = plan.count().expect("templates are countable");
        let mut evaluator = counts.evaluator();
        let sizes: Vec<i64> = evaluator
            .sizes()
            .iter()
            .map(|name| match name.as_str() {
                "m" => input.m as i64,
                "n" => input.n as i64,
                "k" => input.k as i64,
                "lda" => input.lda as i64,
                "ldb" => input.ldb as i64,
                "ldc" => input.ldc as i64,
                _ => 1,
            })
            .collect();
        let (properties, steps) = (evaluator.properties().len(), evaluator.steps());
        c.bench_function(&format!("evaluate {properties} properties ({name}, {steps} steps)"), |b| {
            b.iter(|| evaluator.eval(black_box(&sizes)).map(|values| values[0]));
        });
        c.bench_function(&format!("count a plan ({name})"), |b| b.iter(|| black_box(&plan).count()));
    }
}

criterion_group!(benches, counts);
criterion_main!(benches);
