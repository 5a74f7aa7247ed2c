//! Products of every element type, and what is done to results: against the reference, and counted.

use crate::counts::{self, Shares};
use crate::products::{any, check_any_on};
use crate::stand::{check, input, plan};
use rayon::prelude::*;
use tilewright_core::buffer::Filling;
use tilewright_core::kernel::Kernel;
use tilewright_ops::gemm::Layout;
use tilewright_ptxgen::gemm::SimtGemm;

const HALVES: [&str; 4] = [
    "dtype=f16,acc=f32,out=f16",
    "dtype=f16,acc=f32,out=f32",
    "dtype=bf16,acc=f32,out=bf16",
    "dtype=bf16,acc=f32,out=f32",
];
/// The same with sums in pairs of f16.
const PAIRS: [&str; 2] = ["dtype=f16,acc=f16,out=f16", "dtype=f16,acc=f16,out=f32"];
const TARGETS: [&str; 7] = ["sm_50", "sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120"];

/// Targets with code for sums and results of the types that the words name: rounding to bf16 came with sm_80, arithmetic of f16 after
/// sm_50.
fn target(words: &str, seed: usize) -> &'static str {
    let first = if words.contains("out=bf16") { 3 } else { usize::from(words.contains("acc=f16")) };
    let targets = &TARGETS[first..];
    targets[seed % targets.len()]
}

#[test]
fn operands_of_sixteen_bits() {
    (0..64u64).into_par_iter().for_each(|i| {
        let words = HALVES[i as usize % 4];
        check_any_on(target(words, i as usize / 4), words, "", 20_000 + i);
    });
}

#[test]
fn operands_of_sixteen_bits_however_they_are_loaded_and_summed() {
    let configs = ["k_g=2,split=ordered", "k_g=3,split=ordered,k_l=2", "load=async", "k_l=2,k_s=2", "stages=2,load=nc"];
    let cases: Vec<u64> = (0..40).collect();
    cases.par_iter().for_each(|i| {
        let words = format!("{},k=70,alpha=other", HALVES[*i as usize % 4]);
        check_any_on("sm_80", &words, configs[*i as usize / 4 % 5], 21_000 + i);
    });
}

#[test]
fn pairs_of_sums() {
    (0..48u64).into_par_iter().for_each(|i| {
        let words = PAIRS[i as usize % 2];
        check_any_on(target(words, i as usize / 2), words, "", 28_000 + i);
    });
}

#[test]
fn pairs_of_sums_in_every_layout_however_they_are_loaded_and_summed() {
    // Copies that transpose nothing.
    let copied = ("nt", "load=async");
    let configs = ["k_g=2,split=ordered", "k_g=3,split=ordered,k_l=2", "k_l=4", "k_l=2,k_s=2", "n_s=1", "m_s=6"];
    (0..56u64).into_par_iter().for_each(|i| {
        let all = Layout::ALL.into_iter().flat_map(|layout| configs.map(|config| (layout.name(), config)));
        let (layout, config) = all.chain([copied; 4]).nth(i as usize / 2).unwrap();
        let words = format!("{},k=70,alpha=other,layout={layout}", PAIRS[i as usize % 2]);
        check_any_on("sm_80", &words, config, 29_000 + i);
    });
}

#[test]
fn sums_of_sixteen_bits_that_stay_wide_may_be_added_atomically() {
    for (dtype, sum) in [("f16", "f32"), ("bf16", "f32"), ("f16", "f16")] {
        let words = format!("dtype={dtype},acc={sum},out=f32,k=90");
        (0..4).into_par_iter().for_each(|i| check_any_on("sm_70", &words, "k_g=2,split=atomic", 22_000 + i));
    }
}

