//! Few rows, few columns and few steps, where vectors are half a line.

use super::super::*;
use crate::kernel::CpuGemm;
use crate::proofs::device;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_ops::gemm::Layout;

type Size = (usize, usize, usize);

/// On a device with a last-level cache of 32 MB.
fn spec(vec_max: i64, threads: i64) -> DeviceSpec {
    let mut device = device(vec_max, threads);
    device.facts.extend([("l3_bytes".to_owned(), 32 << 20)]);
    device
}

fn product((m, n, k): Size, dtype: DType, layout: Layout) -> GemmInput {
    GemmInput::new(m, n, k, dtype, layout)
}

fn choice(size: Size, dtype: DType, layout: Layout) -> Choice {
    Choice::of(&Facts::of(&spec(32, 1), &product(size, dtype, layout)))
}

#[test]
fn two_or_three_elements_across_take_tiles_of_four_vectors() {
    let tile = |vec_max, size, dtype, layout| {
        Choice::of(&Facts::of(&spec(vec_max, 1), &product(size, dtype, layout))).tile == TALL
    };
    for dtype in [DType::F32, DType::F64] {
        assert!(tile(32, (2, 1577, 66), dtype, Layout::Tt) && tile(32, (2, 128, 2048), dtype, Layout::Tt));
        assert!(tile(32, (968, 3, 130), dtype, Layout::Nt) && tile(32, (2049, 3, 5), dtype, Layout::Nn));
    }
    // More elements, two of them beside memory, complex numbers, and other vectors.
    assert!(!tile(32, (6, 1577, 66), DType::F32, Layout::Tt) && !tile(32, (2, 4000, 2200), DType::F32, Layout::Tt));
    assert!(tile(32, (3, 4000, 2200), DType::F32, Layout::Tt) && !tile(32, (2, 1577, 66), DType::C32, Layout::Tt));
    assert!(![16, 64].iter().any(|vec_max| tile(*vec_max, (2, 1577, 66), DType::F32, Layout::Tt)));
}

#[test]
fn vectors_of_a_deep_product_that_fill_a_tall_tile_stay_past_the_other_side() {
    let is_tall = |vec_max, size, dtype, layout| {
        let choice = Choice::of(&Facts::of(&spec(vec_max, 1), &product(size, dtype, layout)));
        (choice.tile, choice.u, choice.broadcast, choice.pack_v) == (TALL, 256, false, false)
    };
    let f32 = |size, layout| is_tall(32, size, DType::F32, layout);
    assert!(f32((27, 105, 3644), Layout::Nn) && f32((32, 60, 2000), Layout::Nn) && f32((60, 28, 2000), Layout::Tt));
    assert!(f32((30, 12, 8000), Layout::Nt) && is_tall(32, (14, 60, 2000), DType::F64, Layout::Nn));
    // Too few or too many, whole vectors or many columns beside rows of B, copies, complex numbers, and other vectors.
    assert!(!f32((24, 105, 3644), Layout::Nn) && !f32((33, 105, 3644), Layout::Nn));
    assert!(!f32((32, 12, 8000), Layout::Nt) && !f32((30, 25, 8000), Layout::Nt) && !f32((28, 30, 8000), Layout::Tn));
    assert!(!is_tall(32, (14, 60, 2000), DType::C32, Layout::Nn));
    assert!(![16, 64].iter().any(|vec_max| is_tall(*vec_max, (27, 105, 3644), DType::F32, Layout::Nn)));
}

#[test]
fn a_processor_runs_ahead_in_rows_of_a_deep_product() {
    let steps = |size, layout| {
        let choice = choice(size, DType::F32, layout);
        (choice.pack_v, choice.u == 512, choice.k_s, choice.prefetch)
    };
    // Of what the last-level cache holds, of memory, and of rows of both operands.
    assert_eq!(steps((48, 90, 3000), Layout::Nn), (false, false, 8, 0));
    assert_eq!(steps((64, 96, 20_000), Layout::Nn), (false, false, 8, 32));
    assert_eq!(steps((64, 96, 20_000), Layout::Tn), (true, true, 8, 0));
    // What the second-level cache holds, and what lies step by step.
    assert_eq!(steps((10, 20, 2000), Layout::Nn).2, 4);
    assert_eq!(steps((20, 20, 20_000), Layout::Nt).3, 32);
}

