use super::suits;
use crate::CpuDot;
use crate::proofs::device;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_ops::gemm::{GemmInput, Layout};

/// Of a default: the sides of the tile, the order, and the depth of a block.
fn chosen(m: usize, n: usize, k: usize) -> [String; 4] {
    let input = GemmInput::new(m, n, k, DType::F32, Layout::Tn);
    let problem = Bound::new(Arc::new(CpuDot::new()), Arc::new(device(64, 1)), input).unwrap();
    let config = problem.space().config(&problem.default_point().unwrap());
    ["m_s", "n_s", "order", "u"].map(|name| config.get(name).unwrap().to_string())
}

#[test]
fn a_side_from_beyond_the_first_level_cache_is_read_once_where_a_tile_may_have_all_of_the_other() {
    let tile = |m, n, k| chosen(m, n, k)[..2].join(" ");
    assert_eq!([tile(7, 756, 6144), tile(756, 7, 6144)], ["7 3", "3 7"]);
    assert_eq!([tile(192, 5, 1130), tile(192, 5, 200)], ["4 5", "4 5"]);
    // A near one is read twice where that takes fewer cycles, and otherwise once; a far one no more than twice where once is too few.
    assert_eq!(tile(60, 9, 200), "8 3");
    assert_eq!(tile(9, 500, 3000), "6 4");
}

#[test]
fn a_block_of_the_shorter_side_stays_near() {
    // The longer side is read once, however long the reduction.
    for k in [1000, 32_769] {
        assert_eq!([chosen(17, 19, k)[2].as_str(), chosen(19, 17, k)[2].as_str()], ["column", "row"]);
    }
    let depth = |m, k| chosen(m, 500, k)[3].parse::<usize>().unwrap();
    let l2 = device(64, 1).fact("l2_bytes").unwrap() as usize;
    for (m, k) in [(17, 32_769), (64, 32_769), (5, 100_000), (40, 3000)] {
        let (u, bytes) = (depth(m, k), |u: usize| m * u * 4);
        assert!(bytes(u.min(k)) <= l2 / 2 && (u >= k || bytes(2 * u) > l2 / 2), "{m}: {u}");
    }
}

