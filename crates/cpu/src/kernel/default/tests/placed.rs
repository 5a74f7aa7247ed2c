//! Of operands that are read from where they lie.

use super::*;

#[test]
fn the_long_operand_of_a_skinny_product_is_never_packed() {
    for (m, n) in [(4000, 8), (8, 4000)] {
        for layout in Layout::ALL {
            let input = GemmInput::new(m, n, 3000, DType::F64, layout);
            let choice = Choice::of(&Facts::of(&device(32, 1), &input));
            let vectors_along_long = (choice.axis == Axis::M) == (m > n);
            let packs_long = if vectors_along_long { choice.pack_v } else { choice.pack_s };
            assert!(!packs_long, "{m} {n} {layout}: {choice:?}");
        }
    }
}

#[test]
fn a_few_rows_or_columns_beside_a_slow_cache_ask_for_lines_early() {
    for (shape, layout) in [((4, 2000, 1000), Layout::Nt), ((1500, 6, 1000), Layout::Nn)] {
        let few = chosen(SLOW, &product(shape, layout));
        assert_eq!((few.broadcast, few.u, few.prefetch, few.pack_s), (false, 32, 32, false), "{shape:?}");
    }
    // Steps of the short side in one set of the cache, and elements that are converted as they are packed.
    let apart = GemmInput { lda: 2048, ..product((4, 2000, 1000), Layout::Nt) };
    let apart = chosen(SLOW, &apart);
    assert_eq!((apart.broadcast, apart.pack_s), (true, true));
    let converted = GemmInput::new(4, 4000, 1000, DType::F16, Layout::Nt);
    assert!(chosen(SLOW, &converted).broadcast);
}

#[test]
fn a_long_product_beside_a_slow_cache_is_read_from_where_it_lies() {
    let choice = |m, n, k, layout| Choice::of(&Facts::of(&waiting(1), &GemmInput::new(m, n, k, DType::F32, layout)));
    for (layout, axis) in [(Layout::Nn, Axis::M), (Layout::Tt, Axis::N)] {
        let long = choice(256, 256, 8192, layout);
        assert_eq!((long.axis, long.tile, long.u, long.v_block), (axis, (4, 6), 256, 64));
        assert!(!long.pack_v && !long.pack_s && !long.broadcast, "{long:?}");
    }
    // Both operands lie along k or neither, C is large, or the reduction is short beside it.
    for (m, n, k, layout) in [(256, 256, 8192, Layout::Tn), (256, 256, 8192, Layout::Nt), (512, 512, 8192, Layout::Nn)]
    {
        assert!(choice(m, n, k, layout).pack_v, "{m} x {n} x {k} {layout}");
    }
    assert!(choice(300, 400, 1500, Layout::Nn).pack_v);
}

#[test]
fn steps_that_begin_elsewhere_in_a_line_are_copied_some_lines_at_a_time() {
    let block = |m, dtype| Choice::of(&Facts::of(&waiting(1), &GemmInput::new(m, 64, 500, dtype, Layout::Nn))).v_block;
    assert_eq!([block(5001, DType::F32), block(5008, DType::F32), block(5001, DType::F64)], [128, 32, 16]);
}

#[test]
fn rows_of_less_than_a_page_are_read_many_at_a_time() {
    let input = |n, k| GemmInput::new(30, n, k, DType::F32, Layout::Tt);
    let steps = |input: &GemmInput| Choice::of(&Facts::of(&waiting(1), input)).u;
    assert_eq!([steps(&input(400, 6000)), steps(&input(1500, 6000))], [128, 32]);
    // From memory, and rows that lie pages apart.
    assert_eq!([steps(&input(400, 12_000)), steps(&GemmInput { ldb: 4096, ..input(400, 6000) })], [128, 32]);
}
