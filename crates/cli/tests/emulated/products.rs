//! Random and awkward products: results against the reference, and nothing that the emulator objects to.

use crate::counts::{self, Shares};
use crate::stand::{any_plan, check, device, input, plan, rng, run};
use rand::Rng;
use rayon::prelude::*;
use tilewright_core::buffer::{Buffer, Filling, Workload};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::dtype::DType;
use tilewright_core::kernel::Kernel;
use tilewright_core::space::Config;
use tilewright_ops::gemm::{A, B, C, Gemm, GemmInput};
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm};

const TARGETS: [&str; 7] = ["sm_50", "sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120"];
const FILLINGS: [Filling; 3] = [Filling::Real, Filling::Exact, Filling::Special];

/// A random plan for a random awkward input, with words and parameters that are given.
pub(crate) fn any(target: &str, words: &str, config: &str, seed: u64) -> (GemmInput, GemmPlan) {
    let mut rng = rng(seed);
    let fixed = Config::parse(words).unwrap();
    let limits = InputLimits { max_flops: 3e5, max_bytes: 1e6 };
    for _ in 0..200 {
        let input = Gemm.draw_awkward(&fixed, &limits, &mut || rng.random()).unwrap();
        // Complex numbers that are aligned as their components are refused.
        let plan = SimtGemm::new().accepts(&input).ok().and_then(|()| any_plan(target, &input, config, &mut rng));
        if let Some(plan) = plan {
            return (input, plan);
        }
    }
    panic!("nothing legal with {words} and {config} for {target}");
}

fn check_any(words: &str, config: &str, seed: u64) {
    // Atomic additions of f64 and asynchronous copies came later.
    let targets = if config.is_empty() { &TARGETS[..] } else { &TARGETS[3..] };
    check_any_on(targets[seed as usize % targets.len()], words, config, seed);
}

/// Checks a random plan for a random awkward input on a target.
pub(crate) fn check_any_on(target: &str, words: &str, config: &str, seed: u64) {
    let (input, plan) = any(target, words, config, seed);
    check(target, &input, &plan, FILLINGS[seed as usize % 3], seed);
}

#[test]
fn random_plans_are_right_in_single_precision() {
    (0..60u64).into_par_iter().for_each(|seed| check_any("dtype=f32", "", seed));
}

#[test]
fn random_plans_are_right_in_double_precision() {
    (100..160u64).into_par_iter().for_each(|seed| check_any("dtype=f64", "", seed));
}

#[test]
fn small_tiles_on_awkward_sizes() {
    // Most of a block is beyond the edge, and vectors end with the matrix.
    let sizes = ["m=1,n=1,k=1", "m=1,n=16,k=3", "m=15,n=1,k=129", "m=3,n=5,k=0", "m=7,n=9,k=2", "m=4,n=4,k=4"];
    let cases: Vec<(usize, u64)> = (0..sizes.len()).flat_map(|i| (0..10).map(move |seed| (i, seed))).collect();
    cases.into_par_iter().for_each(|(i, seed)| check_any(sizes[i], "", 1000 + 10 * i as u64 + seed));
}

#[test]
fn split_reductions_with_every_scalar_and_layout() {
    let mut cases = Vec::new();
    for layout in ["nn", "nt", "tn", "tt"] {
        for beta in ["0", "1", "other"] {
            let tickets = ["k_g=2,split=ticket", "k_g=3,k_l=2,split=ticket"];
            let others = ["k_g=2,split=ordered", "k_g=5,split=atomic", "k_g=3,k_l=2,split=ordered", "k_l=4,k_s=2"];
            for config in tickets.into_iter().chain(others) {
                cases.push((format!("layout={layout},beta={beta},alpha=other,k=70"), config));
            }
        }
    }
    let cases: Vec<(u64, (String, &str))> = (5000..).zip(cases).collect();
    cases.par_iter().for_each(|(seed, (words, config))| check_any(words, config, *seed));
}

#[test]
fn asynchronous_copies_in_every_depth() {
    let configs = ["load=async,stages=2", "load=async,stages=3", "load=async,stages=4", "load=async,stages=5"];
    let cases: Vec<u64> = (0..24).collect();
    cases.par_iter().for_each(|i| check_any("k=90", configs[*i as usize % 4], 7000 + i));
}

