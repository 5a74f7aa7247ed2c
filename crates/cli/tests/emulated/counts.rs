//! The symbolic counts of generated kernels are the emulator's dynamic counts, exactly, for every property.

use crate::stand::{any_plan, device, input, plan, rng, run};
use rand::Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;
use tilewright_core::buffer::{Filling, Workload};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::counts::{Counts, Property, Step};
use tilewright_core::program::Program;
use tilewright_core::space::Config;
use tilewright_emulator::{overlaps, properties};
use tilewright_ops::gemm::{Gemm, GemmInput};
use tilewright_ptxgen::gemm::{GemmPlan, Template};

pub(crate) type Numbers = BTreeMap<Property, u64>;

/// The same with strides alone. The emulator's share is that of a whole array with its ends, which small arrays are most of.
fn by_stride(numbers: &Numbers) -> Numbers {
    let mut out = Numbers::new();
    for (property, n) in numbers {
        let property = match *property {
            Property::Accesses(op, step) => Property::Accesses(op, Step { used: 0, ..step }),
            Property::Overlap(..) => continue,
            other => other,
        };
        *out.entry(property).or_insert(0) += n;
    }
    overlaps(&mut out);
    out
}

pub(crate) fn emulated(program: &Program, work: &Workload, what: &str) -> Numbers {
    let mut device = device("sm_80").with_footprints();
    run(&mut device, program, work, what);
    properties(&device.log().take())
}

pub(crate) fn symbolic(counts: &Counts, words: &Config, what: &str) -> Numbers {
    let mut evaluator = counts.evaluator();
    let values = evaluator.eval_by(|name| words.get(name)?.as_int()).unwrap_or_else(|e| panic!("{what}: {e}")).to_vec();
    evaluator.properties().iter().copied().zip(values.iter().map(|n| *n as u64)).filter(|(_, n)| *n != 0).collect()
}

pub(crate) fn compare(found: &Numbers, expected: &Numbers, counts: &Counts, what: &str) {
    let all: std::collections::BTreeSet<&Property> = found.keys().chain(expected.keys()).collect();
    let wrong: Vec<String> = all
        .into_iter()
        .filter(|p| found.get(p) != expected.get(p))
        .map(|p| {
            let [found, expected] = [found, expected].map(|n| n.get(p).copied().unwrap_or(0));
            format!("{p}: counted {found}, ran {expected}: {}", counts.expression(*p).unwrap_or_default())
        })
        .collect();
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// Whether shares of arrays are compared too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shares {
    Compared,
    LeftOut,
}

/// Counts are what runs. Those of blocks that share all stages are refused: nothing counts their segments.
pub(crate) fn check<T: Template>(input: &GemmInput, plan: &GemmPlan<T>, shares: Shares) {
    let what = format!("{} {:?}", serde_json::to_string(&Gemm.fields(input)).unwrap(), plan.blueprint());
    if plan.sharing().is_some() {
        assert!(plan.count().is_err(), "{what}");
        return;
    }
    let counts = plan.count().unwrap_or_else(|e| panic!("{what}: {e}"));
    let ran = emulated(&plan.program([0; 3]), &Gemm.workload(input, Filling::Exact, 1), &what);
    counted_and_run(&counts, &Gemm.fields(input), &ran, shares, &what);
}

/// Compares counts with what ran, for an input in words.
pub(crate) fn counted_and_run(counts: &Counts, words: &Config, ran: &Numbers, shares: Shares, what: &str) {
    let found = symbolic(counts, words, what);
    // What is said to be the lesser of two is.
    let mut again = found.clone();
    overlaps(&mut again);
    assert_eq!(found, again, "{what}");
    match shares {
        Shares::Compared => compare(&found, ran, counts, what),
        Shares::LeftOut => compare(&by_stride(&found), &by_stride(ran), counts, what),
    }
}

#[test]
fn whole_tiles_and_edges() {
    let small = "m_s=2,n_s=2,m_l=16,n_l=16,u=8,k_l=1,k_s=1,k_g=1,vec_a=1,vec_b=1,load=global,stages=1";
    for (words, config) in [
        ("m=32,n=32,k=32", "vec_c=2,bounds=whole"),
        ("m=32,n=32,k=32", "vec_c=2,bounds=checked"),
        ("m=33,n=17,k=29,beta=other", "vec_c=1,bounds=checked"),
        ("m=21,n=70,k=9,layout=tt", "vec_c=1,bounds=checked"),
    ] {
        let input = input(words);
        check(&input, &plan("sm_80", &input, &format!("{small},{config}")), Shares::LeftOut);
    }
}

/// A random configuration of a random input that is as awkward as that of a user.
fn random(seed: u64) {
    let mut rng = rng(seed);
    let limits = InputLimits { max_flops: 3e5, max_bytes: 1e6 };
    let extra =
        ["", "", "k_g=3", "load=async", "k_l=2", "split=atomic,k_g=2", "split=ticket,k_g=3"][seed as usize / 2 % 7];
    let fixed = Config::parse(["dtype=f32", "dtype=f64"][seed as usize % 2]).unwrap();
    for _ in 0..100 {
        let input = Gemm.draw_awkward(&fixed, &limits, &mut || rng.random()).unwrap();
        // Nothing counts the segments of blocks that share all tiles.
        let plan = any_plan("sm_80", &input, extra, &mut rng).filter(|plan| plan.sharing().is_none());
        if let Some(plan) = plan {
            return check(&input, &plan, Shares::LeftOut);
        }
    }
    panic!("seed {seed}: nothing is legal");
}

#[test]
fn shares_of_arrays() {
    // Rows that are dense or nearly so, and rows of which less than half is used.
    let inputs = [
        "m=96,n=80,k=40,dtype=f32,beta=other",
        "m=97,n=81,k=44,dtype=f32,layout=tt,ldc=99",
        "m=96,n=64,k=36,dtype=f32,layout=tn,lda=84",
        "m=64,n=96,k=40,dtype=f64,layout=nt,ldc=67,beta=1",
    ];
    let cases: Vec<(u64, &str)> = (0..2).flat_map(|seed| inputs.map(|words| (seed, words))).collect();
    cases.into_par_iter().for_each(|(seed, words)| {
        let input = input(words);
        let Some(plan) = any_plan("sm_80", &input, ["u=4", "vec_c=1"][seed as usize], &mut rng(seed)) else { return };
        check(&input, &plan, Shares::Compared);
    });
}

/// How many triples to compare: `TILEWRIGHT_COUNT_TRIPLES`, 40 without it.
pub(crate) fn triples() -> u64 {
    std::env::var("TILEWRIGHT_COUNT_TRIPLES").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

#[test]
fn random_products() {
    (0..triples()).into_par_iter().for_each(random);
}
