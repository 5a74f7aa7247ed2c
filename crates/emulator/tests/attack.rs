//! Hostile kernels and broken texts: each is a typed error or a finding, never a panic and never a hang.

mod fixture;

use fixture::{faults, u32_buffer};
use std::collections::BTreeSet;
use std::path::Path;
use tilewright_emulator::{Argument, Launch, LaunchError, Limits, Memory, Module, Report};

fn kernel(body: &str) -> Module {
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p) {{
          .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 s[64];
          ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; setp.lt.u32 %p1, %r1, 32;
          {body} ret; }}"
    );
    Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{body}"))
}

/// Runs a body with a buffer of so many bytes, within small limits.
fn run(body: &str, bytes: usize, grid: [u32; 3], threads: u32) -> Report {
    let (module, mut memory) = (kernel(body), Memory::new());
    let id = memory.add("x", &vec![0; bytes]).unwrap();
    let limits = Limits { block_instructions: 20_000, launch_instructions: 1_000_000, ..Limits::default() };
    let args = [Argument::buffer(id)];
    module.launch(&Launch { limits, ..Launch::new("k", grid, [threads, 1, 1], &args) }, &mut memory).unwrap()
}

fn finds(body: &str, bytes: usize, threads: u32, fault: &str) {
    let report = run(body, bytes, [1; 3], threads);
    assert!(faults(&report).contains(&fault), "{body}: {:?}", report.findings);
    let finding = report.findings.iter().find(|f| f.fault.name() == fault).unwrap();
    assert!(finding.place.line >= 1 && finding.place.column >= 1, "{finding}");
}

#[test]
fn loops_without_end_stop() {
    finds("L: bra L;", 4, 32, "hang");
    finds("L: add.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r1, 99; @%p2 bra L;", 4, 70, "hang");
    // Lanes that wait for a lane of their own warp, which waits for them: lock-step never gets there.
    finds(
        "L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L; st.global.u32 [%rd1], 1;",
        4,
        32,
        "hang",
    );
    finds("mov.u32 %r3, 0; L: brx.idx %r3, T; T: .branchtargets L, L;", 4, 32, "hang");
}

#[test]
fn barriers_that_never_open_are_seen() {
    finds("setp.lt.u32 %p2, %r1, 7; @%p2 bra L; bar.sync 0; L: mov.u32 %r3, 0;", 4, 64, "divergent_barrier");
    finds("@!%p1 bra L; bar.sync 1; L: bar.sync 0;", 4, 64, "deadlock");
    finds("bar.sync 3, 128;", 4, 64, "deadlock");
    finds("bar.sync 16;", 4, 32, "bad_barrier");
    finds("bar.sync 0, 17;", 4, 32, "bad_barrier");
    finds("setp.lt.u32 %p2, %r1, 7; @%p2 bar.sync 0;", 4, 32, "divergent_barrier");
    finds("bar.warp.sync 0;", 4, 32, "inactive_lane");
}

#[test]
fn accesses_that_hardware_would_trap_are_findings() {
    finds("ld.global.u32 %r3, [%rd1];", 0, 32, "out_of_bounds");
    finds("ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1+4];", 64, 32, "misaligned");
    finds("st.global.v2.u32 [%rd1+4], {%r1, %r1};", 64, 1, "misaligned");
    finds("ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1+16];", 28, 1, "out_of_bounds");
    finds("ld.global.u32 %r3, [%rd1+-4];", 64, 1, "out_of_bounds");
    finds("mov.u64 %rd2, 0; ld.global.u32 %r3, [%rd2];", 64, 1, "out_of_bounds");
    finds("mov.u64 %rd2, -8; st.u64 [%rd2], %rd1;", 64, 1, "out_of_bounds");
    finds("st.shared.u32 [%r2+64], %r1;", 4, 1, "out_of_bounds");
    finds("st.shared.u32 [%r2+-4], %r1;", 4, 1, "out_of_bounds");
    finds("mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;", 4, 32, "out_of_bounds");
    finds("mad.lo.u32 %r3, %r1, 2, %r2; st.shared.u32 [%r3], %r1;", 4, 4, "misaligned");
    finds("mov.u32 %r3, 0xfffffffc; st.shared.v4.u32 [%r3+8], {%r1, %r1, %r1, %r1};", 4, 1, "misaligned");
    finds("ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd1], %r3;", 4, 1, "unwritten");
    finds("cp.async.ca.shared.global [%r2], [%rd1], 16;", 8, 1, "out_of_bounds");
    finds("cp.async.ca.shared.global [%r2+56], [%rd1], 16; cp.async.wait_all;", 64, 1, "misaligned");
    finds("atom.global.add.u64 %rd2, [%rd1+4], 1;", 64, 1, "misaligned");
    finds("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r2];", 4, 32, "unwritten");
    finds(
        "mad.lo.u32 %r3, %r1, 16, %r2; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r3];",
        4,
        32,
        "out_of_bounds",
    );
    finds("ld.param.u64 %rd2, [p+8];", 4, 1, "out_of_bounds");
    finds("trap;", 4, 32, "trap");
}

