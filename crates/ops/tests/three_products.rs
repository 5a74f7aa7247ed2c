//! The class of accuracy that allows three real products for a complex one: its bound holds for the textbook's three products, in any data,
//! and still shows what is left out of them.

use proptest::prelude::*;
use tilewright_core::buffer::{Buffer, Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{A, Accuracy, B, C, Gemm, GemmInput, Layout};

/// What is done wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    ForgetsDifference,
    ForgetsSum,
    ForgetsConjugate,
}

/// The parts of an element of an operand as it is multiplied.
fn element(operand: &Buffer, at: usize, conjugated: bool) -> [f64; 2] {
    let [real, imaginary] = [0, 1].map(|part| operand.component(2 * at + part));
    [real, if conjugated { -imaginary } else { imaginary }]
}

/// C by three products, each rounded to the type of the parts, summed one after the other.
fn multiplied(input: &GemmInput, work: &Workload, fault: Fault) -> Vec<Buffer> {
    let rounded = |x: f64| if input.dtype() == DType::C64 { x } else { f64::from(x as f32) };
    let layout = input.layout;
    let conjugates = |conjugated| conjugated && fault != Fault::ForgetsConjugate;
    let mut after = work.buffers.clone();
    for (j, i) in (0..input.n).flat_map(|j| (0..input.m).map(move |i| (j, i))) {
        let mut sums = [0.0; 3];
        for p in 0..input.k {
            let at = if layout.a_transposed() { p + i * input.lda } else { i + p * input.lda };
            let [a, b] = element(&work.buffers[A], at, conjugates(layout.a_conjugated()));
            let at = if layout.b_transposed() { j + p * input.ldb } else { p + j * input.ldb };
            let [c, d] = element(&work.buffers[B], at, conjugates(layout.b_conjugated()));
            let second = if fault == Fault::ForgetsSum { c } else { rounded(c + d) };
            let products = [(a, c), (b, d), (rounded(a + b), second)];
            for (sum, (x, y)) in sums.iter_mut().zip(products) {
                *sum = rounded(*sum + rounded(x * y));
            }
        }
        let [real, imaginary, both] = sums;
        let excess = if fault == Fault::ForgetsDifference { real } else { rounded(real + imaginary) };
        let value = (rounded(real - imaginary), rounded(both - excess));
        after[C].set(i + j * input.ldc, value).unwrap();
    }
    after
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn three_products_are_within_their_bound(
        (m, n, k) in (1usize..5, 1usize..5, prop_oneof![1usize..60, 500usize..1500]),
        (layout, double, filling) in (0usize..9, any::<bool>(), 0usize..3),
        signs in prop::sample::select(vec![None, Some([1.0, 1.0]), Some([1.0, -1.0]), Some([1.0, 1e-6])]),
        seed in 0u64..1000,
    ) {
        let dtype = if double { DType::C64 } else { DType::C32 };
        let input = GemmInput { accuracy: Accuracy::ThreeM, ..GemmInput::new(m, n, k, dtype, Layout::EVERY[layout]) };
        let filling = [Filling::Real, Filling::Exact, Filling::Special][filling];
        let mut work = Gemm.workload(&input, filling, seed);
        // Errors of one sign add up, and small parts have the errors of large ones.
        if let Some([real, imaginary]) = signs.filter(|_| filling == Filling::Real) {
            for operand in [A, B] {
                for i in 0..work.buffers[operand].len() {
                    let (x, y) = work.buffers[operand].get(i).unwrap();
                    work.buffers[operand].set(i, (real * x.abs(), imaginary * y.abs())).unwrap();
                }
            }
        }
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        let verdict = expected.compare(&multiplied(&input, &work, Fault::None));
        prop_assert!(verdict.is_right(), "{verdict:?}");
    }

    #[test]
    fn what_three_products_leave_out_shows(
        (m, n, k) in (1usize..5, 1usize..5, 1usize..200),
        (layout, double) in (4usize..9, any::<bool>()),
        seed in 0u64..1000,
    ) {
        let dtype = if double { DType::C64 } else { DType::C32 };
        let input = GemmInput { accuracy: Accuracy::ThreeM, ..GemmInput::new(m, n, k, dtype, Layout::EVERY[layout]) };
        let work = Gemm.workload(&input, Filling::Real, seed);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        for fault in [Fault::ForgetsDifference, Fault::ForgetsSum, Fault::ForgetsConjugate] {
            prop_assert!(!expected.compare(&multiplied(&input, &work, fault)).is_right());
        }
    }
}

/// Integers are exact where the sums of both parts are: a verdict of theirs has no tolerance.
#[test]
fn integers_stay_exact() {
    let input = GemmInput { accuracy: Accuracy::ThreeM, ..GemmInput::new(7, 5, 40, DType::C32, Layout::Nc) };
    let work = Gemm.workload(&input, Filling::Exact, 1);
    let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
    assert!(expected.buffers[0].bounds.iter().all(|&bound| bound == 0.0));
    assert!(expected.compare(&multiplied(&input, &work, Fault::None)).is_right());
}
