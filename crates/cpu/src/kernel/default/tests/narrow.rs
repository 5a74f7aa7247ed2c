//! What vectors of half a line get where those of a line get something else.

use super::super::*;
use crate::kernel::CpuGemm;
use crate::proofs::device;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::{Layout, ScalarClass};

fn choice(vec_max: i64, input: &GemmInput) -> Choice {
    Choice::of(&Facts::of(&device(vec_max, 1), input))
}

fn product((m, n, k): (usize, usize, usize), dtype: DType, layout: Layout) -> GemmInput {
    GemmInput::new(m, n, k, dtype, layout)
}

#[test]
fn a_deep_product_that_is_read_step_by_step_takes_few_steps_at_a_time() {
    let blocks = |vec_max, size, dtype, layout| {
        let choice = choice(vec_max, &product(size, dtype, layout));
        (choice.k_s == 8 && choice.u <= 128).then_some((choice.u, choice.v_block))
    };
    let deep = (64, 64, 60_000);
    assert_eq!(blocks(32, deep, DType::F32, Layout::Nt), Some((64, 64)));
    assert_eq!(blocks(32, (68, 60, 60_000), DType::F64, Layout::Nt), Some((64, 64)));
    // Wide tiles would be too many.
    assert_eq!(blocks(32, (32, 32, 60_000), DType::F32, Layout::Nt), Some((128, 16)));
    assert_eq!(blocks(32, (16, 64, 60_000), DType::F32, Layout::Nt), Some((128, 16)));
    // Operands along the reduction, what the second-level cache holds, a line across, and vectors that are lines.
    let along = [Layout::Nn, Layout::Tt, Layout::Tn].map(|layout| blocks(32, deep, DType::F32, layout));
    assert_eq!(along, [None; 3]);
    let others = [(64, 64, 600), (16, 16, 60_000)].map(|size| blocks(32, size, DType::F32, Layout::Nt));
    assert_eq!(others, [None; 2]);
    assert_eq!(blocks(64, deep, DType::F32, Layout::Nt), None);
}

#[test]
fn deep_products_are_read_by_wide_tiles_some_steps_at_a_time() {
    let wide = |vec_max, size, dtype, layout| {
        let choice = choice(vec_max, &product(size, dtype, layout));
        (choice.tile.0 == 3 && choice.u == 64 && !choice.broadcast && !choice.pack_v).then_some(choice.tile.1)
    };
    assert_eq!(wide(32, (70, 31, 20_000), DType::F32, Layout::Nt), Some(4));
    let complex =
        [(66, 66, 60_000), (50, 128, 3000), (63, 12, 7727)].map(|size| wide(32, size, DType::C64, Layout::Nt));
    assert_eq!(complex, [Some(2); 3]);
    // Few columns beside lines that panels share, two vectors, operands along the reduction, and vectors that are lines or quarters of one.
    let few = [((118, 17, 32_768), DType::F32), ((74, 23, 20_000), DType::C32), ((20, 91, 20_000), DType::F64)];
    let few = few.map(|(size, dtype)| {
        assert!(choice(32, &product(size, dtype, Layout::Nt)).broadcast, "{size:?} {dtype} from end to end");
        wide(32, size, dtype, Layout::Nt)
    });
    let others = [wide(32, (8, 60, 7000), DType::C32, Layout::Nt), wide(32, (64, 64, 60_000), DType::C64, Layout::Tt)];
    assert_eq!((few, others), ([None; 3], [None; 2]));
    assert_eq!([16, 64].map(|vec_max| wide(vec_max, (64, 64, 60_000), DType::F32, Layout::Nt)), [None; 2]);
    // Two vectors are read by steps all the same, one is not, nor are fewer than eight columns.
    let steps = |size| choice(32, &product(size, DType::C32, Layout::Nt)).u;
    assert_eq!([(8, 60, 7000), (4, 60, 7000), (20, 7, 7000)].map(|size| steps(size) == 64), [true, false, false]);
}

