//! Tests of generated code in the interpreter: right results, and no access outside of the operands' own elements.
//!
//! Points are drawn from the kernel's legal space for devices with 16-, 32- and 64-byte vectors, whatever the host has, so
//! that the rules of the space are tested together with the generator.

mod three_m;

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tilewright_core::buffer::{Buffer, Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_ops::gemm::{A, ALPHA, Accuracy, B, BETA, C, Gemm, GemmInput, Layout, ScalarClass};

use crate::blueprint::Blueprint;
use crate::codegen::abi::PanelArgs;
use crate::codegen::tile::Loaded;
use crate::config::Store;
use crate::exec::code::Invoke;
use crate::exec::driver::{Call, Compiled};
use crate::exec::parts::Parts;
use crate::interpreter::{Fault, Machine, Memory, Rights, Tiles};
use crate::kernel::{CpuGemm, GemmPlan, NARROW};

/// Runs routines in the interpreter and keeps the first fault.
pub(crate) struct Interpreted {
    code: Vec<u8>,
    memory: RefCell<Memory>,
    fault: RefCell<Option<Fault>>,
    /// A thread keeps its tiles from routine to routine.
    tiles: RefCell<Tiles>,
}

impl Interpreted {
    pub(crate) fn new(code: Vec<u8>, memory: Memory) -> Self {
        Self { code, memory: RefCell::new(memory), fault: RefCell::new(None), tiles: RefCell::new(None) }
    }

    pub(crate) fn fault(self) -> Option<Fault> {
        self.fault.into_inner()
    }
}

impl Invoke for Interpreted {
    unsafe fn invoke(&self, entry: usize, args: *mut PanelArgs) {
        if self.fault.borrow().is_some() {
            return;
        }
        let mut memory = self.memory.borrow_mut();
        let mark = memory.allow(args as u64, size_of::<PanelArgs>(), Rights::ReadWrite);
        let mut machine = Machine::new(&self.code, &mut memory);
        machine.tiles = self.tiles.take();
        let result = machine.call(entry as u64, args as u64);
        self.tiles.replace(machine.tiles);
        memory.forget(mark);
        *self.fault.borrow_mut() = result.err();
    }
}

pub(crate) fn device(vec_max: i64, threads: i64) -> DeviceSpec {
    let facts = [
        ("threads", threads),
        ("cores", threads),
        ("vec_max", vec_max),
        ("l1d_bytes", 32 << 10),
        ("l2_bytes", 512 << 10),
        ("l3_bytes", 32 << 20),
        ("memory_bytes", 8 << 30),
        ("avx512_vnni", i64::from(vec_max == 64)),
        ("avx512_bf16", i64::from(vec_max == 64)),
    ];
    DeviceSpec {
        id: "cpu".into(),
        name: "proof".into(),
        kind: DeviceKind::Cpu,
        driver: "interpreted".into(),
        facts: facts.map(|(n, v)| (n.to_owned(), v)).into(),
        measured: Default::default(),
    }
}

/// The plan of a random legal point: parameters in order, each among the values that earlier ones allow.
pub(crate) fn any_plan<K: Kernel<Of = Gemm>>(
    kernel: K,
    device: &DeviceSpec,
    input: &GemmInput,
    rng: &mut StdRng,
) -> Option<K::Plan> {
    let problem = Bound::new(Arc::new(kernel), Arc::new(device.clone()), input.clone()).unwrap();
    let space = problem.space();
    for _ in 0..200 {
        let mut point = Vec::new();
        let mut allowed = Vec::new();
        while point.len() < space.params().len() {
            allowed.clear();
            space.next_values(&point, &mut allowed);
            let Some(&value) = allowed.get(rng.random_range(0..allowed.len().max(1))) else { break };
            point.push(value);
        }
        if let Ok(legal) = space.check(&point) {
            return Some(problem.plan(&legal));
        }
    }
    None
}

/// Allows each stored column on its own, so that the gaps between columns are out of bounds.
pub(crate) fn allow_columns(
    memory: &mut Memory,
    buffer: &Buffer,
    rows: usize,
    columns: usize,
    ld: usize,
    rights: Rights,
) {
    let (base, size) = (buffer.bytes().as_ptr() as u64, buffer.dtype().size());
    // Without gaps the columns are one range, which an access may straddle.
    let (rows, columns) = if rows == ld { (rows * columns, 1) } else { (rows, columns) };
    for column in 0..columns {
        memory.allow(base + (column * ld * size) as u64, rows * size, rights);
    }
}

pub(crate) fn call(work: &mut Workload, workspace: &mut Buffer) -> Call {
    Call {
        a: work.buffers[A].bytes().as_ptr(),
        b: work.buffers[B].bytes().as_ptr(),
        c: work.buffers[C].bytes_mut().as_mut_ptr(),
        workspace: workspace.bytes_mut().as_mut_ptr(),
        alpha: work.scalars[ALPHA],
        beta: work.scalars[BETA],
    }
}

/// Runs all parts of a plan, one after the other, in plain Rust or in the interpreter, where code has these rights to C.
pub(crate) fn run_parts(
    parts: &impl Parts,
    input: &GemmInput,
    work: &mut Workload,
    interpreted: Option<Rights>,
) -> Result<(), Fault> {
    let mut workspace = Buffer::zeroed(DType::I8, parts.workspace());
    let call = call(work, &mut workspace);
    let Some(rights) = interpreted else {
        // SAFETY: buffers have the input's extents.
        unsafe { parts.run_plainly(&call) };
        return Ok(());
    };
    let (code, entries) = parts.generate().unwrap();
    let mut memory = Memory::default();
    let (a, b) = (input.a_stored(), input.b_stored());
    allow_columns(&mut memory, &work.buffers[A], a.0, a.1, input.lda, Rights::Read);
    allow_columns(&mut memory, &work.buffers[B], b.0, b.1, input.ldb, Rights::Read);
    allow_columns(&mut memory, &work.buffers[C], input.m, input.n, input.ldc, rights);
    memory.allow(workspace.bytes().as_ptr() as u64, workspace.len(), Rights::ReadWrite);
    let runs = Interpreted::new(code, memory);
    for thread in 0..parts.threads() {
        // SAFETY: buffers have the input's extents; one thread runs after the other.
        unsafe { parts.run_part(thread, &call, &entries, &runs) };
    }
    runs.fault().map_or(Ok(()), Err)
}

/// Runs all parts in the interpreter, one after the other, and the reduction natively.
fn interpret(blueprint: &Blueprint, input: &GemmInput, work: &mut Workload) -> Result<(), Fault> {
    let compiled = Compiled::new(blueprint.clone()).unwrap();
    let (code, _) = crate::exec::driver::generate(blueprint).unwrap();
    let mut workspace = Buffer::zeroed(DType::I8, blueprint.workspace());
    let mut memory = Memory::default();
    let (a, b) = (input.a_stored(), input.b_stored());
    allow_columns(&mut memory, &work.buffers[A], a.0, a.1, input.lda, Rights::Read);
    allow_columns(&mut memory, &work.buffers[B], b.0, b.1, input.ldb, Rights::Read);
    let once = blueprint.k.tiles() == 1 && input.beta == ScalarClass::Zero;
    let rights = if once { Rights::Write } else { Rights::ReadWrite };
    allow_columns(&mut memory, &work.buffers[C], input.m, input.n, input.ldc, rights);
    memory.allow(workspace.bytes().as_ptr() as u64, workspace.len(), Rights::ReadWrite);
    let call = call(work, &mut workspace);
    let runs = Interpreted::new(code, memory);
    for thread in 0..blueprint.threads() {
        // SAFETY: buffers have the input's extents, the workspace the plan's size; one thread runs after the other.
        unsafe { compiled.run_part_with(thread, &call, &runs) };
    }
    if blueprint.reduces() {
        // SAFETY: as above; reducing runs no generated code.
        unsafe { compiled.reduce_all(&call) };
    }
    runs.fault().map_or(Ok(()), Err)
}

const REAL: &[ElementTypes] = &GemmInput::PLAIN;
const COMPLEX: &[ElementTypes] = &GemmInput::COMPLEX;
/// Operands of bfloat16, and of binary16.
const BF16: &[ElementTypes] = NARROW.split_at(3).0;
const F16: &[ElementTypes] = NARROW.split_at(3).1.split_at(3).0;

prop_compose! {
    fn inputs(types: &'static [ElementTypes])(
        sizes in (1usize..40, 1usize..40, 1usize..70),
        pads in (0usize..3, 0usize..3, 0usize..3),
        layout in 0usize..180,
        dtype in 0usize..420,
        alpha in 0usize..2,
        beta in 0usize..3,
        align in 0u32..3,
    ) -> GemmInput {
        let (m, n, k) = sizes;
        let types = types[dtype % types.len()];
        let layouts = Layout::every(types.operand);
        let mut input = GemmInput::new(m, n, k, types, layouts[layout % layouts.len()]);
        (input.lda, input.ldb, input.ldc) = (input.lda + pads.0, input.ldb + pads.1, input.ldc + pads.2);
        input.alpha = [ScalarClass::One, ScalarClass::Other][alpha];
        input.beta = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other][beta];
        input.align = 64 >> align;
        if types.operand.is_integer() {
            input.alpha = ScalarClass::One;
            input.beta = if beta == 0 { ScalarClass::Zero } else { ScalarClass::One };
        }
        input
    }
}

