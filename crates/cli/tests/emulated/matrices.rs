//! Products by matrix instructions: results against the reference, nothing that the emulator objects to, symbolic counts that are
//! what ran, no bank conflict, and broken texts that show.

use crate::counts::{self, Shares};
use crate::stand::{any_plan_of, check_program, device, input, plan_of, rng, run};
use rand::Rng;
use rayon::prelude::*;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::device::Device;
use tilewright_core::program::{Code, Program, Step};
use tilewright_core::space::Config;
use tilewright_emulator::EmulatorDevice;
use tilewright_ops::gemm::{Gemm, GemmInput};
use tilewright_ptxgen::mma::{MmaGemm, MmaPlan};

const TARGETS: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];
const FILLINGS: [Filling; 3] = [Filling::Real, Filling::Exact, Filling::Special];
/// Types with the accumulators that they are summed in.
const TYPES: [&str; 7] = [
    "dtype=f16",
    "dtype=bf16,acc=f32",
    "dtype=f16,acc=f32,out=f32",
    "dtype=bf16,acc=f32,out=f32",
    "dtype=tf32,acc=f32,out=f32",
    "dtype=f64",
    "dtype=i8,layout=tn,alpha=1",
];

/// Types without what comes with them.
fn bare(types: &str) -> &str {
    types.trim_end_matches(",layout=tn,alpha=1")
}

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
    let small = "m_w=32,n_w=16,m_l=64,n_l=32,stages=3,load=async,k_g=1,bounds=checked";
    let mut cases = Vec::new();
    for layout in ["nn", "nt", "tn", "tt"] {
        for types in TYPES {
            for sizes in ["m=64,n=32,k=96", "m=72,n=40,k=88"] {
                if layout == "tn" || !types.contains("i8") {
                    cases.push(format!("{sizes},{},layout={layout}", bare(types)));
                }
            }
        }
    }
    cases.par_iter().for_each(|words| {
        let input = input(words);
        let u = if words.contains("f64") { 16 } else { 32 };
        for target in ["sm_80", "sm_90"] {
            check(target, &input, &plan(target, &input, &format!("{small},u={u}")), Filling::Exact, 1);
        }
    });
}

#[test]
fn random_plans_are_right() {
    let cases: Vec<u64> = (0..90).collect();
    cases.into_par_iter().for_each(|seed| check_any(TYPES[seed as usize % TYPES.len()], "", seed));
}

#[test]
fn small_and_odd_sizes() {
    let sizes = ["m=1,n=1,k=1", "m=1,n=16,k=3", "m=15,n=1,k=129", "m=3,n=5,k=0", "m=7,n=9,k=2", "m=17,n=33,k=31"];
    let cases: Vec<(usize, u64)> = (0..sizes.len()).flat_map(|i| (0..6).map(move |t| (i, t))).collect();
    cases.into_par_iter().for_each(|(i, t)| {
        check_any(&format!("{},{}", sizes[i], TYPES[t as usize]), "", 1000 + 10 * i as u64 + t);
    });
}

#[test]
fn split_reductions_with_every_scalar_and_layout() {
    let mut cases = Vec::new();
    for layout in ["nn", "nt", "tn", "tt"] {
        for beta in ["0", "1", "other"] {
            for (i, config) in ["k_g=2,split=ordered", "k_g=3,split=atomic"].into_iter().enumerate() {
                // Sums are added to results of their own type.
                let types = TYPES[if i == 1 { 2 + cases.len() % 4 } else { cases.len() % 6 }];
                cases.push((format!("layout={layout},beta={beta},alpha=other,k=320,{types}"), config));
                if beta != "other" && i == 1 {
                    cases.push((format!("beta={beta},k=320,{}", TYPES[6]), config));
                }
            }
        }
    }
    let cases: Vec<(u64, (String, &str))> = (5000..).zip(cases).collect();
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
    let cases: Vec<u64> = (0..30).collect();
    cases.par_iter().for_each(|i| {
        let words = format!("k=160,{}", TYPES[*i as usize % TYPES.len()]);
        check_any(&words, configs[*i as usize / 6 % configs.len()], 7000 + i);
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
        for types in TYPES.into_iter().filter(|types| layout == "tn" || !types.contains("i8")) {
            for tile in tiles {
                for u in [16, 32, 64] {
                    cases.push((format!("m=192,n=384,k=128,{},layout={layout}", bare(types)), format!("{tile},u={u}")));
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
            let operands: Vec<&str> = op.trim_start_matches("xor.b32 ").split(", ").collect();
            add(i, "nothing exchanged", format!("    mov.b32 {}, {};", operands[0], operands[1]));
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
        }
    }
    out
}

/// Whether a run of the changed program is refused, objected to, or wrong.
pub(crate) fn shows(target: &str, input: &GemmInput, program: &Program) -> bool {
    let work = Gemm.workload(input, Filling::Exact, 3);
    let mut device: EmulatorDevice = device(target);
    device.upload(&tilewright_core::data::Data::Given(std::sync::Arc::new(work.clone()))).unwrap();
    if device.run(program).is_err() {
        return true;
    }
    let after = device.read().unwrap();
    !Gemm.reference(input, &work.buffers, &work.scalars).unwrap().compare(&after).is_right()
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