#[test]
fn accesses_of_sixteen_bytes() {
    let small = "m_s=8,n_s=8,m_l=64,n_l=64,u=16,k_l=1,k_s=1,k_g=1,split=ordered,raster=m";
    for (words, config) in [
        ("layout=nt", "vec_a=8,vec_b=8,load=nc,stages=2"),
        ("layout=tn", "vec_a=8,vec_b=8,load=global,stages=1"),
        ("layout=nt,beta=other", "vec_a=8,vec_b=8,load=async,stages=3"),
    ] {
        for dtype in ["f16", "bf16"] {
            let input = input(&format!("m=128,n=72,k=80,dtype={dtype},acc=f32,out={dtype},{words}"));
            let plan = plan("sm_80", &input, &format!("{small},{config},vec_c=8,bounds=checked"));
            check("sm_80", &input, &plan, Filling::Real, 5);
            counts::check(&input, &plan, Shares::LeftOut);
        }
    }
}

#[test]
fn complex_numbers() {
    (0..80u64).into_par_iter().for_each(|i| {
        let words = format!("dtype={}", ["c32", "c64"][i as usize % 2]);
        check_any_on(TARGETS[i as usize / 2 % 7], &words, "", 23_000 + i);
    });
}

#[test]
fn complex_numbers_in_every_layout_however_they_are_loaded_and_summed() {
    let configs = ["", "k_g=2,split=ordered", "k_g=3,split=atomic", "load=async", "k_l=2,k_s=2"];
    let mut cases = Vec::new();
    for dtype in ["c32", "c64"] {
        for layout in Layout::EVERY {
            for config in configs {
                cases.push((format!("dtype={dtype},layout={layout},k=70,alpha=other"), config));
            }
        }
    }
    let cases: Vec<(u64, (String, &str))> = (24_000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| check_any_on("sm_80", words, config, *seed));
}

#[test]
fn complex_numbers_that_are_aligned_as_their_components_are_refused() {
    for (dtype, align) in [("c32", 4), ("c64", 8)] {
        let of = |align: usize| SimtGemm::new().accepts(&input(&format!("m=8,n=8,k=8,dtype={dtype},align={align}")));
        assert_eq!(of(align).unwrap_err().field, "align");
        of(2 * align).unwrap();
    }
}

#[test]
fn epilogues() {
    let [half, bfloat] = [&HALVES[..2], &HALVES[2..]];
    let types = [&["dtype=f32", "dtype=f64"], half, bfloat, &PAIRS, &["dtype=c32", "dtype=c64"]].concat();
    let mut cases = Vec::new();
    for (i, types) in types.into_iter().enumerate() {
        for bias in ["none", "row", "column"] {
            for activation in ["none", "relu"] {
                if (bias, activation) == ("none", "none") || (i > 7 && activation == "relu") {
                    continue;
                }
                for more in ["", "beta=other,alpha=other", "k=0,beta=1", "alpha=0,beta=other", "batch=3,beta=1"] {
                    cases.push((format!("{types},bias={bias},activation={activation},{more}"), ""));
                }
                cases.push((format!("{types},bias={bias},activation={activation},k=80"), "k_g=2,split=ordered"));
                cases.push((
                    format!("{types},bias={bias},activation={activation},k=80,beta=other"),
                    "k_g=2,split=ticket",
                ));
                cases
                    .push((format!("{types},bias={bias},activation={activation},k=80,batch=2"), "k_g=3,split=ordered"));
            }
        }
    }
    let cases: Vec<(u64, (String, &str))> = (25_000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| {
        check_any_on("sm_80", words.trim_end_matches(','), config, *seed);
    });
}

#[test]
fn counts_of_every_type_and_epilogue() {
    let types = [&HALVES[..], &["dtype=c32", "dtype=c64"], &PAIRS].concat();
    let more = ["", ",bias=row", ",bias=column", ""];
    let configs = ["", "k_g=2,split=ordered", "load=async", "k_l=2", "k_g=2,split=atomic", "k_g=2,split=ticket"];
    (0..192u64).into_par_iter().for_each(|i| {
        let at = i as usize;
        let config = configs[at / 8 % 6];
        // Sums in parts are neither rounded nor finished.
        let more = if config.contains("atomic") { "" } else { more[at / 48 % 4] };
        let types = if config.contains("atomic") {
            ["dtype=c32", HALVES[3], "dtype=c64", PAIRS[1]][at % 4]
        } else {
            types[at % 8]
        };
        let (input, plan) = any("sm_80", &format!("{types}{more}"), config, 26_000 + i);
        counts::check(&input, &plan, Shares::LeftOut);
    });
}
