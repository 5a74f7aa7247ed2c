//! What symbolic counts cost: to make them for a plan, and to evaluate all of them at new sizes.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::conv::Conv;
use tilewright_ops::gemm::{GemmInput, Layout};
use tilewright_ptxgen::conv::SimtConv;
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

/// Layers of Table 5 of ISAAC, whose counts are numbers.
fn convolutions(c: &mut Criterion) {
    let kernel = Arc::new(SimtConv::new());
    let device = Arc::new("sm_90".parse::<Target>().expect("a target").spec());
    for words in [
        "n=16,c=512,h=7,k=512,r=3,pad=1",
        "n=8,c=64,h=54,k=64,r=3,pad=1",
        "n=16,c=1,h=161,w=700,k=32,r=5,s=20,stride=2",
        "n=8,c=64,h=54,k=64,r=3,pad=1,direction=filter",
    ] {
        let input = Conv.parse(&Config::parse(words).expect("words")).expect("an input");
        let problem = Bound::new(kernel.clone(), device.clone(), input).expect("a device of the kernel's");
        let point = problem.default_point().expect("a default");
        let plan = problem.plan(&problem.space().check(&point).expect("a legal default"));
        c.bench_function(&format!("count a plan ({words})"), |b| b.iter(|| black_box(&plan).count()));
    }
}

criterion_group!(benches, counts, convolutions);
criterion_main!(benches);
