//! Text that is no PTX: an error with its place, never a panic.

mod fixture;

use fixture::text;
use proptest::prelude::*;
use tilewright_emulator::{Launch, Memory, Module, Place};

const KERNEL: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n";

fn fails(text: &str, place: (u32, u32), expected: &str, found: &str) {
    let error = Module::parse(text).map(|m| m.entries().count()).expect_err(text);
    assert_eq!(error.place, Place { line: place.0, column: place.1 }, "{error}");
    assert!(error.expected.contains(expected) && error.found.contains(found), "{error}");
}

#[test]
fn errors_say_where_and_what_was_expected() {
    fails("hello", (1, 1), "directive", "`hello`");
    fails(".version x", (1, 10), "version", "`x`");
    fails(".version 7.0\n.address_size 32", (2, 15), "64", "`32`");
    fails(".version 7.0 /* open", (1, 14), "*/", "end of the text");
    fails(&format!("{KERNEL}  add.s32 %r1, %r2 %r3;\n}}"), (6, 20), "`;`", "`%r3`");
    fails(&format!("{KERNEL}  add.s32 %r1, ;\n}}"), (6, 16), "operand", "`;`");
    fails(&format!("{KERNEL}  mov.f32 %f1, 0f123;\n}}"), (6, 16), "8 hexadecimal digits", "0f123");
    fails(&format!("{KERNEL}  .reg .x32 %r;\n}}"), (6, 8), "type", "`.x32`");
    fails(&format!("{KERNEL}  .reg .b32 %r<70000>;\n}}"), (6, 13), "60000", "70000");
    fails(&format!("{KERNEL}  ret;\n"), (7, 1), "statement or `}`", "end of the text");
    fails(".global .align 3 .b8 x[4];", (1, 16), "power of two", "`3`");
    fails(".global .b32 x = 99999999999999999999;", (1, 18), "64 bits", "99999999999999999999");
    fails(&format!("{KERNEL}{}", "{".repeat(100)), (6, 65), "64 nested", "`{`");
}

