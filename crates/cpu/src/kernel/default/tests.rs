use super::flat::STREAMS;
use super::*;
use crate::kernel::CpuGemm;
use crate::proofs::device;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::problem::{Bound, Problem};
use tilewright_ops::gemm::{Batch, Layout, ScalarClass};

mod crowded;
mod few;
mod narrow;
mod placed;
mod three_m;

fn family(m: usize, n: usize, k: usize, layout: Layout) -> Family {
    Facts::of(&device(64, 1), &GemmInput::new(m, n, k, DType::F32, layout)).family()
}

#[test]
fn families_follow_the_shape() {
    // Of a second-level cache of 512 KiB.
    assert_eq!(family(2048, 2048, 2048, Layout::Nt), Family::Large);
    assert_eq!(family(2560, 16, 2560, Layout::Nn), Family::Skinny);
    assert_eq!(family(16, 2560, 2560, Layout::Tn), Family::Skinny);
    assert_eq!(family(64, 64, 60_000, Layout::Nt), Family::Deep);
    assert_eq!(family(4096, 4096, 32, Layout::Nt), Family::Flat);
    assert_eq!(family(8191, 17, 31, Layout::Tn), Family::Flat);
    assert_eq!(family(100, 100, 100, Layout::Tt), Family::Medium);
}

#[test]
fn columns_of_a_deep_product_that_share_lines_are_read_from_end_to_end() {
    let choice = |vec_max: i64, m: usize, k: usize, layout: Layout, lda: usize| {
        let mut input = GemmInput::new(m, 17, k, DType::F32, layout);
        input.lda = input.lda.max(lda);
        Choice::of(&Facts::of(&device(vec_max, 1), &input))
    };
    let (far, near) = (choice(32, 87, 32_768, Layout::Nt, 0), choice(32, 87, 4000, Layout::Nt, 0));
    assert!(far.broadcast && near.broadcast && far.v_block >= 87);
    assert_eq!((far.prefetch, near.prefetch, choice(32, 87, 32_768, Layout::Nn, 0).prefetch), (8, 0, 0));
    assert!(choice(32, 64, 32_768, Layout::Nt, 87).broadcast, "columns of whole lines that do not begin with one");
    // Whole lines, columns of whole lines apart, a single panel, rows along k, and vectors that are lines.
    let others = [(32, 64, Layout::Nt, 0), (32, 15, Layout::Nt, 0), (32, 87, Layout::Tn, 0), (64, 87, Layout::Nt, 0)];
    for (vec_max, m, layout, lda) in others.into_iter().chain([(32, 87, Layout::Nt, 96)]) {
        assert!(!choice(vec_max, m, 32_768, layout, lda).broadcast, "{vec_max} {m} {layout} {lda}");
    }
    let converted = GemmInput::new(87, 17, 32_768, DType::Bf16, Layout::Nt);
    assert!(!Choice::of(&Facts::of(&device(32, 1), &converted)).broadcast);
}

#[test]
fn tiles_fit_the_registers_and_divide_small_sides_evenly() {
    let input = GemmInput::new(64, 64, 64, DType::F32, Layout::Nn);
    let (wide, narrow) = (Facts::of(&device(64, 1), &input), Facts::of(&device(32, 1), &input));
    // 16 columns are two tiles of 8, as they are of 9, and both are wider along vectors than one of 16.
    assert_eq!(best_tile(&wide, ALL, 16), (3, 9));
    assert_eq!(best_tile(&wide, ALL, ALL).0 * best_tile(&wide, ALL, ALL).1, 28);
    let (vecs, n_s) = best_tile(&narrow, ALL, ALL);
    assert!(vecs * n_s <= 12, "{vecs} {n_s}");
}