#[test]
fn the_panel_of_vectors_stays_where_vectors_are_half_a_line() {
    let kept = |vec_max, size, dtype, layout| {
        let choice = choice(vec_max, &product(size, dtype, layout));
        (!choice.broadcast).then_some((choice.tile, choice.u, choice.v_block, choice.s_block))
    };
    let square = (1000, 1000, 1000);
    // Of 250 steps, as many elements as half of the second-level cache holds stay, and eight times as many stream.
    assert_eq!(kept(32, square, DType::F32, Layout::Nt), Some(((3, 4), 256, 262, 2096)));
    assert_eq!(kept(32, square, DType::F64, Layout::Nt), Some(((3, 4), 256, 131, 1048)));
    assert_eq!(kept(32, square, DType::C64, Layout::Tn), Some(((3, 2), 256, 65, 520)));
    // A register is taken by products of narrow operands.
    assert_eq!(kept(32, square, DType::I8, Layout::Nt).map(|(tile, ..)| tile), Some((2, 6)));
    // Vectors that are lines or quarters of one; what is near; few steps past a large C, unless elements are complex.
    assert_eq!([16, 64].map(|vec_max| kept(vec_max, square, DType::F64, Layout::Nt)), [None; 2]);
    assert_eq!(kept(32, (250, 250, 250), DType::F32, Layout::Nt), None);
    let large = |k, dtype| kept(32, (4096, 4096, k), dtype, Layout::Nt).map(|(tile, ..)| tile);
    assert_eq!([large(32, DType::F64), large(32, DType::C32), large(16, DType::C32)], [None, Some((3, 2)), None]);
    // Steps of which more than half a line is used are copied.
    let packs = |vec_max, dtype| choice(vec_max, &product((250, 250, 250), dtype, Layout::Nt)).pack_s;
    assert_eq!([packs(32, DType::F64), packs(32, DType::F32), packs(16, DType::F64)], [true, false, false]);
}

#[test]
fn a_flat_c_beyond_the_second_level_cache_is_written_by_whole_lines() {
    let copies = |vec_max, input: &GemmInput| {
        let choice = choice(vec_max, input);
        (choice.tile == (4, 2) && choice.stream).then_some((choice.pack_v, choice.pack_s, choice.v_block))
    };
    let square = product((896, 896, 32), DType::F32, Layout::Nt);
    assert_eq!(copies(32, &square), Some((true, false, 64)));
    assert_eq!(copies(32, &product((640, 640, 32), DType::F64, Layout::Nt)), Some((true, false, 32)));
    // Steps of B a page or a quarter of one apart, rows of it along k.
    assert_eq!(copies(32, &product((1792, 256, 64), DType::F32, Layout::Nt)), Some((true, true, 64)));
    let wide = |layout| copies(32, &product((512, 1024, 32), DType::F32, layout));
    assert_eq!([wide(Layout::Nt), wide(Layout::Nn)], [Some((true, true, 64)), Some((true, false, 64))]);
    // Columns of C that begin within a line, that share a set, that are read as well, and that stay near; few steps, few columns, short columns
    // that tiles do not divide; vectors that are lines, or quarters of one.
    let padded = GemmInput { ldc: 904, ..square.clone() };
    let read = GemmInput { beta: ScalarClass::One, ..square.clone() };
    let halves = GemmInput { align: 32, ..square.clone() };
    let sizes = [(1024, 896, 32), (256, 256, 32), (896, 896, 12), (20_000, 48, 32), (80, 2500, 32)];
    let others = sizes.map(|size| product(size, DType::F32, Layout::Nt));
    for input in others.iter().chain([&padded, &read, &halves]) {
        assert_eq!(copies(32, input), None, "{input:?}");
    }
    let streams = |vec_max| Facts::of(&device(vec_max, 1), &square).streams_narrow(Axis::M);
    assert_eq!([64, 32, 16].map(streams), [false, true, false]);
}

#[test]
fn a_flat_c_of_whole_lines_is_legal_for_all_rows_and_threads() {
    for (m, n) in [(896usize, 448), (900, 448), (911, 448), (32, 10_000), (4000, 64)] {
        for (dtype, threads) in [DType::F32, DType::F64].into_iter().flat_map(|dtype| [(dtype, 1), (dtype, 2)]) {
            let input = GemmInput { ldc: m.next_multiple_of(16), ..product((m, n, 32), dtype, Layout::Nn) };
            let is_wanted = Choice::of(&Facts::of(&device(32, threads), &input)).stream;
            assert!(is_wanted && stored(&input, threads) == "stream", "{input:?} {threads}");
        }
    }
}