/// Runs the plan of a random point some way.
fn check(
    input: &GemmInput,
    device: &DeviceSpec,
    seed: u64,
    run: fn(&Blueprint, &GemmInput, &mut Workload) -> Result<(), Fault>,
) -> Result<(), TestCaseError> {
    let Some(GemmPlan { blueprint }) = any_plan(CpuGemm::of(input), device, input, &mut StdRng::seed_from_u64(seed))
    else {
        return Err(TestCaseError::reject("no legal point was drawn"));
    };
    check_plan(&blueprint, input, seed, run)
}

fn check_plan(
    blueprint: &Blueprint,
    input: &GemmInput,
    seed: u64,
    run: fn(&Blueprint, &GemmInput, &mut Workload) -> Result<(), Fault>,
) -> Result<(), TestCaseError> {
    let config = &blueprint.config;
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let expected = Gemm.reference(input, &work.buffers, &work.scalars);
    let ran = run(blueprint, input, &mut work);
    prop_assert_eq!(ran, Ok(()), "{:?} {:?}", input, config);
    let verdict = expected.unwrap().compare(&work.buffers);
    prop_assert!(verdict.is_right(), "{:?} {:?} {:?}", verdict, input, config);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn avx512_is_right_and_within_bounds(input in inputs(REAL), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, &device(64, threads), seed, interpret)?;
    }

    #[test]
    fn avx2_is_right_and_within_bounds(input in inputs(REAL), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, &device(32, threads), seed, interpret)?;
    }

    #[test]
    fn narrow_vectors_are_right_and_within_bounds(input in inputs(REAL), seed in any::<u64>()) {
        check(&input, &device(16, 1), seed, interpret)?;
    }

    #[test]
    fn portable_routines_are_right(input in inputs(REAL), seed in any::<u64>()) {
        check(&input, &device(16, 2), seed, run_portably)?;
    }

    #[test]
    fn complex_avx512_is_right_and_within_bounds(input in inputs(COMPLEX), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, &device(64, threads), seed, interpret)?;
    }

    #[test]
    fn complex_avx2_is_right_and_within_bounds(input in inputs(COMPLEX), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, &device(32, threads), seed, interpret)?;
    }

    #[test]
    fn complex_narrow_vectors_are_right_and_within_bounds(input in inputs(COMPLEX), seed in any::<u64>()) {
        check(&input, &device(16, 1), seed, interpret)?;
    }

    #[test]
    fn complex_portable_routines_are_right(input in inputs(COMPLEX), seed in any::<u64>()) {
        check(&input, &device(16, 2), seed, run_portably)?;
    }

    #[test]
    fn narrow_avx512_is_right_and_within_bounds(input in inputs(&NARROW), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, &device(64, threads), seed, interpret)?;
    }

    #[test]
    fn narrow_avx2_is_right_and_within_bounds(input in inputs(&NARROW), threads in 1i64..4, seed in any::<u64>()) {
        check(&input, &device(32, threads), seed, interpret)?;
    }

    #[test]
    fn narrow_portable_routines_are_right(input in inputs(&NARROW), widest in any::<bool>(), seed in any::<u64>()) {
        check(&input, &device(if widest { 64 } else { 16 }, 2), seed, run_portably)?;
    }
}