#[test]
fn errors_of_a_kernel_name_its_instruction() {
    for (body, opcode, message) in [
        ("  bra NOWHERE;", "bra", "no label NOWHERE"),
        ("  mov.u32 %r1, 0;", "mov.u32", "no register %r1"),
        ("  .reg .b64 %rd<2>; mov.u32 %rd1, 0;", "mov.u32", ".b64 register where .u32"),
        ("  .reg .b32 %r<2>; add.s32 %r1, %r1;", "add.s32", "2 operands where 3 are expected"),
        ("  .reg .b32 %r<2>; add.s32.wrap %r1, %r1, %r1;", "add.s32.wrap", "not supported"),
        ("  .reg .b32 %r<2>; ld.shared.u32 %r1, [nothing];", "ld.shared.u32", "nothing"),
        ("  frobnicate.u32 1;", "frobnicate.u32", "not supported"),
        ("A: A: ret;", "A", "second label"),
    ] {
        let module = Module::parse(&format!("{KERNEL}{body}\n}}")).unwrap_or_else(|e| panic!("{e}"));
        let error = module.check("k").unwrap_or_else(|| panic!("{body} is accepted"));
        assert_eq!((error.place.line, error.opcode.as_str()), (6, opcode), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn the_hopper_sample_is_read_and_refused() {
    let module = Module::parse(&text("wgmma90a.ptx")).unwrap();
    assert_eq!((module.target(), module.version()), ("sm_90a", (8, 0)));
    assert_eq!(module.entries().collect::<Vec<_>>(), ["wgmma90"]);
    assert!(module.check("wgmma90").is_some());
}

#[test]
fn debugging_directives_are_skipped() {
    let text = format!(
        ".version 8.0\n.target sm_80, debug\n.address_size 64\n.file 1 \"a.cu\", 123, 4\n{}{}",
        ".visible .entry k() { .loc 1 2 3\n .loc 1 2 3, function_name $L__info+4, inlined_at 1 4 5\n .pragma \"nounroll\"; ret; }\n",
        ".section .debug_str { $L__info: .b8 1, 2\n .b32 5 }"
    );
    let module = Module::parse(&text).unwrap();
    assert_eq!(module.check("k"), None);
}

#[test]
fn names_are_those_of_their_block() {
    let text = format!(
        "{KERNEL} .reg .b32 %r<3>; mov.u32 %r1, 1; {{ .reg .b64 %r<3>; mov.u64 %r1, 2; L: }} mov.u32 %r2, %r1; L: bra L; }}"
    );
    assert_eq!(Module::parse(&text).unwrap().check("k"), None);
}

/// Parses, and launches what parses; findings and refusals are fine.
fn survives(text: &str) {
    let Ok(module) = Module::parse(text) else { return };
    let entries: Vec<String> = module.entries().map(str::to_owned).collect();
    for entry in &entries {
        let bytes: Vec<usize> = module.parameters(entry).into_iter().flatten().map(|(_, b)| b).collect();
        let mut memory = Memory::new();
        let id = memory.add("buffer", &[0; 4096]).unwrap();
        let address = memory.address(id).to_le_bytes();
        let args = bytes.iter().map(|n| {
            let bytes = address.iter().chain(std::iter::repeat(&0)).take(*n).copied();
            tilewright_emulator::Argument::Bytes(if *n == 8 { bytes.collect() } else { vec![1; *n] })
        });
        let args: Vec<_> = args.collect();
        let limits = tilewright_emulator::Limits { block_instructions: 1000, ..Default::default() };
        let launch = Launch { limits, shared_bytes: 64, ..Launch::new(entry, [1; 3], [33, 1, 1], &args) };
        let _ = module.launch(&launch, &mut memory);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        survives(&text);
        survives(&format!("{KERNEL}{text}\n}}"));
    }

    #[test]
    fn no_words_of_ptx_make_it_panic(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..60)) {
        survives(&format!("{KERNEL} .reg .b32 %r<9>; .reg .pred %p<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; {}\n}}", words.join(" ")));
    }

    /// Pieces of good kernels cut out, doubled and swapped.
    #[test]
    fn no_mutation_makes_it_panic(which in 0..4usize, cut in 0..10_000usize, length in 1..40usize, to in 0..10_000usize) {
        let text = text(["sgemm16.ptx", "mma80.ptx", "wgmma90a.ptx", "generated/tn_f64_async3.ptx"][which]);
        let boundary = |at: usize| (at % text.len()..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let (from, to) = (boundary(cut), boundary(to));
        let end = boundary((from + length).min(text.len() - 1)).max(from);
        survives(&format!("{}{}", &text[..from], &text[end..]));
        survives(&format!("{}{}{}", &text[..to], &text[from..end], &text[to..]));
    }
}

const WORDS: [&str; 64] = [
    "add.s32",
    "%r1",
    "%r2",
    "%rd1",
    "%p1",
    "%f1",
    ",",
    ";",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "+",
    "-",
    "!",
    "|",
    ":",
    "@",
    "@%p1",
    "mov.u32",
    "mov.b64",
    "ld.global.u32",
    "st.shared.v4.f32",
    "ld.param.u64",
    "bra",
    "L",
    "L:",
    "bar.sync",
    "0",
    "1",
    "0x7fffffff",
    "0f3F800000",
    "-1",
    "setp.lt.and.u32",
    "selp.b32",
    "cvt.rn.f32.s32",
    "atom.global.add.f32",
    "shfl.sync.down.b32",
    "%tid.x",
    ".shared",
    ".align",
    "16",
    ".b8",
    "s",
    "[16]",
    "cp.async.ca.shared.global",
    "cp.async.wait_group",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "ret",
    "brx.idx",
    ".branchtargets",
    "fma.rn.f32",
    "vote.sync.all.pred",
    "bfe.s32",
    "prmt.b32",
    "div.s32",
    "rem.u32",
    "shl.b32",
    "popc.b32",
    "mad.hi.s32",
    "cvta.to.shared.u64",
    "\"",
];