/// The default's configuration.
fn default_of(input: &GemmInput, threads: i64) -> Config {
    let problem = Bound::new(Arc::new(CpuGemm::of(input)), Arc::new(device(32, threads)), input.clone()).unwrap();
    problem.space().config(&problem.default_point().unwrap())
}

/// How the default stores C.
fn stored(input: &GemmInput, threads: i64) -> String {
    default_of(input, threads).get("store").unwrap().to_string()
}

#[test]
fn all_of_b_goes_past_a_copy_of_some_rows_of_a_flat_product() {
    let copies = |vec_max, size, dtype, layout| {
        let choice = choice(vec_max, &product(size, dtype, layout));
        (choice.tile == (4, 3) && choice.pack_v && !choice.broadcast && choice.k_s == 8).then_some(choice.pack_s)
    };
    let single = |size, layout| copies(32, size, DType::F32, layout);
    assert_eq!(single((1024, 80, 64), Layout::Nn), Some(false));
    // Steps of B a page apart are copied, too.
    assert_eq!(single((300, 1024, 64), Layout::Nt), Some(true));
    assert_eq!(copies(32, (512, 150, 24), DType::F64, Layout::Nn), Some(false));
    // Columns that crowd no set pay where B is longer, and A that is copied anyway.
    assert_eq!([1000, 1024].map(|m| single((m, 20, 64), Layout::Nn)), [None, Some(false)]);
    assert_eq!([single((1000, 40, 40), Layout::Nn), single((330, 240, 32), Layout::Tn)], [None, Some(false)]);
    // Little is done with what is copied, few rows, what is converted or of complex numbers, and vectors of a line or a quarter of one.
    let others = [(4096, 16, 16), (64, 500, 40)].map(|size| single(size, Layout::Nn));
    assert_eq!(others, [None; 2]);
    let types = [DType::Bf16, DType::C32].map(|dtype| copies(32, (1024, 80, 64), dtype, Layout::Nn));
    assert_eq!(types, [None; 2]);
    assert_eq!([64, 16].map(|vec_max| copies(vec_max, (1024, 80, 64), DType::F32, Layout::Nn)), [None; 2]);
    // Where two threads share the columns, each has to have enough of them.
    let of_threads = |threads| Facts::of(&device(32, threads), &product((1377, 81, 32), DType::F32, Layout::Nn));
    assert_eq!([1, 2].map(|threads| of_threads(threads).copies_narrow(Axis::M)), [true, false]);
}

#[test]
fn a_copy_of_some_rows_is_legal_for_all_rows_and_threads() {
    for (m, n, layout) in
        [(1024, 80, Layout::Nn), (300, 1024, Layout::Nt), (331, 241, Layout::Tn), (130, 500, Layout::Tn)]
    {
        for (dtype, threads) in [DType::F32, DType::F64].into_iter().flat_map(|dtype| [(dtype, 1), (dtype, 2)]) {
            let input = product((m, n, 64), dtype, layout);
            let is_wanted = Choice::of(&Facts::of(&device(32, threads), &input)).tile == (4, 3);
            let config = default_of(&input, threads);
            let tile = ["m_s", "n_s"].map(|name| config.get(name).and_then(|value| value.as_int()));
            let rows = 4 * 32 / dtype.size() as i64;
            assert!(is_wanted && tile == [Some(rows), Some(3)], "{input:?} {threads} {config}");
        }
    }
}

#[test]
fn what_is_wanted_of_large_and_deep_products_is_legal() {
    let sizes = [(1000, 1000, 1000), (1000, 4096, 700), (64, 64, 60_000), (50, 70, 20_000)];
    for (size, threads) in sizes.into_iter().flat_map(|size| [(size, 1), (size, 2)]) {
        for dtype in [DType::F32, DType::F64, DType::C32, DType::C64, DType::Bf16, DType::I8] {
            let input = product(size, dtype, Layout::Nt);
            let (wanted, config) = (Choice::of(&Facts::of(&device(32, threads), &input)), default_of(&input, threads));
            let found = ["m_s", "n_s", "pack_a", "k_s", "order"].map(|name| config.get(name).unwrap().to_string());
            let order = if wanted.broadcast { "broadcast" } else { "vector" };
            let rows = wanted.tile.0 * wanted.vec / wanted.es;
            let sizes = [rows, wanted.tile.1, usize::from(wanted.pack_v), wanted.k_s];
            let expected = sizes.map(|x| x.to_string());
            assert_eq!((&found[..4], &*found[4]), (&expected[..], order), "{input:?} {threads} {config}");
        }
    }
}