/// Types of which vectors multiply neighbours along the reduction as they are.
const NATIVE: [ElementTypes; 3] = [NARROW[0], NARROW[1], NARROW[6]];

/// The input with another reduction, and the same gaps between columns.
fn with_reduction(input: GemmInput, k: usize) -> GemmInput {
    let (m, n) = (input.m, input.n);
    with_sizes(input, [m, n, k])
}

/// The input with so many elements beside one or two vectors of 16 along either side.
fn with_edges(input: &GemmInput, edge: usize, k: usize) -> GemmInput {
    with_sizes(input.clone(), [16 * (1 + input.m % 2) + edge, 16 * (1 + input.n % 2) + edge, k])
}

fn with_sizes(input: GemmInput, [m, n, k]: [usize; 3]) -> GemmInput {
    let gaps = (input.lda - input.a_stored().0, input.ldb - input.b_stored().0, input.ldc - input.m);
    let mut other = GemmInput { m, n, k, ..input };
    (other.lda, other.ldb) = (other.a_stored().0 + gaps.0, other.b_stored().0 + gaps.1);
    other.ldc = m + gaps.2;
    other
}

/// Runs a random plan of those that are `wanted`, which are few of all.
fn check_native(input: &GemmInput, seed: u64, wanted: fn(&Blueprint) -> bool) -> Result<(), TestCaseError> {
    check_some(CpuGemm::narrow, &device(64, 1 + (seed % 2) as i64), input, seed, wanted)
}

