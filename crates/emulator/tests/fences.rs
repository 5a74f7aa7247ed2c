//! Fences between blocks: the last block of a grid adds up what all have stored, and a flag says that something is there.
//! Right kernels are let pass on any number of threads; what lacks a fence, a barrier or the same place is found.

mod fixture;

use fixture::{faults, read_u32, u32_buffer};
use tilewright_emulator::{Argument, Behaviour, Launch, Memory, Module, Report, Schedule};

const BLOCKS: u32 = 12;
const THREADS: u32 = 64;

/// Threads store their numbers, the first one takes a ticket, and the block with the last ticket adds up those of all.
struct Ticket {
    /// After the stores, by all threads.
    stored: &'static str,
    /// By the first thread, before the ticket.
    before: &'static str,
    ticket: &'static str,
    /// By all threads of the last block, before they read.
    read: &'static str,
}

const RIGHT: Ticket = Ticket {
    stored: "bar.sync 0;",
    before: "fence.acq_rel.gpu;",
    ticket: "atom.relaxed.gpu.global.add.u32 %r6, [%d4], 1;",
    read: "bar.sync 0;",
};

fn kernel(t: &Ticket) -> Module {
    let Ticket { stored, before, ticket, read } = t;
    let text = format!(
        ".version 7.8 .target sm_80 .address_size 64 .visible .entry k(.param .u64 parts, .param .u64 tickets, .param .u64 out) {{
          .reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %d<12>; .shared .align 4 .b8 s[4];
          ld.param.u64 %d1, [parts]; ld.param.u64 %d4, [tickets]; ld.param.u64 %d7, [out];
          mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, {THREADS}, %r1;
          mul.wide.u32 %d2, %r3, 4; add.u64 %d3, %d1, %d2; add.u32 %r4, %r3, 5; st.global.u32 [%d3], %r4;
          {stored}
          setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKEN;
          {before} {ticket}
          st.shared.u32 [s], %r6;
          TAKEN: bar.sync 0; ld.shared.u32 %r7, [s]; setp.ne.u32 %p2, %r7, {last}; @%p2 bra END;
          {read}
          mul.wide.u32 %d5, %r1, 4; add.u64 %d6, %d1, %d5; mov.u32 %r8, 0; mov.u32 %r9, 0;
          SUM: ld.global.u32 %r10, [%d6]; add.u32 %r9, %r9, %r10; add.u64 %d6, %d6, {row}; add.u32 %r8, %r8, 1;
          setp.lt.u32 %p3, %r8, {BLOCKS}; @%p3 bra SUM;
          add.u64 %d8, %d7, %d5; st.global.u32 [%d8], %r9;
          END: ret; }}",
        last = BLOCKS - 1,
        row = 4 * THREADS,
    );
    Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(module: &Module, behaviour: Behaviour, threads: usize) -> (Report, bool) {
    let mut memory = Memory::new();
    let parts = memory.add_unwritten("parts", (4 * BLOCKS * THREADS) as usize).unwrap();
    let tickets = u32_buffer(&mut memory, "tickets", &[0; 64]);
    let out = u32_buffer(&mut memory, "out", &[0; THREADS as usize]);
    let args = [parts, tickets, out].map(Argument::buffer);
    let launch = Launch { behaviour, ..Launch::new("k", [BLOCKS, 1, 1], [THREADS, 1, 1], &args) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let report = pool.install(|| module.launch(&launch, &mut memory)).unwrap();
    let sum = |t: u32| (0..BLOCKS).map(|b| b * THREADS + t + 5).sum::<u32>();
    let is_right = read_u32(&memory, out) == (0..THREADS).map(sum).collect::<Vec<_>>();
    (report, is_right)
}

/// In turns and in drawn orders, on one thread and on several.
fn all(ticket: &Ticket) -> Vec<(Report, bool)> {
    let module = kernel(ticket);
    let drawn = (0..4).map(|seed| Behaviour { schedule: Schedule::Random(seed), ..Behaviour::default() });
    let behaviours: Vec<Behaviour> = drawn.chain([Behaviour::default()]).collect();
    behaviours.iter().flat_map(|behaviour| [1, 4].map(|threads| run(&module, *behaviour, threads))).collect()
}

fn passes(ticket: &Ticket) {
    for (report, is_right) in all(ticket) {
        assert_eq!(report.findings, []);
        assert!(is_right);
    }
}

fn races(ticket: &Ticket) {
    for (report, _) in all(ticket) {
        assert!(faults(&report).contains(&"race"), "{:?}", report.findings);
    }
}

#[test]
fn the_last_block_may_read_what_fences_publish() {
    passes(&RIGHT);
    passes(&Ticket { before: "membar.gl;", ..RIGHT });
    passes(&Ticket { before: "fence.sc.sys;", read: "fence.acq_rel.gpu; bar.sync 0;", ..RIGHT });
    // Every thread has a fence of its own, before the barrier.
    passes(&Ticket { stored: "membar.gl; bar.sync 0;", before: "", ..RIGHT });
    passes(&Ticket { before: "", ticket: "atom.acq_rel.gpu.global.add.u32 %r6, [%d4], 1;", ..RIGHT });
    passes(&Ticket { ticket: "atom.global.inc.u32 %r6, [%d4], 1000;", ..RIGHT });
}

#[test]
fn without_a_fence_the_last_block_races() {
    races(&Ticket { before: "", ..RIGHT });
    races(&Ticket { before: "", ticket: "atom.acquire.gpu.global.add.u32 %r6, [%d4], 1;", ..RIGHT });
    // Too late: what comes behind the ticket is not published by it.
    races(&Ticket { before: "", ticket: "atom.global.add.u32 %r6, [%d4], 1; membar.gl;", ..RIGHT });
    // Seen by the block alone, or of something else.
    races(&Ticket { before: "membar.cta;", ..RIGHT });
    races(&Ticket { before: "fence.acq_rel.cta;", ..RIGHT });
    races(&Ticket { before: "fence.proxy.async;", ..RIGHT });
    races(&Ticket { before: "", ticket: "atom.acq_rel.cta.global.add.u32 %r6, [%d4], 1;", ..RIGHT });
    races(&Ticket { ticket: "atom.relaxed.cta.global.add.u32 %r6, [%d4], 1;", ..RIGHT });
}

#[test]
fn without_a_barrier_a_fence_publishes_its_own_warp_alone() {
    // The fence of the first thread says nothing of what the second warp stores.
    races(&Ticket { stored: "", ..RIGHT });
    // Neither do fences of all threads without a barrier behind them.
    races(&Ticket { stored: "membar.gl;", ..RIGHT });
}

#[test]
fn blocks_must_meet_at_one_place() {
    // A counter to count, and a fence with a place of its own for each block.
    let own = "mul.wide.u32 %d10, %r2, 4; add.u64 %d11, %d4, %d10; atom.global.add.u32 %r11, [%d11+128], 1;";
    let apart = Box::leak(format!("membar.gl; {own}").into_boxed_str());
    // The ticket itself comes behind the fence: it publishes too.
    passes(&Ticket { before: apart, ..RIGHT });
    // The fence comes behind the ticket: what is published elsewhere, nobody there has read.
    let late = format!("atom.global.add.u32 %r6, [%d4], 1; membar.gl; {own}");
    races(&Ticket { before: "", ticket: Box::leak(late.into_boxed_str()), ..RIGHT });
    // `red` brings no value: who adds by it has learned nothing.
    races(&Ticket {
        before: "membar.gl; red.global.add.u32 [%d4], 1;",
        ticket: "membar.gl; red.global.add.u32 [%d4+8], 1; mov.u32 %r6, %r2;",
        ..RIGHT
    });
}

/// One block after the other, each waiting for the one before it, adds to what that one left.
fn chain(publish: &str, wait: &str) -> Module {
    let text = format!(
        ".version 7.8 .target sm_80 .address_size 64 .visible .entry k(.param .u64 parts, .param .u64 tickets, .param .u64 out) {{
          .reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %d<12>;
          ld.param.u64 %d1, [parts]; ld.param.u64 %d4, [tickets]; ld.param.u64 %d7, [out];
          mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d7, %d2;
          mov.u32 %r5, 5; mad.lo.u32 %r4, %r2, {THREADS}, %r1; add.u32 %r4, %r4, %r5;
          setp.ne.u32 %p1, %r1, 0; @%p1 bra GO;
          L: {wait} setp.ne.u32 %p2, %r6, %r2; @%p2 bra L;
          GO: bar.sync 0; ld.global.u32 %r7, [%d3]; add.u32 %r7, %r7, %r4; st.global.u32 [%d3], %r7; bar.sync 0;
          @%p1 bra END; add.u32 %r8, %r2, 1; {publish}
          END: ret; }}"
    );
    Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn what_was_learned_is_passed_on() {
    let right = [
        ("membar.gl; st.volatile.global.u32 [%d4], %r8;", "ld.volatile.global.u32 %r6, [%d4];"),
        ("st.release.gpu.global.u32 [%d4], %r8;", "ld.acquire.gpu.global.u32 %r6, [%d4];"),
        ("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%d4], 1;", "ld.relaxed.gpu.global.u32 %r6, [%d4];"),
        ("membar.gl; atom.global.exch.b32 %r9, [%d4], %r8;", "atom.global.add.u32 %r6, [%d4], 0;"),
    ];
    for (publish, wait) in right {
        for threads in [1, 3] {
            let (report, is_right) = run(&chain(publish, wait), Behaviour::default(), threads);
            assert_eq!((report.findings, is_right), (vec![], true), "{publish}");
        }
    }
    for publish in ["st.volatile.global.u32 [%d4], %r8;", "st.relaxed.gpu.global.u32 [%d4], %r8;"] {
        let (report, _) = run(&chain(publish, right[0].1), Behaviour::default(), 1);
        assert!(faults(&report).iter().all(|f| *f == "race") && !report.findings.is_empty(), "{:?}", report.findings);
    }
}

