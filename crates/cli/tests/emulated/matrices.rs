//! Products by matrix instructions: results against the reference, nothing that the emulator objects to, symbolic counts that are
//! what ran, no bank conflict, and broken texts that show.

use crate::counts::{self, Shares};
use crate::stand::{any_plan_of, check_program, device, input, plan_of, rng, run};
use rand::Rng;
use rayon::prelude::*;
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Filling, Workload};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::program::{Code, Program, Step};
use tilewright_core::space::Config;
use tilewright_emulator::EmulatorDevice;
use tilewright_ops::gemm::{A, Accuracy, B, BIAS, Bias, C, Gemm, GemmInput, ScalarClass};
use tilewright_ptxgen::mma::{MmaGemm, MmaPlan};

const TARGETS: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];
const FILLINGS: [Filling; 3] = [Filling::Real, Filling::Exact, Filling::Special];
/// Types of operands, sums and results, and what f32 may be multiplied as.
const TYPES: [&str; 10] = [
    "dtype=f16",
    "dtype=bf16",
    "dtype=f16,out=f32",
    "dtype=bf16,out=f32",
    "dtype=tf32",
    "dtype=f64",
    "dtype=f32,accuracy=tf32",
    "dtype=f32,accuracy=3xtf32",
    "dtype=i8",
    "dtype=f16,acc=f16",
];

/// Those whose sums may be added to results as they are.
const UNROUNDED: [&str; 6] =
    ["dtype=f16,out=f32", "dtype=bf16,out=f32", "dtype=tf32", "dtype=f64", "dtype=f32,accuracy=3xtf32", "dtype=i8"];

fn plan(target: &str, input: &GemmInput, config: &str) -> MmaPlan {
    plan_of(MmaGemm::new(), target, input, config)
}

/// A random plan for a random awkward input, with words and parameters that are given.
fn any(target: &str, words: &str, config: &str, seed: u64) -> (GemmInput, MmaPlan) {
    let mut rng = rng(seed);
    let fixed = Config::parse(words).unwrap();
    let limits = InputLimits { max_flops: 1e6, max_bytes: 1e6 };
    for _ in 0..200 {
        let input = Gemm.draw_awkward(&fixed, &limits, &mut || rng.random()).unwrap();
        if let Some(plan) = any_plan_of(MmaGemm::new(), target, &input, config, &mut rng) {
            return (input, plan);
        }
    }
    panic!("nothing legal with {words} and {config} for {target}");
}

fn check(target: &str, input: &GemmInput, plan: &MmaPlan, filling: Filling, seed: u64) {
    let what = format!("{:?}", plan.blueprint().config);
    check_program(target, input, &plan.program([0; 3]), &what, filling, seed);
}

fn check_any(words: &str, config: &str, seed: u64) {
    let target = TARGETS[seed as usize % TARGETS.len()];
    let (input, plan) = any(target, words, config, seed);
    check(target, &input, &plan, FILLINGS[seed as usize % 3], seed);
}

#[test]
fn one_stage_config_in_every_layout_and_type() {
    let small = "m_w=32,n_w=32,m_l=64,n_l=32,stages=3,load=async,k_g=1,bounds=checked";
    let mut cases = Vec::new();
    for layout in ["nn", "nt", "tn", "tt"] {
        for types in TYPES {
            for sizes in ["m=64,n=32,k=96", "m=72,n=40,k=88"] {
                cases.push(format!("{sizes},{types},layout={layout}"));
            }
        }
    }
    cases.par_iter().for_each(|words| {
        let input = input(words);
        let u = if words.contains("f64") {
            16
        } else if words.contains("3xtf32") {
            8
        } else {
            32
        };
        for target in ["sm_80", "sm_90"] {
            check(target, &input, &plan(target, &input, &format!("{small},u={u}")), Filling::Exact, 1);
        }
    });
}

#[test]
fn random_plans_are_right() {
    let cases: Vec<u64> = (0..100).collect();
    cases.into_par_iter().for_each(|seed| check_any(TYPES[seed as usize % TYPES.len()], "", seed));
}

#[test]
fn small_and_odd_sizes() {
    let sizes = ["m=1,n=1,k=1", "m=1,n=16,k=3", "m=15,n=1,k=129", "m=3,n=5,k=0", "m=7,n=9,k=2", "m=17,n=33,k=31"];
    let cases: Vec<(usize, u64)> =
        (0..sizes.len()).flat_map(|i| (0..TYPES.len() as u64).map(move |t| (i, t))).collect();
    cases.into_par_iter().for_each(|(i, t)| {
        check_any(&format!("{},{}", sizes[i], TYPES[t as usize]), "", 1000 + 20 * i as u64 + t);
    });
}