#[test]
fn all_of_an_a_along_k_is_copied_at_once_for_few_steps() {
    let blocks = |vec_max, size, dtype, threads| {
        let choice = Choice::of(&Facts::of(&device(vec_max, threads), &product(size, dtype, Layout::Tn)));
        (choice.v_block, choice.tile)
    };
    let single = |size| blocks(32, size, DType::F32, 1);
    assert_eq!([single((1000, 200, 14)), single((700, 300, 16))], [(ALL, (2, 4)); 2]);
    let config = default_of(&product((1000, 200, 14), DType::F32, Layout::Tn), 1);
    assert_eq!(
        ["m_s", "n_s", "m_l"].map(|name| config.get(name).and_then(|value| value.as_int())),
        [16, 4, 1024].map(Some)
    );
    // Few steps, short columns, and two threads that read A.
    assert_eq!([single((1000, 200, 4)), single((250, 120, 14))], [(ALL, (2, 6)); 2]);
    let shared = [14, 16].map(|k| blocks(32, (1000, 200, k), DType::F32, 2));
    assert_eq!(shared.map(|(v_block, tile)| (v_block, tile == (2, 4))), [(ALL, true), (ALL, false)]);
    // Few columns, what is converted, and vectors of a line or a quarter of one.
    let copies =
        |vec_max, size, dtype| Facts::of(&device(vec_max, 1), &product(size, dtype, Layout::Tn)).copies_all(Axis::M);
    assert_eq!([12, 13].map(|n| copies(32, (10_000, n, 2), DType::F32)), [false, true]);
    let others = [(64, DType::F32), (16, DType::F32), (32, DType::C32), (32, DType::Bf16)];
    assert!(!others.iter().any(|(vec_max, dtype)| copies(*vec_max, (1000, 200, 14), *dtype)));
}

#[test]
fn rows_on_pages_of_their_own_are_read_a_few_at_a_time() {
    let steps = |vec_max, (m, n, k), dtype, layout| {
        let choice = choice(vec_max, &product((m, n, k), dtype, layout));
        (choice.u, choice.k_s)
    };
    // Rows of B as they lie, and columns of A.
    for (m, n, layout) in [(2, 1699, Layout::Nt), (16, 1699, Layout::Nt), (1699, 2, Layout::Nn), (1699, 16, Layout::Nt)]
    {
        assert_eq!(steps(32, (m, n, 1024), DType::F32, layout), (16, 8), "{m} x {n} {layout}");
    }
    for (n, dtype) in [(1000, DType::F64), (1000, DType::C32), (500, DType::C64)] {
        assert_eq!([(6, n), (n, 6)].map(|(m, n)| steps(32, (m, n, 1024), dtype, Layout::Nt)), [(16, 8); 2], "{dtype}");
    }
    // Of shorter rows the next step follows on the same page; vectors of a quarter of a line, and what is converted, were not measured.
    assert_eq!(steps(32, (10, 357, 1128), DType::F32, Layout::Nt), (128, 4));
    assert_eq!(steps(32, (600, 6, 3000), DType::F32, Layout::Nn), (32, 4));
    assert_eq!(steps(16, (6, 1699, 1024), DType::F32, Layout::Nt), (128, 4));
    assert_eq!(steps(32, (6, 3398, 1024), DType::Bf16, Layout::Nt), (128, 4));
    // From memory, too, complex elements as well.
    for (m, n, layout, before) in [(6, 5000, Layout::Nt, 512), (5000, 6, Layout::Nn, 32)] {
        assert_eq!(steps(32, (m, n, 2000), DType::F32, layout), (16, 8));
        assert_eq!(steps(32, (m, n, 1000), DType::C32, layout), (16, 8));
        assert_eq!(steps(16, (m, n, 2000), DType::F32, layout), (before, 2));
    }
    // Steps of whole lines beside more than eight numbers are read one panel after the other, unless they lie pages apart.
    let beside = |m, n, dtype| steps(32, (m, n, 2000), dtype, Layout::Nn);
    assert_eq!([8, 9].map(|n| beside(5008, n, DType::F32)), [(16, 8), (512, 8)]);
    assert_eq!([5000, 4096, 6144, 5120].map(|m| beside(m, 9, DType::F32)), [(16, 8), (16, 8), (16, 8), (512, 8)]);
    assert_eq!(beside(5008, 9, DType::C32), (16, 8));
    // The same of nearer ones that are long enough.
    let near = |n, k| steps(32, (2000, n, k), DType::F32, Layout::Nn);
    assert_eq!([near(8, 1024), near(9, 192), near(9, 191)], [(16, 8), (512, 8), (16, 8)]);
    let unaligned = GemmInput { align: 32, ..product((5008, 9, 2000), DType::F32, Layout::Nn) };
    assert_eq!(choice(32, &unaligned).u, 16);
    let few = choice(32, &product((6, 1699, 1024), DType::F32, Layout::Nt));
    assert_eq!((few.broadcast, few.prefetch, few.pack_v), (true, 0, false));
}