fn kinds(report: &Report) -> BTreeSet<&'static str> {
    faults(report).into_iter().collect()
}

/// The common way through shared memory must see what the careful one sees, however often it went well before.
#[test]
fn a_fault_after_many_good_accesses_is_seen() {
    let warm = "mov.u32 %r8, 0; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1; bar.sync 0;";
    let repeat = |step: &str, last: u32| {
        format!(
            "{warm} L: ld.shared.u32 %r4, [%r3]; setp.ne.u32 %p3, %r4, %r4; @%p3 bra L; add.u32 %r8, %r8, 1; {step} setp.lt.u32 %p2, %r8, {last}; @%p2 bra L;"
        )
    };
    let found = |body: String| kinds(&run(&body, 4, [1; 3], 16));
    assert_eq!(found(repeat("", 50)), BTreeSet::new());
    assert_eq!(found(repeat("add.u32 %r3, %r3, 4;", 2)), ["out_of_bounds"].into());
    assert_eq!(found(repeat("add.u32 %r3, %r3, 2;", 2)), ["misaligned"].into());
    // Full warps: 32 words wide, in a larger array.
    let wide = |body: &str| body.replace("s[64]", "s[512]");
    let text = |step: &str| {
        wide(&format!(
            ".version 8.0 .target sm_90 .address_size 64 .visible .entry k() {{ .reg .pred %p<4>; .reg .b32 %r<9>;
              .shared .align 16 .b8 s[64]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; {} ret; }}",
            repeat(step, 6)
        ))
    };
    let faults_of = |step: &str| {
        let module = Module::parse(&text(step)).unwrap();
        kinds(&module.launch(&Launch::new("k", [1; 3], [64, 1, 1], &[]), &mut Memory::new()).unwrap())
    };
    assert_eq!(faults_of(""), BTreeSet::new());
    assert_eq!(faults_of("add.u32 %r3, %r3, 4;"), ["unwritten"].into());
    assert_eq!(faults_of("add.u32 %r3, %r3, 2;"), ["misaligned", "unwritten"].into());
    assert_eq!(faults_of("sub.u32 %r3, %r3, 128;"), ["out_of_bounds"].into());
    assert_eq!(faults_of("add.u32 %r3, %r3, 0x7fffffc0;"), ["out_of_bounds"].into());
    // The other warp writes what this one has been reading.
    assert_eq!(faults_of("xor.b32 %r3, %r3, 128; st.shared.u32 [%r3], %r4;"), ["race"].into());
    assert_eq!(faults_of("st.shared.u32 [%r3], %r4; bar.sync 0; xor.b32 %r3, %r3, 128;"), BTreeSet::new());
    assert_eq!(faults_of("bar.sync 0; st.shared.u32 [%r3], %r4; xor.b32 %r3, %r3, 128;"), ["race"].into());
}

