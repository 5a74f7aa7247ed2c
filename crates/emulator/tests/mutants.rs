//! Broken kernels: without a barrier, a wait or a bound, or with a shifted address. The emulator must object to at least 95%
//! of those that change the meaning, by a finding, a wrong result or a refusal.

mod fixture;
#[path = "fixture/generated.rs"]
mod generated;

use fixture::text;
use generated::Gemm;
use tilewright_emulator::{Argument, Class, Launch, Limits, Memory, Module, Report};

/// Runs a text: what was reported, and whether the result is right; `None` where it was refused.
type Run = Box<dyn Fn(&str) -> Option<(Report, bool)>>;

fn generated_kernel(name: &str, size: [usize; 3]) -> (String, Run) {
    let text = text(&format!("generated/{name}.ptx"));
    let gemm = Gemm::new(&text, size);
    (text, Box::new(move |text| gemm.run(&Module::parse(text).ok()?).ok()))
}

/// The hand-written products in binary32.
fn row_major(name: &'static str, tile: usize, block: [u32; 3]) -> (String, Run) {
    let [m, n, k] = [tile + 5, tile + 3, 35];
    let small = |i: usize, seed: usize| ((i * 7 + seed * 3) % 11) as f32 - 5.0;
    let run = move |text: &str| {
        let module = Module::parse(text).ok()?;
        let mut memory = Memory::new();
        let (a, b): (Vec<f32>, Vec<f32>) =
            ((0..m * k).map(|i| small(i, 1)).collect(), (0..k * n).map(|i| small(i * i, 2)).collect());
        let ids = [&a, &b, &vec![f32::NAN; m * n]].map(|v| fixture::f32_buffer(&mut memory, "matrix", v));
        let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
        args.extend([m, n, k].map(|x| Argument::U32(x as u32)));
        args.push(Argument::F32(2.0));
        let grid = [n.div_ceil(tile) as u32, m.div_ceil(tile) as u32, 1];
        let limits = Limits { block_instructions: 200_000, ..Limits::default() };
        let launch = Launch { limits, ..Launch::new(name, grid, block, &args) };
        let report = module.launch(&launch, &mut memory).ok()?;
        let found = fixture::read_f32(&memory, ids[2]);
        let expected = fixture::product(&a, &b, [m, n, k]);
        Some((report, found.iter().zip(expected).all(|(f, e)| f64::from(*f) == 2.0 * e)))
    };
    (text(&format!("{name}.ptx")), Box::new(run))
}

/// A mutant: the line that was changed (from one), what was done, and the text.
struct Mutant {
    line: usize,
    what: &'static str,
    text: String,
}

/// The column of a statement within its line, where one line holds several.
fn statements(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = line.split("//").next().unwrap_or_default();
    code.split_inclusive(';').scan(0, |at, part| {
        let start = *at;
        *at += part.len();
        Some((start, part))
    })
}

fn replaced(lines: &[&str], line: usize, start: usize, old: &str, new: &str) -> String {
    let mut out: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
    out[line].replace_range(start..start + old.len(), new);
    out.join("\n")
}

/// Every mutant of a text.
fn mutants(text: &str, element: u64) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        for (start, statement) in statements(line) {
            let mut add = |what, new: &str| {
                out.push(Mutant { line: i + 1, what, text: replaced(&lines, i, start, statement, new) });
            };
            let trimmed = statement.trim_start();
            if trimmed.starts_with("bar.sync") {
                add("barrier", "");
            }
            if trimmed.starts_with("cp.async.wait") {
                add("wait", "");
            }
            let memory = ["ld.global", "st.global", "red.", "cp.async.c", "ld.shared", "st.shared", "ldmatrix"];
            let is_memory = memory.iter().any(|m| statement.contains(m)) && !statement.contains("commit");
            if trimmed.starts_with('@') && is_memory {
                let guard = trimmed.split_whitespace().next().unwrap_or_default();
                add("bound", &statement.replacen(guard, "", 1));
            }
            // The number of bytes that a copy reads is its bound.
            if trimmed.contains("cp.async.c")
                && trimmed.matches(',').count() == 3
                && let Some((copy, _)) = statement.rsplit_once(',')
            {
                add("size", &format!("{copy};"));
            }
            if is_memory && let Some(end) = statement.find(']') {
                add(
                    "address",
                    &format!("{}{}{}", &statement[..end], shift(&statement[..end], element), &statement[end..]),
                );
            }
        }
    }
    out
}

