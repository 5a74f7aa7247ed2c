//! Any INPUT words and any `--config` text: an input that reads back from its own words, a point of the space, or an
//! error that names a word.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use tilewright_core::computation::Computation;
use tilewright_core::problem::{AnyKernel, Erased, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::Gemm;

/// A kernel and an input to read configurations for.
static PROBLEM: LazyLock<Box<dyn Problem>> = LazyLock::new(|| {
    let device = CpuDevice::new(1).expect("a host");
    let words = Config::parse("m=500,n=300,k=200").expect("three words");
    Erased::new(CpuGemm::new()).problem(&Arc::clone(device.spec()), &words).expect("a problem")
});

static BASE: LazyLock<Option<Point>> = LazyLock::new(|| PROBLEM.default_point());

fuzz_target!(|text: &str| {
    match Config::from_fields(text.split_whitespace()) {
        Ok(words) => match Gemm.parse(&words) {
            Ok(input) => assert_eq!(Gemm.parse(&Gemm.fields(&input)), Ok(input)),
            Err(error) => assert!(!error.field.is_empty() && !error.message.is_empty()),
        },
        Err(error) => assert!(!error.name().is_empty()),
    }
    let space = PROBLEM.space();
    match Config::parse(text).and_then(|config| config.to_point(space.params(), BASE.as_deref())) {
        // Legal or not, the rules have an answer; what is legal has code. Generating it is slow: only where words say so.
        Ok(point) if Some(&point) == BASE.as_ref() => {}
        Ok(point) => {
            space
                .check(&point)
                .map_or_else(|illegal| assert!(!illegal.rule.is_empty()), |at| drop(PROBLEM.program(&at)));
        }
        Err(error) => assert!(!error.name().is_empty()),
    }
});
