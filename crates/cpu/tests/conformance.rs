//! The kernel and the device keep the contract of their traits, on the host, for inputs of every kind.

use std::sync::Arc;

use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::Bound;
use tilewright_core::space::Config;
use tilewright_cpu::{CpuAmx, CpuAxpy, CpuConv, CpuDepthwise, CpuDevice, CpuDot, CpuGemm, CpuSmall, CpuWinograd};
use tilewright_ops::conv::{Conv, ConvInput};
use tilewright_ops::gemm::{Accuracy, Batch, GemmInput, Layout, ScalarClass};
use tilewright_testkit::Effort;

fn inputs(dtype: DType) -> Vec<GemmInput> {
    let new = |m, n, k, layout| GemmInput::new(m, n, k, dtype, layout);
    let mut all =
        vec![new(0, 5, 3, Layout::Nn), new(5, 0, 3, Layout::Nt), new(5, 3, 0, Layout::Tn), new(1, 1, 1, Layout::Tt)];
    for (i, layout) in Layout::every(dtype).iter().copied().enumerate() {
        all.push(new(31 + i, 17 + 2 * i, 65 + i, layout));
        all.push(new(1, 63, 200, layout));
        all.push(new(127, 1, 33, layout));
    }
    let mut odd = new(37, 29, 129, Layout::Tn);
    (odd.lda, odd.ldb, odd.ldc) = (odd.lda + 3, odd.ldb + 1, odd.ldc + 5);
    (odd.alpha, odd.beta, odd.align) = (ScalarClass::Other, ScalarClass::Other, 16);
    let mut scaled = new(9, 7, 5, Layout::Nn);
    (scaled.alpha, scaled.beta) = (ScalarClass::Zero, ScalarClass::Other);
    let mut added = new(48, 20, 300, Layout::Nt);
    added.beta = ScalarClass::One;
    let mut many = new(70, 33, 90, Layout::Nn);
    many.batch = Batch::tight(3, &many);
    let mut shared = many.clone();
    shared.batch.strides = [0, many.batch.strides[1] + 5, many.batch.strides[2] + 16];
    shared.beta = ScalarClass::Other;
    all.extend([odd, scaled, added, many, shared]);
    all
}

fn conform(dtype: DType, threads: usize) {
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    let mut device = CpuDevice::new(threads).unwrap();
    tilewright_testkit::kernel(&Arc::new(CpuGemm::new()), &mut device, &inputs(dtype), &effort).unwrap();
}

#[test]
fn single_precision_conforms() {
    conform(DType::F32, 1);
}

#[test]
fn double_precision_conforms() {
    conform(DType::F64, 1);
}

#[test]
fn complex_products_conform() {
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    for (dtype, threads) in [(DType::C32, 1), (DType::C64, 1), (DType::C32, 3)] {
        let mut device = CpuDevice::new(threads).unwrap();
        tilewright_testkit::kernel(&Arc::new(CpuGemm::complex()), &mut device, &inputs(dtype), &effort).unwrap();
    }
}

#[test]
fn complex_products_by_three_real_ones_conform() {
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    for (dtype, threads) in [(DType::C32, 1), (DType::C64, 1), (DType::C64, 3)] {
        let mut all = inputs(dtype);
        let conjugated = GemmInput { beta: ScalarClass::Other, ..GemmInput::new(37, 22, 61, dtype, Layout::Cc) };
        let several = GemmInput { batch: Batch::tight(3, &conjugated), ..conjugated.clone() };
        all.extend([conjugated, several]);
        all.iter_mut().for_each(|input| input.accuracy = Accuracy::ThreeM);
        let mut device = CpuDevice::new(threads).unwrap();
        tilewright_testkit::kernel(&Arc::new(CpuGemm::three_m()), &mut device, &all, &effort).unwrap();
    }
    let refused = CpuGemm::three_m().accepts(&inputs(DType::C32)[0]).unwrap_err();
    assert_eq!(refused.to_string(), "accuracy: full: three real products for a complex one take accuracy=3m");
}

