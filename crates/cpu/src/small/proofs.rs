//! Tests of the generated routines in the interpreter: right results, and no access outside of the operands' own elements.

use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};
use tilewright_core::buffer::{Buffer, Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{A, ALPHA, B, BETA, Batch, C, Gemm, GemmInput, Layout, ScalarClass};

use super::blueprint::{Blueprint, turned_tile};
use super::code::{Code, Operands};
use super::host::{bits, constants};
use super::routine::{Constants, assemble};
use super::{CpuSmall, SmallPlan};
use crate::config::Axis;
use crate::interpreter::{Fault, Machine, Memory, Rights};
use crate::proofs::{any_plan, device};
use std::collections::HashSet;
use std::sync::Arc;
use tilewright_core::problem::{Bound, Problem};

/// Allows each stored column of each product on its own, so that what lies between is out of bounds.
fn allow(
    memory: &mut Memory,
    buffer: &Buffer,
    (rows, columns, ld): (usize, usize, usize),
    of: (u32, u64),
    rights: Rights,
) {
    let (base, size) = (buffer.bytes().as_ptr() as u64, buffer.dtype().size());
    // Without gaps the columns are one range, which an access may straddle.
    let (rows, columns) = if rows == ld { (rows * columns, 1) } else { (rows, columns) };
    for product in 0..u64::from(of.0) {
        for column in 0..columns {
            memory.allow(base + product * of.1 * size as u64 + (column * ld * size) as u64, rows * size, rights);
        }
    }
}

fn scaled(blueprint: &Blueprint, work: &Workload) -> Constants {
    let [alpha, beta] = [ALPHA, BETA].map(|at| bits(blueprint.isa.float, work.scalars[at]));
    Constants { alpha, beta, ..constants(blueprint) }
}

fn operands(work: &mut Workload) -> Operands {
    Operands {
        a: work.buffers[A].bytes().as_ptr(),
        b: work.buffers[B].bytes().as_ptr(),
        c: work.buffers[C].bytes_mut().as_mut_ptr(),
        panel: std::ptr::null_mut(),
    }
}

fn interpret(blueprint: &Blueprint, input: &GemmInput, work: &mut Workload) -> Result<(), Fault> {
    prefetched(blueprint, input, work).map(drop)
}

/// Runs the generated code; the addresses that it prefetched to be written.
fn prefetched(blueprint: &Blueprint, input: &GemmInput, work: &mut Workload) -> Result<Vec<u64>, Fault> {
    let code = assemble(blueprint).unwrap();
    let mut memory = Memory::default();
    let (a, b, batch) = (input.a_stored(), input.b_stored(), input.batch);
    let of = |operand: usize| (batch.count, batch.strides[operand]);
    allow(&mut memory, &work.buffers[A], (a.0, a.1, input.lda), of(A), Rights::Read);
    allow(&mut memory, &work.buffers[B], (b.0, b.1, input.ldb), of(B), Rights::Read);
    let rights = if input.beta == ScalarClass::Zero { Rights::Write } else { Rights::ReadWrite };
    allow(&mut memory, &work.buffers[C], (input.m, input.n, input.ldc), of(C), rights);
    let constants = scaled(blueprint, work);
    memory.allow(&raw const constants as u64, size_of::<Constants>(), Rights::Read);
    let panel = Buffer::zeroed(DType::I8, blueprint.panel());
    memory.allow(panel.bytes().as_ptr() as u64, panel.len(), Rights::ReadWrite);
    let Operands { a, b, c, .. } = operands(work);
    let (v, s) = if blueprint.swapped { (b, a) } else { (a, b) };
    let arguments = [v as u64, s as u64, c as u64, batch.count.into(), &raw const constants as u64];
    let panel = panel.bytes().as_ptr() as u64;
    let mut machine = Machine::new(&code, &mut memory);
    machine.call_with(0, &[arguments.as_slice(), &[panel]].concat())?;
    Ok(machine.prefetched)
}

fn run_portably(blueprint: &Blueprint, input: &GemmInput, work: &mut Workload) -> Result<(), Fault> {
    let constants = scaled(blueprint, work);
    let (operands, count) = (operands(work), input.batch.count as usize);
    // SAFETY: buffers have the input's extents; no panel is used, and no instructions are needed.
    unsafe { Code::Portable.run(blueprint, operands, count, &constants) };
    Ok(())
}

prop_compose! {
    fn inputs()(
        sizes in (1usize..36, 1usize..36, prop_oneof![1 => Just(1usize), 4 => 1usize..40]),
        pads in (0usize..3, 0usize..3, 0usize..3),
        (layout, double) in (0usize..4, any::<bool>()),
        (alpha, beta) in (0usize..2, 0usize..3),
        count in 1u32..4,
        gaps in (0u64..3, 0u64..3, 0u64..3),
        shared in 0usize..4,
    ) -> GemmInput {
        let (m, n, k) = sizes;
        let dtype = if double { DType::F64 } else { DType::F32 };
        let mut input = GemmInput::new(m, n, k, dtype, Layout::ALL[layout]);
        (input.lda, input.ldb, input.ldc) = (input.lda + pads.0, input.ldb + pads.1, input.ldc + pads.2);
        input.alpha = [ScalarClass::One, ScalarClass::Other][alpha];
        input.beta = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other][beta];
        input.align = 16;
        input.batch = Batch::tight(count, &input);
        if count > 1 {
            let Batch { strides: [a, b, c], .. } = &mut input.batch;
            (*a, *b, *c) = (*a + gaps.0, *b + gaps.1, *c + gaps.2);
            if shared & 1 != 0 { *a = 0 }
            if shared & 2 != 0 { *b = 0 }
        }
        input
    }
}

