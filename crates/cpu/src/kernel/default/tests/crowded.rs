//! What falls into few sets of a cache, and copies of complex elements, by vectors of half a line.

use super::*;

fn choice(vec_max: i64, threads: i64, input: &GemmInput) -> Choice {
    Choice::of(&Facts::of(&device(vec_max, threads), input))
}

#[test]
fn deep_products_of_steps_in_few_sets_take_copies_or_fewer_steps() {
    let taken = |vec_max, threads, input: &GemmInput| {
        let choice = choice(vec_max, threads, input);
        (choice.tile, choice.pack_s, choice.u)
    };
    let square = |side, dtype| taken(32, 1, &GemmInput::new(side, side, 20_000, dtype, Layout::Nt));
    // Steps 512 bytes apart, and 1024 or more.
    assert_eq!(square(32, DType::C64), ((3, 2), false, 32));
    assert_eq!(square(64, DType::C32), ((3, 2), false, 32));
    assert_eq!([64, 128].map(|side| square(side, DType::C64)), [((2, 3), true, 128); 2]);
    assert_eq!(square(128, DType::C32), ((2, 3), true, 256));
    assert_eq!([square(64, DType::F64), square(128, DType::F64)], [((2, 4), false, 32), ((2, 6), true, 256)]);
    assert_eq!(square(128, DType::F32), ((2, 4), false, 32));
    // Steps that use all sets, in either operand.
    assert_eq!(square(40, DType::C64), ((3, 2), false, 64));
    let input = GemmInput::new(50, 128, 3000, DType::C64, Layout::Nt);
    assert_eq!(taken(32, 1, &input), ((3, 2), false, 64));
    assert!(taken(32, 1, &GemmInput { lda: 64, ..input }).1);
    // Real numbers on two threads, few of them, or steps of one distance beside steps of another; vectors that are lines.
    let real = |threads, m, n| taken(32, threads, &GemmInput::new(m, n, 20_000, DType::F64, Layout::Nt)).2;
    assert_eq!([real(1, 64, 64), real(2, 64, 64), real(1, 128, 64)], [32, 64, 64]);
    let few = GemmInput { lda: 64, ..GemmInput::new(40, 64, 20_000, DType::F64, Layout::Nt) };
    assert_eq!(taken(32, 1, &few).2, 64);
    assert!(!taken(64, 1, &GemmInput::new(64, 64, 20_000, DType::C64, Layout::Nt)).1);
}

#[test]
fn long_operands_of_16_bytes_are_copied_by_the_tiles_that_use_them() {
    let taken = |vec_max, threads, input: &GemmInput| {
        let choice = choice(vec_max, threads, input);
        let is_on_the_way = choice.pack_v && !choice.broadcast && choice.v_block == 8;
        is_on_the_way.then_some((choice.axis, choice.tile, choice.u, choice.prefetch))
    };
    let long = |m, n, layout| GemmInput::new(m, n, 2560, DType::C64, layout);
    for n in [16, 32, 64] {
        assert_eq!(taken(32, 1, &long(2560, n, Layout::Nn)), Some((Axis::M, (3, 2), 256, 8)), "{n}");
        assert_eq!(taken(32, 1, &long(n, 2560, Layout::Tt)), Some((Axis::N, (3, 2), 256, 8)), "{n}");
    }
    // Steps that lie ways of the second-level cache apart: fewer of them.
    let l2 = Facts::of(&device(32, 1), &long(2560, 16, Layout::Nn)).l2;
    let apart = GemmInput { lda: l2 / 8 / 16, ..long(2560, 16, Layout::Nn) };
    assert_eq!(taken(32, 1, &apart), Some((Axis::M, (3, 2), 128, 32)));
    // More columns on one thread only; elsewhere vectors would cross lines, or lie along k, or are lines, or of smaller elements.
    let more = long(2560, 128, Layout::Nn);
    assert_eq!([1, 2].map(|threads| taken(32, threads, &more).is_some()), [true, false]);
    assert_eq!(taken(32, 1, &GemmInput { lda: 2561, ..long(2560, 16, Layout::Nn) }), None);
    assert_eq!(taken(32, 1, &long(2560, 16, Layout::Tn)), None);
    assert_eq!(taken(64, 1, &long(2560, 16, Layout::Nn)), None);
    assert_eq!(taken(32, 1, &GemmInput::new(2560, 128, 2560, DType::C32, Layout::Nn)), None);
}

#[test]
fn what_is_wanted_of_complex_products_is_legal() {
    let configured = |size: (usize, usize, usize), layout| {
        let input = GemmInput::new(size.0, size.1, size.2, DType::C64, layout);
        let problem = Bound::new(Arc::new(CpuGemm::complex()), Arc::new(device(32, 1)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        ["m_s", "n_s", "m_l", "u", "pack_a", "pack_b", "order"]
            .map(|name| config.get(name).unwrap().to_string())
            .join(" ")
    };
    // A block of one panel, so that its first tile copies it.
    assert_eq!(configured((2560, 16, 2560), Layout::Nn), "6 2 8 256 1 1 vector");
    assert_eq!(configured((64, 64, 20_000), Layout::Nt), "4 3 64 128 0 1 vector");
    assert_eq!(configured((32, 32, 20_000), Layout::Nt), "6 2 32 32 0 0 vector");
    // Two blocks of steps.
    assert_eq!(configured((64, 64, 128), Layout::Nt).split(' ').nth(5), Some("0"));
}

#[test]
fn rows_of_16_byte_elements_go_past_all_columns_some_steps_at_a_time() {
    let taken = |n, dtype| {
        let choice = choice(32, 1, &GemmInput::new(2560, n, 2560, dtype, Layout::Tn));
        (choice.tile, choice.u.min(4096), choice.v_block)
    };
    let l2 = Facts::of(&device(32, 1), &GemmInput::new(2560, 64, 2560, DType::C64, Layout::Tn)).l2;
    assert_eq!(taken(64, DType::C64), ((2, 3), 2 * l2 / 64 / 16, 256));
    assert_eq!(taken(64, DType::C32).1, 4096);
}