#[test]
fn grids_without_end_stop() {
    let report = run("", 4, [i32::MAX as u32, 65_535, 65_535], 32);
    assert_eq!(faults(&report), ["budget"]);
    assert!(report.counts.total().issued > 1000);
    // A launch that fits is left alone.
    assert_eq!(faults(&run("", 4, [1000, 1, 1], 32)), Vec::<&str>::new());
}

#[test]
fn launches_that_cannot_be_are_errors() {
    let (module, mut memory) = (kernel(""), Memory::new());
    let id = u32_buffer(&mut memory, "x", &[0]);
    let args = [Argument::buffer(id)];
    let error = |grid: [u32; 3], block: [u32; 3], shared_bytes: u32, args: &[Argument]| {
        module.launch(&Launch { shared_bytes, ..Launch::new("k", grid, block, args) }, &mut Memory::new()).unwrap_err()
    };
    assert!(matches!(error([0, 1, 1], [1; 3], 0, &args), LaunchError::Grid { .. }));
    assert!(matches!(error([1, 65_536, 1], [1; 3], 0, &args), LaunchError::Grid { .. }));
    assert!(matches!(error([1; 3], [0, 1, 1], 0, &args), LaunchError::Block { .. }));
    assert!(matches!(error([1; 3], [32, 32, 2], 0, &args), LaunchError::Block { .. }));
    assert!(matches!(error([1; 3], [1024, 1024, 64], 0, &args), LaunchError::Block { .. }));
    assert!(matches!(error([1; 3], [1; 3], u32::MAX, &args), LaunchError::SharedMemory { .. }));
    assert!(matches!(error([1; 3], [1; 3], 0, &[]), LaunchError::ArgumentCount { .. }));
    assert!(matches!(error([1; 3], [1; 3], 0, &[Argument::U32(1)]), LaunchError::ArgumentSize { .. }));
}

#[test]
fn texts_that_grow_without_end_are_refused() {
    let head = ".version 8.0 .target sm_90 .address_size 64\n";
    // Functions that call the next one twice, over and over.
    let mut text = head.to_owned() + ".func f0() { ret; }\n";
    for i in 1..30 {
        text += &format!(".func f{i}() {{ call f{0}; call f{0}; ret; }}\n", i - 1);
    }
    text += ".visible .entry k() { call f29; ret; }";
    let error = Module::parse(&text).unwrap().check("k").cloned().unwrap();
    assert!(error.message.contains("instructions with a body for every call"), "{error}");
    let mut text = head.to_owned() + ".func f0() { ret; }\n";
    for i in 1..1000 {
        text += &format!(".func f{i}() {{ call f{}; ret; }}\n", i - 1);
    }
    text += ".visible .entry k() { call f999; ret; }";
    let error = Module::parse(&text).unwrap().check("k").cloned().unwrap();
    assert!(error.message.contains("nest deeper"), "{error}");
    let many: String = (0..9).map(|i| format!(".global .b8 x{i}[268435456];\n")).collect();
    let error = Module::parse(&format!("{head}{many}")).map(|_| ()).unwrap_err();
    assert_eq!((error.place.line, error.expected.contains("in all")), (6, true), "{error}");
}

/// A generator of small numbers, always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// All texts that tests have, by name.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut out = Vec::new();
    for folder in ["ptx", "ptx/generated", "cuda"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap().map(|f| f.unwrap().path());
        for file in files.filter(|f| f.extension().is_some_and(|e| e == "ptx")) {
            out.push((
                file.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&file).unwrap(),
            ));
        }
    }
    out.sort();
    out
}