fn check(
    input: &GemmInput,
    device: &DeviceSpec,
    seed: u64,
    run: fn(&Blueprint, &GemmInput, &mut Workload) -> Result<(), Fault>,
) -> Result<(), TestCaseError> {
    let Some(SmallPlan { blueprint }) = any_plan(CpuSmall::new(), device, input, &mut StdRng::seed_from_u64(seed))
    else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let expected = Gemm.reference(input, &work.buffers, &work.scalars);
    let ran = run(&blueprint, input, &mut work);
    prop_assert_eq!(ran, Ok(()), "{:?} {:?}", input, blueprint.config);
    let verdict = expected.unwrap().compare(&work.buffers);
    prop_assert!(verdict.is_right(), "{:?} {:?} {:?}", verdict, input, blueprint.config);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn avx512_is_right_and_within_bounds(input in inputs(), seed in any::<u64>()) {
        check(&input, &device(64, 1), seed, interpret)?;
    }

    #[test]
    fn avx2_is_right_and_within_bounds(input in inputs(), seed in any::<u64>()) {
        check(&input, &device(32, 1), seed, interpret)?;
    }

    #[test]
    fn narrow_vectors_are_right_and_within_bounds(input in inputs(), seed in any::<u64>()) {
        check(&input, &device(16, 1), seed, interpret)?;
    }

    #[test]
    fn edges_are_turned(input in inputs(), wide in any::<bool>(), edge in 1usize..9, seed in any::<u64>()) {
        let (m, n) = (16 * (1 + input.m % 2) + edge, 40 + input.n);
        let (m, n) = if seed & 8 == 0 { (m, n) } else { (n, m) };
        let gaps = [0, 1, 2].map(|i| (seed >> i & 1) as usize);
        let mut edged = GemmInput::new(m, n, input.k + 6, input.dtype(), Layout::Nt);
        (edged.lda, edged.ldb, edged.ldc) = (edged.lda + gaps[0], edged.ldb + gaps[1], edged.ldc + gaps[2]);
        (edged.alpha, edged.beta, edged.align) = (input.alpha, input.beta, 16);
        edged.batch = Batch::tight(input.batch.count, &edged);
        let device = device(if wide { 64 } else { 32 }, 1);
        let of = |seed| any_plan(CpuSmall::new(), &device, &edged, &mut StdRng::seed_from_u64(seed));
        let turns = |seed: &u64| of(*seed).is_some_and(|plan| plan.blueprint.edge.is_some());
        let Some(seed) = (0..40).map(|i| seed.wrapping_add(i)).find(turns) else {
            return Err(TestCaseError::reject("no such plan was drawn"));
        };
        check(&edged, &device, seed, interpret)?;
        check(&edged, &device, seed, run_portably)?;
    }

    /// Whose elements are neighbours, so that they are written by vectors along n.
    #[test]
    fn a_single_tight_row_is_right_and_within_bounds(input in inputs(), is_wide in any::<bool>(), seed in any::<u64>()) {
        let row = GemmInput::new(1, input.n + input.m, input.k, input.dtype(), input.layout);
        let row = GemmInput { alpha: input.alpha, beta: input.beta, align: 16, batch: Batch::tight(input.batch.count, &row), ..row };
        check(&row, &device(if is_wide { 64 } else { 32 }, 1), seed, interpret)?;
    }

    #[test]
    fn portable_products_are_right(input in inputs(), seed in any::<u64>()) {
        check(&input, &device(16, 1), seed, run_portably)?;
    }
}

/// The interpreter notices what it is there for.
#[test]
fn a_read_beyond_the_operand_is_a_fault() {
    let input = GemmInput::new(16, 6, 8, DType::F32, Layout::Nt);
    let plan = any_plan(CpuSmall::new(), &device(32, 1), &input, &mut StdRng::seed_from_u64(1)).unwrap();
    let shorter = GemmInput::new(16, 6, 7, DType::F32, Layout::Nt);
    let mut work = Gemm.workload(&input, Filling::Real, 1);
    assert!(matches!(interpret(&plan.blueprint, &shorter, &mut work), Err(Fault::Read { .. })));
}