/// Products of narrow operands, whose integers are multiplied by nothing.
fn narrow(types: ElementTypes) -> Vec<GemmInput> {
    let mut all = inputs(types.operand);
    for input in &mut all {
        input.types = types;
        if types.operand.is_integer() && input.alpha == ScalarClass::Other {
            input.alpha = ScalarClass::One;
        }
        if types.operand.is_integer() && input.beta == ScalarClass::Other {
            input.beta = ScalarClass::One;
        }
    }
    all
}

#[test]
fn narrow_products_conform() {
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    let wide = |operand| ElementTypes { operand, accumulator: DType::F32, output: DType::F32 };
    let all = [
        (wide(DType::Bf16), 1),
        (ElementTypes { output: DType::Bf16, ..wide(DType::Bf16) }, 3),
        (wide(DType::F16), 3),
        (ElementTypes::all(DType::F16), 1),
        (ElementTypes::of(DType::I8), 1),
        (ElementTypes::of(DType::I8), 3),
    ];
    for (types, threads) in all {
        let mut device = CpuDevice::new(threads).unwrap();
        tilewright_testkit::kernel(&Arc::new(CpuGemm::narrow()), &mut device, &narrow(types), &effort).unwrap();
    }
}

/// Products by tiles, where the host has them: those of the inputs of every kind, and some with whole blocks.
#[test]
fn products_by_tiles_conform() {
    let kernel = Arc::new(CpuAmx::new());
    let effort = Effort { probes: 200, runs: 10, ..Effort::default() };
    let wide = ElementTypes { operand: DType::Bf16, accumulator: DType::F32, output: DType::F32 };
    for (types, threads) in [(wide, 1), (ElementTypes::all(DType::Bf16), 3), (ElementTypes::of(DType::I8), 2)] {
        let mut device = CpuDevice::new(threads).unwrap();
        if device.spec().fact("amx_bf16").is_none() {
            return tilewright_testkit::skip("amx", "the host has no tile registers");
        }
        let mut all = narrow(types);
        all.push(GemmInput::new(96, 64, 600, types, Layout::Nn));
        all.push(GemmInput { beta: ScalarClass::One, ..GemmInput::new(64, 128, 1300, types, Layout::Tt) });
        all.retain(|input| kernel.accepts(input).is_ok());
        tilewright_testkit::kernel(&kernel, &mut device, &all, &effort).unwrap();
    }
}

#[test]
fn threads_conform() {
    conform(DType::F32, 3);
}

/// Thin products whose longer operand lies along k: those of the inputs of every kind that are, and copied ones.
#[test]
fn dot_products_conform() {
    let kernel = Arc::new(CpuDot::new());
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    for (dtype, threads) in [(DType::F32, 1), (DType::F64, 3)] {
        let mut thin: Vec<GemmInput> =
            inputs(dtype).into_iter().filter(|input| kernel.accepts(input).is_ok()).collect();
        assert!(thin.len() > 5, "{}", thin.len());
        // The shorter operand lies across k and is copied, in several blocks and by several threads.
        let new = |m, n, k, layout| GemmInput::new(m, n, k, dtype, layout);
        thin.extend([new(20, 130, 300, Layout::Nn), new(130, 21, 300, Layout::Tt)]);
        tilewright_testkit::kernel(&kernel, &mut CpuDevice::new(threads).unwrap(), &thin, &effort).unwrap();
    }
}

/// Products of columns and a few scalars: those of the inputs of every kind that are, and more with several columns and none.
#[test]
fn sums_of_columns_conform() {
    let kernel = Arc::new(CpuAxpy::new());
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    for (dtype, threads) in [(DType::F32, 1), (DType::F64, 3)] {
        let new = |m, n, k, layout| GemmInput::new(m, n, k, dtype, layout);
        let mut all = inputs(dtype);
        all.extend([new(900, 4, 70, Layout::Nn), new(37, 3, 0, Layout::Nt), new(1, 1500, 90, Layout::Tt)]);
        for (classes, n) in [(ScalarClass::One, 2), (ScalarClass::Other, 3)] {
            let mut odd = new(701, n, 65, Layout::Nt);
            (odd.lda, odd.ldb, odd.ldc) = (odd.lda + 3, odd.ldb + 1, odd.ldc + 5);
            (odd.alpha, odd.beta) = (ScalarClass::Other, classes);
            all.push(odd);
        }
        let thin: Vec<GemmInput> = all.into_iter().filter(|input| kernel.accepts(input).is_ok()).collect();
        assert!(thin.len() > 10, "{}", thin.len());
        tilewright_testkit::kernel(&kernel, &mut CpuDevice::new(threads).unwrap(), &thin, &effort).unwrap();
    }
}