/// The text with a byte, a line or a token changed.
fn mutated(text: &str, dice: &mut Dice) -> String {
    const BYTES: &[u8] = b"\0 \n;,.:@!%$[]{}()+-|<>/*\"0179afxXz_\x7f\xff";
    const WORDS: [&str; 16] = [
        "0",
        "-1",
        "1",
        "31",
        "4294967295",
        "18446744073709551615",
        "99999999999999999999",
        "0x7fffffff",
        "0f7FC00000",
        "%r1",
        "%tid.x",
        ".global",
        ".v4",
        "bra",
        "}",
        "{",
    ];
    let kind = dice.below(8);
    if kind < 3 {
        let mut bytes = text.as_bytes().to_vec();
        let at = dice.below(bytes.len());
        match kind {
            0 => bytes[at] = BYTES[dice.below(BYTES.len())],
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, BYTES[dice.below(BYTES.len())]),
        }
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let (a, b) = (dice.below(lines.len()), dice.below(lines.len()));
    match kind {
        3 => drop(lines.remove(a)),
        4 => lines.swap(a, b),
        5 => lines.insert(a, lines[b]),
        _ => {
            let tokens: Vec<&str> = lines[a].split([' ', '\t', ',']).filter(|t| !t.is_empty()).collect();
            let others: Vec<&str> = lines[b].split([' ', '\t', ',', ';']).filter(|t| !t.is_empty()).collect();
            let Some(old) = tokens.get(dice.below(tokens.len())) else { return text.to_owned() };
            let new = if kind == 6 { others.get(dice.below(others.len())).copied() } else { None };
            let line = lines[a].replacen(old, new.unwrap_or_else(|| WORDS[dice.below(WORDS.len())]), 1);
            let mut owned: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            owned[a] = line;
            return owned.join("\n");
        }
    }
    lines.join("\n")
}

/// What became of mutants: refused by the parser, by the launch, run with findings, run without.
fn judge(text: &str, tally: &mut [usize; 4]) {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(error) => {
            let lines = text.lines().count() as u32;
            assert!(error.place.line >= 1 && error.place.line <= lines + 1 && error.place.column >= 1, "{error}");
            assert!(!error.expected.is_empty(), "{error}");
            tally[0] += 1;
            return;
        }
    };
    let entries: Vec<String> = module.entries().map(str::to_owned).collect();
    for entry in entries {
        let mut memory = Memory::new();
        let ids: Vec<_> = (0..4).map(|_| memory.add("x", &[1; 2048]).unwrap()).collect();
        let parameters = module.parameters(&entry).unwrap_or_default();
        let args: Vec<Argument> = parameters
            .iter()
            .enumerate()
            .map(|(i, (_, n))| if *n == 8 { Argument::buffer(ids[i % 4]) } else { Argument::Bytes(vec![1; *n]) })
            .collect();
        let limits = Limits { block_instructions: 500, launch_instructions: 2000, ..Limits::default() };
        let launch = Launch { limits, shared_bytes: 64, ..Launch::new(&entry, [2, 1, 1], [33, 1, 1], &args) };
        match module.launch(&launch, &mut memory) {
            Ok(report) => tally[if report.findings.is_empty() { 3 } else { 2 }] += 1,
            Err(LaunchError::Load(error)) => {
                assert!(error.place.line >= 1 && error.place.column >= 1 && !error.message.is_empty(), "{error}");
                tally[1] += 1;
            }
            Err(_) => tally[1] += 1,
        }
    }
}

/// `TILEWRIGHT_MUTANTS` sets how many there are of each text.
#[test]
fn mutated_texts_never_panic_or_hang() {
    let count = std::env::var("TILEWRIGHT_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let (mut dice, mut tally) = (Dice(2026), [0; 4]);
    for (name, text) in texts() {
        for i in 0..count {
            let mut mutant = mutated(&text, &mut dice);
            // Some have several things wrong.
            for _ in 0..i % 3 {
                mutant = mutated(&mutant, &mut dice);
            }
            let judged = std::panic::catch_unwind(|| {
                let mut tally = [0; 4];
                judge(&mutant, &mut tally);
                tally
            });
            match judged {
                Ok(seen) => (0..4).for_each(|k| tally[k] += seen[k]),
                Err(_) => panic!("{name}, mutant {i}:\n{mutant}"),
            }
        }
    }
    println!(
        "refused as text {}, refused at launch {}, with findings {}, without {}",
        tally[0], tally[1], tally[2], tally[3]
    );
    assert!(tally.iter().all(|n| *n > 0), "{tally:?}");
}