/// Products that do little but write C: whichever way the only step of A and B is stored, nothing is copied, and columns are written from
/// end to end by tiles of four vectors. Where a vector is a line, C is fetched ahead unless steps of k leave the time for it.
#[test]
fn outer_products_write_long_runs_of_columns() {
    let default = |input: &GemmInput, vec: usize| {
        let device = Arc::new(device(vec as i64, 1));
        let problem = Bound::new(Arc::new(CpuSmall::new()), device, input.clone()).unwrap();
        let point = problem.default_point().unwrap();
        problem.plan(&problem.space().check(&point).unwrap()).blueprint.config
    };
    for (vec, n_s, fetches) in [(32usize, 3, false), (64, 3, true)] {
        for (dtype, layout) in [DType::F32, DType::F64].into_iter().flat_map(|d| Layout::ALL.map(|l| (d, l))) {
            let input = GemmInput::new(509, 511, 1, dtype, layout);
            let c = default(&input, vec);
            assert_eq!(
                (c.axis, c.vec, c.vectors, c.n_s, c.broadcast, c.packs, c.prefetch),
                (Axis::M, vec, 4, n_s, true, false, fetches),
                "{input:?}"
            );
        }
    }
    let deeper = [7, 8].map(|k| default(&GemmInput::new(300, 300, k, DType::F32, Layout::Nn), 64));
    assert_eq!(deeper.map(|c| (c.n_s, c.prefetch)), [(6, true), (6, false)]);
}

/// Of rows of A that lie along k, a tile broadcasts no more than a first-level cache of eight ways holds.
#[test]
fn rows_pages_apart_are_read_a_few_at_a_time() {
    let rows = |lda: usize| {
        let input = GemmInput { lda, ..GemmInput::new(128, 8, 512, DType::F64, Layout::Tt) };
        let problem = Bound::new(Arc::new(CpuSmall::new()), Arc::new(device(64, 1)), input).unwrap();
        let point = problem.default_point().unwrap();
        let config = problem.plan(&problem.space().check(&point).unwrap()).blueprint.config;
        assert_eq!(config.axis, Axis::N, "{config:?}");
        config.n_s
    };
    let [pages, halves, lines] = [512, 768, 520].map(rows);
    assert!(pages <= 8 && (9..=16).contains(&halves) && lines > 16, "{pages} {halves} {lines}");
}

#[test]
fn lines_of_c_are_prefetched_a_tile_ahead() {
    for (dtype, ldc) in [(DType::F32, 174), (DType::F32, 180), (DType::F64, 175)] {
        let input = GemmInput { ldc, ..GemmInput::new(174, 99, 3, dtype, Layout::Nt) };
        let problem = Bound::new(Arc::new(CpuSmall::new()), Arc::new(device(64, 1)), input.clone()).unwrap();
        let point = problem.default_point().unwrap();
        let blueprint = problem.plan(&problem.space().check(&point).unwrap()).blueprint;
        assert!(blueprint.config.prefetch, "{:?}", blueprint.config);
        let mut work = Gemm.workload(&input, Filling::Real, 1);
        let lines_asked: HashSet<u64> =
            prefetched(&blueprint, &input, &mut work).unwrap().iter().map(|at| at / LINE).collect();
        // Lines that columns from `first` on are written to.
        let (base, size) = (work.buffers[C].bytes().as_ptr() as u64, dtype.size());
        let lines = |first: usize| -> HashSet<u64> {
            let bytes = (first..input.n).flat_map(|j| (0..input.m).map(move |i| (i + j * ldc) * size));
            bytes.map(|byte| (base + byte as u64) / LINE).collect()
        };
        let behind_the_first = lines(blueprint.config.n_s);
        let missed = behind_the_first.difference(&lines_asked).count();
        assert!(20 * missed <= behind_the_first.len(), "{dtype} {ldc}: {missed} of {}", behind_the_first.len());
        // What the last tiles prefetch lies behind C: not more than a tile of it.
        let needless = lines_asked.difference(&lines(0)).count();
        let tile = blueprint.config.n_s * (ldc * size).div_ceil(LINE as usize) + 1;
        assert!(needless <= tile, "{dtype} {ldc}: {needless} beside a tile of {tile}");
    }
}

const LINE: u64 = crate::LINE as u64;

#[test]
fn tiles_of_turned_edges_fit_the_registers() {
    for ((rows, units), (registers, k)) in (1..=8)
        .flat_map(|rows| (1..=6).map(move |units| (rows, units)))
        .flat_map(|at| [(16, 6), (32, 40)].map(|of| (at, of)))
    {
        let (vectors, sets) = turned_tile((rows, units), registers, (k, 4));
        assert!((1..=units.min(4)).contains(&vectors), "{rows} {units} {registers}");
        assert!(vectors * rows * sets + (vectors.min(rows) + 1).max(4) <= registers, "{rows} {units} {registers}");
    }
    // One row beside a vector of columns is a single chain, whose latency sets of accumulators hide.
    assert_eq!(turned_tile((1, 1), 32, (40, 4)), (1, 4));
    assert_eq!(turned_tile((7, 4), 32, (40, 4)), (3, 1));
}