#[test]
fn a_copy_of_b_pays_for_some_steps_and_some_tiles() {
    let copies = |vec_max, size, dtype| choice(vec_max, &product(size, dtype, Layout::Nt)).pack_s;
    // Of a C in memory.
    assert_eq!([12, 13].map(|k| copies(32, (2000, 9000, k), DType::F32)), [false, true]);
    assert_eq!([12, 13].map(|k| copies(32, (2000, 9000, k), DType::C32)), [false, true]);
    assert!(copies(16, (2000, 9000, 12), DType::F32) && copies(32, (2000, 9000, 12), DType::Bf16));
    // Of steps that crowd few sets of the cache, where they are more than its ways; and beside two tiles of vectors and more.
    assert_eq!([8, 9].map(|k| copies(32, (2000, 8192, k), DType::F32)), [false, true]);
    let crowded = [(64, 8192, 17), (96, 8192, 17), (96, 8000, 17)];
    assert_eq!(crowded.map(|size| copies(32, size, DType::F32)), [false, true, false]);
}

#[test]
fn a_few_columns_beside_16_bit_numbers_widen_them_where_they_lie() {
    for dtype in [DType::Bf16, DType::F16] {
        let packs = |size, layout| choice(32, &product(size, dtype, layout)).pack_v;
        assert_eq!([16, 64, 65].map(|n| packs((2560, n, 2560), Layout::Nn)), [false, false, true], "{dtype}");
        // Columns of a page or two, too.
        assert_eq!([64, 65].map(|n| packs((2000, n, 5000), Layout::Nn)), [false, true], "{dtype}");
        // What lies along k is transposed.
        assert_eq!([Layout::Nt, Layout::Tn].map(|layout| packs((64, 64, 60_000), layout)), [false, true], "{dtype}");
        let config = default_of(&product((2560, 16, 2560), dtype, Layout::Nn), 1);
        assert_eq!(config.get("pack_a").and_then(|value| value.as_int()), Some(0), "{dtype}");
    }
    // Of f16 by no other vectors.
    for size in [(2560, 16, 2560), (2560, 4, 2560), (2000, 128, 5000), (30, 20, 9000)] {
        let packs = |vec_max| choice(vec_max, &product(size, DType::F16, Layout::Nn)).pack_v;
        assert!(packs(16) && packs(64), "{size:?}");
    }
}

#[test]
fn few_rows_beside_a_long_operand_along_k_are_copied() {
    let copies = |vec_max, size, dtype| {
        let choice = choice(vec_max, &product(size, dtype, Layout::Nn));
        assert_eq!((choice.axis, choice.pack_s), (Axis::M, false), "{size:?} {dtype}");
        choice.pack_v
    };
    // Steps that begin anywhere in a line, steps of several lines, and those that share one.
    let sizes = [(60, 500, 2000), (64, 500, 5000), (128, 1000, 1000), (7, 1700, 3800)];
    assert_eq!(sizes.map(|size| copies(32, size, DType::F32)), [true; 4]);
    assert_eq!([sizes[0], sizes[1], sizes[3]].map(|size| copies(32, size, DType::C64)), [true; 3]);
    // A line for each step, halves of one, and vectors that are lines or quarters of one.
    assert_eq!([16, 8].map(|m| copies(32, (m, 500, 5000), DType::F32)), [false; 2]);
    assert!(!copies(32, (4, 500, 5000), DType::C64));
    assert_eq!([16, 64].map(|vec_max| copies(vec_max, (60, 500, 2000), DType::F32)), [false; 2]);
    // Where a thread has less than some rows a copy is used too seldom.
    let shared =
        |threads| Choice::of(&Facts::of(&device(32, threads), &product((60, 500, 2000), DType::F32, Layout::Nn)));
    assert_eq!([1, 2, 64].map(|threads| shared(threads).pack_v), [true, true, false]);
    // The same rows with others between them.
    let apart = GemmInput { lda: 1024, ..product((16, 500, 5000), DType::F32, Layout::Nn) };
    assert!(choice(32, &apart).pack_v);
}

