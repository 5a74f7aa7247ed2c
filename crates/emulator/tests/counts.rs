//! Counts by hand: predicated-off lanes, partial warps, divergence, strides, transactions.

mod fixture;

use fixture::{launch, u32_buffer};
use tilewright_emulator::{
    Argument, Class, Footprint, Launch, Limits, Memory, Module, Report, Site, Space, Stride, Tally,
};

fn run(body: &str, block: [u32; 3]) -> Report {
    let text = format!(
        ".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) {{
          .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .shared .align 16 .b8 s[8192];
          ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r5, 0;
          {body}
          ret; }}"
    );
    let (module, mut memory) = (Module::parse(&text).unwrap(), Memory::new());
    let id = u32_buffer(&mut memory, "numbers", &[0; 2048]);
    let report = launch(&module, "k", [1; 3], block, &[Argument::buffer(id)], &mut memory);
    // Some bodies store to one place from several lanes, for what that counts as.
    assert!(report.findings.iter().all(|f| f.fault.name() == "race"), "{:?}", report.findings);
    report
}

fn site<'r>(report: &'r Report, opcode: &str) -> &'r Site {
    report.counts.sites.iter().find(|s| s.opcode == opcode).unwrap()
}

fn tally(issued: u64, threads: u64, predicated_off: u64) -> Tally {
    Tally { issued, threads, predicated_off }
}

#[test]
fn guards_partial_warps_and_exits() {
    let report = run("setp.lt.u32 %p1, %r1, 40; @%p1 add.u32 %r5, %r5, 1; @!%p1 ret; xor.b32 %r5, %r5, 1;", [70, 1, 1]);
    // Two full warps and one of six lanes.
    assert_eq!(site(&report, "setp.lt.u32").tally, tally(3, 70, 0));
    assert_eq!(site(&report, "add.u32").tally, tally(3, 40, 30));
    // Lanes that have exited come to nothing; a warp without lanes is not issued.
    assert_eq!(site(&report, "xor.b32").tally, tally(2, 40, 0));
    assert_eq!(report.counts.by_class()[&Class::Compare], tally(3, 70, 0));
}

#[test]
fn divergent_paths_are_issued_once_each() {
    let report = run(
        "setp.lt.u32 %p1, %r1, 5; @%p1 bra A; add.u32 %r5, %r5, 1; bra B; A: sub.u32 %r5, %r5, 1; B: not.b32 %r5, %r5;",
        [32, 1, 1],
    );
    assert_eq!(site(&report, "add.u32").tally, tally(1, 27, 0));
    assert_eq!(site(&report, "sub.u32").tally, tally(1, 5, 0));
    assert_eq!(site(&report, "not.b32").tally, tally(1, 32, 0));
    assert_eq!(site(&report, "bra").tally, tally(1, 5, 27));
    assert_eq!(report.counts.by_class()[&Class::Branch], tally(2, 32, 27));
}

#[test]
fn an_instruction_of_several_steps_counts_once() {
    let report = run("setp.lt.u32 %p0, %r1, 5; setp.gt.and.u32 %p1|%p2, %r1, 3, %p0;", [32, 1, 1]);
    assert_eq!(report.counts.by_class()[&Class::Compare], tally(2, 64, 0));
}

/// The one load of a body: addresses in %rd3 or %r3.
fn load(body: &str, block: [u32; 3]) -> (Vec<Stride>, u64, u64, u64) {
    let report = run(body, block);
    let site = report.counts.sites.iter().find(|s| s.opcode.starts_with("ld.global")).unwrap();
    let traffic = site.traffic.unwrap();
    let strides = Stride::ALL.into_iter().filter(|s| traffic.stride(*s) > 0).collect();
    (strides, traffic.irregular, traffic.bytes, traffic.transactions)
}

#[test]
fn strides_of_global_accesses() {
    let stepped = |bytes: u32, op: &str| {
        load(&format!("mul.wide.u32 %rd2, %r1, {bytes}; add.u64 %rd3, %rd1, %rd2; {op}"), [32, 1, 1])
    };
    let one = "ld.global.u32 %r4, [%rd3];";
    assert_eq!(stepped(0, one), (vec![Stride::Uniform], 0, 128, 1));
    assert_eq!(stepped(4, one), (vec![Stride::Unit], 0, 128, 4));
    assert_eq!(stepped(8, one), (vec![Stride::Two], 0, 128, 8));
    assert_eq!(stepped(12, one), (vec![Stride::Three], 0, 128, 12));
    assert_eq!(stepped(16, one), (vec![Stride::Four], 0, 128, 16));
    assert_eq!(stepped(64, one), (vec![Stride::More], 0, 128, 32));
    // In units of the whole access.
    assert_eq!(stepped(16, "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd3];"), (vec![Stride::Unit], 0, 512, 16));
    assert_eq!(stepped(6, "ld.global.u16 %r4, [%rd3];"), (vec![Stride::Three], 0, 64, 6));
}

