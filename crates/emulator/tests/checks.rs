//! What the emulator finds in kernels that are wrong, one fault each.

mod fixture;

use fixture::{faults, u32_buffer};
use tilewright_emulator::{
    Argument, BufferId, Fault, Hazard, Launch, LaunchError, Limits, Memory, Module, Report, Space,
};

/// A kernel of a body, with a pointer `p` in %rd1 and the thread in %r1.
fn kernel(body: &str) -> Module {
    let text = format!(
        ".version 7.0 .target sm_80 .address_size 64
        .visible .entry k(.param .u64 p)
        {{
          .reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<8>;
          .shared .align 16 .b8 s[1024];
          ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
          shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;
          mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
          {body}
          ret;
        }}"
    );
    Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run_in(body: &str, threads: u32, memory: &mut Memory, id: BufferId) -> Report {
    let args = [Argument::buffer(id)];
    let limits = Limits { block_instructions: 10_000, ..Limits::default() };
    let launch = Launch { limits, ..Launch::new("k", [1, 1, 1], [threads, 1, 1], &args) };
    kernel(body).launch(&launch, memory).unwrap()
}

/// Runs on a buffer of 64 numbers.
fn run(body: &str, threads: u32) -> Report {
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "numbers", &(0..64).collect::<Vec<_>>());
    run_in(body, threads, &mut memory, id)
}

fn finds(body: &str, threads: u32, fault: &str) -> Report {
    let report = run(body, threads);
    assert_eq!(faults(&report), [fault], "{:?}", report.findings);
    report
}

fn clean(body: &str, threads: u32) {
    let report = run(body, threads);
    assert_eq!(report.findings, []);
}

#[test]
fn out_of_bounds_names_kernel_line_thread_and_address() {
    let report = finds("ld.global.u32 %r4, [%rd3+4];", 64, "out_of_bounds");
    let finding = &report.findings[0];
    let Fault::OutOfBounds { space: Space::Global, bytes: 4, buffer: Some(buffer) } = &finding.fault else {
        panic!("{finding:?}")
    };
    assert!(buffer.contains("numbers"), "{buffer}");
    assert_eq!((finding.kernel.as_str(), finding.place.line, finding.thread, finding.count), ("k", 9, [63, 0, 0], 1));
    assert_eq!(finding.address.map(|a| a & 0xfff), Some(256));
    finds("ld.global.u32 %r4, [%rd1+-4];", 1, "out_of_bounds");
    finds("mov.u64 %rd4, 0; st.global.u32 [%rd4], %r1;", 1, "out_of_bounds");
    finds("st.shared.u32 [s+1024], %r1;", 1, "out_of_bounds");
    finds("atom.global.add.u32 %r4, [%rd1+256], 1;", 1, "out_of_bounds");
    clean("ld.global.u32 %r4, [%rd3];", 64);
}

#[test]
fn a_store_out_of_bounds_changes_nothing() {
    let mut memory = Memory::new();
    let ids = [1, 2].map(|x| u32_buffer(&mut memory, "one", &[x]));
    run_in("st.global.u32 [%rd1+4], %r1;", 1, &mut memory, ids[0]);
    assert_eq!(ids.map(|id| fixture::read_u32(&memory, id)), [vec![1], vec![2]]);
}

#[test]
fn misaligned() {
    finds("ld.global.u32 %r4, [%rd1+2];", 1, "misaligned");
    finds("ld.global.v2.u32 {%r4, %r5}, [%rd1+4];", 1, "misaligned");
    finds("st.shared.u32 [s+2], %r1;", 1, "misaligned");
    clean("ld.global.v2.u32 {%r4, %r5}, [%rd1+8];", 1);
}

#[test]
fn unwritten() {
    finds("ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd3], %r4;", 32, "unwritten");
    // Nobody uses what was loaded.
    clean("ld.shared.u32 %r4, [%r3]; add.u32 %r5, %r4, 1;", 32);
    clean("st.shared.u32 [%r3], %r1; ld.shared.u32 %r4, [%r3];", 32);
    // One byte of a word.
    finds("st.shared.u8 [s], %r1; ld.shared.u8 %r4, [s+1]; st.global.u32 [%rd3], %r4;", 1, "unwritten");
    let mut memory = Memory::new();
    let id = memory.add_unwritten("scratch", 256).unwrap();
    let report = run_in(
        "st.global.u32 [%rd3], %r1; bar.sync 0; ld.global.u32 %r4, [%rd3+4];
        setp.eq.u32 %p1, %r4, 0; @%p1 bra END; END:",
        8,
        &mut memory,
        id,
    );
    assert_eq!(faults(&report), ["unwritten"]);
    assert_eq!(report.findings[0].thread, [7, 0, 0]);
}