#[test]
fn short_rows_from_memory_are_asked_for_where_vectors_are_half_a_line() {
    let prefetch = |vec_max, m, n, k| {
        let input = GemmInput::new(m, n, k, DType::F32, Layout::Tn);
        let problem = Bound::new(Arc::new(CpuDot::new()), Arc::new(device(vec_max, 1)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        config.get("prefetch").unwrap().to_string()
    };
    assert_eq!([prefetch(32, 9000, 2, 2048), prefetch(32, 3, 9000, 700), prefetch(32, 9000, 1, 2000)], ["1"; 3]);
    // Rows of more than two pages, rows that the last-level cache holds, and vectors of a quarter of a line.
    assert_eq!([prefetch(32, 9000, 2, 2049), prefetch(32, 1500, 2, 2048), prefetch(16, 9000, 2, 2048)], ["0"; 3]);
    // Of nearer ones shorter rows, which the second-level cache does not hold.
    assert_eq!([prefetch(32, 1500, 2, 640), prefetch(32, 3, 1500, 200), prefetch(32, 1500, 1, 320)], ["1"; 3]);
    assert_eq!([prefetch(32, 1500, 2, 641), prefetch(32, 1500, 9, 600), prefetch(32, 1500, 1, 512)], ["0"; 3]);
    assert_eq!([prefetch(32, 9000, 2, 100), prefetch(32, 9000, 2, 128)], ["0", "1"]);
    assert_eq!([prefetch(32, 50, 3, 600), prefetch(32, 100, 1, 300), prefetch(16, 100, 1, 512)], ["0", "0", "1"]);
    // Rows that share lines, and short ones that do not.
    assert_eq!([15, 16].map(|k| prefetch(32, 9000, 1, k)), ["0", "1"]);
    let apart = GemmInput { lda: 16, ..GemmInput::new(9000, 1, 15, DType::F32, Layout::Tn) };
    let problem = Bound::new(Arc::new(CpuDot::new()), Arc::new(device(32, 1)), apart).unwrap();
    let config = problem.space().config(&problem.default_point().unwrap());
    assert_eq!(config.get("prefetch").unwrap().to_string(), "1");
    // Of lines the next tile is asked for in any case.
    assert_eq!([prefetch(64, 9000, 2, 2049), prefetch(64, 9000, 9, 700)], ["1", "2"]);
}

#[test]
fn four_elements_of_a_shorter_side_are_read_at_once_where_vectors_are_half_a_line() {
    let tile = |vec_max, m, n, layout| {
        let input = GemmInput::new(m, n, 500, DType::F32, layout);
        let problem = Bound::new(Arc::new(CpuDot::new()), Arc::new(device(vec_max, 1)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        ["m_s", "n_s", "k_s", "order"].map(|name| config.get(name).unwrap().to_string()).join(" ")
    };
    assert_eq!([tile(32, 4, 500, Layout::Tn), tile(32, 500, 4, Layout::Tn)], ["4 2 8 row", "2 4 8 column"]);
    assert_eq!(tile(32, 4, 500, Layout::Nn), "4 2 8 row");
    assert!(tile(32, 5, 500, Layout::Tn).contains("2 row") && !tile(64, 4, 500, Layout::Tn).contains(" 8 "));
}

#[test]
fn dot_products_lead_where_vectors_along_c_would_be_filled_badly() {
    let facts = [("l1d_bytes", 32 << 10), ("l2_bytes", 1 << 20), ("l3_bytes", 32 << 20)];
    let mut device = device(64, 1);
    device.facts.extend(facts.map(|(name, bytes)| (name.to_owned(), bytes)));
    let leads = |m, n, k, dtype| suits(&device, &GemmInput::new(m, n, k, dtype, Layout::Tn)) > 0.0;
    let single = |m, n, k| leads(m, n, k, DType::F32);
    // 17 = 16 + 1, while a line more or less is no reason.
    assert_eq!([single(500, 17, 500), single(500, 32, 300), single(500, 17, 40)], [true, false, false]);
    assert_eq!([single(17, 19, 32_769), single(495, 36, 2025), single(163, 61, 3789)], [true; 3]);
    // Of what `gemm.cpu-small` takes it may have vectors along either side.
    assert_eq!([single(20, 20, 200), single(200, 16, 256), single(64, 33, 128)], [true, false, false]);
    // From memory: operands of 8 bytes are left to who reads rows from end to end.
    assert_eq!([single(2560, 33, 2560), single(2560, 16, 2560)], [true, false]);
    let double = |m, n, k| leads(m, n, k, DType::F64);
    assert_eq!([double(13, 215, 17_025), double(13, 215, 1000), double(1, 2000, 3000)], [false, true, true]);
}

#[test]
fn where_a_core_multiplies_two_vectors_at_a_time_less_is_spared() {
    let facts = [("l1d_bytes", 48 << 10), ("l2_bytes", 2 << 20), ("l3_bytes", 480 << 20)];
    let mut device = device(64, 1);
    device.facts.extend(facts.map(|(name, bytes)| (name.to_owned(), bytes)));
    let leads = |m, n, k, dtype, layout| suits(&device, &GemmInput::new(m, n, k, dtype, layout)) > 0.0;
    // The shorter operand lies across k and has to be copied, or along it; and both come from far.
    assert!(!leads(17, 19, 32_769, DType::F32, Layout::Nn) && leads(33, 17, 1000, DType::F32, Layout::Tt));
    assert!(leads(4, 500, 128, DType::F32, Layout::Nn) && !leads(4, 40, 128, DType::F32, Layout::Nn));
    assert!(leads(3000, 4, 64, DType::F32, Layout::Tt) && !leads(3000, 12, 128, DType::F32, Layout::Tt));
    assert!(leads(17, 19, 32_769, DType::F32, Layout::Tn) && leads(17, 19, 32_769, DType::F64, Layout::Tn));
    assert!(!leads(200, 40, 1000, DType::F32, Layout::Tn) && !leads(200, 9, 4000, DType::F64, Layout::Tn));
}

#[test]
fn where_vectors_are_half_a_line_copies_of_a_thin_operand_pay() {
    let with_l3 = |vec_max, l3| {
        let facts = [("l1d_bytes", 32 << 10), ("l2_bytes", 512 << 10), ("l3_bytes", l3)];
        let mut device = device(vec_max, 1);
        device.facts.extend(facts.map(|(name, bytes)| (name.to_owned(), bytes)));
        device
    };
    let device = with_l3(32, 32 << 20);
    let leads = |(m, n, k), dtype, layout| suits(&device, &GemmInput::new(m, n, k, dtype, layout)) > 0.0;
    let copied = |size| leads(size, DType::F32, Layout::Tt);
    assert_eq!([copied((128, 3, 1761)), copied((500, 6, 500)), copied((500, 9, 500))], [true; 3]);
    // Whole vectors along the shorter side, few rows, rows that the first-level cache holds, and short ones.
    assert_eq!([copied((500, 8, 500)), copied((36, 3, 1926)), copied((60, 3, 130)), copied((512, 3, 32))], [false; 4]);
    // From memory, where few columns alone are read as fast; from a last-level cache that takes as long nobody has measured it.
    assert_eq!([copied((2000, 4, 2500)), copied((2000, 6, 2500))], [true, false]);
    let on = |device, size: (usize, usize, usize)| {
        suits(device, &GemmInput::new(size.0, size.1, size.2, DType::F32, Layout::Tt)) > 0.0
    };
    let slow = with_l3(32, 64 << 20);
    assert_eq!([on(&slow, (2000, 4, 2500)), on(&slow, (128, 3, 1761))], [false, true]);
    // Of vectors of a quarter of a line neither.
    assert!(!on(&with_l3(16, 32 << 20), (128, 3, 1761)));
    // What lies along k as it is leads for sides that fill vectors badly.
    let placed = |size, dtype| leads(size, dtype, Layout::Tn);
    assert_eq!([placed((500, 17, 500), DType::F32), placed((512, 19, 3498), DType::F32)], [true, false]);
    assert_eq!([placed((512, 4, 57), DType::F32), placed((2000, 4, 57), DType::F32)], [false, true]);
    assert_eq!([placed((2000, 5, 200), DType::F64), placed((500, 4, 500), DType::F64)], [true; 2]);
    // Four numbers of 8 bytes are read at once, beside enough of them where they are copied.
    let fours = |n| leads((4, n, 500), DType::F64, Layout::Nn);
    assert_eq!([fours(199), fours(201)], [false, true]);
    assert_eq!([placed((500, 4, 100), DType::F64), placed((2000, 4, 1500), DType::F64)], [true, false]);
}

#[test]
fn brief_reductions_are_left_to_others_where_vectors_are_half_a_line() {
    let led =
        |vec_max, (m, n, k), dtype, layout| suits(&device(vec_max, 1), &GemmInput::new(m, n, k, dtype, layout)) > 0.0;
    // Rows of sums are written one by one.
    assert_eq!([4, 5].map(|k| led(32, (1, 1000, k), DType::F32, Layout::Tn)), [false, true]);
    assert_eq!([3, 4].map(|k| led(32, (1, 1000, k), DType::F64, Layout::Nn)), [false, true]);
    assert_eq!([2, 3].map(|k| led(32, (1000, 1, k), DType::F32, Layout::Tn)), [false, true]);
    assert_eq!([1, 2].map(|k| led(32, (1000, 1, k), DType::F64, Layout::Tn)), [false, true]);
    assert!(led(16, (1, 1000, 2), DType::F32, Layout::Tn));
    // Beside two elements, of many.
    assert_eq!([13, 14].map(|k| led(32, (300, 2, k), DType::F64, Layout::Tn)), [false, true]);
    assert_eq!([24, 25].map(|k| led(32, (2, 300, k), DType::F32, Layout::Tn)), [false, true]);
    assert_eq!([79, 80].map(|n| led(32, (2, n, 32), DType::F32, Layout::Tn)), [false, true]);
}