#[test]
fn long_operands_whose_steps_begin_anywhere_are_copied_some_lines_at_a_time() {
    let blocks = |vec_max, size, dtype| {
        let choice = choice(vec_max, &product(size, dtype, Layout::Nn));
        (choice.pack_v && !choice.broadcast && choice.prefetch == 0).then_some((choice.u, choice.v_block, choice.k_s))
    };
    assert_eq!(blocks(32, (2561, 16, 2561), DType::F32), Some((128, 128, 8)));
    assert_eq!(blocks(32, (2561, 16, 2561), DType::F64), Some((256, 64, 8)));
    assert_eq!(blocks(32, (1571, 8, 2356), DType::C32), Some((256, 64, 8)));
    // Steps that begin with a line, a few second-level caches, elements of 16 bytes, and vectors that are lines or quarters of one.
    assert_eq!(blocks(32, (2560, 16, 2560), DType::F32), None);
    assert_eq!(blocks(32, (591, 21, 500), DType::F32), None);
    assert_eq!(blocks(32, (2561, 32, 1561), DType::C64), None);
    assert_eq!([16, 64].map(|vec_max| blocks(vec_max, (2561, 64, 2561), DType::F32)), [None; 2]);
}

#[test]
fn short_rows_are_read_in_place_beside_few_columns_alone() {
    let in_place = |vec_max, size, dtype| {
        let choice = choice(vec_max, &product(size, dtype, Layout::Nt));
        choice.u == 16 && !choice.pack_v
    };
    let few = [((512, 12, 20_000), DType::F32), ((512, 12, 20_000), DType::F64), ((300, 12, 6000), DType::C64)];
    assert_eq!(few.map(|(size, dtype)| in_place(32, size, dtype)), [true; 3]);
    let more = [((512, 32, 10_000), DType::F32), ((512, 16, 8000), DType::F64), ((512, 8, 8000), DType::C32)];
    let more =
        more.map(|(size, dtype)| (in_place(32, size, dtype), choice(32, &product(size, dtype, Layout::Nt)).pack_v));
    assert_eq!(more, [(false, true); 3]);
    assert!(in_place(16, (512, 32, 10_000), DType::F32), "quarters of a line are left as they were");
}

#[test]
fn beside_little_of_c_panels_are_longer_in_f32() {
    let kept = |size, dtype| {
        let choice = choice(32, &product(size, dtype, Layout::Nt));
        (!choice.broadcast).then_some((choice.tile, choice.u))
    };
    assert_eq!(kept((400, 400, 4000), DType::F32), Some(((2, 6), 512)));
    assert_eq!(kept((1200, 200, 3000), DType::F32), Some(((2, 6), 512)));
    assert_eq!(kept((600, 600, 4000), DType::F32), Some(((3, 4), 256)));
    assert_eq!(kept((300, 300, 4000), DType::F64), Some(((3, 4), 256)));
    assert_eq!(
        kept((400, 400, 4000), DType::I8),
        Some(((2, 6), 384)),
        "a panel of what narrow operands become as before"
    );
}