/// What moves an address on by an element: offsets are added to those that stand there.
fn shift(before: &str, element: u64) -> String {
    // `[%r1+4` becomes `[%r1+4` minus its offset plus the new one; PTX has one offset only, so it is folded in.
    let inside = &before[before.rfind('[').map_or(0, |i| i + 1)..];
    match inside.split_once('+') {
        Some(_) => format!("{FOLD}{element}"),
        None => format!("+{element}"),
    }
}

/// Marks an offset that is to be added to the one before it.
const FOLD: &str = "\u{1}";

/// Adds up marked offsets.
fn fold(text: &str) -> String {
    let Some(mark) = text.find(FOLD) else { return text.to_owned() };
    let number = |s: &str| s.chars().take_while(char::is_ascii_digit).collect::<String>();
    let more = number(&text[mark + 1..]);
    let start = text[..mark].rfind('+').unwrap_or(0) + 1;
    let sum: u64 = text[start..mark].trim().parse::<u64>().unwrap_or(0) + more.parse::<u64>().unwrap_or(0);
    format!("{}{sum}{}", &text[..start], &text[mark + 1 + more.len()..])
}

/// Whether a mutant does anything at all: its instruction runs, and a bound keeps some lane away.
fn changes(mutant: &Mutant, original: &Report) -> bool {
    let sites = original.counts.sites.iter().filter(|s| s.place.line as usize == mutant.line);
    let of = |names: &'static [&'static str]| move |opcode: &str| names.iter().any(|n| opcode.starts_with(n));
    match mutant.what {
        "bound" => sites.filter(|s| s.class.moves_memory()).any(|s| s.tally.predicated_off > 0),
        "size" => sites.filter(|s| s.opcode.starts_with("cp.async")).any(|s| {
            let bits = if let Class::AsyncCopy(bits) = s.class { u64::from(bits) } else { 0 };
            s.traffic.is_some_and(|t| t.bytes < s.tally.threads * bits / 8)
        }),
        "barrier" => sites.filter(|s| of(&["bar"])(&s.opcode)).any(|s| s.tally.issued > 0),
        "wait" => sites.filter(|s| of(&["cp.async.wait"])(&s.opcode)).any(|s| s.tally.issued > 0),
        _ => sites.filter(|s| s.class.moves_memory()).any(|s| s.tally.threads > 0),
    }
}

fn objection_rate(name: &str, element: u64, (text, run): (String, Run)) -> (usize, usize) {
    let (original, right) = run(&text).expect("the kernel itself launches");
    assert_eq!(original.findings, [], "{name}");
    assert!(right, "{name}: the kernel itself is wrong");
    let (mut seen, mut all) = (0, 0);
    for mutant in mutants(&text, element) {
        if !changes(&mutant, &original) {
            continue;
        }
        all += 1;
        let object = match run(&fold(&mutant.text)) {
            None => true,
            Some((report, right)) => !report.findings.is_empty() || !right,
        };
        seen += usize::from(object);
        if !object {
            println!("{name}: line {}: no objection to a missing or shifted {}", mutant.line, mutant.what);
        }
    }
    println!("{name}: {seen} of {all}");
    (seen, all)
}

#[test]
fn broken_kernels_are_seen() {
    let subjects = [
        ("sgemm16", 4, row_major("sgemm16", 16, [16, 16, 1])),
        ("sgemm64", 4, row_major("sgemm64", 64, [8, 8, 1])),
        ("nn_f32_kg2_ordered", 4, generated_kernel("nn_f32_kg2_ordered", [45, 27, 37])),
        ("nt_f32_small", 4, generated_kernel("nt_f32_small", [45, 27, 37])),
        ("nt_f32_async4", 4, generated_kernel("nt_f32_async4", [72, 68, 100])),
        ("tn_f64_async3", 8, generated_kernel("tn_f64_async3", [45, 27, 37])),
        ("tn_f64_kl4_ks2", 8, generated_kernel("tn_f64_kl4_ks2", [45, 27, 37])),
        ("tt_f32_kg3_atomic", 4, generated_kernel("tt_f32_kg3_atomic", [44, 26, 52])),
    ];
    let (mut seen, mut all) = (0, 0);
    for (name, element, subject) in subjects {
        let (s, a) = objection_rate(name, element, subject);
        assert!(a > 5, "{name}: only {a} mutants");
        seen += s;
        all += a;
    }
    assert!(seen as f64 >= 0.95 * all as f64, "objections to {seen} of {all} mutants");
}
