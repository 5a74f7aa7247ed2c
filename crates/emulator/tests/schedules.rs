//! Warps in drawn orders: a kernel whose result hangs on their order shows it under some seed, a right one under none.

mod fixture;
#[path = "fixture/generated.rs"]
mod generated;

use fixture::{faults, read_u32, text, u32_buffer};
use generated::Gemm;
use tilewright_emulator::{Argument, Behaviour, Launch, Limits, Memory, Module, Report, Schedule};

const SEEDS: u64 = 12;

fn drawn(seed: u64) -> Behaviour {
    Behaviour { schedule: Schedule::Random(seed), ..Behaviour::default() }
}

/// Every thread adds to its number those of the threads before it in the block, over and over, in steps of powers of two:
/// a sum of prefixes in shared memory. Without the second barrier of a step, a warp overwrites what another one has yet to
/// read; without the first, it reads what is not there yet.
fn prefixes(first: bool, second: bool) -> String {
    let barrier = |is_there: bool| if is_there { "bar.sync 0;" } else { "" };
    format!(
        ".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) {{
          .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %d<4>; .shared .align 4 .b8 s[1024];
          ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 256, %r1;
          mul.wide.u32 %d2, %r3, 4; add.u64 %d3, %d1, %d2; ld.global.u32 %r4, [%d3];
          mov.u32 %r5, s; mad.lo.u32 %r6, %r1, 4, %r5; st.shared.u32 [%r6], %r4; mov.u32 %r7, 1;
          LOOP: {} mov.u32 %r8, 0; setp.ge.u32 %p1, %r1, %r7; sub.u32 %r9, %r1, %r7; mad.lo.u32 %r10, %r9, 4, %r5;
          @%p1 ld.shared.u32 %r8, [%r10]; {} add.u32 %r4, %r4, %r8; st.shared.u32 [%r6], %r4;
          shl.b32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 256; @%p2 bra LOOP;
          st.global.u32 [%d3], %r4; ret; }}",
        barrier(first),
        barrier(second)
    )
}

const BLOCKS: usize = 5;

fn numbers() -> Vec<u32> {
    (0..256 * BLOCKS as u32).map(|i| i * i % 1009 + 1).collect()
}

fn run(text: &str, behaviour: Behaviour, threads: usize) -> (Report, Vec<u32>) {
    let module = Module::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "numbers", &numbers());
    let args = [Argument::buffer(id)];
    let launch = Launch { behaviour, ..Launch::new("k", [BLOCKS as u32, 1, 1], [256, 1, 1], &args) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let report = pool.install(|| module.launch(&launch, &mut memory)).unwrap();
    (report, read_u32(&memory, id))
}

fn expected() -> Vec<u32> {
    let sums = |block: &[u32]| {
        block
            .iter()
            .scan(0, |sum, x| {
                Some({
                    *sum += x;
                    *sum
                })
            })
            .collect::<Vec<u32>>()
    };
    numbers().chunks(256).flat_map(sums).collect()
}

#[test]
fn a_right_kernel_is_right_in_every_order() {
    let text = prefixes(true, true);
    for behaviour in (0..SEEDS).map(drawn).chain([Behaviour::default()]) {
        let (report, sums) = run(&text, behaviour, 2);
        assert_eq!((report.findings, report.behaviour), (vec![], behaviour));
        assert_eq!(sums, expected(), "{behaviour}");
    }
}

#[test]
fn missing_barriers_give_other_results_in_some_order() {
    for (first, second) in [(false, true), (true, false), (false, false)] {
        let text = prefixes(first, second);
        let results: Vec<Vec<u32>> = (0..SEEDS).map(|seed| run(&text, drawn(seed), 2).1).collect();
        let wrong = results.iter().filter(|sums| **sums != expected()).count();
        assert!(wrong > 0, "{first} {second}: right in all orders");
        assert!(results.iter().any(|sums| *sums != results[0]), "{first} {second}: the order does not matter");
        // What is wrong is found in all orders, whatever the result is.
        assert!((0..SEEDS).all(|seed| !run(&text, drawn(seed), 2).0.findings.is_empty()));
    }
}

