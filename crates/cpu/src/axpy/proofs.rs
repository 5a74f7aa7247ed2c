//! Tests of sums of columns: right results by generated code in the interpreter, without an access outside of the operands, and in plain
//! Rust.

use super::kernel::CpuAxpy;
use crate::interpreter::Rights;
use crate::proofs::{any_plan, device, run_parts};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout, ScalarClass};

prop_compose! {
    /// Matrices times a few vectors, and single rows of C.
    fn inputs()(
        sizes in (1usize..1400, 1usize..5, 1usize..100),
        pads in (0usize..3, 0usize..3, 0usize..3),
        layout in 0usize..4,
        double in any::<bool>(),
        alpha in 0usize..2,
        beta in 0usize..3,
    ) -> GemmInput {
        let (long, across, k) = sizes;
        let layout = Layout::ALL[layout];
        // A that is stored transposed leaves rows of C, as which some others are taken too.
        let row = layout == Layout::Tt || (layout == Layout::Nt && long % 2 == 0);
        let (m, n) = if row { (1, long) } else { (long.max(across), across) };
        let layout = if layout == Layout::Tn { Layout::Nn } else { layout };
        let dtype = if double { DType::F64 } else { DType::F32 };
        let mut input = GemmInput::new(m, n, k, dtype, layout);
        input.lda += pads.0;
        input.ldb += pads.1;
        input.ldc += if row { 0 } else { pads.2 };
        input.alpha = [ScalarClass::One, ScalarClass::Other][alpha];
        input.beta = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other][beta];
        input
    }
}

fn check(input: &GemmInput, vec_max: i64, seed: u64, interpreted: bool) -> Result<(), TestCaseError> {
    let Some(plan) = any_plan(CpuAxpy::new(), &device(vec_max, 2), input, &mut StdRng::seed_from_u64(seed)) else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    let blueprint = plan.blueprint;
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let expected = Gemm.reference(input, &work.buffers, &work.scalars);
    // Groups behind the first read what it wrote; were more read, it would be seen: where beta is zero, C begins as NaN.
    let once = input.beta == ScalarClass::Zero && input.k <= blueprint.config.k_s;
    let rights = if once { Rights::Write } else { Rights::ReadWrite };
    let ran = run_parts(&blueprint, input, &mut work, interpreted.then_some(rights));
    prop_assert_eq!(ran, Ok(()), "{:?} {:?}", input, blueprint.config);
    let verdict = expected.unwrap().compare(&work.buffers);
    prop_assert!(verdict.is_right(), "{:?} {:?} {:?}", verdict, input, blueprint.config);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn avx512_is_right_and_within_bounds(input in inputs(), seed in any::<u64>()) {
        check(&input, 64, seed, true)?;
    }

    #[test]
    fn avx2_is_right_and_within_bounds(input in inputs(), seed in any::<u64>()) {
        check(&input, 32, seed, true)?;
    }

    #[test]
    fn narrow_vectors_are_right_and_within_bounds(input in inputs(), seed in any::<u64>()) {
        check(&input, 16, seed, true)?;
    }

    #[test]
    fn plain_loops_are_right(input in inputs(), seed in any::<u64>()) {
        check(&input, 16, seed, false)?;
    }
}
