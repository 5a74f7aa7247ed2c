//! GEMM in every precision: what is said of it, what is refused, and a reference that sees what is wrong.

mod naive;

use naive::{Fault, Naive, Operands};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tilewright_core::buffer::{Filling, Verdict, Workload};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::space::Config;
use tilewright_ops::gemm::{
    A, Accuracy, Activation, B, BIAS, Batch, Bias, C, Epilogue, Gemm, GemmInput, Layout, ScalarClass,
};

fn words(text: &str) -> Config {
    Config::parse(text).unwrap()
}

fn parsed(text: &str) -> GemmInput {
    Gemm.parse(&words(text)).unwrap()
}

fn refused(text: &str) -> String {
    Gemm.parse(&words(text)).unwrap_err().to_string()
}

fn kinds() -> impl Strategy<Value = ElementTypes> {
    use DType::{Bf16, C32, C64, F16, F32, F64, I8, Tf32};
    let kinds = [
        [F16; 3],
        [F16, F32, F16],
        [Bf16, F32, Bf16],
        [Bf16, F32, F32],
        [Tf32, F32, F32],
        [F32; 3],
        [F32, F32, F16],
        [F64; 3],
        [C32; 3],
        [C32, C64, C32],
        [C32, C64, C64],
        [C64; 3],
        [C64, C64, C32],
        [I8, DType::I32, DType::I32],
    ];
    prop::sample::select(kinds.to_vec()).prop_map(|[operand, accumulator, output]| ElementTypes {
        operand,
        accumulator,
        output,
    })
}

/// Inputs of every kind; their scalars and activations are those that the type has.
fn inputs() -> impl Strategy<Value = GemmInput> {
    let size = || prop_oneof![Just(0usize), Just(1), 2usize..16, Just(33)];
    let class = || prop_oneof![Just(ScalarClass::Zero), Just(ScalarClass::One), Just(ScalarClass::Other)];
    let bias = prop::sample::select(Bias::ALL.to_vec());
    (size(), size(), size(), kinds(), any::<usize>(), 0usize..4, class(), class(), (bias, any::<bool>(), 1u32..3))
        .prop_map(|(m, n, k, types, layout, pad, alpha, beta, (bias, relu, count))| {
            let layouts = Layout::every(types.operand);
            let mut input = GemmInput::new(m, n, k, types, layouts[layout % layouts.len()]);
            input.lda += pad;
            input.ldb += pad / 2;
            input.ldc += pad;
            let plain = |class| {
                if types.operand.is_integer() && class == ScalarClass::Other { ScalarClass::One } else { class }
            };
            (input.alpha, input.beta) = (plain(alpha), plain(beta));
            let activation = if relu && !types.output.is_complex() { Activation::Relu } else { Activation::None };
            input.epilogue = Epilogue { bias, activation };
            input.batch = Batch::tight(count, &input);
            input
        })
}