/// Small products of every kind, and batches: operands apart, shared, and none.
fn small(dtype: DType) -> Vec<GemmInput> {
    let new = |m, n, k, layout| GemmInput::new(m, n, k, dtype, layout);
    let mut all = vec![
        new(0, 5, 3, Layout::Nn),
        new(5, 0, 3, Layout::Nt),
        new(5, 3, 0, Layout::Tn),
        new(1, 1, 1, Layout::Tt),
        new(64, 64, 64, Layout::Tn),
    ];
    for (i, layout) in Layout::ALL.into_iter().enumerate() {
        all.push(new(31 + i, 17 + 2 * i, 65 + i, layout));
        all.push(new(1, 63, 20, layout));
        all.push(new(57, 1, 33, layout));
        all.push(new(4, 13, 2, layout));
        let mut many = new(9 + i, 7, 5, layout);
        (many.ldc, many.beta) = (many.ldc + 2, ScalarClass::Other);
        many.batch = Batch::tight(50, &many);
        all.push(many.clone());
        many.batch.strides[i % 2] = 0;
        many.batch.strides[2] += 3;
        all.push(many);
    }
    let mut odd = new(37, 29, 19, Layout::Tn);
    (odd.lda, odd.ldb, odd.ldc) = (odd.lda + 3, odd.ldb + 1, odd.ldc + 5);
    (odd.alpha, odd.beta, odd.align) = (ScalarClass::Other, ScalarClass::Other, 16);
    let mut scaled = new(9, 7, 5, Layout::Nn);
    (scaled.alpha, scaled.beta) = (ScalarClass::Zero, ScalarClass::Other);
    scaled.batch = Batch::tight(3, &scaled);
    let mut work = new(40, 40, 40, Layout::Nt);
    (work.beta, work.batch) = (ScalarClass::One, Batch::tight(40, &work));
    all.extend([odd, scaled, work]);
    all
}

#[test]
fn small_products_conform() {
    let effort = Effort { probes: 300, runs: 10, ..Effort::default() };
    for (dtype, threads) in [(DType::F32, 1), (DType::F64, 1), (DType::F32, 3)] {
        let mut device = CpuDevice::new(threads).unwrap();
        tilewright_testkit::kernel(&Arc::new(CpuSmall::new()), &mut device, &small(dtype), &effort).unwrap();
    }
}

const CONVOLUTIONS: [&str; 11] = [
    "n=0,c=3,h=4,k=5,r=3",
    "n=2,c=0,h=4,k=5,r=3,bias=1,residual=1,activation=relu",
    "n=2,c=3,h=4,k=0,r=3",
    "n=1,c=1,h=1,k=1,r=1",
    "n=2,c=5,h=9,w=13,k=37,r=3,pad=1,bias=1,activation=relu",
    "n=3,c=16,h=8,k=20,r=1,layout=nhwc",
    "n=2,c=6,h=11,k=4,r=3,stride=2,pad=1,groups=2,direction=data",
    "n=2,c=6,h=11,k=4,r=3,stride=2,pad=1,direction=data,layout=nhwc",
    "n=4,c=7,h=10,k=18,r=3,s=5,pad=2,direction=filter",
    "n=4,c=24,h=10,k=24,r=3,pad=1,groups=24",
    "n=1,c=3,h=9,k=4,r=1,stride=4,direction=data",
];