#[test]
fn split_reductions_with_every_scalar_and_layout() {
    let mut cases = Vec::new();
    for layout in ["nn", "nt", "tn", "tt"] {
        for beta in ["0", "1", "other"] {
            for config in ["k_g=2,split=ordered", "k_g=3,split=atomic"] {
                // Sums are added to results of their own type, and integers in no order.
                let is_atomic = config.ends_with("atomic");
                let types = if is_atomic { UNROUNDED[cases.len() / 2 % 6] } else { TYPES[cases.len() / 2 % 8] };
                let scalars = if types.contains("i8") { "beta=1" } else { &format!("beta={beta},alpha=other") };
                cases.push((format!("layout={layout},{scalars},k=320,{types},bias=none,activation=none"), config));
            }
        }
    }
    let cases: Vec<(u64, (String, &str))> = (5000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| check_any(words, config, *seed));
}

#[test]
fn results_are_finished_where_they_are_stored_and_where_slices_are_summed() {
    let mut cases = Vec::new();
    for (i, types) in TYPES.into_iter().enumerate() {
        for (j, bias) in ["none", "row", "column"].into_iter().enumerate() {
            for (l, activation) in ["none", "relu"].into_iter().enumerate().skip(usize::from(j == 0)) {
                let scalars = if types.contains("i8") { "beta=1" } else { "beta=other,alpha=other" };
                let layout = ["nn", "nt", "tn", "tt"][(i + j + l) % 4];
                let words = format!("{types},layout={layout},bias={bias},activation={activation}");
                cases.push((words.clone(), ""));
                cases.push((format!("{words},{scalars},k=70"), "k_g=1,vec_c=1"));
                cases.push((format!("{words},{scalars},k=300"), "k_g=2,split=ordered"));
                cases.push((format!("{words},k=0"), ""));
            }
        }
    }
    let cases: Vec<(u64, (String, &str))> = (6000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| check_any(words, config, *seed));
}

#[test]
fn bytes_that_lie_across_the_reduction_in_every_tile() {
    let mut cases = Vec::new();
    for layout in ["nn", "nt", "tt"] {
        for config in ["load=async,m_w=32", "load=nc,n_w=64", "load=global,vec_a=1", "load=async,m_l=96", "m_w=64,u=64"]
        {
            cases.push((format!("dtype=i8,layout={layout},k=128,m=60,n=52"), config));
        }
    }
    let cases: Vec<(u64, (String, &str))> = (8000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| check_any(words, config, *seed));
}

#[test]
fn copies_in_every_depth_and_loads_of_every_kind() {
    let configs = [
        "load=async,stages=2",
        "load=async,stages=4",
        "load=async,stages=5",
        "load=nc,stages=1",
        "load=global,stages=2",
    ];
    let cases: Vec<u64> = (0..50).collect();
    cases.par_iter().for_each(|i| {
        let words = format!("k=160,{}", TYPES[*i as usize % TYPES.len()]);
        check_any(&words, configs[*i as usize / 10 % configs.len()], 7000 + i);
    });
}

#[test]
fn counts_are_what_runs() {
    (0..counts::triples()).into_par_iter().for_each(|seed| {
        let extra = ["", "k_g=2", "load=async", "load=nc"][seed as usize % 4];
        let (input, plan) = any("sm_80", TYPES[seed as usize % TYPES.len()], extra, 9000 + seed);
        counts::check(&input, &plan, Shares::LeftOut);
    });
}

/// Passes over the banks beyond those that accesses of such widths take, by opcode.
fn conflicts(target: &str, input: &GemmInput, plan: &MmaPlan) -> Vec<(String, u64)> {
    let mut device = device(target);
    let work = Gemm.workload(input, Filling::Exact, 1);
    run(&mut device, &plan.program([0; 3]), &work, "conflicts");
    let mut found = Vec::new();
    for report in device.log().take() {
        for site in &report.counts.sites {
            let Some(traffic) = site.traffic else { continue };
            let op = site.opcode.as_str();
            let least = match op {
                _ if op.starts_with("ldmatrix") => 4,
                _ if !op.contains(".shared") || op.starts_with("cp") => continue,
                _ if op.contains(".v4") || op.contains(".v2.f64") => 4,
                _ if op.contains(".v2") || op.ends_with("64") => 2,
                _ => 1,
            };
            let (ran, least) = (traffic.transactions, least * traffic.accesses());
            if ran > least {
                found.push((site.opcode.clone(), ran - least));
            }
        }
    }
    found
}

