//! GEMM as a computation: its words, its data, and a reference that sees what is wrong.

use proptest::prelude::*;
use tilewright_core::buffer::{Buffer, Filling, Verdict};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::space::Config;
use tilewright_ops::gemm::{A, ALPHA, B, BETA, Batch, C, Gemm, GemmInput, Layout, ScalarClass};

fn words(text: &str) -> Config {
    Config::parse(text).unwrap()
}

/// The textbook triple loop in the accumulator's type, the order of summation reversed.
fn naive(input: &GemmInput, buffers: &mut [tilewright_core::buffer::Buffer], scalars: &[f64]) {
    let round = |x: f64| {
        let mut sum = Buffer::zeroed(input.types.accumulator, 1);
        sum.set_f64(0, x);
        sum.get_f64(0)
    };
    for j in 0..input.n {
        for i in 0..input.m {
            let mut sum = 0.0;
            for p in (0..input.k).rev().filter(|_| input.multiplies()) {
                let a = if input.layout.a_transposed() { p + i * input.lda } else { i + p * input.lda };
                let b = if input.layout.b_transposed() { j + p * input.ldb } else { p + j * input.ldb };
                sum = round(sum + round(buffers[A].get_f64(a) * buffers[B].get_f64(b)));
            }
            let at = i + j * input.ldc;
            let product = if input.multiplies() { round(scalars[ALPHA] * sum) } else { 0.0 };
            let kept = if scalars[BETA] == 0.0 { 0.0 } else { round(scalars[BETA] * buffers[C].get_f64(at)) };
            let result = round(product + kept);
            buffers[C].set_f64(at, result);
        }
    }
}

/// Operands of few bits, summed and written in others.
fn narrow() -> impl Strategy<Value = ElementTypes> {
    use DType::{Bf16, F16, F32, Tf32};
    let kinds = [
        [F16; 3],
        [F16, F32, F16],
        [F16, F32, F32],
        [Bf16; 3],
        [Bf16, F32, Bf16],
        [Tf32, F32, F32],
        [F32, DType::F64, F16],
    ];
    prop::sample::select(kinds.to_vec()).prop_map(|[operand, accumulator, output]| ElementTypes {
        operand,
        accumulator,
        output,
    })
}