#[test]
fn rows_and_guards() {
    // Rows of 16 lanes that lie 1024 bytes apart: the step within them counts.
    let rows =
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mul.wide.u32 %rd2, %r2, 1024; add.u64 %rd3, %rd3, %rd2;";
    assert_eq!(load(&format!("{rows} ld.global.u32 %r4, [%rd3];"), [16, 2, 1]), (vec![Stride::Unit], 1, 128, 4));
    // Every second lane: no neighbours.
    let guard = "and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; @%p1 ld.global.u32 %r4, [%rd3];";
    assert_eq!(load(&format!("{rows} {guard}"), [32, 1, 1]), (vec![Stride::Uniform], 0, 64, 4));
    let none = "setp.gt.u32 %p1, %r1, 99; @%p1 ld.global.u32 %r4, [%rd3];";
    assert_eq!(load(&format!("{rows} {none}"), [32, 1, 1]), (vec![], 0, 0, 0));
}

#[test]
fn passes_over_the_banks() {
    let passes = |step: u32, op: &str| {
        let body = format!("mov.u32 %r3, s; mad.lo.u32 %r3, %r1, {step}, %r3; {op}");
        let report = run(&body, [32, 1, 1]);
        let site = report.counts.sites.iter().find(|s| s.opcode.starts_with("st.shared")).unwrap();
        site.traffic.unwrap().transactions
    };
    let store = "st.shared.u32 [%r3], %r1;";
    let found = [0, 4, 8, 16, 32, 128, 132].map(|step| passes(step, store));
    assert_eq!(found, [1, 1, 2, 4, 8, 32, 1]);
    assert_eq!(passes(16, "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};"), 4);
    assert_eq!(passes(8, "st.shared.v2.u32 [%r3], {%r1, %r1};"), 2);
}

#[test]
fn copies_count_their_sources() {
    let body = "mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 4, %r3; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
        setp.lt.u32 %p1, %r1, 8; selp.u32 %r6, 4, 0, %p1;
        cp.async.ca.shared.global [%r3], [%rd3], 4, %r6; cp.async.wait_all;";
    let report = run(body, [32, 1, 1]);
    let copy = report.counts.traffic_by_class()[&Class::AsyncCopy(32)];
    assert_eq!((copy.bytes, copy.transactions, copy.stride(Stride::Unit)), (32, 1, 1));
    assert_eq!(report.counts.by_class()[&Class::Load(Space::Param, 64)], tally(1, 32, 0));
}

#[test]
fn functions_count_where_they_are_called() {
    let text = ".version 7.0 .target sm_80 .address_size 64
        .func (.param .b32 result) twice(.param .b32 x) {
            .reg .pred %p; .reg .b32 %r<3>; ld.param.u32 %r1, [x]; setp.gt.u32 %p, %r1, 5; @%p bra A;
            shl.b32 %r1, %r1, 1; A: st.param.u32 [result], %r1; ret; }
        .visible .entry k(.param .u64 p) {
            .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 20;
            { .param .b32 a; .param .b32 b; st.param.u32 [a], %r1; call.uni (b), twice, (a); ld.param.u32 %r2, [b]; }
            { .param .b32 b; @%p call (b), twice, (3); @%p ld.param.u32 %r2, [b]; }
            mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2; ret; }";
    let (module, mut memory) = (Module::parse(text).unwrap(), Memory::new());
    let id = u32_buffer(&mut memory, "x", &[0; 32]);
    let report = launch(&module, "k", [1; 3], [32, 1, 1], &[Argument::buffer(id)], &mut memory);
    assert_eq!(report.findings, []);
    let expected: Vec<u32> = (0..32).map(|i| if i < 20 { 6 } else { i }).collect();
    assert_eq!(fixture::read_u32(&memory, id), expected);
    let of =
        |opcode: &str| report.counts.sites.iter().filter(|s| s.opcode == opcode).map(|s| s.tally).collect::<Vec<_>>();
    // Once for each call: the first by all lanes, the second by twenty.
    assert_eq!(of("shl.b32"), [tally(1, 6, 0), tally(1, 20, 0)]);
    assert_eq!(of("call"), [tally(1, 20, 12)]);
    assert_eq!(of("call.uni"), [tally(1, 32, 0)]);
}