/// Of one operand, of the other and of both: right, nothing that the emulator objects to, and counted as they run.
#[test]
fn tiles_that_stay_contiguous_along_the_reduction() {
    let kinds = [
        ("layout=nn,k=92", "load=async,vec_b=4"),
        ("layout=tt,k=92", "load=async,vec_a=4"),
        ("layout=tn,k=130", "load=async,vec_a=2,vec_b=2"),
        ("layout=tn,k=92", "load=async,vec_a=4,vec_b=4"),
        ("layout=tn,k=200", "load=async,vec_a=4,k_l=2,stages=3"),
    ];
    let cases: Vec<(usize, u64)> = (0..kinds.len()).flat_map(|i| (0..8).map(move |seed| (i, seed))).collect();
    cases.into_par_iter().for_each(|(i, seed)| {
        let ((words, config), target) = (kinds[i], TARGETS[3 + seed as usize % 4]);
        let seed = 9000 + 10 * i as u64 + seed;
        let (input, plan) = any(target, &format!("{words},dtype=f32,align=16"), config, seed);
        check(target, &input, &plan, FILLINGS[seed as usize % 3], seed);
        if target == "sm_80" {
            counts::check(&input, &plan, Shares::LeftOut);
        }
    });
}

/// Of every type and both layouts of A: right, nothing that the emulator objects to, and counted as they run.
#[test]
fn rows_that_go_straight_to_registers() {
    let kinds = [
        ("layout=nn,n=16,k=92,dtype=f32", "vec_a=4"),
        ("layout=nt,n=7,dtype=f32", "k_l=2"),
        ("layout=tn,n=24,k=130,dtype=f32", "vec_a=2"),
        ("layout=tt,n=16,k=200,dtype=f32", "vec_a=4,k_l=2"),
        ("layout=tn,n=13,k=92,dtype=f64", "stages=2"),
        ("layout=nn,n=16,k=131,dtype=c32", "k_g=2,split=ticket"),
        ("layout=ct,n=5,dtype=c64", ""),
        ("layout=tn,n=31,k=70,dtype=bf16", "vec_a=1"),
        ("layout=nn,n=8,k=64,dtype=f16,acc=f32", "vec_a=8"),
        ("layout=tn,n=9,k=66,dtype=c32", "vec_a=2"),
        ("layout=nn,m=64,n=16,k=96,dtype=f32", "bounds=whole"),
    ];
    let cases: Vec<(usize, u64)> = (0..kinds.len()).flat_map(|i| (0..8).map(move |seed| (i, seed))).collect();
    cases.into_par_iter().for_each(|(i, seed)| {
        let ((words, config), target) = (kinds[i], TARGETS[2 + seed as usize % 5]);
        let seed = 9100 + 10 * i as u64 + seed;
        let (input, plan) = any(target, &format!("{words},align=16"), &format!("load=straight,{config}"), seed);
        check(target, &input, &plan, FILLINGS[seed as usize % 3], seed);
        if target == "sm_80" {
            counts::check(&input, &plan, Shares::LeftOut);
        }
    });
}

#[test]
fn ordered_sums_leave_the_same_bytes_however_blocks_are_scheduled() {
    for (words, config) in [
        ("m=40,n=24,k=300,beta=other", "k_g=6,split=ordered"),
        ("m=33,n=21,k=257,dtype=f64,layout=tt,beta=1,batch=2", "k_g=4,split=ordered"),
        ("m=64,n=32,k=256,layout=nt", "k_g=8,split=ordered,k_l=2"),
        ("m=40,n=24,k=300,beta=other", "k_g=6,split=ticket"),
        ("m=65,n=33,k=257,dtype=f64,layout=tt,beta=1", "k_g=4,split=ticket,k_l=2"),
    ] {
        let input = input(words);
        let program = any_plan("sm_80", &input, config, &mut rng(9)).unwrap().program([0; 3]);
        let work = Gemm.workload(&input, Filling::Real, 5);
        let bytes = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&mut device("sm_80"), &program, &work, words))[C].bytes().to_vec()
        };
        let first = bytes(1);
        for threads in [2, 3, 7] {
            assert!(first == bytes(threads), "{words}, {config}: {threads} threads leave other bytes");
        }
    }
}

