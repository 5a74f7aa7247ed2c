//! BACUGen's stencil: results against the reference, nothing that the emulator objects to, symbolic counts that are what ran, the
//! paper's fastest configurations, no bank conflict where threads read, and broken texts that show.

use crate::counts::{self, Shares};
use crate::matrices::{shows, text, with_text};
use crate::stand::{any_plan_of, check_program, device, input, plan_of, rng, run};
use rand::Rng;
use rayon::prelude::*;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::kernel::Kernel;
use tilewright_core::space::Config;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
use tilewright_ptxgen::bacugen::{BacugenGemm, BacugenPlan};
use tilewright_sampler::bacugen::paper::{WINNERS, Winner};

const TARGETS: [&str; 7] = ["sm_50", "sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120"];
const FILLINGS: [Filling; 3] = [Filling::Real, Filling::Exact, Filling::Special];
const TYPES: [&str; 4] = ["dtype=f32", "dtype=f64", "dtype=c32", "dtype=c64"];

/// A random plan for a random awkward input, with words and parameters that are given.
fn any(target: &str, words: &str, config: &str, seed: u64) -> (GemmInput, BacugenPlan) {
    let mut rng = rng(seed);
    let fixed = Config::parse(words).unwrap();
    let limits = InputLimits { max_flops: 3e5, max_bytes: 1e6 };
    for _ in 0..200 {
        let input = Gemm.draw_awkward(&fixed, &limits, &mut || rng.random()).unwrap();
        // Complex numbers that are aligned as their components are refused.
        if BacugenGemm::new().accepts(&input).is_err() {
            continue;
        }
        if let Some(plan) = any_plan_of(BacugenGemm::new(), target, &input, config, &mut rng) {
            return (input, plan);
        }
    }
    panic!("nothing legal with {words} and {config} for {target}");
}

fn check(target: &str, input: &GemmInput, plan: &BacugenPlan, filling: Filling, seed: u64) {
    let what = format!("{:?}", plan.blueprint().product.config);
    check_program(target, input, &plan.program([0; 3]), &what, filling, seed);
}

fn check_any(words: &str, config: &str, seed: u64) {
    let target = TARGETS[seed as usize % TARGETS.len()];
    let (input, plan) = any(target, words, config, seed);
    check(target, &input, &plan, FILLINGS[seed as usize % 3], seed);
}

#[test]
fn random_plans_are_right() {
    (0..60u64).into_par_iter().for_each(|seed| check_any(TYPES[seed as usize % 4], "", 30_000 + seed));
}

#[test]
fn every_layout_type_and_way_to_load() {
    let mut cases = Vec::new();
    for types in TYPES {
        let layouts = if types.contains("=c") { &Layout::EVERY[..] } else { &Layout::ALL };
        for (i, layout) in layouts.iter().enumerate() {
            let scalars = ["beta=0", "beta=1,alpha=other", "beta=other,alpha=other"][i % 3];
            cases.push((format!("{types},layout={layout},{scalars}"), ["load=nc", "load=global"][i % 2]));
        }
    }
    let cases: Vec<(u64, (String, &str))> = (31_000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| check_any(words, config, *seed));
}

#[test]
fn awkward_sizes_batches_and_epilogues() {
    let words = [
        "m=1,n=1,k=1",
        "m=1,n=16,k=3",
        "m=15,n=1,k=129",
        "m=3,n=5,k=0,beta=1",
        "alpha=0,beta=other",
        "batch=3,beta=1",
        "bias=row",
        "bias=column,batch=2",
    ];
    let cases: Vec<(usize, u64)> = (0..words.len()).flat_map(|i| (0..4).map(move |t| (i, t))).collect();
    cases.into_par_iter().for_each(|(i, t)| {
        check_any(&format!("{},{}", words[i], TYPES[t as usize]), "", 32_000 + 10 * i as u64 + t);
    });
}

/// Larger than a tile in both directions, and no multiple of it.
fn of_winner(winner: &Winner) -> GemmInput {
    let sizes = [winner.tile[0] + 5, winner.tile[1] + 3, 2 * winner.tile[2] + 1];
    let [m, n, k] = sizes;
    input(&format!("m={m},n={n},k={k},dtype={},layout={},alpha=other,beta=other", winner.element, winner.layout))
}