#[test]
fn a_cache_of_all_cores_is_taken_for_memory() {
    let choice = |l3: i64, (m, n, k): (usize, usize, usize), layout| {
        let mut device = device(64, 1);
        device.facts.extend([("l2_bytes", 2 << 20), ("l3_bytes", l3)].map(|(name, x)| (name.to_owned(), x)));
        Choice::of(&Facts::of(&device, &GemmInput::new(m, n, k, DType::F64, layout)))
    };
    // 52 MB, of which a few columns beside many are read at once, and the short operand's 2.6 MB.
    let [own, shared] = [64 << 20, 480 << 20].map(|l3| choice(l3, (2560, 32, 2560), Layout::Nn));
    assert_eq!((shared.u, shared.broadcast), (32, false), "{shared:?}");
    assert_eq!((own.u, own.broadcast), (32, false), "{own:?}");
    let [own, shared] = [32 << 20, 480 << 20].map(|l3| choice(l3, (2560, 128, 2560), Layout::Tn).u);
    assert_eq!((own, shared), (ALL, 1024));
    // 10 MB are in either, but one of them is far enough to ask for what comes next.
    let [own, shared] = [32 << 20, 480 << 20].map(|l3| choice(l3, (1280, 32, 1024), Layout::Nn));
    assert_eq!((own.u, own.broadcast, own.prefetch), (64, true, 0));
    assert_eq!((shared.u, shared.broadcast, shared.pack_s, shared.prefetch), (64, false, false, 32));
    let [own, shared] = [32 << 20, 480 << 20].map(|l3| choice(l3, (32, 1280, 1024), Layout::Nt).u);
    assert_eq!((own, shared), (128, 32));
    // A long operand of 1.5 MB does not stay in the second-level cache of 2, one of 1.2 does.
    let [own, shared] = [32 << 20, 480 << 20].map(|l3| choice(l3, (1000, 9, 200), Layout::Nn));
    assert_eq!([(own.u, own.prefetch), (shared.u, shared.prefetch)], [(300, 0), (96, 8)]);
    let less = choice(480 << 20, (800, 9, 190), Layout::Nn);
    assert_eq!((less.u, less.prefetch), (285, 0));
    let few = choice(480 << 20, (4, 1280, 1024), Layout::Nt);
    assert_eq!((few.u, few.broadcast, few.prefetch), (32, false, 32));
}

#[test]
fn columns_of_c_that_share_a_set_are_not_written_side_by_side() {
    // 32 columns, a multiple of the page size apart or not, which would be written some elements of each at a time.
    let axis = |n, ldc: usize| {
        let mut input = GemmInput::new(4000, n, 24, DType::F32, Layout::Tt);
        input.ldc = ldc;
        Choice::of(&Facts::of(&device(64, 1), &input)).axis
    };
    assert_eq!([axis(32, 4000), axis(32, 4096), axis(32, 8191)], [Axis::N, Axis::M, Axis::M]);
    // So few stay in the cache.
    assert_eq!([axis(8, 4000), axis(8, 4096)], [Axis::N, Axis::N]);
}

#[test]
fn steps_that_take_more_than_a_line_are_packed() {
    let packs =
        |dtype, layout| Choice::large(&Facts::of(&device(64, 1), &GemmInput::new(200, 200, 200, dtype, layout))).pack_s;
    assert!(packs(DType::F64, Layout::Nt));
    assert!(!packs(DType::F64, Layout::Nn) && !packs(DType::F32, Layout::Nt));
}

#[test]
fn complex_products_take_the_wide_tile_where_steps_are_read_as_they_come() {
    let choice = |vec_max: i64, (m, n, k): (usize, usize, usize), dtype: DType, layout: Layout| {
        let choice = Choice::of(&Facts::of(&device(vec_max, 1), &GemmInput::new(m, n, k, dtype, layout)));
        (choice.tile == WIDE_COMPLEX && choice.k_s == 8).then_some((choice.pack_v, choice.u, choice.v_block))
    };
    let (long, deep) = ((2560, 16, 2560), (64, 64, 60_000));
    assert_eq!(choice(64, long, DType::C32, Layout::Nn), Some((false, 96, 256)));
    assert_eq!(choice(64, long, DType::C64, Layout::Nn), Some((false, 96, 256)));
    assert_eq!(choice(64, deep, DType::C32, Layout::Nt), Some((false, 64, 64)));
    // Two tiles of others, a few columns, B along k, C transposed, shorter vectors, and real elements.
    assert_eq!(choice(64, (100, 4, 60_000), DType::C32, Layout::Nt), None);
    assert_eq!(choice(64, (2560, 10, 2560), DType::C32, Layout::Nn), None);
    assert_eq!(choice(64, deep, DType::C32, Layout::Nn), None);
    assert_eq!(choice(64, (16, 2560, 2560), DType::C32, Layout::Nt), None);
    assert_eq!((choice(32, long, DType::C32, Layout::Nn), choice(64, long, DType::F32, Layout::Nn)), (None, None));
}