#[test]
fn shared_memory_is_unwritten_in_every_block() {
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "numbers", &[0]);
    let args = [Argument::buffer(id)];
    // Only the first block writes; all read.
    let module = kernel(
        "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0; @%p1 st.shared.u32 [%r3], %r1; ld.shared.u32 %r5, [%r3];
        setp.eq.u32 %p2, %r5, 0; @%p2 bra END; END:",
    );
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let launch = Launch::new("k", [3, 1, 1], [32, 1, 1], &args);
    let report = pool.install(|| module.launch(&launch, &mut memory)).unwrap();
    assert_eq!(faults(&report), ["unwritten"]);
    assert_eq!((report.findings[0].block, report.findings[0].count), ([1, 0, 0], 2 * 32));
}

#[test]
fn races() {
    let hazard = |body: &str| {
        let report = finds(body, 64, "race");
        let Fault::Race { second, .. } = report.findings[0].fault else { panic!() };
        second
    };
    // Lane i reads what lane 63 - i wrote.
    let swap = "mov.u32 %r5, s; sub.u32 %r5, %r5, %r2; ld.shared.u32 %r6, [%r5+252]; st.global.u32 [%rd3], %r6;";
    assert_eq!(hazard("st.shared.u32 [s], %r1;"), Hazard::WriteAfterWrite);
    clean(&format!("st.shared.u32 [%r3], %r1; bar.sync 0; {swap}"), 64);
    let report = run(&format!("st.shared.u32 [%r3], %r1; {swap}"), 64);
    // The first warp runs ahead: it reads what nobody has written, and the second one overwrites it.
    assert_eq!(faults(&report), ["race", "unwritten", "race"], "{:?}", report.findings);
    let write_again = "bar.sync 0; {swap} st.shared.u32 [%r3], %r6;".replace("{swap}", swap);
    let report = run(&format!("st.shared.u32 [%r3], %r1; {write_again}"), 64);
    assert!(faults(&report).iter().all(|f| *f == "race") && !report.findings.is_empty(), "{:?}", report.findings);
    clean(&format!("st.shared.u32 [%r3], %r1; bar.sync 0; {swap} bar.sync 0; st.shared.u32 [%r3], %r6;"), 64);
}

#[test]
fn atomics_do_not_race_with_each_other() {
    let zero = "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0;";
    clean(&format!("{zero} bar.sync 0; atom.shared.add.u32 %r4, [s], 1; bar.sync 0; ld.shared.u32 %r5, [s];"), 64);
    finds(&format!("{zero} atom.shared.add.u32 %r4, [s], 1;"), 64, "race");
    // The first warp reads what the second one then adds to, and reads before all have added.
    let report = run(&format!("{zero} bar.sync 0; atom.shared.add.u32 %r4, [s], 1; ld.shared.u32 %r5, [s];"), 64);
    assert_eq!(faults(&report), ["race", "race"]);
}

#[test]
fn barriers_of_some_warps_order_those_alone() {
    // Two warps meet at barrier 1; the third does not.
    let body = "setp.lt.u32 %p1, %r1, 64; @!%p1 bra THIRD;
        st.shared.u32 [%r3], %r1; bar.sync 1, 64; xor.b32 %r5, %r2, 128; mov.u32 %r6, s; add.u32 %r6, %r6, %r5;
        ld.shared.u32 %r7, [%r6]; THIRD:";
    clean(body, 96);
    finds(&format!("{body} ld.shared.u32 %r8, [s];"), 96, "race");
    clean(&format!("{body} bar.sync 0; ld.shared.u32 %r8, [s];"), 96);
}