#[test]
fn no_two_lanes_meet_in_a_bank() {
    // Through registers, since what copies store is not counted: it goes to the same places.
    let tiles = ["m_l=64,n_l=64,m_w=32,n_w=32", "m_l=96,n_l=48,m_w=48,n_w=16", "m_l=32,n_l=128,m_w=16,n_w=64"];
    let mut cases = Vec::new();
    for layout in ["nn", "tn", "nt", "tt"] {
        for types in TYPES {
            for tile in tiles {
                for u in [16, 32, 64] {
                    cases.push((format!("m=192,n=384,k=128,{types},layout={layout}"), format!("{tile},u={u}")));
                }
            }
        }
    }
    let counted: Vec<usize> = cases
        .par_iter()
        .map(|(words, config)| {
            let (input, mut ran) = (input(words), 0);
            for target in ["sm_80", "sm_90"] {
                let config = format!("{config},load=nc,stages=2,k_g=1,bounds=whole");
                let Some(plan) = any_plan_of(MmaGemm::new(), target, &input, &config, &mut rng(1)) else { continue };
                let found = conflicts(target, &input, &plan);
                assert!(found.is_empty(), "{target} {words} {config}: {found:?}");
                ran += 1;
            }
            ran
        })
        .collect();
    let ran: usize = counted.iter().sum();
    assert!(ran > cases.len(), "only {ran} of {} plans are legal", 2 * cases.len());
}

/// A program with its first product changed.
pub(crate) fn with_text(program: &Program, text: String) -> Program {
    let mut changed = program.clone();
    for step in &mut changed.steps {
        if let Step::Launch(launch) = step
            && let Code::Ptx { text: old, .. } = &mut launch.code
        {
            *old = text;
            break;
        }
    }
    changed
}

pub(crate) fn text(program: &Program) -> String {
    program
        .steps
        .iter()
        .find_map(|step| match step {
            Step::Launch(launch) => match &launch.code {
                Code::Ptx { text, .. } => Some(text.clone()),
                _ => None,
            },
            _ => None,
        })
        .unwrap()
}

/// Texts with one line changed, and what was done to it.
fn mutants(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    let mut add = |i: usize, what: &str, line: String| {
        let mut changed = lines.clone();
        changed[i] = &line;
        out.push((format!("line {}: {what}: {}", i + 1, lines[i].trim()), changed.join("\n")));
    };
    let operands = |op: &str| -> Vec<String> {
        let list = op.split_once(' ').map_or("", |(_, list)| list.trim_end_matches(';'));
        list.split(", ").map(str::to_owned).collect()
    };
    let shifted = |line: &str, by: i64| -> Option<String> {
        let (head, rest) = line.split_once('[')?;
        let (inner, tail) = rest.split_once(']')?;
        let (base, offset) = inner.split_once('+').map_or((inner, 0), |(b, o)| (b, o.parse::<i64>().unwrap_or(0)));
        Some(format!("{head}[{base}+{}]{tail}", offset + by))
    };
    for (i, line) in lines.iter().enumerate() {
        let op = line.trim();
        if op.starts_with("bar.sync") {
            add(i, "no barrier", String::new());
        } else if let Some(n) = op.strip_prefix("cp.async.wait_group ") {
            let pending: u32 = n.trim_end_matches(';').parse().unwrap();
            add(i, "a group less is waited for", format!("    cp.async.wait_group {};", pending + 1));
        } else if op.starts_with("ldmatrix") {
            add(i, "the next piece", shifted(line, 16).unwrap());
            let (head, tail) = line.split_once('{').unwrap();
            let (list, tail) = tail.split_once('}').unwrap();
            let mut registers: Vec<&str> = list.split(", ").collect();
            registers.swap(0, 1);
            add(i, "registers exchanged", format!("{head}{{{}}}{tail}", registers.join(", ")));
        } else if op.contains("cp.async.c") && op.contains('[') {
            add(i, "a place further on", shifted(line, 16).unwrap());
        } else if op.starts_with("xor.b32") {
            let of = operands(op);
            add(i, "nothing exchanged", format!("    mov.b32 {}, {};", of[0], of[1]));
        } else if op.starts_with("prmt.b32") {
            let of = operands(op);
            add(i, "words exchanged", format!("    prmt.b32 {}, {}, {}, {};", of[0], of[2], of[1], of[3]));
        } else if op.starts_with("cvt.rna.tf32.f32") || op.starts_with("cvt.rn.tf32.f32") {
            let of = operands(op);
            add(i, "not rounded", format!("    mov.b32 {}, {};", of[0], of[1]));
        } else if ["sub.rn.f32", "add.rn.f32", "mul.rn.f32", "fma.rn.f32", "add.s32", "max."]
            .iter()
            .any(|name| op.starts_with(name))
        {
            let of = operands(op);
            add(i, "left as it is", format!("    mov.b32 {}, {};", of[0], of[1]));
        } else if op.starts_with("selp") && op.contains(", 0, %r") {
            add(i, "another stage", line.replace(", 0, %r", ", 64, %r"));
        } else if op.starts_with("mma.sync") {
            let at = line.rfind("}, {").unwrap();
            let before = line[..at].rfind('{').unwrap();
            let mut registers: Vec<&str> = line[before + 1..at].split(", ").collect();
            if registers.len() > 1 {
                registers.swap(0, 1);
                add(i, "factors exchanged", format!("{}{{{}{}", &line[..before], registers.join(", "), &line[at..]));
            }
            add(i, "not multiplied", String::new());
        }
    }
    out
}