/// The footprints of one launch of two blocks of 32 threads on 2048 words.
fn footprints(body: &str) -> (Report, Vec<Footprint>) {
    let text = format!(
        ".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) {{
          .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>;
          ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r1;
          {body} ret; }}"
    );
    let (module, mut memory) = (Module::parse(&text).unwrap(), Memory::new());
    let id = u32_buffer(&mut memory, "x", &[0; 2048]);
    let args = [Argument::buffer(id)];
    let limits = Limits { footprints: true, ..Limits::default() };
    let report =
        module.launch(&Launch { limits, ..Launch::new("k", [2, 1, 1], [32, 1, 1], &args) }, &mut memory).unwrap();
    assert_eq!(report.findings, []);
    let footprints = report.footprints.clone();
    (report, footprints)
}

#[test]
fn utilisation_of_strided_arrays() {
    let at = |step: u32| format!("mul.wide.u32 %rd2, %r3, {step}; add.u64 %rd3, %rd1, %rd2;");
    let of = |found: &[Footprint], i: usize| (found[i].used, found[i].spanned);
    // Every second word.
    let (report, found) = footprints(&format!("{} ld.global.u32 %r4, [%rd3];", at(8)));
    assert_eq!(found.len(), 2);
    assert_eq!(of(&found, 0), (64 * 4, 64 * 8));
    assert_eq!((found[0].site.is_some(), found[1].site, found[1].is_store), (true, None, false));
    assert_eq!(found[1].amortised(Stride::Two), (1, 2));
    let site = &report.counts.sites[found[0].site.unwrap()];
    assert_eq!((site.opcode.as_str(), site.traffic.unwrap().distinct_bytes), ("ld.global.u32", 256));
    // Structures of two words, both read: each load uses half, both together everything.
    let (_, found) = footprints(&format!("{} ld.global.u32 %r4, [%rd3]; ld.global.u32 %r5, [%rd3+4];", at(8)));
    assert_eq!([of(&found, 0), of(&found, 1), of(&found, 2)], [(256, 512), (256, 512), (512, 516)]);
    assert_eq!((found[2].utilisation(), found[2].amortised(Stride::Two)), (512.0 / 516.0, (2, 2)));
    // Three of four words.
    let (_, found) =
        footprints(&format!("{} ld.global.v2.u32 {{%r4, %r5}}, [%rd3]; ld.global.u32 %r6, [%rd3+8];", at(16)));
    assert_eq!(of(&found, 2), (64 * 12, 64 * 16 + 8));
    assert_eq!(found[2].amortised(Stride::Four), (3, 4));
    // The gap behind the last element ends with the buffer.
    let (_, found) = footprints(
        "add.u64 %rd3, %rd1, 8188; mul.wide.u32 %rd2, %r1, 4096; sub.u64 %rd3, %rd3, %rd2;
        setp.lt.u32 %p1, %r1, 2; @%p1 ld.global.u32 %r4, [%rd3];",
    );
    assert_eq!(of(&found, 0), (8, 4100));
    // Loads and stores of one buffer are two arrays, all lanes at one address fill nothing up.
    let (_, found) =
        footprints("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1+64], %r4; red.global.add.u32 [%rd1+64], 1;");
    let arrays: Vec<_> = found.iter().filter(|f| f.site.is_none()).map(|f| (f.is_store, f.used, f.spanned)).collect();
    assert_eq!(arrays, [(false, 4, 4), (true, 4, 4)]);
    assert_eq!((found[0].buffer.as_str(), found[0].amortised(Stride::Uniform)), ("x", (0, 1)));
    // Overlapping lanes count once, and a launch without the option keeps nothing.
    let plain = run(&format!("mov.u32 %r3, %r1; {} ld.global.u32 %r4, [%rd3];", at(0)), [32, 1, 1]);
    assert_eq!((site_traffic(&plain), plain.footprints.len()), ((128, 4), 0));
}

/// Bytes, and distinct bytes, of the load from global memory.
fn site_traffic(report: &Report) -> (u64, u64) {
    let traffic = site(report, "ld.global.u32").traffic.unwrap();
    (traffic.bytes, traffic.distinct_bytes)
}