#[test]
fn many_blocks_and_places_cost_little() {
    // A grid of many blocks that all meet at one place: what is known of them is looked up, and not handed on.
    let text = ".version 7.8 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p, .param .u64 q) {
        .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>; ld.param.u64 %d1, [p]; ld.param.u64 %d5, [q];
        mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r1; membar.gl;
        atom.global.add.u32 %r2, [%d5], 1; setp.ne.u32 %p1, %r2, 19999; @%p1 bra END; mov.u32 %r3, 0; mov.u32 %r4, 0;
        L: ld.global.u32 %r5, [%d1]; add.u32 %r4, %r4, %r5; add.u64 %d1, %d1, 4; add.u32 %r3, %r3, 1;
        setp.lt.u32 %p1, %r3, 20000; @%p1 bra L; st.global.u32 [%d5+4], %r4; END: ret; }";
    let (module, mut memory) = (Module::parse(text).unwrap(), Memory::new());
    let ids = [memory.add_unwritten("parts", 80_000).unwrap(), u32_buffer(&mut memory, "count", &[0; 2])];
    let args = ids.map(Argument::buffer);
    let report = fixture::launch(&module, "k", [20_000, 1, 1], [1, 1, 1], &args, &mut memory);
    assert_eq!(report.findings, []);
    assert_eq!(read_u32(&memory, ids[1]), [20_000, 20_000 * 19_999 / 2]);
}