#[test]
fn divergent_barriers_and_deadlock() {
    finds("setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;", 32, "divergent_barrier");
    // Threads that have exited do not count, and those that only have to.
    clean("setp.lt.u32 %p1, %r1, 16; @%p1 ret; bar.sync 0;", 32);
    clean("setp.lt.u32 %p1, %r1, 32; @%p1 ret; bar.sync 0;", 64);
    clean("setp.lt.u32 %p1, %r1, 16; @%p1 bra END; bar.sync 0; END:", 32);
    finds("setp.lt.u32 %p1, %r1, 16; @%p1 bra END; bar.sync 0; END: mov.u32 %r4, 0;", 32, "divergent_barrier");
    // One warp waits at a barrier for 64 threads that the other never reaches.
    let report = finds("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64;", 64, "deadlock");
    assert_eq!(report.findings[0].fault, Fault::Deadlock { arrived: 32, expected: 64 });
    finds("bar.sync 1, 33;", 32, "bad_barrier");
    finds("bar.sync 16;", 32, "bad_barrier");
    clean("bar.sync 15;", 33);
}

#[test]
fn hangs_and_traps() {
    finds("L: bra L;", 32, "hang");
    finds("L: bar.sync 0; bra L;", 64, "hang");
    finds("trap;", 32, "trap");
}

#[test]
fn asynchronous_copies_are_seen_only_after_the_wait() {
    let copy = "cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.commit_group;";
    let read = "ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd3], %r4;";
    clean(&format!("{copy} cp.async.wait_group 0; {read}"), 32);
    clean(&format!("{copy} cp.async.wait_all; {read}"), 32);
    finds(&format!("{copy} {read}"), 32, "in_flight");
    finds(&format!("{copy} cp.async.wait_group 1; {read}"), 32, "in_flight");
    // Without a barrier, another warp's copy is not to be seen.
    let other = "xor.b32 %r5, %r2, 128; mov.u32 %r6, s; add.u32 %r6, %r6, %r5; ld.shared.u32 %r7, [%r6];";
    clean(&format!("{copy} cp.async.wait_group 0; bar.sync 0; {other}"), 64);
    let report = run(&format!("{copy} cp.async.wait_group 0; {other}"), 64);
    assert!(!report.findings.is_empty());
    // A second copy overtakes the first one.
    finds(&format!("{copy} {copy} cp.async.wait_all;"), 32, "in_flight");
}

#[test]
fn a_copy_reads_as_many_bytes_as_it_is_told() {
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "numbers", &[1, 2, 3, 4]);
    let body = "mov.u32 %r5, 8; cp.async.cg.shared.global [s], [%rd1], 16, %r5; cp.async.wait_all;
        ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [s]; st.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9};";
    let report = run_in(body, 1, &mut memory, id);
    assert_eq!(report.findings, []);
    assert_eq!(fixture::read_u32(&memory, id), [1, 2, 0, 0]);
}

#[test]
fn shuffles_from_lanes_that_take_no_part() {
    finds("shfl.sync.down.b32 %r4, %r1, 1, 31, 0xffffffff;", 16, "inactive_lane");
    finds("setp.lt.u32 %p1, %r1, 8; @%p1 shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffffffff;", 32, "inactive_lane");
    clean("setp.lt.u32 %p1, %r1, 8; @%p1 shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xff;", 32);
}

#[test]
fn matrix_instructions_want_all_lanes() {
    let multiply = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r4, %r5}, {%r6}, {%r7}, {%r8, %r9};";
    let values = "mov.u32 %r6, 1; mov.u32 %r7, 1; mov.u32 %r8, 0; mov.u32 %r9, 0;";
    clean(&format!("{values} {multiply}"), 32);
    finds(&format!("{values} {multiply}"), 48, "inactive_lane");
    finds(&format!("{values} setp.lt.u32 %p1, %r1, 16; @%p1 {multiply}"), 32, "inactive_lane");
}

#[test]
fn constants_cannot_be_written() {
    let text = ".version 7.0 .target sm_80 .address_size 64 .const .align 4 .b32 c[2] = {7, 8};
        .visible .entry k() { .reg .b64 %rd<2>; .reg .b32 %r<2>;
          mov.u64 %rd1, c; ld.const.u32 %r1, [c+4]; st.global.u32 [%rd1], %r1; ret; }";
    let (module, mut memory) = (Module::parse(text).unwrap(), Memory::new());
    let report = fixture::launch(&module, "k", [1; 3], [1; 3], &[], &mut memory);
    assert_eq!(faults(&report), ["read_only"]);
    let c = memory.variable(&module, "c").unwrap();
    assert_eq!(fixture::read_u32(&memory, c), [7, 8]);
}