#[test]
fn the_papers_fastest_are_legal_and_right() {
    WINNERS.par_iter().enumerate().for_each(|(i, winner)| {
        let input = of_winner(winner);
        for (target, load) in [("sm_50", "load=global"), ("sm_90", "load=nc")] {
            let plan = plan_of(BacugenGemm::new(), target, &input, &format!("{},{load}", winner.config()));
            let [m_s, n_s] = winner.of_thread();
            let config = &plan.blueprint().product.config;
            assert_eq!([i64::from(config.m_s), i64::from(config.n_s)], [m_s, n_s], "{winner:?}");
            check(target, &input, &plan, FILLINGS[i % 3], i as u64);
        }
    });
}

#[test]
fn counts_are_what_runs() {
    (0..counts::triples()).into_par_iter().for_each(|seed| {
        let (input, plan) = any("sm_80", TYPES[seed as usize % 4], "", 33_000 + seed);
        counts::check(&input, &plan, Shares::LeftOut);
    });
}

#[test]
fn threads_read_skewed_tiles_without_a_bank_conflict() {
    WINNERS.par_iter().for_each(|winner| {
        let input = of_winner(winner);
        let plan = plan_of(BacugenGemm::new(), "sm_80", &input, &winner.config().to_string());
        let mut device = device("sm_80");
        run(&mut device, &plan.program([0; 3]), &Gemm.workload(&input, Filling::Exact, 1), winner.layout);
        let mut reads = 0;
        for site in device.log().take().iter().flat_map(|report| &report.counts.sites) {
            let Some(traffic) = site.traffic.filter(|_| site.opcode.starts_with("ld.shared")) else { continue };
            // A warp reads rows of A side by side: so many words of 4 bytes in a pass over the banks.
            let most = (winner.element.size() as u64 / 4) * traffic.accesses();
            assert!(
                traffic.transactions <= most,
                "{winner:?}: {} passes for {most}: {}",
                traffic.transactions,
                site.opcode
            );
            reads += traffic.accesses();
        }
        assert!(reads > 0, "{winner:?}");
    });
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
        let element = if op.contains(".v2") { 2 } else { 1 } * if op.contains("f64") { 8 } else { 4 };
        if op.starts_with("bar.sync") {
            add(i, "no barrier", String::new());
        } else if op.contains("st.shared") || op.contains("ld.shared") || op.contains("ld.global") {
            add(i, "the next element", shifted(line, element).unwrap());
        } else if op.contains("st.global") {
            add(i, "no result", String::new());
        } else if op.starts_with("fma") {
            let operands: Vec<&str> = op.trim_end_matches(';').split(", ").collect();
            let (head, acc) = (operands[0], operands[operands.len() - 1]);
            add(i, "a square", format!("    {head}, {}, {}, {acc};", operands[1], operands[1]));
        }
    }
    out
}

#[test]
fn broken_stencils_show() {
    let small = "m_dim=8,n_dim=4,k_blk=4,n_blk=8,m_blk=16";
    for (words, config) in [
        ("m=21,n=13,k=19,layout=nn", "m_dim_a=16,n_dim_a=2,m_dim_b=4,n_dim_b=8,load=nc"),
        ("m=21,n=13,k=19,layout=tt,dtype=f64", "m_dim_a=4,n_dim_a=8,m_dim_b=8,n_dim_b=4,load=global"),
        ("m=21,n=13,k=19,layout=cn,dtype=c32", "m_dim_a=2,n_dim_a=16,m_dim_b=4,n_dim_b=8,load=nc"),
    ] {
        let input = input(words);
        let program = plan_of(BacugenGemm::new(), "sm_80", &input, &format!("{small},{config}")).program([0; 3]);
        assert!(!shows("sm_80", &input, &program), "{words} itself");
        let mutants = mutants(&text(&program));
        assert!(mutants.len() > 40, "{words}: {} mutants", mutants.len());
        let unseen: Vec<&String> = mutants
            .par_iter()
            .filter(|(_, text)| !shows("sm_80", &input, &with_text(&program, text.clone())))
            .map(|(what, _)| what)
            .collect();
        println!("{words}: {} of {} mutants show", mutants.len() - unseen.len(), mutants.len());
        assert!(unseen.is_empty(), "{words}: {unseen:#?}");
    }
}