/// How a run compares, all at once and part by part.
fn verdict(input: &GemmInput, work: &Workload, run: &Naive) -> Verdict {
    let expected = Gemm.reference(input, &work.buffers, &work.scalars).unwrap();
    let mut after = work.buffers.clone();
    run.run(input, &mut after, &work.scalars);
    let whole = expected.compare(&after);
    let in_parts = Gemm.compare(input, &work.buffers, &work.scalars, &after).unwrap();
    assert_eq!((whole.wrong, whole.max_rel_error), (in_parts.wrong, in_parts.max_rel_error), "{input:?}");
    whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_reference_accepts_the_textbook_in_any_order(input in inputs(), seed in 0u64..1000, kind in 0usize..3) {
        let filling = [Filling::Real, Filling::Exact, Filling::Special][kind];
        let work = Gemm.workload(&input, filling, seed);
        let verdict = verdict(&input, &work, &Naive::right(seed));
        prop_assert!(verdict.is_right(), "{input:?}: {verdict:?}");
    }

    #[test]
    fn words_round_trip(input in inputs()) {
        prop_assert_eq!(Gemm.parse(&Gemm.fields(&input)).unwrap(), input);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_is_wrong_shows(
        (m, n, k) in (1usize..8, 1usize..8, 1usize..20),
        types in kinds(),
        layout in any::<usize>(),
        seed in 0u64..1000,
        bias in prop::sample::select(vec![Bias::Row, Bias::Column]),
    ) {
        let layouts = Layout::every(types.operand);
        let mut input = GemmInput::new(m, n, k, types, layouts[layout % layouts.len()]);
        input.epilogue = Epilogue { bias, activation: Activation::None };
        // Small integers: types of few bits do not tell a product of many from rounding.
        let mut work = Gemm.workload(&input, Filling::Exact, seed);
        for operand in [A, B, BIAS] {
            for i in 0..work.buffers[operand].len() {
                let value = if i % 3 == 0 { (2.0, 1.0) } else { (1.0, -2.0) };
                work.buffers[operand].set(i, value).unwrap();
            }
        }
        let is_caught = |fault| !verdict(&input, &work, &Naive { fault, ..Naive::right(seed) }).is_right();
        prop_assert!(!is_caught(Fault::None));
        prop_assert!(is_caught(Fault::LosesProduct) && is_caught(Fault::DoublesProduct) && is_caught(Fault::ForgetsBias));
        let mut uneven = work.clone();
        uneven.buffers[BIAS].set_f64(0, 40.0);
        let caught = verdict(&input, &uneven, &Naive { fault: Fault::BiasOfOtherAxis, ..Naive::right(seed) });
        prop_assert!(!caught.is_right() || input.bias_len() == 1);
        if types.output.is_complex() {
            prop_assert!(is_caught(Fault::SwapsParts) || is_symmetric(&input, &work));
        }
    }

    #[test]
    fn sums_that_are_cut_are_within_their_bounds(
        (m, n, k) in (1usize..4, 1usize..4, prop_oneof![1usize..300, 2000usize..5000]),
        (dtype, accuracy, operands) in prop::sample::select(vec![
            (DType::F16, Accuracy::Full, Operands::AsTheyAre),
            (DType::Bf16, Accuracy::Full, Operands::AsTheyAre),
            (DType::Tf32, Accuracy::Full, Operands::AsTheyAre),
            (DType::F32, Accuracy::Tf32, Operands::RoundedToTf32),
            (DType::F32, Accuracy::ThreeTf32, Operands::SplitInTf32),
        ]),
        is_positive in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let types = ElementTypes { operand: dtype, accumulator: DType::F32, output: DType::F32 };
        let input = GemmInput { accuracy, ..GemmInput::new(m, n, k, types, Layout::Tn) };
        let mut work = Gemm.workload(&input, Filling::Real, seed);
        for operand in [A, B].into_iter().filter(|_| is_positive) {
            for i in 0..work.buffers[operand].len() {
                let value = work.buffers[operand].get_f64(i).abs();
                work.buffers[operand].set_f64(i, value);
            }
        }
        let verdict = verdict(&input, &work, &Naive { operands, cuts: true, ..Naive::right(seed) });
        prop_assert!(verdict.is_right(), "{verdict:?}");
    }

    #[test]
    fn a_conjugate_that_is_forgotten_shows(
        (m, n, k) in (1usize..8, 1usize..8, 1usize..200),
        layout in 4usize..9,
        double in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let dtype = if double { DType::C64 } else { DType::C32 };
        let input = GemmInput::new(m, n, k, dtype, Layout::EVERY[layout]);
        let work = Gemm.workload(&input, Filling::Real, seed);
        prop_assert!(verdict(&input, &work, &Naive::right(seed)).is_right());
        for fault in [Fault::ForgetsConjugate, Fault::LosesProduct] {
            prop_assert!(!verdict(&input, &work, &Naive { fault, ..Naive::right(seed) }).is_right(), "{fault:?}");
        }
    }

    #[test]
    fn classes_of_accuracy_allow_what_they_say(
        (m, n, k) in (1usize..8, 1usize..8, 1usize..300),
        filling in prop::sample::select(vec![Filling::Real, Filling::Exact, Filling::Special]),
        alike in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let mut input = GemmInput::new(m, n, k, DType::F32, Layout::Tn);
        // Data that suit all classes.
        input.accuracy = Accuracy::ThreeTf32;
        let mut work = Gemm.workload(&input, filling, seed);
        if alike {
            // Errors of one sign add up.
            (0..work.buffers[A].len()).for_each(|i| work.buffers[A].set_f64(i, 1.000_488));
            (0..work.buffers[B].len()).for_each(|i| work.buffers[B].set_f64(i, 1.000_488));
        }
        let all = [(Accuracy::Full, Operands::AsTheyAre), (Accuracy::ThreeTf32, Operands::SplitInTf32), (Accuracy::Tf32, Operands::RoundedToTf32)];
        for (at, (accuracy, _)) in all.into_iter().enumerate() {
            input.accuracy = accuracy;
            for (_, operands) in all[..=at].iter().copied() {
                let verdict = verdict(&input, &work, &Naive { operands, ..Naive::right(seed) });
                prop_assert!(verdict.is_right(), "{accuracy:?} {operands:?}: {verdict:?}");
            }
        }
        if filling == Filling::Real && m * n > 8 && k < 60 {
            for accuracy in [Accuracy::Full, Accuracy::ThreeTf32] {
                input.accuracy = accuracy;
                let rounded = Naive { operands: Operands::RoundedToTf32, ..Naive::right(seed) };
                prop_assert!(!verdict(&input, &work, &rounded).is_right(), "{accuracy:?}");
            }
        }
    }
}

/// Whether real and imaginary parts of the results are alike, so that nobody sees them swapped.
fn is_symmetric(input: &GemmInput, work: &Workload) -> bool {
    let expected = Gemm.reference(input, &work.buffers, &work.scalars).unwrap().buffers.remove(0);
    expected.values.chunks(2).all(|c| c[0] == c[1])
}

#[test]
fn every_combination_is_said_or_refused() {
    let (mut taken, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (operand, acc, out) in DType::ALL
        .into_iter()
        .flat_map(|d| DType::ALL.into_iter().flat_map(move |acc| DType::ALL.into_iter().map(move |out| (d, acc, out))))
    {
        for layout in Layout::EVERY {
            for more in
                ["", ",accuracy=tf32", ",accuracy=3xtf32", ",accuracy=3m", ",bias=row", ",bias=column,activation=relu"]
            {
                let text = format!("m=5,n=4,k=3,dtype={operand},acc={acc},out={out},layout={layout}{more}");
                match Gemm.parse(&words(&text)) {
                    Ok(input) => {
                        assert_eq!(
                            (input.types, input.layout),
                            (ElementTypes { operand, accumulator: acc, output: out }, layout)
                        );
                        assert_eq!(Gemm.parse(&Gemm.fields(&input)), Ok(input), "{text}");
                        taken.insert((operand, acc, out));
                    }
                    Err(e) => {
                        assert!(!e.message.is_empty(), "{text}");
                        refused.insert(e.field);
                    }
                }
            }
        }
    }
    assert_eq!(taken.len(), 125 + 8 + 1, "{taken:?}");
    assert_eq!(refused.iter().collect::<Vec<_>>(), ["acc", "accuracy", "activation", "dtype", "layout", "out"]);
}

#[test]
fn refusals_name_the_field_and_what_may_stand_there() {
    let of = |more: &str| refused(&format!("m=4,n=4,k=4,{more}"));
    assert_eq!(of("dtype=i32"), "dtype: i32 is not one of f16, bf16, tf32, f32, f64, c32, c64 and i8");
    assert_eq!(of("acc=c32"), "acc: c32 is not one of f16, bf16, tf32, f32 and f64, with operands of f32");
    assert_eq!(of("dtype=c32,acc=f64"), "acc: f64 is not one of c32 and c64, with operands of c32");
    assert_eq!(of("dtype=c64,out=i32"), "out: i32 is not one of c32 and c64, with operands of c64");
    assert_eq!(of("dtype=s8,acc=f32"), "acc: f32 is not i32, with operands of i8");
    assert_eq!(of("dtype=i8,out=i8"), "out: i8 is not i32, with operands of i8");
    assert_eq!(of("layout=cn"), "layout: cn conjugates an operand: of f32, which is not complex, it is t");
    assert_eq!(of("layout=cx"), "layout: cx is not one of nn, nt, tn and tt");
    assert_eq!(of("dtype=c32,layout=hn"), "layout: hn is not one of nn, nt, tn, tt, nc, tc, cn, ct and cc");
    assert_eq!(of("accuracy=half"), "accuracy: half is not one of full, tf32, 3xtf32 and 3m");
    assert_eq!(of("accuracy=3m"), "accuracy: 3m is of complex operands, not of f32 and f32: write full");
    let message = "is of operands and sums of f32, not of f64 and f64: write full";
    assert_eq!(of("dtype=f64,accuracy=tf32"), format!("accuracy: tf32 {message}"));
    assert_eq!(of("dtype=f64,accuracy=3xtf32"), format!("accuracy: 3xtf32 {message}"));
    assert_eq!(
        of("acc=f64,accuracy=tf32"),
        "accuracy: tf32 is of operands and sums of f32, not of f32 and f64: write full"
    );
    assert_eq!(of("bias=1"), "bias: 1 is not one of none, row and column");
    assert_eq!(of("activation=gelu"), "activation: gelu is not none or relu");
    assert_eq!(
        of("dtype=c32,activation=relu"),
        "activation: relu is a function of real numbers, not of c32: write none"
    );
    assert_eq!(of("dtype=i8,alpha=2"), "alpha: sums of i8 are taken as they are: it is 0 or 1");
    assert_eq!(of("dtype=i8,beta=other"), "beta: sums of i8 are taken as they are: it is 0 or 1");
    assert_eq!(
        refused("m=4,n=4,k=131072,dtype=i8"),
        "k: 131072 is not within 0..=131071: longer sums of i8 may pass 32 bits"
    );
    assert_eq!(of("dtype=c64,align=4"), "align: 4 is not within 8..=64");
}

#[test]
fn what_was_said_before_is_said_as_before() {
    let said = |text: &str| Gemm.fields(&parsed(text)).to_string();
    let plain = "m=4,n=3,k=2,dtype=f32,layout=nn,lda=4,ldb=2,ldc=4,alpha=1,beta=0,align=64";
    assert_eq!(said("m=4,n=3,k=2"), plain);
    assert_eq!(said("m=4,n=3,k=2,accuracy=full,bias=none,activation=none"), plain);
    assert_eq!(
        said("m=4,n=3,k=2,dtype=f16,acc=f32,batch=2,accuracy=full"),
        "m=4,n=3,k=2,dtype=f16,layout=nn,lda=4,ldb=2,ldc=4,alpha=1,beta=0,align=64,batch=2,stride_a=8,stride_b=6,stride_c=12"
    );
    assert_eq!(
        said("m=4,n=3,k=2,accuracy=3xtf32,bias=row,activation=relu,batch=2"),
        "m=4,n=3,k=2,dtype=f32,layout=nn,lda=4,ldb=2,ldc=4,alpha=1,beta=0,align=64,accuracy=3xtf32,bias=row,activation=relu,batch=2,stride_a=8,stride_b=6,stride_c=12"
    );
    let integers = parsed("m=4,n=3,k=2,dtype=s8");
    assert_eq!(integers.types, ElementTypes { operand: DType::I8, accumulator: DType::I32, output: DType::I32 });
    assert_eq!(GemmInput::new(4, 3, 2, DType::I8, Layout::Nn), integers);
    assert_eq!(said("m=4,n=3,k=2,dtype=i8,acc=s32,out=i32"), said("m=4,n=3,k=2,dtype=s8"));
    assert!(!said("m=4,n=3,k=2,dtype=i8").contains("acc"));
}

#[test]
fn kernels_of_sums_alone_refuse_epilogues() {
    let only = |text: &str| parsed(text).only(&GemmInput::PLAIN).map_err(|e| e.to_string());
    assert_eq!(only("m=4,n=4,k=4,accuracy=tf32"), Ok(()));
    assert_eq!(only("m=4,n=4,k=4,bias=row"), Err("bias: there is no code for row: none".to_owned()));
    assert_eq!(only("m=4,n=4,k=4,activation=relu"), Err("activation: there is no code for relu: none".to_owned()));
    assert_eq!(only("m=4,n=4,k=4,dtype=c32,layout=cn"), Err("dtype: there is no code for c32: f32 or f64".to_owned()));
    assert_eq!(parsed("m=4,n=4,k=4,bias=row").only_types(&GemmInput::PLAIN), Ok(()));
}

#[test]
fn layouts_say_what_is_stored() {
    for layout in Layout::EVERY {
        let [a, b] = [0, 1].map(|at| layout.name().as_bytes()[at]);
        assert_eq!((layout.a_transposed(), layout.a_conjugated()), (a != b'n', a == b'c'));
        assert_eq!((layout.b_transposed(), layout.b_conjugated()), (b != b'n', b == b'c'));
    }
    assert_eq!(Layout::EVERY[..4], Layout::ALL);
    let input = parsed("m=5,n=4,k=3,dtype=c64,layout=cc");
    assert_eq!((input.a_stored(), input.b_stored(), input.ldb), ((3, 5), (4, 3), 4));
}

#[test]
fn work_and_buffers_count_components_and_the_bias() {
    let work = |text: &str| Gemm.work(&parsed(text));
    let (real, complex) = (work("m=4,n=3,k=2"), work("m=4,n=3,k=2,dtype=c64"));
    assert_eq!((real.flops, complex.flops), (48.0, 192.0));
    assert_eq!((real.bytes, complex.bytes), (26.0 * 4.0, 26.0 * 16.0));
    assert_eq!(work("m=4,n=3,k=2,bias=row,batch=2").bytes, 2.0 * 26.0 * 4.0 + 16.0);
    assert_eq!(work("m=4,n=3,k=2,dtype=i8").bytes, 14.0 + 48.0);
    let input = parsed("m=4,n=3,k=2,dtype=f16,out=f32,bias=column");
    let buffers = Gemm.buffers(&input);
    assert_eq!((buffers[BIAS].name, buffers[BIAS].dtype, buffers[BIAS].len), ("bias", DType::F32, 3));
    assert_eq!(input.total_bytes(), buffers.iter().map(tilewright_core::buffer::BufferSpec::bytes).sum::<u64>());
    assert_eq!(Gemm.buffers(&parsed("m=4,n=3,k=2,activation=relu")).len(), 3);
}

#[test]
fn what_must_not_be_read_is_poisoned() {
    for (text, poison) in [("dtype=i8", 85.0), ("dtype=c32", f64::NAN), ("dtype=bf16", f64::NAN)] {
        let input = parsed(&format!("m=3,n=2,k=4,lda=5,{text}"));
        let work = Gemm.workload(&input, Filling::Exact, 1);
        let (re, im) = work.buffers[A].get(3).unwrap();
        assert_eq!(re.to_bits(), f64::to_bits(poison), "{text}");
        assert!(!input.dtype().is_complex() || im.is_nan());
        let c = work.buffers[C].component(0);
        assert!(c.is_nan() || c == f64::from(0x5555_5555), "{text}: {c}");
    }
    let work = Gemm.workload(&parsed("m=64,n=2,k=64,dtype=i8,beta=1"), Filling::Special, 1);
    let values: BTreeSet<i8> = work.buffers[A].as_slice::<i8>().iter().copied().collect();
    assert!(values.contains(&i8::MIN) && values.contains(&i8::MAX) && values.len() > 100);
    assert!(work.buffers[C].as_slice::<i32>().iter().all(|c| c.abs() <= 1 << 24));
}

#[test]
fn integers_are_exact_to_the_end_of_their_range() {
    let input = parsed("m=1,n=1,k=131071,dtype=i8");
    let mut work = Gemm.workload(&input, Filling::Real, 1);
    [A, B].into_iter().for_each(|of| work.buffers[of].as_mut_slice::<i8>().fill(-128));
    let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
    assert_eq!((expected.buffers[0].values[0], expected.buffers[0].bounds[0]), (131_071.0 * 16_384.0, 0.0));
    work.buffers[C].as_mut_slice::<i32>()[0] = 131_071 * 16_384;
    assert!(expected.compare(&work.buffers).is_right());
    work.buffers[C].as_mut_slice::<i32>()[0] -= 1;
    assert_eq!(expected.compare(&work.buffers).wrong, 1);
}

#[test]
fn c64_is_checked_beyond_f64() {
    // (1e16 + i)(1 + i) + (1.5 + 0.5i) - 1e16 (1 + i), which sums in f64 lose: 0.5 + 1.5i.
    let input = GemmInput::new(1, 1, 3, DType::C64, Layout::Nn);
    let mut work = Gemm.workload(&input, Filling::Real, 1);
    let terms = [((1e16, 1.0), (1.0, 1.0)), ((1.5, 0.5), (1.0, 0.0)), ((-1e16, 0.0), (1.0, 1.0))];
    for (i, (a, b)) in terms.into_iter().enumerate() {
        work.buffers[A].set(i, a).unwrap();
        work.buffers[B].set(i, b).unwrap();
    }
    let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
    assert_eq!(expected.buffers[0].values, [0.5, 1.5]);
    let conjugated = GemmInput::new(1, 1, 3, DType::C64, Layout::Nc);
    let expected = Gemm.reference(&conjugated, &work.buffers, &work.scalars).unwrap();
    // (1e16 + i)(1 - i) + (1.5 + 0.5i) - 1e16 (1 - i).
    assert_eq!(expected.buffers[0].values, [2.5, 1.5]);
}

/// Uniform numbers in [0, 1).
fn noise(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn every_type_is_drawn_where_it_is_fixed() {
    let mut uniform = noise(7);
    let limits = InputLimits { max_flops: 1e6, max_bytes: 1e6 };
    for fixed in [
        "dtype=f16",
        "dtype=f16,acc=f16",
        "dtype=bf16,out=f32",
        "dtype=tf32",
        "dtype=c32",
        "dtype=c64",
        "dtype=c32,acc=c64",
        "dtype=i8",
        "accuracy=tf32",
        "accuracy=3xtf32,bias=row,activation=relu",
        "dtype=f64,bias=column",
        "accuracy=3m",
        "dtype=c64,accuracy=3m",
        "accuracy=3m,batch=2",
    ] {
        let fixed = words(fixed);
        let mut seen = BTreeSet::new();
        for i in 0..300 {
            let drawn = match i % 2 {
                0 => Gemm.draw(&fixed, &limits, &mut uniform),
                _ => Gemm.draw_awkward(&fixed, &limits, &mut uniform),
            };
            let input = drawn.unwrap();
            assert_eq!(Gemm.parse(&Gemm.fields(&input)), Ok(input.clone()), "{fixed}");
            assert!(Gemm.work(&input).flops <= 1e6 && input.total_bytes() <= 1_000_000, "{input:?}");
            assert!(
                fixed.0.iter().all(|(name, value)| Gemm.fields(&input).get(name) == Some(value)),
                "{fixed}: {input:?}"
            );
            seen.extend(Gemm.aspects(&input));
        }
        // How many products a batch has is no aspect.
        for (name, value) in fixed.0.iter().filter(|(name, _)| name != "batch") {
            assert!(seen.contains(&format!("{name}:{value}")), "{fixed}: {seen:?}");
        }
        let usual = if fixed.get("accuracy").is_some_and(|a| a.to_string() == "3m") { DType::C32 } else { DType::F32 };
        let operand = fixed.get("dtype").map_or(usual, |d| d.to_string().parse().unwrap());
        for layout in Layout::every(operand) {
            assert!(seen.contains(&format!("layout:{layout}")), "{fixed}: no {layout} in {seen:?}");
        }
        assert_eq!(seen.contains("alpha:other"), !operand.is_integer());
        assert!(Gemm.representative(&fixed).unwrap().iter().all(|fields| Gemm.parse(fields).is_ok()));
    }
    let field = |fixed: &str| Gemm.draw(&words(fixed), &limits, &mut uniform).unwrap_err().field;
    assert_eq!(
        ["dtype=i8,alpha=other", "dtype=c32,activation=relu", "layout=cn"].map(field),
        ["alpha", "activation", "layout"]
    );
}

/// Sums of f16 have eleven bits: deep reductions are checked by data whose sums are exact all the same.
#[test]
fn deep_sums_of_f16_are_exact_and_a_part_that_is_left_out_shows() {
    for text in ["m=9,n=7,k=3000,layout=nn,alpha=other,beta=other", "m=8,n=6,k=900,layout=tt,bias=row"] {
        let input = parsed(&format!("{text},dtype=f16,acc=f16"));
        let work = Gemm.workload(&input, Filling::Exact, 3);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        assert!(expected.buffers[0].bounds.iter().all(|bound| *bound == 0.0), "{text}");
        assert!(verdict(&input, &work, &Naive::right(5)).is_right(), "{text}");
        // Without the last tenth of the steps.
        let mut after = work.buffers.clone();
        for (i, p) in (0..input.m).flat_map(|i| (input.k - input.k / 10..input.k).map(move |p| (i, p))) {
            let at = if input.layout.a_transposed() { p + i * input.lda } else { i + p * input.lda };
            after[A].set_f64(at, 0.0);
        }
        Naive::right(5).run(&input, &mut after, &work.scalars);
        let short = Gemm.compare(&input, &work.buffers, &work.scalars, &after).unwrap();
        assert!(2 * short.wrong > (input.m * input.n) as u64, "{text}: {short:?}");
    }
}