#[test]
fn launches_that_cannot_begin() {
    let module = kernel("");
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "numbers", &[0]);
    let args = [Argument::buffer(id)];
    let good = Launch::new("k", [1; 3], [32, 1, 1], &args);
    let mut fails = |launch: Launch<'_>| module.launch(&launch, &mut memory).unwrap_err();
    assert!(matches!(fails(Launch { entry: "other", ..good.clone() }), LaunchError::NoEntry { .. }));
    assert!(matches!(
        fails(Launch { args: &[], ..good.clone() }),
        LaunchError::ArgumentCount { expected: 1, found: 0, .. }
    ));
    let short = [Argument::U32(1)];
    assert!(matches!(
        fails(Launch { args: &short, ..good.clone() }),
        LaunchError::ArgumentSize { expected: 8, found: 4, .. }
    ));
    assert!(matches!(fails(Launch { block: [1025, 1, 1], ..good.clone() }), LaunchError::Block { .. }));
    assert!(matches!(fails(Launch { block: [32, 33, 1], ..good.clone() }), LaunchError::Block { .. }));
    assert!(matches!(fails(Launch { block: [0, 1, 1], ..good.clone() }), LaunchError::Block { .. }));
    assert!(matches!(fails(Launch { grid: [1, 65_536, 1], ..good.clone() }), LaunchError::Grid { .. }));
    let too_much = Launch { shared_bytes: 48 << 10, ..good.clone() };
    assert_eq!(fails(too_much), LaunchError::SharedMemory { need: 50_176, statically: 1024, have: 49_152 });
    let text =
        ".version 7.0 .target sm_80 .address_size 64 .visible .entry k() { tex.2d.v4.f32.f32 {%f0}, [t, {%f1}]; ret; }";
    let refused = Module::parse(text).unwrap().launch(&Launch::new("k", [1; 3], [1; 3], &[]), &mut Memory::new());
    let LaunchError::Load(error) = refused.unwrap_err() else { panic!() };
    assert_eq!((error.place.line, error.opcode.starts_with("tex.2d")), (1, true));
}

#[test]
fn findings_are_capped_and_the_same_on_any_number_of_threads() {
    let body: String = (0..300).map(|i| format!("ld.global.u32 %r4, [%rd1+{}];", 1000 + 4 * i)).collect();
    let module = kernel(&body);
    let reports = [1, 4].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut memory = Memory::new();
        let id = u32_buffer(&mut memory, "numbers", &[0]);
        let args = [Argument::buffer(id)];
        let launch = Launch::new("k", [20, 1, 1], [64, 1, 1], &args);
        pool.install(|| module.launch(&launch, &mut memory)).unwrap()
    });
    assert_eq!(reports[0], reports[1]);
    assert_eq!((reports[0].findings.len(), reports[0].dropped), (100, 200 * 20 * 64));
}

/// The report of the second of two launches on the same numbers, which overlaps with the first or follows it.
fn overlapping(first: &str, second: &str, overlaps: bool) -> Report {
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "numbers", &(0..64).collect::<Vec<_>>());
    run_in(first, 64, &mut memory, id);
    let args = [Argument::buffer(id)];
    let launch = Launch { overlaps, ..Launch::new("k", [1, 1, 1], [64, 1, 1], &args) };
    kernel(second).launch(&launch, &mut memory).unwrap()
}

#[test]
fn launches_that_overlap_wait_for_what_the_one_before_uses() {
    let (load, store) = ("ld.global.u32 %r4, [%rd3];", "st.global.u32 [%rd3], %r2;");
    let wait = "griddepcontrol.wait;";
    let late = format!("{load} {wait}");
    for (first, second, is_early) in [
        (store, load, true),
        (load, store, true),
        (store, store, true),
        (store, &late, true),
        (load, load, false),
        ("", store, false),
        (store, &format!("{wait} {load}"), false),
        (store, &format!("griddepcontrol.launch_dependents; {wait} {store}"), false),
        // Every thread waits by itself.
        (store, &format!("setp.lt.u32 %p1, %r1, 40; @%p1 {wait} {load}"), true),
    ] {
        let report = overlapping(first, second, true);
        let expected: &[&str] = if is_early { &["early"] } else { &[] };
        assert_eq!(faults(&report), expected, "{first} {second}: {:?}", report.findings);
        assert_eq!(overlapping(first, second, false).findings, [], "{first} {second}");
    }
}
