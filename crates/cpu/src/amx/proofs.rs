//! Tests of products by tiles: right results by generated code in the interpreter, without an access outside of the operands, and in plain
//! Rust.

use super::kernel::{CpuAmx, TYPES};
use crate::interpreter::Rights;
use crate::proofs::{any_plan, device, run_parts};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout, ScalarClass};

prop_compose! {
    fn inputs()(
        sizes in (1usize..120, 1usize..120, 1usize..700),
        pads in (0usize..3, 0usize..3, 0usize..3),
        layout in 0usize..4,
        whole in any::<bool>(),
        types in 0usize..4,
        alpha in 0usize..2,
        beta in 0usize..3,
    ) -> GemmInput {
        let (m, n, k) = sizes;
        // Half of the reductions are whole tiles, without which no operand is read in place.
        let k = if whole { k.next_multiple_of(64) } else { k };
        let mut input = GemmInput::new(m, n, k, TYPES[types], Layout::ALL[layout]);
        (input.lda, input.ldb, input.ldc) = (input.lda + pads.0, input.ldb + pads.1, input.ldc + pads.2);
        input.alpha = [ScalarClass::One, ScalarClass::Other][alpha];
        input.beta = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other][beta];
        if input.dtype() == DType::I8 {
            input.alpha = ScalarClass::One;
            input.beta = [ScalarClass::Zero, ScalarClass::One, ScalarClass::One][beta];
        }
        input
    }
}

fn check(input: &GemmInput, threads: i64, seed: u64, interpreted: bool) -> Result<(), TestCaseError> {
    let mut device = device(64, threads);
    device.facts.extend([("amx_bf16".to_owned(), 1), ("amx_int8".to_owned(), 1)]);
    let Some(plan) = any_plan(CpuAmx::new(), &device, input, &mut StdRng::seed_from_u64(seed)) else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    let blueprint = plan.blueprint;
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let expected = Gemm.reference(input, &work.buffers, &work.scalars);
    let ran = run_parts(&blueprint, input, &mut work, interpreted.then_some(Rights::ReadWrite));
    prop_assert_eq!(ran, Ok(()), "{:?} {:?}", input, blueprint.config);
    let verdict = expected.unwrap().compare(&work.buffers);
    prop_assert!(verdict.is_right(), "{:?} {:?} {:?}", verdict, input, blueprint.config);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tiles_are_right_and_within_bounds(input in inputs(), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, threads, seed, true)?;
    }

    #[test]
    fn plain_loops_are_right(input in inputs(), seed in any::<u64>()) {
        check(&input, 1, seed, false)?;
    }
}