#[test]
fn one_order_hides_what_another_one_shows() {
    // The second warp takes what the first one leaves: one after the other, that is there.
    let text = ".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) {
          .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<4>; .shared .align 4 .b8 s[1024];
          ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 256, %r1;
          mul.wide.u32 %d2, %r3, 4; add.u64 %d3, %d1, %d2; mov.u32 %r5, s; mad.lo.u32 %r6, %r1, 4, %r5;
          st.shared.u32 [%r6], %r3; setp.lt.u32 %p1, %r1, 32; mov.u32 %r7, 0;
          @!%p1 ld.shared.u32 %r7, [%r6+-128]; st.global.u32 [%d3], %r7; ret; }";
    let right: Vec<u32> = (0..256 * BLOCKS as u32).map(|i| if i % 256 < 32 { 0 } else { i - 32 }).collect();
    let (report, found) = run(text, Behaviour::default(), 1);
    assert_eq!((found == right, faults(&report)), (true, vec!["race"]));
    assert!((0..SEEDS).any(|seed| run(text, drawn(seed), 1).1 != right));
}

#[test]
fn a_seed_gives_the_same_on_any_number_of_threads() {
    for (text, seed) in [(prefixes(true, true), 1), (prefixes(false, true), 2), (prefixes(true, false), 3)] {
        let [one, two, four] = [1, 2, 4].map(|threads| run(&text, drawn(seed), threads));
        assert!(one == two && two == four, "seed {seed}");
        assert_eq!(run(&text, drawn(seed), 4), four, "seed {seed}");
    }
}

#[test]
fn generated_products_are_right_in_every_order() {
    let kernels = [
        ("nn_f32_kg2_ordered", [45, 27, 37]),
        ("nt_f32_small", [45, 27, 37]),
        ("nt_f32_async4", [72, 68, 100]),
        ("tn_f64_kl4_ks2", [45, 27, 37]),
    ];
    for (name, size) in kernels {
        let text = text(&format!("generated/{name}.ptx"));
        let (gemm, module) = (Gemm::new(&text, size), Module::parse(&text).unwrap());
        let (plain, _) = gemm.run(&module).unwrap();
        for seed in 0..4 {
            let (report, is_right) = gemm.run_as(&module, drawn(seed)).unwrap();
            assert_eq!((report.findings, is_right), (vec![], true), "{name}, seed {seed}");
            assert_eq!(report.counts, plain.counts, "{name}, seed {seed}: counts do not depend on the order");
        }
    }
}

#[test]
fn warps_that_wait_for_others_go_on_in_every_order() {
    // The first warp polls what the last one sets; a block that hangs still ends.
    let text = |sets: &str| {
        format!(
            ".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) {{
              .reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %d<2>; .shared .align 4 .b8 s[4];
              ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0;
              setp.ge.u32 %p2, %r1, 224; {sets}
              @%p2 bra END;
              L: ld.volatile.shared.u32 %r2, [s]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L; END: ret; }}"
        )
    };
    let module = Module::parse(&text("@%p2 st.volatile.shared.u32 [s], 1;")).unwrap();
    let hung = Module::parse(&text("")).unwrap();
    for behaviour in [0, 1, 2].map(drawn) {
        let mut memory = Memory::new();
        let id = u32_buffer(&mut memory, "numbers", &[0]);
        let args = [Argument::buffer(id)];
        let limits = Limits { block_instructions: 100_000, ..Limits::default() };
        let launch = Launch { behaviour, limits, ..Launch::new("k", [2, 1, 1], [256, 1, 1], &args) };
        assert_eq!(module.launch(&launch, &mut memory).unwrap().findings, []);
        let report = hung.launch(&launch, &mut memory).unwrap();
        assert!(faults(&report).iter().all(|f| *f == "hang") && !report.findings.is_empty(), "{:?}", report.findings);
    }
}