/// Filters of 3 x 3 without strides.
const SQUARES: [&str; 7] = [
    "n=0,c=3,h=4,k=5,r=3",
    "n=1,c=1,h=3,k=1,r=3",
    "n=2,c=5,h=9,w=13,k=37,r=3,pad=1,bias=1,activation=relu",
    "n=3,c=16,h=8,k=20,r=3,layout=nhwc,residual=1",
    "n=2,c=6,h=11,w=5,k=14,r=3,pad=2,groups=2,direction=data",
    "n=1,c=40,h=7,k=24,r=3,pad=1,direction=data,layout=nhwc",
    "n=1,c=300,h=6,k=9,r=3,pad=1",
];

/// Groups of one channel and one output.
const PLANES: [&str; 12] = [
    "n=0,c=3,h=4,k=3,r=3,groups=3",
    "n=1,c=1,h=1,k=1,r=1",
    "n=2,c=5,h=9,w=13,k=5,r=3,pad=1,groups=5,bias=1,activation=relu",
    "n=2,c=37,h=9,w=6,k=37,r=3,pad=1,groups=37,bias=1,residual=1,layout=nhwc",
    "n=1,c=150,h=4,k=150,r=2,groups=150,activation=relu,layout=nhwc",
    "n=2,c=3,h=21,w=80,k=3,r=5,s=3,stride=2,pad=2,groups=3,residual=1",
    "n=1,c=2,h=11,w=70,k=2,r=3,stride_h=1,stride_w=3,dilation=2,pad_w=4,groups=2",
    "n=1,c=40,h=11,w=7,k=40,r=3,stride=2,dilation=2,pad=3,groups=40,layout=nhwc",
    "n=2,c=4,h=12,w=33,k=4,r=3,pad=1,groups=4,direction=data",
    "n=1,c=3,h=13,w=41,k=3,r=3,stride=2,pad=1,groups=3,direction=data",
    "n=2,c=33,h=7,k=33,r=3,stride=2,pad=1,groups=33,direction=data,layout=nhwc",
    "n=1,c=2,h=9,k=2,r=1,stride=4,groups=2,direction=data",
];

fn convolutions(texts: &[&str], dtype: DType) -> Vec<ConvInput> {
    let parsed = texts.iter().map(|text| {
        let mut fields = Config::parse(text).unwrap();
        fields.0.push(("dtype".into(), dtype.name().into()));
        Conv.parse(&fields).unwrap()
    });
    parsed.collect()
}

#[test]
fn convolutions_conform() {
    let effort = Effort { probes: 200, runs: 8, ..Effort::default() };
    for (dtype, threads) in [(DType::F32, 1), (DType::F64, 2), (DType::F32, 3)] {
        let mut device = CpuDevice::new(threads).unwrap();
        let inputs = convolutions(&CONVOLUTIONS, dtype);
        tilewright_testkit::kernel(&Arc::new(CpuConv::new()), &mut device, &inputs, &effort).unwrap();
    }
}

#[test]
fn winograds_convolutions_conform() {
    let effort = Effort { probes: 200, runs: 12, ..Effort::default() };
    for (dtype, threads) in [(DType::F32, 1), (DType::F64, 2), (DType::F32, 3)] {
        let mut device = CpuDevice::new(threads).unwrap();
        let inputs = convolutions(&SQUARES, dtype);
        tilewright_testkit::kernel(&Arc::new(CpuWinograd::new()), &mut device, &inputs, &effort).unwrap();
    }
}

#[test]
fn depthwise_convolutions_conform() {
    let effort = Effort { probes: 200, runs: 12, ..Effort::default() };
    for (dtype, threads) in [(DType::F32, 1), (DType::F64, 2), (DType::F32, 3)] {
        let mut device = CpuDevice::new(threads).unwrap();
        let inputs = convolutions(&PLANES, dtype);
        tilewright_testkit::kernel(&Arc::new(CpuDepthwise::new()), &mut device, &inputs, &effort).unwrap();
    }
}

#[test]
fn the_device_is_an_executor() {
    let mut device = CpuDevice::new(2).unwrap();
    let input = GemmInput::new(40, 30, 50, DType::F32, Layout::Nt);
    let problem = Bound::new(Arc::new(CpuGemm::new()), device.spec().clone(), input).unwrap();
    tilewright_testkit::device(&mut device, &problem).unwrap();
    tilewright_testkit::host_device(&mut device).unwrap();
}
