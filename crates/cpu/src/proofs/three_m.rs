//! Complex products by three real ones, in the interpreter and in plain Rust.

use super::*;

/// The input where three real products make a complex one.
fn allowed(input: GemmInput) -> GemmInput {
    GemmInput { accuracy: Accuracy::ThreeM, ..input }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn avx512_is_right_and_within_bounds(input in inputs(COMPLEX), threads in 1i64..4, seed in any::<u64>()) {
        check(&allowed(input), &device(64, threads), seed, interpret)?;
    }

    #[test]
    fn avx2_is_right_and_within_bounds(input in inputs(COMPLEX), threads in 1i64..4, seed in any::<u64>()) {
        check(&allowed(input), &device(32, threads), seed, interpret)?;
    }

    #[test]
    fn narrow_vectors_are_right_and_within_bounds(input in inputs(COMPLEX), seed in any::<u64>()) {
        check(&allowed(input), &device(16, 1), seed, interpret)?;
    }

    #[test]
    fn portable_routines_are_right(input in inputs(COMPLEX), widest in any::<bool>(), seed in any::<u64>()) {
        check(&allowed(input), &device(if widest { 64 } else { 16 }, 2), seed, run_portably)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_global_rejects: 4000, ..ProptestConfig::default() })]

    #[test]
    fn threads_divide_the_reduction(
        input in inputs(COMPLEX),
        (k, wide) in (128usize..150, any::<bool>()),
        seed in any::<u64>(),
    ) {
        let long = with_reduction(allowed(input), k);
        check_some(CpuGemm::three_m, &device(if wide { 64 } else { 32 }, 2), &long, seed, |b| b.config.k_g == 2)?;
    }

    #[test]
    fn a_vector_without_a_second_is_its_own_pair(
        input in inputs(COMPLEX),
        wide in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let has_odd = |b: &Blueprint| b.v.units(0) % 2 == 1 && b.v.units(0) > 1;
        check_some(CpuGemm::three_m, &device(if wide { 64 } else { 32 }, 1), &allowed(input), seed, has_odd)?;
    }
}

/// Integers have no tolerance, so that a wrong sign in any layout shows.
#[test]
fn conjugates_are_matters_of_signs() {
    for layout in Layout::EVERY {
        for (dtype, axis) in [(DType::C32, 0), (DType::C64, 1)] {
            let input = allowed(GemmInput::new(13 + axis, 9, 21, dtype, layout));
            let mut rng = StdRng::seed_from_u64(axis as u64);
            let blueprint = any_plan(CpuGemm::three_m(), &device(32, 1), &input, &mut rng).unwrap().blueprint;
            let mut work = Gemm.workload(&input, Filling::Exact, 3);
            let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
            assert_eq!(interpret(&blueprint, &input, &mut work), Ok(()));
            let verdict = expected.compare(&work.buffers);
            assert!(verdict.is_right(), "{layout} {dtype}: {verdict:?}");
            assert!(expected.buffers[0].bounds.iter().all(|&bound| bound == 0.0), "integers are exact");
        }
    }
}