#[test]
fn a_panel_that_the_first_level_cache_holds_stays_past_the_rows_of_a_long_operand() {
    let stays = |size, dtype, layout| !choice(size, dtype, layout).broadcast;
    assert!(stays((2049, 17, 107), DType::F32, Layout::Tn) && stays((66, 3000, 114), DType::F32, Layout::Nn));
    assert!(stays((2049, 17, 107), DType::F64, Layout::Tn) && stays((2049, 17, 107), DType::C32, Layout::Tn));
    // A panel that it does not hold, and rows that take too much to be read once more.
    assert!(!stays((1500, 17, 600), DType::F32, Layout::Tn) && !stays((16, 7597, 178), DType::F64, Layout::Nn));
    // What is converted as it is copied, and other vectors.
    assert!(!stays((2049, 17, 107), DType::Bf16, Layout::Tn));
    let others = [16, 64].map(|vec_max| {
        Choice::of(&Facts::of(&spec(vec_max, 1), &product((2049, 17, 107), DType::F32, Layout::Tn))).broadcast
    });
    assert_eq!(others, [true; 2]);
}

#[test]
fn columns_go_past_many_vectors_of_a_c_in_the_last_level_cache() {
    let on = |vec_max, threads, input: &GemmInput| {
        let choice = Choice::of(&Facts::of(&spec(vec_max, threads), input));
        (!choice.broadcast).then_some(choice.tile)
    };
    let past = |size, layout| on(32, 1, &product(size, DType::F32, layout));
    let [deep, rows] = [Layout::Nn, Layout::Nt];
    assert_eq!([past((475, 1437, 3), deep), past((566, 711, 11), deep), past((475, 1437, 3), rows)], [Some(TALL); 3]);
    // A larger C, of more vectors or fewer, and beside rows of B.
    assert_eq!([past((600, 3000, 5), deep), past((300, 9000, 5), deep)], [Some(TALL); 2]);
    assert_eq!([past((1300, 1400, 5), deep), past((600, 9000, 5), deep), past((600, 3000, 5), rows)], [None; 3]);
    assert_eq!([5000, 9000].map(|n| past((300, n, 5), rows)), [Some(TALL), None]);
    assert_eq!([20_000, 40_000].map(|n| past((300, n, 8), deep)), [Some(TALL), None]);
    assert_eq!([past((566, 200, 11), deep), past((566, 500, 11), rows)], [None; 2]);
    // Columns of C in one set, which few steps wait for.
    let apart = |k| GemmInput { ldc: 1024, ..product((400, 900, k), DType::F32, deep) };
    assert_eq!([4, 5].map(|k| on(32, 1, &apart(k)).is_some()), [false, true]);
    // Each of two threads wants as many columns.
    let square = product((400, 500, 9), DType::F32, rows);
    assert_eq!([1, 2].map(|threads| on(32, threads, &square).is_some()), [true, false]);
    assert_eq!(on(32, 1, &product((475, 1437, 3), DType::C32, deep)), None);
    assert_eq!(on(16, 1, &product((475, 1437, 3), DType::F32, deep)), None);
}

#[test]
fn three_and_four_vectors_of_a_flat_product_are_one_tile() {
    let tile = |size| choice(size, DType::F32, Layout::Nn).tile;
    assert_eq!([tile((17, 697, 3)), tile((20, 3728, 1)), tile((31, 1840, 3))], [(3, 4), (3, 4), TALL]);
    // Nine are fewer by threes, and complex numbers keep the tile and the copy that they had.
    assert_eq!((tile((16, 697, 3)).0, tile((70, 3000, 3))), (2, (3, 4)));
    let complex = choice((12, 30_000, 30), DType::C32, Layout::Nn);
    assert!(complex.tile.0 != 4 && complex.s_block != 4096, "{complex:?}");
}

#[test]
fn half_a_page_apart_a_large_operand_is_read_few_steps_at_a_time() {
    let steps = |size, dtype, layout| choice(size, dtype, layout).u;
    assert_eq!([steps((919, 4, 4096), DType::F32, Layout::Nt), steps((4, 919, 4096), DType::F32, Layout::Tt)], [16; 2]);
    assert_eq!(steps((450, 4, 4000), DType::C32, Layout::Nt), 16);
    // One that takes less of the last-level cache, and steps that lie closer.
    assert_eq!([(919, 4, 2000), (500, 4, 7500)].map(|size| steps(size, DType::F32, Layout::Nt)), [32; 2]);
}

#[test]
fn many_short_rows_are_copied_rather_than_columns_transposed() {
    let axis =
        |threads, size, dtype| Choice::of(&Facts::of(&spec(32, threads), &product(size, dtype, Layout::Tt))).axis;
    assert_eq!([axis(1, (74, 3366, 54), DType::F32), axis(1, (49, 4855, 56), DType::F32)], [Axis::M; 2]);
    let others = [axis(2, (74, 3366, 54), DType::F32), axis(1, (41, 2713, 61), DType::F64)];
    assert_eq!((others, axis(1, (34, 3799, 40), DType::F32)), ([Axis::N; 2], Axis::N));
    assert_eq!([axis(1, (120, 40, 64), DType::F32), axis(1, (901, 2, 7), DType::F32)], [Axis::N; 2]);
}