#[test]
fn nothing_is_multiplied_where_alpha_is_0() {
    for (words, filled) in [("alpha=0,beta=0", 0.0), ("alpha=0,beta=1", 2.5), ("alpha=0,beta=other", 0.75 * 2.5)] {
        for dtype in ["f32", "f64"] {
            let input = input(&format!("m=19,n=23,k=31,dtype={dtype},{words}"));
            let mut work = Gemm.workload(&input, Filling::Real, 1);
            for (operand, value) in [(A, f64::NAN), (B, f64::INFINITY), (C, 2.5)] {
                (0..work.buffers[operand].len()).for_each(|i| work.buffers[operand].set_f64(i, value));
            }
            let after = run(&mut device("sm_70"), &plan("sm_70", &input, "").program([0; 3]), &work, words);
            assert!((0..after[C].len()).all(|i| after[C].get_f64(i) == filled), "{words}: {}", after[C].get_f64(0));
        }
    }
}

#[test]
fn what_is_not_finite_spreads_as_in_blas() {
    // One NaN in A reaches its row of C, an infinity in B its column, also where they meet zeros, tiles end and slices do.
    for config in
        ["", "k_g=3,split=ordered", "k_g=3,split=atomic", "k_g=3,split=ticket", "k_l=2", "load=async,stages=3"]
    {
        let (seed, words) = (11, "m=37,n=29,k=150,layout=nt,beta=0");
        let (input, mut work) = (input(words), Gemm.workload(&input(words), Filling::Exact, 2));
        (0..work.buffers[B].len()).for_each(|i| work.buffers[B].set_f64(i, 0.0));
        let nan = 36 + 149 * input.lda;
        work.buffers[A].set_f64(nan, f64::NAN);
        work.buffers[B].set_f64(28 + 77 * input.ldb, f64::INFINITY);
        work.buffers[A].set_f64(5 + 77 * input.lda, 0.0);
        let plan = any_plan("sm_80", &input, config, &mut rng(seed)).unwrap();
        let after = run(&mut device("sm_80"), &plan.program([0; 3]), &work, config);
        for (j, i) in (0..input.n).flat_map(|j| (0..input.m).map(move |i| (j, i))) {
            let (found, a) = (after[C].get_f64(i + j * input.ldc), work.buffers[A].get_f64(i + 77 * input.lda));
            match (i, j) {
                (36, _) => assert!(found.is_nan(), "{config}: row of NaN at column {j}: {found}"),
                (_, 28) if a == 0.0 => assert!(found.is_nan(), "{config}: zero times infinity in row {i}: {found}"),
                (_, 28) => assert_eq!(found, a * f64::INFINITY, "{config}: row {i}"),
                _ => assert_eq!(found, 0.0, "{config}: row {i}, column {j}"),
            }
        }
    }
}

#[test]
fn operands_may_begin_within_their_buffers() {
    for (words, config) in [
        ("m=32,n=16,k=40,align=16", "vec_a=4,load=nc"),
        ("m=31,n=17,k=41,dtype=f64,layout=tt,beta=1", "k_g=2,split=ordered"),
        ("m=24,n=40,k=64,layout=tn,beta=other", "k_g=2,split=atomic"),
    ] {
        let input = input(words);
        let work = Gemm.workload(&input, Filling::Exact, 4);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        let plan = any_plan("sm_80", &input, config, &mut rng(3)).unwrap();
        // Elements that keep the alignment of the input.
        let shifts = [64, 128, 16];
        let program = plan.program(shifts.map(|s| s * input.dtype().size() as u64));
        let mut after = run(&mut device("sm_80"), &program, &shifted(&work, shifts), words);
        let size = input.dtype().size();
        let mut whole = work.buffers.clone();
        for ((operand, whole), shift) in after.iter_mut().zip(&mut whole).zip(shifts) {
            whole.bytes_mut().copy_from_slice(&operand.bytes()[shift as usize * size..]);
        }
        let verdict = expected.compare(&whole);
        assert!(verdict.is_right(), "{words}, {config}: {:?}", verdict.first);
        let front = (0..16).all(|i| after[C].get_f64(i) == -7.0);
        assert!(front, "{words}, {config}: what stands before C was written");
    }
}

/// The same data behind so many elements of something else.
fn shifted(work: &Workload, shifts: [u64; 3]) -> Workload {
    let mut out = work.clone();
    for ((spec, buffer), shift) in out.specs.iter_mut().zip(&mut out.buffers).zip(shifts) {
        let shift = shift as usize;
        let old = std::mem::replace(buffer, Buffer::zeroed(buffer.dtype(), buffer.len() + shift));
        (0..shift).for_each(|i| buffer.set_f64(i, -7.0));
        let bytes = shift * DType::size(old.dtype());
        buffer.bytes_mut()[bytes..].copy_from_slice(old.bytes());
        spec.len += shift;
    }
    out
}
