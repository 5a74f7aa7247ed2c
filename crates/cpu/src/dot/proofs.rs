//! Tests of dot products: right results by generated code in the interpreter, without an access outside of the operands, and in plain
//! Rust.

use super::kernel::CpuDot;
use crate::interpreter::Rights;
use crate::proofs::{any_plan, device, run_parts};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout, ScalarClass};

prop_compose! {
    /// Thin products whose longer operand lies along k, single rows and columns in any layout among them.
    fn inputs()(
        sizes in (1usize..20, 1usize..20, 1usize..90),
        blocks in 0usize..4,
        pads in (0usize..3, 0usize..3, 0usize..3),
        shape in 0usize..8,
        double in any::<bool>(),
        alpha in 0usize..2,
        beta in 0usize..3,
    ) -> GemmInput {
        // The smallest block of k has 128 elements.
        let (m, n, k) = (sizes.0, sizes.1, sizes.2 + 128 * blocks);
        // Beside a side of some hundred elements, several threads are legal.
        let (short, long) = (m.min(n), m.max(n) + 90 * (blocks / 2));
        let along = [(m, n, Layout::Tn), (1, n, Layout::Nn), (m, 1, Layout::Tt), (1, 1, Layout::Nt)];
        let copied = [(short, long, Layout::Nn), (long, short, Layout::Tt), (n, n, Layout::Nn), (m, m, Layout::Tt)];
        let (m, n, layout) = [along, copied].concat()[shape];
        let dtype = if double { DType::F64 } else { DType::F32 };
        let mut input = GemmInput::new(m, n, k, dtype, layout);
        // A row or column that lies across k and is tight is read where it lies.
        input.lda += if layout.a_transposed() || shape >= 4 { pads.0 } else { 0 };
        input.ldb += if !layout.b_transposed() || shape >= 4 { pads.1 } else { 0 };
        input.ldc += pads.2;
        input.alpha = [ScalarClass::One, ScalarClass::Other][alpha];
        input.beta = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other][beta];
        input
    }
}

fn check(input: &GemmInput, vec_max: i64, seed: u64, interpreted: bool) -> Result<(), TestCaseError> {
    let Some(plan) = any_plan(CpuDot::new(), &device(vec_max, 2), input, &mut StdRng::seed_from_u64(seed)) else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    let blueprint = plan.blueprint;
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let expected = Gemm.reference(input, &work.buffers, &work.scalars);
    // What earlier blocks of k left in C is read; what the caller left there is poison.
    let is_write_only = input.beta == ScalarClass::Zero && input.k <= blueprint.config.u;
    let rights = if is_write_only { Rights::Write } else { Rights::ReadWrite };
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
