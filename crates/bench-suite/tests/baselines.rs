//! Every baseline of this machine against the reference in higher precision.

use proptest::prelude::*;
use tilewright_bench_suite::baseline::{Baseline, find_all, multiply};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout, ScalarClass};

fn inputs(largest: usize) -> impl Strategy<Value = GemmInput> {
    let class = prop::sample::select(vec![ScalarClass::Zero, ScalarClass::One, ScalarClass::Other]);
    let sizes = (0..largest, 0..largest, 0..largest, 0usize..3);
    let dtype = prop::sample::select(vec![DType::F32, DType::F64]);
    (sizes, dtype, prop::sample::select(Layout::ALL.to_vec()), class.clone(), class).prop_map(
        |((m, n, k, pad), dtype, layout, alpha, beta)| {
            let tight = GemmInput::new(m, n, k, dtype, layout);
            let (lda, ldb, ldc) = (tight.lda + pad, tight.ldb + 2 * pad, tight.ldc + pad);
            GemmInput { lda, ldb, ldc, alpha, beta, ..tight }
        },
    )
}

/// Checks `baseline` on random data, NaN in C where it must not be read.
fn check(baseline: &dyn Baseline, input: &GemmInput, seed: u64, threads: usize) -> Result<(), TestCaseError> {
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let expected = Gemm.reference(input, &work.buffers, &work.scalars);
    let done = multiply(baseline, input, &mut work.buffers, &work.scalars, threads);
    prop_assert_eq!(done, Ok(()));
    let verdict = expected.compare(&work.buffers);
    prop_assert!(verdict.is_right(), "{} on {:?}: {:?}", baseline.identity(), input, verdict);
    Ok(())
}

fn check_found(name: &str) {
    let inventory = find_all();
    let Some(baseline) = inventory.get(name) else {
        let missing = inventory.missing.iter().find(|missing| missing.name == name);
        tilewright_testkit::skip(name, missing.map_or("it is unknown", |missing| &missing.reason));
        return;
    };
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config.clone(), |(input in inputs(40), seed: u64, threads in 1usize..3)| {
        check(baseline, &input, seed, threads)?;
    });
    // beyond the sizes at which libraries begin to pack, block and divide
    proptest!(ProptestConfig { cases: 6, ..config }, |(input in inputs(400), seed: u64, threads in 1usize..3)| {
        check(baseline, &input, seed, threads)?;
    });
}

#[test]
fn gemm_is_right() {
    check_found("gemm");
}

#[test]
fn matrixmultiply_is_right() {
    check_found("matrixmultiply");
}

#[test]
fn openblas_is_right() {
    check_found("openblas");
}

#[test]
fn blis_is_right() {
    check_found("blis");
}

#[test]
fn mkl_is_right() {
    check_found("mkl");
}

#[test]
fn the_two_crates_are_always_there_and_the_rest_is_accounted_for() {
    let inventory = find_all();
    for name in ["gemm", "matrixmultiply"] {
        assert!(inventory.get(name).is_some(), "{name}");
    }
    assert_eq!(inventory.found.len() + inventory.missing.len(), 5);
    assert_eq!(inventory.select("all").unwrap().len(), inventory.found.len());
    assert_eq!(inventory.select("matrixmultiply, gemm").unwrap()[0].identity().name, "matrixmultiply");
    assert!(inventory.select("gemm,atlas").unwrap_err().to_string().contains("atlas"));
    for missing in &inventory.missing {
        let error = inventory.select(missing.name).unwrap_err().to_string();
        assert!(error.contains(&missing.reason), "{error}");
    }
}

#[test]
fn sizes_beyond_blas_are_refused() {
    let input = GemmInput { lda: 1 << 32, ..GemmInput::new(1, 1, 1, DType::F32, Layout::Nn) };
    let mut work = Gemm.workload(&input, Filling::Real, 0);
    let error = multiply(&*find_all().found[0], &input, &mut work.buffers, &work.scalars, 1).unwrap_err();
    assert!(error.to_string().contains("lda"), "{error}");
}