#[test]
fn what_is_wanted_of_few_elements_is_legal() {
    let shapes = [
        ((2, 1577, 66), Layout::Tt),
        ((968, 3, 130), Layout::Nt),
        ((27, 105, 3644), Layout::Nn),
        ((2049, 17, 107), Layout::Tn),
        ((600, 3000, 5), Layout::Nn),
        ((17, 697, 3), Layout::Nn),
        ((31, 1840, 3), Layout::Nt),
        ((919, 4, 4096), Layout::Nt),
        ((74, 3366, 54), Layout::Tt),
    ];
    for (size, layout) in shapes {
        let input = product(size, DType::F32, layout);
        let wanted = Choice::of(&Facts::of(&spec(32, 1), &input));
        let problem = Bound::new(Arc::new(CpuGemm::new()), Arc::new(spec(32, 1)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        let found = ["m_s", "n_s", "pack_a", "order"].map(|name| config.get(name).unwrap().to_string());
        let (across, order) = (size.0.min(size.1), if wanted.broadcast { "broadcast" } else { "vector" });
        let rows = wanted.tile.0 * wanted.vec / wanted.es;
        assert_eq!((&found[0], &*found[3]), (&rows.to_string(), order), "{size:?} {config}");
        assert_eq!(found[1], wanted.tile.1.min(across.max(2)).to_string(), "{size:?} {config}");
        assert_eq!(found[2], usize::from(wanted.pack_v).to_string(), "{size:?} {config}");
    }
}

#[test]
fn columns_of_few_steps_are_written_in_long_runs() {
    let of = |vec_max, size, dtype| {
        let choice = Choice::of(&Facts::of(&spec(vec_max, 1), &product(size, dtype, Layout::Nt)));
        (choice.axis, choice.v_block)
    };
    // As many rows as fill half of the second-level cache, or half of the first one where that was not measured.
    let (l2, l1) = (512 << 10, 32 << 10);
    assert_eq!(of(32, (9000, 20, 8), DType::F32), (Axis::M, l2 / 2 / 32));
    assert_eq!(of(32, (9000, 20, 8), DType::C64), (Axis::M, l2 / 2 / 128));
    assert_eq!(of(16, (9000, 20, 8), DType::F32), (Axis::M, l1 / 2 / 32));
    assert_eq!([8192, 8193].map(|m| of(32, (m, 20, 8), DType::F32).1), [ALL, 8192]);
}

#[test]
fn vectors_run_along_two_rows() {
    let axis = |vec_max, m, dtype, layout| {
        Choice::of(&Facts::of(&spec(vec_max, 1), &product((m, 3000, 1), dtype, layout))).axis
    };
    assert_eq!([DType::F32, DType::F64].map(|dtype| axis(32, 2, dtype, Layout::Nt)), [Axis::N; 2]);
    // Rows of B along k would be transposed; more rows, complex elements and shorter vectors were not measured.
    assert_eq!(axis(32, 2, DType::F32, Layout::Nn), Axis::M);
    assert_eq!([axis(32, 3, DType::F64, Layout::Nt), axis(16, 2, DType::F32, Layout::Nt)], [Axis::M; 2]);
}

#[test]
fn threads_are_woken_sooner_where_vectors_are_half_a_line() {
    let is_little = |vec_max, size, dtype, layout| {
        Choice::of(&Facts::of(&spec(vec_max, 2), &product(size, dtype, layout))).is_little
    };
    let along = |vec_max, k| is_little(vec_max, (800, 10, k), DType::F32, Layout::Nn);
    assert_eq!(([6, 7].map(|k| along(32, k)), along(64, 20)), ([true, false], true));
    // Parts of columns that few steps write, and slices of a reduction.
    assert!(
        is_little(32, (1700, 10, 2), DType::F32, Layout::Nn) && !is_little(32, (10, 1700, 2), DType::F32, Layout::Nt)
    );
    assert!(
        is_little(32, (8, 8, 2000), DType::F32, Layout::Tn) && !is_little(32, (8, 8, 4000), DType::F32, Layout::Tn)
    );
    assert!(is_little(32, (20, 20, 200), DType::Bf16, Layout::Nn));
    // Some steps of doubles, other numbers of threads, and batches.
    let doubles = |k| is_little(32, (800, 10, k), DType::F64, Layout::Nn);
    assert_eq!([16, 17].map(doubles), [true, false]);
    let three = Choice::of(&Facts::of(&spec(32, 3), &product((800, 10, 7), DType::F32, Layout::Nn)));
    let single = product((800, 10, 7), DType::F32, Layout::Nn);
    let two = GemmInput { batch: tilewright_ops::gemm::Batch { count: 2, ..single.batch }, ..single };
    assert!(three.is_little && Choice::of(&Facts::of(&spec(32, 2), &two)).is_little);
}