#[test]
fn narrow_operands_along_k_are_read_where_they_lie_by_the_widest_vectors() {
    let chosen = |(m, n, k): (usize, usize, usize), dtype: DType, layout: Layout| {
        let input = GemmInput::new(m, n, k, dtype, layout);
        let problem = Bound::new(Arc::new(CpuGemm::narrow()), Arc::new(device(64, 1)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        ["axis", "vec", "pack_a", "pack_b", "n_s", "u"].map(|name| config.get(name).unwrap().to_string()).join(" ")
    };
    for dtype in [DType::I8, DType::Bf16] {
        for n in [8, 16] {
            assert!(chosen((2560, n, 2560), dtype, Layout::Tn).starts_with("n 64 1 0 12 "), "{dtype} {n}");
        }
        // Neighbours that are multiplied at a time end within one step more.
        assert!(chosen((2560, 16, 2561), dtype, Layout::Tn).starts_with("n 64 1 1"), "{dtype}");
    }
    // Woven in few steps of long columns, more where C is transposed behind each block of them; pairs as they are loaded, if all are there.
    assert_eq!(chosen((2560, 16, 2560), DType::I8, Layout::Nn), "m 64 1 1 6 32");
    assert_eq!(chosen((16, 2560, 2560), DType::I8, Layout::Nt), "n 64 1 1 12 128");
    assert_eq!(chosen((2560, 16, 2560), DType::Bf16, Layout::Nn), "m 64 0 1 12 256");
    assert_eq!(chosen((2560, 16, 2561), DType::Bf16, Layout::Nn), "m 64 1 1 6 32");
    assert_eq!(chosen((64, 64, 60_000), DType::Bf16, Layout::Nt)[..11], *"m 64 0 1 12");
    assert_eq!(chosen((2560, 128, 2560), DType::Bf16, Layout::Nn), "m 64 1 1 12 128");
}

#[test]
fn rows_that_fall_into_few_sets_are_read_a_few_at_a_time() {
    let across =
        |m, n, k, dtype| Choice::of(&Facts::of(&device(64, 1), &GemmInput::new(m, n, k, dtype, Layout::Tn))).tile.1;
    // Eight ways, pages apart; half a page apart there are two sets for them.
    assert_eq!([across(64, 16, 4096, DType::F32), across(64, 16, 4104, DType::F32)], [8, 28]);
    assert_eq!([across(120, 16, 512, DType::F32), across(120, 16, 1024, DType::Bf16)], [16, 16]);
}

/// A device of one thread whose last-level cache holds so much, the second-level one 2 MB.
fn beside(l3: i64, vec_max: i64) -> DeviceSpec {
    let mut device = device(vec_max, 1);
    device.facts.extend([("l2_bytes", 2 << 20), ("l3_bytes", l3)].map(|(name, x)| (name.to_owned(), x)));
    device
}

/// What a cache of all cores holds, and one of a few.
const SLOW: i64 = 480 << 20;
const FAST: i64 = 32 << 20;

fn product((m, n, k): (usize, usize, usize), layout: Layout) -> GemmInput {
    GemmInput::new(m, n, k, DType::F32, layout)
}

fn chosen(l3: i64, input: &GemmInput) -> Choice {
    Choice::of(&Facts::of(&beside(l3, 64), input))
}

#[test]
fn flat_products_are_written_around_a_slow_cache() {
    let streams = |l3, shape, layout| chosen(l3, &product(shape, layout)).stream;
    assert!(streams(SLOW, (160, 4124, 32), Layout::Tn) && streams(SLOW, (8192, 64, 64), Layout::Nn));
    assert!(!streams(FAST, (160, 4124, 32), Layout::Tn));
    let doubles = |k| chosen(SLOW, &GemmInput::new(160, 6112, k, DType::F64, Layout::Tn)).stream;
    assert_eq!([doubles(11), doubles(12)], [false, true], "steps by their bytes");
    // Too little for the second-level cache to lose, too little to multiply, a tall one that is not copied, and columns of half a line.
    assert!(!streams(SLOW, (64, 3000, 32), Layout::Tn) && !streams(SLOW, (160, 4124, 16), Layout::Tn));
    assert!(!streams(SLOW, (8192, 64, 32), Layout::Nn));
    let narrow = GemmInput { ldc: 16, ..product((8, 20_000, 32), Layout::Nn) };
    assert_eq!((chosen(SLOW, &narrow).axis, chosen(SLOW, &narrow).stream), (Axis::M, false));
    // A C that is read or not aligned, of a batch too, and one that several second-level caches hold.
    let product = product((160, 4124, 32), Layout::Tn);
    let others = [
        GemmInput { beta: ScalarClass::One, ..product.clone() },
        GemmInput { ldc: 161, ..product.clone() },
        GemmInput { batch: Batch { count: 2, strides: [5120, 131_968, 659_848] }, ..product.clone() },
    ];
    assert!(others.iter().all(|input| !chosen(SLOW, input).stream));
    let mut device = beside(SLOW, 64);
    device.facts.insert("threads".to_owned(), 4);
    assert!(!Choice::of(&Facts::of(&device, &product)).stream);
    // B is copied where many tiles read it.
    let packs = |m| {
        let choice = chosen(SLOW, &self::product((m, 4000, 32), Layout::Nt));
        (choice.axis, choice.stream, choice.pack_s)
    };
    assert_eq!([packs(320), packs(448)], [(Axis::M, true, false), (Axis::M, true, true)]);
}

#[test]
fn what_is_written_around_caches_is_legal() {
    let stored = |kernel: CpuGemm, input: GemmInput| {
        let problem = Bound::new(Arc::new(kernel), Arc::new(beside(SLOW, 64)), input).unwrap();
        let config = problem.space().config(&problem.default_point().unwrap());
        config.get("store").unwrap().to_string()
    };
    let wide = |dtype| GemmInput::new(512, 4096, 32, dtype, Layout::Tn);
    for dtype in [DType::F32, DType::F64] {
        assert_eq!(stored(CpuGemm::new(), wide(dtype)), "stream", "{dtype}");
    }
    for dtype in [DType::C32, DType::C64] {
        assert_eq!(stored(CpuGemm::complex(), wide(dtype)), "stream", "{dtype}");
    }
    assert_eq!(stored(CpuGemm::narrow(), wide(DType::F16)), "normal");
}

#[test]
fn operands_that_thrash_the_tlb_are_packed() {
    let packs = |shape, layout| {
        let choice = chosen(SLOW, &product(shape, layout));
        (choice.axis, choice.pack_s)
    };
    // Of a flat product, a large one, and medium ones along either axis.
    assert_eq!(packs((256, 2048, 40), Layout::Nt), (Axis::M, true));
    assert_eq!(packs((512, 2048, 96), Layout::Nt), (Axis::M, true));
    let medium = |threads: i64, input: GemmInput| {
        let mut device = beside(SLOW, 64);
        device.facts.insert("threads".to_owned(), threads);
        let facts = Facts::of(&device, &input);
        let choice = Choice::of(&facts);
        (facts.family(), choice.axis, choice.pack_s)
    };
    let columns = GemmInput { ldb: 2048, ..product((192, 1000, 66), Layout::Nt) };
    assert_eq!(medium(1, columns), (Family::Medium, Axis::M, true));
    let rows = GemmInput { lda: 2048, ..product((24, 400, 100), Layout::Nt) };
    assert_eq!(medium(1, rows.clone()), (Family::Medium, Axis::N, true));
    assert_eq!(medium(4, rows), (Family::Medium, Axis::N, false), "each thread reads a quarter of the columns past it");
    // Of which the steps lie elsewhere, are read a few times, or follow each other.
    assert_eq!(packs((512, 2000, 96), Layout::Nt), (Axis::M, false));
    assert_eq!(packs((128, 2048, 96), Layout::Nt), (Axis::M, false));
    assert_eq!(packs((512, 2048, 96), Layout::Nn), (Axis::M, false));
    let narrow = Facts::of(&beside(SLOW, 32), &product((256, 2048, 40), Layout::Nt));
    assert!(!narrow.thrashes_tlb(Axis::M));
}

#[test]
fn sets_of_accumulators_count_where_an_axis_is_chosen() {
    // Five chains along one axis wait for themselves, one along the other is taken in turns.
    let row = chosen(SLOW, &product((1, 5, 8192), Layout::Nt));
    assert_eq!((row.axis, row.k_l), (Axis::N, 4));
}

#[test]
fn short_columns_of_c_that_are_read_are_no_reason_to_transpose_it() {
    let read = GemmInput { beta: ScalarClass::One, ..product((3, 518, 64), Layout::Nn) };
    assert_eq!(chosen(SLOW, &read).axis, Axis::M);
}

#[test]
fn a_deep_product_takes_the_side_across_vectors_in_one_block() {
    let shapes = [
        (100, 17, Layout::Nt),
        (100, 63, Layout::Nt),
        (96, 63, Layout::Nt),
        (72, 85, Layout::Nt),
        (33, 100, Layout::Tn),
    ];
    for (dtype, vec_max) in [(DType::F32, 64), (DType::F64, 64), (DType::F32, 32), (DType::C32, 64)] {
        let kernel = || if dtype == DType::C32 { CpuGemm::complex() } else { CpuGemm::new() };
        for (m, n, layout) in shapes {
            let input = GemmInput::new(m, n, 30_000, dtype, layout);
            let problem = Bound::new(Arc::new(kernel()), Arc::new(beside(SLOW, vec_max)), input).unwrap();
            let config = problem.space().config(&problem.default_point().unwrap());
            let across = if config.get("axis").unwrap().to_string() == "m" { n } else { m };
            let block = config.get("n_l").and_then(Value::as_int).unwrap();
            assert!(block >= across as i64, "{m} {n} {layout}: {config}");
        }
    }
}

#[test]
fn a_deep_product_from_memory_asks_for_its_next_block_early() {
    for (dtype, m, n) in [(DType::F32, 100, 63), (DType::F32, 97, 90), (DType::F64, 72, 85)] {
        let input = GemmInput::new(m, n, 30_000, dtype, Layout::Nt);
        let mut device = beside(SLOW, 64);
        device.facts.insert("l1d_bytes".to_owned(), 48 << 10);
        let problem = Bound::new(Arc::new(CpuGemm::new()), Arc::new(device), input).unwrap();
        let point = problem.default_point().unwrap();
        let plan = problem.plan(&problem.space().check(&point).unwrap());
        assert!(plan.blueprint.far_lines().is_some(), "{dtype} {m} {n}: {}", problem.space().config(&point));
    }
}

#[test]
fn parts_of_lines_of_wide_numbers_are_read_side_by_side() {
    let choice = |m, n, dtype, l3: i64| {
        let mut device = device(64, 1);
        device.facts.extend([("l3_bytes".to_owned(), l3)]);
        Choice::of(&Facts::of(&device, &GemmInput::new(m, n, 20_000, dtype, Layout::Nt)))
    };
    let all = |choice: Choice| choice.broadcast && choice.v_block == ALL;
    assert!(all(choice(110, 50, DType::F64, 32 << 20)));
    // Whole lines, numbers of half the size, and a cache that takes as long as memory.
    assert!(!all(choice(112, 50, DType::F64, 32 << 20)));
    assert!(!all(choice(110, 50, DType::F32, 32 << 20)));
    assert!(!all(choice(110, 50, DType::F64, 480 << 20)));
}

#[test]
fn of_few_steps_a_panel_of_vectors_stays_past_many_columns() {
    let choice = |vec_max, m, ldc: usize, l3: i64| {
        let mut device = device(vec_max, 1);
        device.facts.extend([("l3_bytes".to_owned(), l3)]);
        let mut input = GemmInput::new(m, 1000, 10, DType::F32, Layout::Nt);
        input.ldc = ldc;
        let choice = Choice::of(&Facts::of(&device, &input));
        (choice.broadcast, choice.s_block)
    };
    assert_eq!(choice(64, 1000, 1000, 32 << 20), (false, 1024));
    // Columns that meet in a set of the first-level cache, a C that leaves the last-level one, vectors of half a line, and a last-level cache
    // that is waited for.
    assert!(choice(64, 1000, 1000, 15 << 20).0);
    assert!(choice(64, 1023, 1023, 32 << 20).0 && choice(64, 1024, 1024, 32 << 20).0);
    assert!(choice(32, 1400, 1400, 32 << 20).0 && choice(64, 1000, 1000, 480 << 20).0);
}

/// A device of vectors of a line whose last-level cache takes as long as memory.
pub(super) fn waiting(threads: i64) -> DeviceSpec {
    let mut device = device(64, threads);
    device.facts.extend([("l2_bytes".to_owned(), 2 << 20), ("l3_bytes".to_owned(), 480 << 20)]);
    device
}

#[test]
fn far_vectors_of_a_flat_product_are_read_a_block_at_a_time() {
    let choice = |m, n, k| Choice::of(&Facts::of(&waiting(1), &GemmInput::new(m, n, k, DType::F32, Layout::Nt)));
    let far = choice(33, 8000, 60);
    assert_eq!((far.axis, far.pack_v), (Axis::N, false));
    assert!(far.v_block < 1000, "{far:?}");
    // Vectors that stay near, and a single tile across.
    assert_eq!((choice(33, 2000, 60).v_block, choice(8, 8000, 60).v_block), (ALL, ALL));
    // A copy that two tiles read, beside one that many do.
    let copied = |n| {
        let choice = Choice::of(&Facts::of(&waiting(1), &GemmInput::new(8191, n, 31, DType::F32, Layout::Tn)));
        (choice.pack_v, choice.v_block <= 128)
    };
    assert_eq!((copied(17), copied(60)), ((true, true), (true, false)));
}

#[test]
fn vectors_whose_steps_crowd_sets_of_the_cache_are_copied() {
    let packs = |size| {
        let input = GemmInput::new(size, size, size, DType::F32, Layout::Tt);
        let choice = Choice::of(&Facts::of(&waiting(1), &input));
        (choice.axis, choice.pack_v)
    };
    assert_eq!([packs(509), packs(511)], [(Axis::N, true); 2]);
    assert_eq!([packs(400), packs(128)], [(Axis::N, false); 2]);
}

#[test]
fn threads_share_what_few_steps_write() {
    let is_little =
        |m, n, k| Choice::of(&Facts::of(&waiting(2), &GemmInput::new(m, n, k, DType::F32, Layout::Nn))).is_little;
    assert!(!is_little(509, 511, 1) && !is_little(400, 400, 1));
    assert!(is_little(100, 100, 1) && is_little(64, 64, 64));
    // A C of more than twice the first-level cache takes longer to write.
    assert!(!is_little(64, 1023, 1) && !is_little(2048, 16, 2) && is_little(300, 60, 1));
    // Half of each vector is masked.
    assert!(!is_little(7, 2047, 16) && is_little(16, 1023, 16));
}

#[test]
fn threads_take_whole_columns_where_a_part_of_one_would_be_short() {
    let grid = |m, n, k, layout| {
        let choice = Choice::of(&Facts::of(&waiting(2), &GemmInput::new(m, n, k, DType::F32, layout)));
        assert_eq!(choice.axis, Axis::M);
        choice.threads
    };
    let (whole, parts) = (Threads::Grid(1), Threads::Grid(2));
    assert_eq!([grid(644, 128, 3, Layout::Nn), grid(4096, 128, 3, Layout::Nn)], [whole, parts]);
    // Columns of A that each would copy.
    assert_eq!([grid(300, 120, 30, Layout::Tn), grid(1100, 120, 30, Layout::Tn)], [whole, parts]);
    assert_eq!(grid(1024, 65, 3, Layout::Nn), whole);
    // Few columns, and tiles of which one thread would have two in three.
    assert_eq!([grid(644, 32, 3, Layout::Nn), grid(114, 68, 64, Layout::Tn)], [parts; 2]);
    // Products that are not flat.
    assert_eq!([grid(300, 300, 300, Layout::Nn), grid(644, 128, 300, Layout::Nn)], [whole, parts]);
}

#[test]
fn short_columns_of_some_steps_are_written_from_end_to_end() {
    let ends_soon = |m, n, k, dtype| {
        let choice = Choice::of(&Facts::of(&waiting(1), &GemmInput::new(m, n, k, dtype, Layout::Nn)));
        !choice.broadcast
    };
    assert!(ends_soon(140, 900, 6, DType::F32) && ends_soon(300, 900, 10, DType::F32));
    assert!(ends_soon(140, 900, 10, DType::F64));
    // Few steps, columns that are longer, and more of them than stay near.
    assert!(!ends_soon(140, 900, 3, DType::F32) && !ends_soon(250, 900, 6, DType::F64));
    assert!(!ends_soon(140, 5000, 8, DType::F64));
}

#[test]
fn half_of_the_steps_are_read_at_a_time_where_vectors_come_from_many_places_far_away() {
    let steps = |m, n, k, dtype, layout| {
        let choice = Choice::of(&Facts::of(&waiting(1), &GemmInput::new(m, n, k, dtype, layout)));
        (choice.axis, choice.u.min(k))
    };
    assert_eq!(steps(9, 6000, 60, DType::F64, Layout::Nt), (Axis::N, STREAMS));
    assert_eq!(steps(12_000, 9, 60, DType::F32, Layout::Nn), (Axis::M, STREAMS));
    // Vectors that stay near, few steps, and two tiles that read the same vectors.
    assert_eq!(steps(9, 3000, 60, DType::F64, Layout::Nt), (Axis::N, 60));
    assert_eq!(steps(9, 9000, 40, DType::F64, Layout::Nt), (Axis::N, 40));
    assert_eq!(steps(20, 50_000, 60, DType::F32, Layout::Tt), (Axis::N, 60));
}

#[test]
fn doubles_far_away_are_not_transposed_for_one_row_beside_whole_vectors() {
    let axis = |n, dtype| Choice::of(&Facts::of(&waiting(1), &GemmInput::new(17, n, 31, dtype, Layout::Nt))).axis;
    assert_eq!([axis(8191, DType::F64), axis(8191, DType::F32), axis(3000, DType::F64)], [Axis::M, Axis::N, Axis::N]);
}

/// What the space makes of a wish for values of parameters.
fn wished(kernel: CpuGemm, threads: i64, input: &GemmInput, wish: &[(&str, Value)]) -> Vec<String> {
    let problem = Bound::new(Arc::new(kernel), Arc::new(device(64, threads)), input.clone()).unwrap();
    let of = |name: &str| wish.iter().filter(|(wanted, _)| *wanted == name).map(|(_, value)| value.clone()).collect();
    let point = problem.space().preferred_point(|param| of(&param.name)).unwrap();
    let config = problem.space().config(&point);
    wish.iter().map(|(name, _)| config.get(name).unwrap().to_string()).collect()
}

#[test]
fn partial_sums_whose_columns_are_too_long_for_displacements_are_not_legal() {
    // C is 4 rows, so that no operand's leading dimension tells how long a side across them is.
    let product = |n, dtype| GemmInput::new(4, n, 1024, dtype, Layout::Nn);
    let sliced = [("axis", Value::from("n")), ("k_g", Value::from(2i64))];
    assert_eq!(wished(CpuGemm::new(), 2, &product(1 << 20, DType::F32), &sliced), ["n", "2"]);
    assert_eq!(wished(CpuGemm::new(), 2, &product(1 << 24, DType::F32), &sliced), ["n", "1"]);
    // Rounded results are summed in full first, however many threads there are.
    let narrow = |n| wished(CpuGemm::narrow(), 1, &product(n, DType::F16), &sliced[..1]);
    assert_eq!((narrow(1 << 20), narrow(1 << 24)), (vec!["n".to_owned()], vec!["m".to_owned()]));
}