/// What a device holds after a run on these data; `None` where it refuses the program or objects.
fn after(target: &str, program: &Program, work: &Workload) -> Option<Buffers> {
    let mut device: EmulatorDevice = device(target);
    device.upload(&Data::Given(Arc::new(work.clone()))).unwrap();
    device.run(program).ok()?;
    Some(device.read().unwrap())
}

/// Whether a run of the changed program is refused, objected to, or wrong.
pub(crate) fn shows(target: &str, input: &GemmInput, program: &Program) -> bool {
    let work = Gemm.workload(input, Filling::Exact, 3);
    let Some(after) = after(target, program, &work) else { return true };
    let is_right = Gemm.reference(input, &work.buffers, &work.scalars).unwrap().compare(&after).is_right();
    // Every step of the last stage is a lane's or a register's own, and so is what is loaded of the first before the loop.
    !is_right || (input.k - 16..input.k).chain(0..16).any(|kept| rounds_wrongly(target, input, program, kept))
}

/// Data of which one product is left of each sum: what is done to its factors shows in every result. Drawn numbers of f32 lie on a grid of
/// 2^-22, on which what a split leaves is a number of tf32; so the last bits of a factor are changed.
fn single_products(input: &GemmInput, kept: usize, seed: u64) -> Workload {
    let mut work = Gemm.workload(input, Filling::Real, seed);
    let (a, b) = (input.layout.a_transposed(), input.layout.b_transposed());
    for (operand, along_k, ld, (rows, columns)) in
        [(A, a, input.lda, input.a_stored()), (B, !b, input.ldb, input.b_stored())]
    {
        for (i, j) in (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))) {
            let (at, is_kept) = (i + j * ld, (if along_k { i } else { j }) == kept);
            let last_bits = (at as u32).wrapping_mul(0x9e37_79b9) >> 21;
            let factor = f32::from_bits((work.buffers[operand].get_f64(at) as f32).to_bits() ^ last_bits);
            work.buffers[operand].set_f64(at, if is_kept { f64::from(factor) } else { 0.0 });
        }
    }
    work
}

/// The nearest tf32, ties away from zero: of a number that is not near the largest, half a unit is added and the rest cut off.
fn nearest_tf32(x: f64) -> f64 {
    f64::from(f32::from_bits((x as f32).to_bits().wrapping_add(0x1000) & 0xffff_e000))
}

/// What the product of two numbers of f32 becomes that are rounded or split.
fn product(accuracy: Accuracy, a: f64, b: f64) -> f64 {
    let [large_a, large_b] = [a, b].map(nearest_tf32);
    match accuracy {
        Accuracy::Full | Accuracy::ThreeM => a * b,
        Accuracy::Tf32 => large_a * large_b,
        Accuracy::ThreeTf32 => {
            let [small_a, small_b] = [a - large_a, b - large_b].map(nearest_tf32);
            large_a * large_b + large_a * small_b + small_a * large_b
        }
    }
}