fn check_some(
    kernel: fn() -> CpuGemm,
    device: &DeviceSpec,
    input: &GemmInput,
    seed: u64,
    wanted: fn(&Blueprint) -> bool,
) -> Result<(), TestCaseError> {
    let mut rng = StdRng::seed_from_u64(seed);
    let plans = (0..40).filter_map(|_| any_plan(kernel(), device, input, &mut rng));
    let Some(blueprint) = plans.map(|plan| plan.blueprint).find(wanted) else {
        return Err(TestCaseError::reject("no such plan was drawn"));
    };
    check_plan(&blueprint, input, seed, interpret)?;
    check_plan(&blueprint, input, seed, run_portably)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, max_global_rejects: 4000, ..ProptestConfig::default() })]

    #[test]
    fn edges_are_turned(input in inputs(REAL), (wide, edge, seed) in (any::<bool>(), 1usize..9, any::<u64>())) {
        let edged = with_edges(&input, edge, input.k + 12);
        let device = device(if wide { 64 } else { 32 }, 1 + (seed % 2) as i64);
        check_some(CpuGemm::new, &device, &edged, seed, |b| b.v.apart)?;
    }

    #[test]
    fn edges_of_partial_sums_are_turned(input in inputs(REAL), (wide, seed) in (any::<bool>(), any::<u64>())) {
        let edged = with_edges(&input, 1 + input.k % 2, 128 + input.k % 9);
        let device = device(if wide { 64 } else { 32 }, 2);
        check_some(CpuGemm::new, &device, &edged, seed, |b| b.v.apart && b.config.k_g == 2)?;
    }

    #[test]
    fn narrow_operands_are_read_where_they_lie(input in inputs(&NATIVE), seed in any::<u64>()) {
        let k = input.k.next_multiple_of(4);
        check_native(&with_reduction(input, k), seed, |b| !b.pack_s)?;
    }

    #[test]
    fn vectors_are_woven_as_they_are_loaded(input in inputs(&NATIVE[..2]), seed in any::<u64>()) {
        let k = input.k.next_multiple_of(2);
        check_native(&with_reduction(input, k), seed, |b| !b.pack_v)?;
    }

    #[test]
    fn vectors_of_bfloat16_are_widened_as_they_are_loaded(
        input in inputs(BF16),
        (vec_max, multiplies_pairs) in (0usize..3, any::<bool>()),
        seed in any::<u64>(),
    ) {
        let mut device = device([16, 32, 64][vec_max], 1 + (seed % 2) as i64);
        device.facts.insert("avx512_bf16".to_owned(), i64::from(multiplies_pairs));
        check_some(CpuGemm::narrow, &device, &input, seed, |b| b.loaded_v() == Loaded::Widened)?;
    }

    #[test]
    fn vectors_of_binary16_are_converted_as_they_are_loaded(
        input in inputs(F16),
        vec_max in 0usize..3,
        seed in any::<u64>(),
    ) {
        let device = device([16, 32, 64][vec_max], 1 + (seed % 2) as i64);
        check_some(CpuGemm::narrow, &device, &input, seed, |b| b.loaded_v() == Loaded::Converted)?;
    }

    #[test]
    fn threads_divide_the_reduction_of_what_is_widened(
        (bf16, f16) in (inputs(BF16), inputs(F16)),
        (k, wide) in (128usize..150, any::<bool>()),
        seed in any::<u64>(),
    ) {
        let mut device = device(if wide { 64 } else { 32 }, 2);
        device.facts.insert("avx512_bf16".to_owned(), 0);
        for input in [bf16, f16] {
            let wanted: fn(&Blueprint) -> bool = |b| b.loaded_v() != Loaded::AsIs && b.config.k_g == 2;
            check_some(CpuGemm::narrow, &device, &with_reduction(input, k), seed, wanted)?;
        }
    }

    #[test]
    fn threads_divide_the_reduction_of_narrow_operands_in_place(
        input in inputs(&NATIVE),
        k in 32usize..50,
        weaves in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let long = with_reduction(input, 4 * k);
        // Two threads where the seed is odd.
        let wanted: fn(&Blueprint) -> bool =
            if weaves { |b| !b.pack_v && b.config.k_g == 2 } else { |b| !b.pack_s && b.config.k_g == 2 };
        check_native(&long, seed | 1, wanted)?;
    }

    #[test]
    fn tiles_round_around_the_caches(input in inputs(&NARROW[1..2]), seed in any::<u64>()) {
        let mut aligned = GemmInput { beta: ScalarClass::Zero, align: 64, ..input };
        aligned.ldc = aligned.m.next_multiple_of(16);
        check_native(&aligned, seed, |b| b.rounds() && b.config.store == Store::Stream)?;
    }

    #[test]
    fn tiles_round_what_they_store(input in inputs(&NARROW[1..2]), seed in any::<u64>()) {
        check_native(&input, seed, Blueprint::rounds)?;
    }
}

