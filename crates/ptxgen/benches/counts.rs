//! What symbolic counts cost: to make them for a plan, and to evaluate all of them at new sizes.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::{GemmInput, Layout};
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::target::Target;

fn counts(c: &mut Criterion) {
    let kernel = Arc::new(SimtGemm::new());
    let device = Arc::new("sm_90".parse::<Target>().expect("a target").spec());
    let cases = [
        ("default", GemmInput::new(2560, 2560, 2560, DType::F32, Layout::Nn), ""),
        ("skinny, transposed", GemmInput::new(2561, 16, 2563, DType::F32, Layout::Tt), ""),
        ("eight slices", GemmInput::new(35, 8457, 2560, DType::F32, Layout::Tn), "k_g=8,split=ordered"),
        ("copies", GemmInput::new(2560, 2560, 2560, DType::F64, Layout::Nt), "load=async,stages=3"),
    ];
    for (name, input, config) in cases {
        let problem = Bound::new(kernel.clone(), device.clone(), input.clone()).expect("a device of the kernel's");
        let default = problem.default_point().expect("a default");
        let config = Config::parse(config).expect("words");
        let point = config.to_point(problem.space().params(), Some(&default)).expect("values");
        let Ok(legal) = problem.space().check(&point) else {
            eprintln!("{name}: not legal, left out");
            continue;
        };
        let plan = problem.plan(&legal);
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