#[test]
fn steps_that_crowd_few_sets_are_copied() {
    let copies = |vec_max, size, dtype| {
        let choice = choice(vec_max, &product(size, dtype, Layout::Tt));
        (choice.axis, choice.pack_v, choice.pack_s)
    };
    // Along vectors: a page apart, half of one and a few bytes, each beside enough rows.
    let (loaded, copied) = ((Axis::N, false, false), (Axis::N, true, false));
    assert_eq!([(142, 512, 154), (49, 512, 303)].map(|size| copies(32, size, DType::F64)), [copied; 2]);
    assert_eq!([(124, 514, 203), (267, 513, 168)].map(|size| copies(32, size, DType::F32)), [copied; 2]);
    // Exactly half a page, a quarter of a line off that, few rows, and vectors of a quarter of a line and of a line.
    let others = [(150, 512, 150), (113, 516, 156), (41, 514, 82)];
    assert_eq!(others.map(|size| copies(32, size, DType::F32)), [loaded; 3]);
    let input = product((142, 512, 154), DType::F64, Layout::Tt);
    let crowds = |vec_max| Facts::of(&device(vec_max, 1), &input).crowds_sets(Axis::N);
    assert_eq!([16, 32, 64].map(crowds), [false, true, false]);
    // Across vectors, in products of both families: a page apart, not half of one.
    let across = |vec_max, size, dtype, layout| {
        let choice = choice(vec_max, &product(size, dtype, layout));
        choice.axis == Axis::M && choice.pack_s
    };
    for layout in [Layout::Tt, Layout::Nt] {
        assert!(across(32, (200, 1024, 100), DType::F32, layout), "{layout}");
        assert!(!across(32, (200, 1040, 100), DType::F32, layout), "{layout}");
        assert!(!across(64, (200, 1024, 100), DType::F32, layout), "{layout}");
    }
    assert!(across(32, (60, 256, 80), DType::C64, Layout::Tt));
    assert!(!across(32, (200, 511, 100), DType::F32, Layout::Tt));
}

#[test]
fn columns_of_a_flat_product_go_past_few_vectors() {
    let tile = |vec_max, threads, size, dtype, layout| {
        let choice = Choice::of(&Facts::of(&device(vec_max, threads), &product(size, dtype, layout)));
        (!choice.broadcast).then_some(choice.tile)
    };
    let on_one = |size, dtype, layout| tile(32, 1, size, dtype, layout);
    // By tiles of four vectors unless three tiles of two are fewer, of three past rows; of a C in memory.
    assert_eq!(on_one((63, 725, 32), DType::F32, Layout::Nn), Some((4, 3)));
    assert_eq!(on_one((48, 3284, 9), DType::F32, Layout::Nn), Some((2, 6)));
    assert_eq!(on_one((3325, 31, 18), DType::F64, Layout::Tt), Some((3, 4)));
    assert_eq!(on_one((27, 10_079, 4), DType::C64, Layout::Tn), Some((2, 3)));
    assert_eq!(on_one((230, 3912, 6), DType::F32, Layout::Nt), Some((4, 3)));
    // Many vectors, many of a C in memory, few columns, and numbers that are widened.
    let many = [((1400, 3000, 6), DType::F32), ((184, 15_476, 14), DType::F32), ((101, 185, 2), DType::F32)];
    assert_eq!(many.map(|(size, dtype)| on_one(size, dtype, Layout::Nt)), [None; 3]);
    assert_eq!(on_one((200, 3000, 32), DType::Bf16, Layout::Nt), None);
    // Few columns for each thread, and vectors of a quarter of a line and of a line.
    let few = (101, 300, 20);
    assert_eq!([1, 2].map(|threads| tile(32, threads, few, DType::F32, Layout::Nt)), [Some((2, 6)), None]);
    let others = [16, 32, 64].map(|vec_max| tile(vec_max, 1, (200, 3000, 32), DType::F32, Layout::Nt).is_some());
    assert_eq!(others, [false, true, false]);
}

#[test]
fn what_is_wanted_of_few_vectors_is_legal() {
    let shapes = [
        ((63, 725, 32), DType::F32, Layout::Nn),
        ((5000, 63, 40), DType::F32, Layout::Tn),
        ((3325, 31, 18), DType::F64, Layout::Tt),
        ((27, 10_079, 4), DType::C64, Layout::Tn),
        ((60, 30_000, 60), DType::F32, Layout::Nt),
        ((59, 3392, 3), DType::F64, Layout::Nn),
    ];
    for ((size, dtype, layout), threads) in shapes.into_iter().flat_map(|shape| [1, 2].map(|threads| (shape, threads)))
    {
        let input = GemmInput { beta: ScalarClass::Other, ..product(size, dtype, layout) };
        let facts = Facts::of(&device(32, threads), &input);
        let (config, tile) = (default_of(&input, threads), Choice::of(&facts).tile);
        let has =
            |name, wanted: usize| assert_eq!(config.get(name).unwrap().to_string(), wanted.to_string(), "{config}");
        has("m_s", tile.0 * facts.lanes);
        has("n_s", tile.1);
        assert_eq!(config.get("order").unwrap().to_string(), "vector", "{config}");
    }
}