fn inputs() -> impl Strategy<Value = GemmInput> {
    let size = || prop_oneof![Just(0usize), Just(1), 2usize..40, Just(64), Just(131)];
    let class = || prop_oneof![Just(ScalarClass::Zero), Just(ScalarClass::One), Just(ScalarClass::Other)];
    let dtype = prop_oneof![Just(DType::F32), Just(DType::F64)].prop_map(ElementTypes::all);
    let dtype = prop_oneof![3 => dtype, 2 => narrow()];
    (size(), size(), size(), dtype, 0usize..4, 0usize..4, class(), class()).prop_map(
        |(m, n, k, dtype, layout, pad, alpha, beta)| {
            let mut input = GemmInput::new(m, n, k, dtype, Layout::ALL[layout]);
            input.lda += pad;
            input.ldb += pad / 2;
            input.ldc += pad;
            GemmInput { alpha, beta, ..input }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_reference_accepts_the_textbook(input in inputs(), seed in 0u64..1000, kind in 0usize..3) {
        let filling = [Filling::Real, Filling::Exact, Filling::Special][kind];
        let work = Gemm.workload(&input, filling, seed);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        let mut after = work.buffers.clone();
        naive(&input, &mut after, &work.scalars);
        let verdict = expected.compare(&after);
        prop_assert!(verdict.is_right(), "{input:?}: {verdict:?}");
        // Part by part it is the same, also where something is wrong: in an element, or between columns.
        let facts = |v: &Verdict| {
            (v.wrong, v.first.as_ref().map(|m| (m.buffer, m.index)), v.max_rel_error, v.worst_of_bound)
        };
        let in_parts = |after: &[Buffer]| facts(&Gemm.compare(&input, &work.buffers, &work.scalars, after).unwrap());
        prop_assert_eq!(in_parts(&after), facts(&verdict));
        for at in [0, after[C].len() / 2, after[C].len().saturating_sub(1)] {
            let mut wrong = after.clone();
            if at < wrong[C].len() {
                wrong[C].set_f64(at, 12345.0);
            }
            prop_assert_eq!(in_parts(&wrong), facts(&expected.compare(&wrong)));
        }
    }

    #[test]
    fn one_lost_term_shows(m in 1usize..20, n in 1usize..20, k in 1usize..200, seed in 0u64..1000) {
        let input = GemmInput::new(m, n, k, DType::F32, Layout::Nn);
        let mut work = Gemm.workload(&input, Filling::Exact, seed);
        // A term of zero is no loss.
        work.buffers[A].set_f64(0, 1.0);
        work.buffers[B].set_f64(0, 2.0);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        work.buffers[A].set_f64(0, 0.0);
        let mut after = work.buffers.clone();
        naive(&input, &mut after, &work.scalars);
        prop_assert!(expected.compare(&after).wrong > 0);
    }

    #[test]
    fn words_round_trip(input in inputs()) {
        prop_assert_eq!(Gemm.parse(&Gemm.fields(&input)).unwrap(), input);
    }

    #[test]
    fn any_words_parse_or_name_a_known_field(text in "([a-z]{1,6}=[-a-z0-9.]{0,22},?){0,8}") {
        if let Ok(words) = Config::parse(&text)
            && let Err(e) = Gemm.parse(&words)
        {
            prop_assert!(!e.field.is_empty() && !e.message.is_empty());
        }
    }

    #[test]
    fn drawn_inputs_keep_limits_and_fixed_words(seed in any::<u64>(), flops in 1e3f64..1e9) {
        let limits = InputLimits { max_flops: flops, max_bytes: 1e7 };
        let mut state = seed | 1;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let input = Gemm.draw(&words("dtype=f64,layout=tn"), &limits, &mut uniform).unwrap();
        prop_assert_eq!((input.dtype(), input.layout), (DType::F64, Layout::Tn));
        prop_assert!(Gemm.work(&input).flops <= flops && input.total_bytes() <= 10_000_000);
        prop_assert!(input.m >= 1 && input.n >= 1 && input.k >= 1);
    }
}

#[test]
fn f64_is_checked_beyond_f64() {
    // Cancellation that a plain f64 sum gets wrong: 1e16 + 1 - 1e16.
    let input = GemmInput::new(1, 1, 3, DType::F64, Layout::Nn);
    let mut work = Gemm.workload(&input, Filling::Real, 1);
    for (i, (a, b)) in [(1e16, 1.0), (1.0, 1.0), (-1e16, 1.0)].into_iter().enumerate() {
        work.buffers[A].set_f64(i, a);
        work.buffers[B].set_f64(i, b + 0.0);
    }
    work.buffers[A].set_f64(1, 1.5);
    let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
    assert_eq!(expected.buffers[0].values[0], 1.5);
}

#[test]
fn untouched_padding_must_stay() {
    let mut input = GemmInput::new(3, 2, 4, DType::F32, Layout::Nn);
    input.ldc = 5;
    input.beta = ScalarClass::One;
    let work = Gemm.workload(&input, Filling::Real, 3);
    let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
    let mut after = work.buffers.clone();
    naive(&input, &mut after, &work.scalars);
    assert!(expected.compare(&after).is_right());
    after[C].set_f64(4, 1.0);
    assert_eq!(expected.compare(&after).wrong, 1);
}

#[test]
fn bad_words_name_the_field_and_the_limit() {
    let cases = [
        ("n=4,k=4", "m", "missing"),
        ("m=-1,n=4,k=4", "m", "0..="),
        ("m=4,n=4,k=99999999999", "k", "2147483647"),
        ("m=4,n=4,k=4,lda=3", "lda", "4"),
        ("m=4,n=4,k=4,layout=tn,lda=3", "lda", "4"),
        ("m=4,n=4,k=4,dtype=f8", "dtype", "f8"),
        ("m=4,n=4,k=4,dtype=i32", "dtype", "c64 and i8"),
        ("m=4,n=4,k=4,dtype=f16,acc=s32", "acc", "f32 and f64"),
        ("m=4,n=4,k=4,out=f9", "out", "f9"),
        ("m=4,n=4,k=4,layout=xx", "layout", "nn"),
        ("m=4,n=4,k=4,align=48", "align", "power of two"),
        ("m=4,n=4,k=4,colour=3", "colour", "unknown"),
        ("m=2000000000,n=4,k=2000000000", "k", "bytes"),
        ("m=4.5,n=4,k=4", "m", "integer"),
    ];
    for (text, field, message) in cases {
        let e = Gemm.parse(&words(text)).unwrap_err();
        assert_eq!(e.field, field, "{text}: {e}");
        assert!(e.message.contains(message), "{text}: {e}");
    }
}

#[test]
fn a_batch_is_its_products_one_by_one() {
    for text in ["m=5,n=3,k=4,beta=other", "m=5,n=3,k=4,layout=tt,dtype=f64,lda=7,alpha=other", "m=2,n=2,k=0,beta=1"] {
        for strides in ["", ",stride_a=0,stride_c=40", ",stride_a=3,stride_b=50"] {
            let input = Gemm.parse(&words(&format!("{text},batch=3{strides}"))).unwrap();
            let one = GemmInput { batch: Batch::ONE, ..input.clone() };
            let work = Gemm.workload(&input, Filling::Exact, 3);
            let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap().buffers.remove(0);
            let mut after: Vec<f64> = (0..work.buffers[C].len()).map(|i| work.buffers[C].get_f64(i)).collect();
            for product in 0..3 {
                let part = |operand: usize| {
                    let from = (input.batch.strides[operand] * product) as usize;
                    let mut part = Buffer::zeroed(input.dtype(), one.lens()[operand]);
                    (0..part.len()).for_each(|i| part.set_f64(i, work.buffers[operand].get_f64(from + i)));
                    (from, part)
                };
                let parts = [A, B, C].map(part);
                let from = parts[C].0;
                let alone =
                    Gemm.reference(&one, &parts.map(|(_, part)| part).into(), &work.scalars).unwrap().buffers.remove(0);
                after[from..][..alone.values.len()].copy_from_slice(&alone.values);
            }
            let same = |(x, y): (&f64, &f64)| x == y || x.is_nan() && y.is_nan();
            assert!(expected.values.iter().zip(&after).all(same), "{input:?}: {:?} {after:?}", expected.values);
        }
    }
}

#[test]
fn the_words_of_a_batch() {
    let parse = |text: &str| Gemm.parse(&words(text));
    let field = |text: &str| parse(text).unwrap_err().field;
    let tight = parse("m=4,n=3,k=2,lda=5,batch=7").unwrap();
    assert_eq!(tight.batch, Batch { count: 7, strides: [10, 6, 12] });
    assert_eq!(tight.lens(), [6 * 10 + 5 + 4, 7 * 6, 7 * 12]);
    assert_eq!(Gemm.parse(&Gemm.fields(&tight)), Ok(tight.clone()));
    assert_eq!(Gemm.work(&tight).flops, 7.0 * 2.0 * 24.0);
    assert_eq!(parse("m=4,n=3,k=2,batch=1"), parse("m=4,n=3,k=2"));
    assert!(Gemm.fields(&parse("m=4,n=3,k=2").unwrap()).get("batch").is_none());
    assert_eq!(parse("m=4,n=3,k=2,batch=2,stride_a=0").unwrap().batch.strides[0], 0);
    assert_eq!(field("m=4,n=3,k=2,batch=0"), "batch");
    assert_eq!(field("m=4,n=3,k=2,stride_c=100"), "stride_c");
    assert_eq!(field("m=4,n=3,k=2,batch=2,stride_c=11"), "stride_c");
    assert_eq!(field("m=4,n=3,k=2,batch=2,stride_b=-1"), "stride_b");
    assert_eq!(field("m=100000,n=100000,k=2,batch=2000000000"), "batch");
}

#[test]
fn awkward_inputs_have_every_edge() {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let limits = InputLimits { max_flops: 1e6, max_bytes: 1e6 };
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1500 {
        let input = Gemm.draw_awkward(&words("m=12"), &limits, &mut uniform).unwrap();
        assert_eq!(Gemm.parse(&Gemm.fields(&input)), Ok(input.clone()));
        assert!(input.m == 12 && Gemm.work(&input).flops <= 1e6 && input.total_bytes() <= 1_000_000);
        seen.extend(Gemm.aspects(&input));
    }
    for aspect in [
        "dtype:f16",
        "dtype:bf16",
        "dtype:tf32",
        "dtype:f32",
        "dtype:f64",
        "dtype:c32",
        "dtype:c64",
        "dtype:i8",
        "acc:f16",
        "acc:bf16",
        "out:f32",
        "layout:nn",
        "layout:nt",
        "layout:tn",
        "layout:tt",
        "layout:nc",
        "layout:tc",
        "layout:cn",
        "layout:ct",
        "layout:cc",
        "accuracy:tf32",
        "accuracy:3xtf32",
        "accuracy:3m",
        "bias:row",
        "bias:column",
        "activation:relu",
        "alpha:0",
        "alpha:1",
        "alpha:other",
        "beta:0",
        "beta:1",
        "beta:other",
        "empty n",
        "empty k",
        "n:1",
        "k:1",
        "odd n",
        "odd k",
        "padded lda",
        "padded ldb",
        "padded ldc",
        "align:4",
        "align:8",
        "align:16",
        "align:64",
        "batch>1",
        "batch shares an operand",
    ] {
        assert!(seen.contains(aspect), "no {aspect:?} in {seen:?}");
    }
    // What goes with some types only leaves those.
    for (fixed, dtype) in
        [("layout=cn,dtype=c32", DType::C32), ("accuracy=3xtf32", DType::F32), ("out=f16", DType::F32)]
    {
        let drawn = |_| Gemm.draw_awkward(&words(fixed), &limits, &mut uniform).unwrap();
        assert!((0..50).map(drawn).all(|input| input.dtype() == dtype), "{fixed}");
    }
    let three: Vec<DType> =
        (0..50).map(|_| Gemm.draw_awkward(&words("accuracy=3m"), &limits, &mut uniform).unwrap().dtype()).collect();
    assert!([DType::C32, DType::C64].iter().all(|dtype| three.contains(dtype)), "{three:?}");
    for sums in [DType::F16, DType::F32] {
        let mut drawn = (0..50).map(|_| Gemm.draw_awkward(&words("dtype=f16"), &limits, &mut uniform).unwrap().types);
        assert!(drawn.any(|types| types.operand == DType::F16 && types.accumulator == sums), "no sums in {sums}");
    }
    let double = words("dtype=f64,m=15,n=1,k=1290");
    assert!((0..200).all(|_| Gemm.draw_awkward(&double, &limits, &mut uniform).unwrap().align >= 8));
    let fixed = words("m=3,n=3,k=3,batch=2,stride_c=20,lda=9");
    let input = Gemm.draw_awkward(&fixed, &limits, &mut uniform).unwrap();
    assert_eq!((input.batch.count, input.batch.strides[C], input.lda), (2, 20, 9));
    assert_eq!(Gemm.draw_awkward(&words("dtype=f8"), &limits, &mut uniform).unwrap_err().field, "dtype");
}

#[test]
fn types_are_said_where_they_differ() {
    let parse = |text: &str| Gemm.parse(&words(text)).unwrap();
    let plain = parse("m=4,n=4,k=4,dtype=bf16");
    let sums_of = |operand, accumulator, output| ElementTypes { operand, accumulator, output };
    assert_eq!(plain.types, sums_of(DType::Bf16, DType::F32, DType::Bf16));
    assert_eq!(parse("m=4,n=4,k=4,dtype=tf32").types, sums_of(DType::Tf32, DType::F32, DType::F32));
    let said = |input: &GemmInput| {
        let words = Gemm.fields(input);
        ["dtype", "acc", "out"].map(|name| words.get(name).map(ToString::to_string).unwrap_or_default())
    };
    assert_eq!(said(&plain), ["bf16", "", ""]);
    assert_eq!(said(&parse("m=4,n=4,k=4,acc=f32,out=f32")), ["f32", "", ""]);
    assert_eq!(said(&parse("m=4,n=4,k=4,dtype=tf32,acc=f32,out=f32")), ["tf32", "", ""]);
    let mixed = parse("m=4,n=4,k=4,dtype=f16,acc=f32");
    assert_eq!(said(&mixed), ["f16", "", ""]);
    let narrow = parse("m=4,n=4,k=4,dtype=f16,acc=f16");
    assert_eq!(said(&narrow), ["f16", "f16", ""]);
    for input in [&plain, &mixed, &narrow] {
        assert_eq!(Gemm.parse(&Gemm.fields(input)).as_ref(), Ok(input));
    }
    assert_eq!(said(&parse("m=4,n=4,k=4,dtype=f16,acc=f32,out=f32")), ["f16", "", "f32"]);
    let buffers = Gemm.buffers(&parse("m=4,n=4,k=4,dtype=bf16,acc=f32,out=f32"));
    assert_eq!(buffers.iter().map(|b| b.dtype).collect::<Vec<_>>(), [DType::Bf16, DType::Bf16, DType::F32]);
    let refused = |input: &GemmInput, known: &[ElementTypes]| input.only(known).map_err(|e| e.to_string());
    assert_eq!(refused(&plain, &GemmInput::PLAIN), Err("dtype: there is no code for bf16: f32 or f64".to_owned()));
    let known = [mixed.types, ElementTypes::all(DType::F16), ElementTypes::all(DType::F64)];
    assert_eq!(refused(&mixed, &known), Ok(()));
    let (acc, out) = (parse("m=4,n=4,k=4,dtype=f16,acc=f64"), parse("m=4,n=4,k=4,dtype=f16,acc=f32,out=f32"));
    assert_eq!(refused(&acc, &known), Err("acc: there is no code for f64: f32 or f16".to_owned()));
    assert_eq!(refused(&out, &known), Err("out: there is no code for f32: f16".to_owned()));
}