/// Whether a product of operands that are rounded or split, at one step of the reduction, is not that of the nearest numbers.
fn rounds_wrongly(target: &str, input: &GemmInput, program: &Program, kept: usize) -> bool {
    if input.accuracy == Accuracy::Full {
        return false;
    }
    let work = single_products(input, kept, 5);
    let Some(after) = after(target, program, &work) else { return true };
    let before = &work.buffers;
    let a = |i: usize| if input.layout.a_transposed() { kept + i * input.lda } else { i + kept * input.lda };
    let b = |j: usize| if input.layout.b_transposed() { j + kept * input.ldb } else { kept + j * input.ldb };
    let is_wrong = |i: usize, j: usize| {
        let product = work.scalars[0] * product(input.accuracy, before[A].get_f64(a(i)), before[B].get_f64(b(j)));
        let old =
            if input.beta == ScalarClass::Zero { 0.0 } else { work.scalars[1] * before[C].get_f64(i + j * input.ldc) };
        let bias = match input.epilogue.bias {
            Bias::None => 0.0,
            Bias::Row => before[BIAS].get_f64(i),
            Bias::Column => before[BIAS].get_f64(j),
        };
        let value = input.epilogue.activation.of(product + old + bias);
        // The emulator rounds what an instruction adds once; scaling and finishing take a few roundings more.
        let is_plain = input.alpha == ScalarClass::One && input.beta == ScalarClass::Zero && input.epilogue.is_empty();
        let bound = match is_plain {
            true => 1.01 * 2f64.powi(-24) * product.abs(),
            false => 2f64.powi(-22) * (product.abs() + old.abs() + bias.abs()),
        };
        let error = (after[C].get_f64(i + j * input.ldc) - value).abs();
        error.is_nan() || error > bound
    };
    (0..input.n).any(|j| (0..input.m).any(|i| is_wrong(i, j)))
}

#[test]
fn operands_of_f32_are_rounded_to_nearest_or_split() {
    let cases: Vec<u64> = (0..32).collect();
    cases.into_par_iter().for_each(|seed| {
        let accuracy = ["tf32", "3xtf32"][seed as usize % 2];
        let layout = ["nn", "nt", "tn", "tt"][seed as usize / 2 % 4];
        let words = format!("m=37,n=26,k=40,dtype=f32,accuracy={accuracy},layout={layout},batch=1");
        let (input, plan) = any("sm_80", &words, "", 10_000 + seed);
        if input.multiplies() {
            let program = plan.program([0; 3]);
            let wrong = [0, 38].into_iter().find(|&kept| rounds_wrongly("sm_80", &input, &program, kept));
            assert_eq!(wrong, None, "{input:?} {:?}", plan.blueprint());
        }
    });
}

#[test]
fn broken_products_show() {
    let cases = [
        ("m=72,n=72,k=200,layout=tn,dtype=f16,acc=f32", "m_w=32,n_w=32,m_l=64,n_l=64,u=32,stages=3,load=async,k_g=1"),
        ("m=72,n=72,k=200,layout=nt,dtype=bf16,acc=f32", "m_w=32,n_w=32,m_l=64,n_l=64,u=32,stages=4,load=async,k_g=1"),
        (
            "m=72,n=72,k=200,layout=nn,dtype=tf32,acc=f32,out=f32",
            "m_w=32,n_w=32,m_l=64,n_l=64,u=16,stages=2,load=async,k_g=1",
        ),
        ("m=72,n=72,k=100,layout=tt,dtype=f64", "m_w=32,n_w=16,m_l=64,n_l=32,u=16,stages=3,load=async,k_g=1"),
        ("m=40,n=36,k=200,layout=nt,dtype=i8,bias=row", "m_w=32,n_w=32,m_l=32,n_l=32,u=64,stages=3,load=async,k_g=1"),
        (
            "m=40,n=36,k=72,layout=tn,dtype=f32,accuracy=tf32,bias=column,activation=relu,beta=other",
            "m_w=32,n_w=16,m_l=32,n_l=32,u=16,stages=3,load=async,k_g=1",
        ),
        (
            "m=40,n=36,k=72,layout=nt,dtype=f32,accuracy=3xtf32",
            "m_w=16,n_w=16,m_l=32,n_l=32,u=8,stages=3,load=async,k_g=1",
        ),
    ];
    for (words, config) in cases {
        let input = input(words);
        let program = plan("sm_80", &input, config).program([0; 3]);
        assert!(!shows("sm_80", &input, &program), "{words} itself");
        let mutants = mutants(&text(&program));
        assert!(mutants.len() > 10, "{words}: {} mutants", mutants.len());
        let unseen: Vec<&String> = mutants
            .par_iter()
            .filter(|(_, text)| !shows("sm_80", &input, &with_text(&program, text.clone())))
            .map(|(what, _)| what)
            .collect();
        println!("{words}: {} of {} mutants show", mutants.len() - unseen.len(), mutants.len());
        assert!(unseen.is_empty(), "{words}: {unseen:#?}");
    }
}