/// The interpreter notices what it is there for.
#[test]
fn a_read_beyond_the_operand_is_a_fault() {
    let input = GemmInput::new(16, 6, 8, DType::F32, Layout::Nt);
    let blueprint = any_plan(CpuGemm::new(), &device(32, 1), &input, &mut StdRng::seed_from_u64(1)).unwrap().blueprint;
    let shorter = GemmInput::new(16, 6, 7, DType::F32, Layout::Nt);
    let mut work = Gemm.workload(&input, Filling::Real, 1);
    // Code packs natively; only what reads the operands directly can be seen.
    let direct = !blueprint.pack_s || !blueprint.pack_v;
    let mut blueprint = blueprint;
    if !direct {
        blueprint.pack_s = false;
    }
    assert!(matches!(interpret(&blueprint, &shorter, &mut work), Err(Fault::Read { .. })));
}

/// The portable routines obey the same plans.
fn run_portably(blueprint: &Blueprint, _: &GemmInput, work: &mut Workload) -> Result<(), Fault> {
    let mut workspace = Buffer::zeroed(DType::I8, blueprint.workspace());
    let call = call(work, &mut workspace);
    // SAFETY: buffers have the input's extents, the workspace the plan's size; the routines need no instruction set.
    unsafe { Compiled::portable(blueprint.clone()).run(&call) };
    Ok(())
}

#[test]
fn the_legal_space_of_a_large_input_has_millions_of_points() {
    let input = GemmInput::new(2048, 2048, 2048, DType::F32, Layout::Nt);
    let (kernel, device) = (CpuGemm::new(), device(32, 1));
    let space = kernel.space().bind(&kernel.symbols(&device, &input)).unwrap();
    assert!((1_000_000..3_000_000).contains(&space.count_legal()));
}
