//! Random and awkward convolutions of every direction: results against the reference, and nothing that the emulator objects to.

use crate::stand::{device, rng, spec};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Filling};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::Program;
use tilewright_core::space::{Config, Point};
use tilewright_ops::conv::{Conv, ConvInput, Y};
use tilewright_ptxgen::conv::{DirectConv, SimtConv, WinogradConv};
use tilewright_testkit::{Effort, kernel};

const TARGETS: [&str; 7] = ["sm_50", "sm_60", "sm_70", "sm_80", "sm_90", "sm_100", "sm_120"];
const FILLINGS: [Filling; 3] = [Filling::Real, Filling::Exact, Filling::Special];

pub(crate) fn input(words: &str) -> ConvInput {
    Conv.parse(&Config::parse(words).unwrap()).unwrap()
}

/// A kernel of convolutions.
pub(crate) trait Tried: Kernel<Of = Conv> + Default {
    /// Floating-point operations of an input at most: transformations, say, cost besides.
    const MAX_FLOPS: f64 = 3e5;
}

impl Tried for SimtConv {}

impl Tried for WinogradConv {}

impl Tried for DirectConv {}

pub(crate) fn problem<K: Tried>(target: &str, input: &ConvInput) -> Bound<K> {
    Bound::new(Arc::new(K::default()), spec(target), input.clone()).unwrap()
}

/// A legal point, each parameter uniform among the values that the rules leave it; parameters in `fixed` as they are there.
pub(crate) fn point<K: Tried>(problem: &Bound<K>, fixed: &Config, rng: &mut ChaCha8Rng) -> Option<Point> {
    let space = problem.space();
    let mut attempt = || {
        let (mut point, mut allowed) = (Vec::new(), Vec::new());
        for param in space.params() {
            space.next_values(&point, &mut allowed);
            let wanted = fixed.get(&param.name).map(|v| param.index_of(v).unwrap());
            allowed.retain(|i| wanted.is_none_or(|w| w == *i));
            point.push(*allowed.get(rng.random_range(0..allowed.len().max(1)))?);
        }
        Some(Point(point))
    };
    (0..300).find_map(|_| attempt())
}

fn run(target: &str, program: &Program, input: &ConvInput, before: &Buffers, what: &str) -> Buffers {
    let mut device = device(target);
    let work =
        tilewright_core::buffer::Workload { specs: Conv.buffers(input), buffers: before.clone(), scalars: Vec::new() };
    device.upload(&Data::Given(Arc::new(work))).unwrap_or_else(|e| panic!("{what}: {e}"));
    device.run(program).unwrap_or_else(|e| panic!("{what}: {e}"));
    device.read().unwrap()
}

/// A random plan for a random awkward input, with words and parameters that are given.
pub(crate) fn drawn<K: Tried>(
    target: &str,
    words: &str,
    config: &str,
    rng: &mut ChaCha8Rng,
) -> (ConvInput, Bound<K>, Point) {
    let (fixed, parameters) = (Config::parse(words).unwrap(), Config::parse(config).unwrap());
    let limits = InputLimits { max_flops: K::MAX_FLOPS, max_bytes: 1e6 };
    let drawn = (0..200).find_map(|_| {
        let input = Conv.draw_awkward(&fixed, &limits, &mut || rng.random()).ok()?;
        K::default().accepts(&input).ok()?;
        let problem = problem::<K>(target, &input);
        let point = point(&problem, &parameters, rng)?;
        Some((input, problem, point))
    });
    drawn.unwrap_or_else(|| panic!("nothing legal with {words} and {config}"))
}

/// Runs a random plan.
fn check_any<K: Tried>(words: &str, config: &str, seed: u64) {
    let mut rng = rng(seed);
    // Asynchronous copies came with sm_80.
    let targets = if config.is_empty() { &TARGETS[..] } else { &TARGETS[3..] };
    let target = targets[seed as usize % targets.len()];
    let (input, problem, point) = drawn::<K>(target, words, config, &mut rng);
    let filling = problem.checked_on(FILLINGS[seed as usize % 3]);
    let what = format!("{target}, {}, {}, {filling:?}", Conv.fields(&input), problem.space().config(&point));
    let work = Conv.workload(&input, filling, seed);
    let program = problem.program(&problem.space().check(&point).unwrap());
    let after = run(target, &program, &input, &work.buffers, &what);
    let verdict = Conv.compare(&input, &work.buffers, &[], &after).unwrap();
    assert!(verdict.is_right(), "{what}: {} wrong, the first {:?}", verdict.wrong, verdict.first);
}

#[test]
fn random_plans_are_right_in_every_direction_layout_and_precision() {
    let mut cases = Vec::new();
    for direction in ["forward", "data", "filter"] {
        for layout in ["nchw", "nhwc"] {
            for dtype in ["f32", "f64", "f16", "bf16"] {
                cases.push(format!("direction={direction},layout={layout},dtype={dtype}"));
            }
        }
    }
    let cases: Vec<(u64, &String)> = (0..).zip(cases.iter().cycle().take(24 * 15)).collect();
    cases.into_par_iter().for_each(|(seed, words)| check_any::<SimtConv>(words, "", seed));
}

#[test]
fn every_way_of_loading_and_of_splitting_the_reduction() {
    // Elements of 16 bits are copied asynchronously in pairs at least, which few inputs have along positions.
    let pairs = "dtype=f16,direction=filter,layout=nhwc,n=4";
    let configs = [
        ("", "load=async,stages=2"),
        ("", "load=async,stages=3,scan=steps"),
        ("", "load=async,stages=4"),
        ("", "c_g=3"),
        ("", "c_g=2,c_l=4"),
        ("", "c_l=2,c_s=2"),
        ("", "scan=steps,stages=2"),
        ("", "vec_f=2"),
        ("", "vec_g=2"),
        ("", "vec_f=4"),
        (pairs, "load=async,stages=3"),
        ("dtype=f16,layout=nhwc", "scan=steps,vec_g=8"),
        ("dtype=bf16,layout=nhwc", "vec_f=8"),
        ("dtype=f16", "c_g=2,c_l=2"),
    ];
    let cases: Vec<(u64, (&str, &str))> = (5000..).zip(configs.into_iter().cycle().take(140)).collect();
    cases.into_par_iter().for_each(|(seed, (words, config))| check_any::<SimtConv>(words, config, seed));
}

#[test]
fn positions_that_no_tap_meets_are_zeros() {
    // Strides above the filter, with and without slices.
    for (words, config) in [
        ("n=2,c=3,h=11,w=9,k=40,r=2,stride=3,direction=data", ""),
        ("n=1,c=4,h=17,k=300,r=1,stride=4,direction=data,layout=nhwc", "c_g=3"),
    ] {
        for seed in 0..6 {
            check_any::<SimtConv>(words, config, 9000 + seed);
        }
    }
}

#[test]
fn ordered_sums_leave_the_same_bytes_however_blocks_are_scheduled() {
    let input = input("n=2,c=40,h=9,k=12,r=3,pad=1,bias=1");
    let problem = problem::<SimtConv>("sm_80", &input);
    let point = point(&problem, &Config::parse("c_g=4").unwrap(), &mut rng(3)).unwrap();
    let program = problem.program(&problem.space().check(&point).unwrap());
    let work = Conv.workload(&input, Filling::Real, 5);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run("sm_80", &program, &input, &work.buffers, "slices"))[Y].bytes().to_vec()
    };
    let first = bytes(1);
    for threads in [2, 5] {
        assert!(first == bytes(threads), "{threads} threads leave other bytes");
    }
}

#[test]
fn few_channels_are_right_in_every_direction_layout_and_precision() {
    let mut cases = Vec::new();
    for direction in ["forward", "data"] {
        for layout in ["nchw", "nhwc"] {
            for dtype in ["f32", "f64"] {
                cases.push(format!("direction={direction},layout={layout},dtype={dtype}"));
            }
        }
    }
    // Of inputs that are drawn most have more channels, and few have groups.
    cases.push("c=3,direction=forward,groups=1".to_owned());
    cases.push("c=12,k=12,groups=12,direction=data,layout=nhwc".to_owned());
    cases.push("c=6,k=12,groups=6,direction=forward,layout=nhwc".to_owned());
    let configs = ["", "filters=shared", "filters=global", "q_s=4", "q_s=8"];
    let cases: Vec<(u64, &String)> = (30_000..).zip(cases.iter().cycle().take(165)).collect();
    cases.into_par_iter().for_each(|(seed, words)| {
        check_any::<DirectConv>(words, configs[seed as usize / 11 % configs.len()], seed);
    });
    let groups = "c=12,k=24,groups=12,direction=forward,layout=nhwc";
    (31_000..31_020).into_par_iter().for_each(|seed| check_any::<DirectConv>(groups, "scan=groups", seed));
}

#[test]
fn the_direct_convolution_keeps_its_contract() {
    let inputs = [
        "n=2,c=5,h=9,w=7,k=6,r=3,s=2,pad=1,bias=1,residual=1,activation=relu",
        "n=1,c=8,h=8,k=8,r=3,stride=2,direction=data,layout=nhwc,dtype=f64",
        "n=1,c=6,h=5,k=6,r=3,groups=6,layout=nhwc,align=4",
        "n=1,c=3,h=11,w=9,k=4,r=2,stride=3,direction=data",
        "n=1,c=0,h=4,k=3,r=1,bias=1",
        "n=0,c=2,h=4,k=3,r=3,dtype=f64",
    ];
    for target in ["sm_50", "sm_90"] {
        let effort = Effort { probes: 300, runs: 4, repeatable: true, seed: 3 };
        kernel(&Arc::new(DirectConv::new()), &mut device(target), &inputs.map(input), &effort).unwrap();
    }
}

/// What Winograd's filtering takes.
const SQUARES: &str = "r=3,s=3,stride=1,dilation=1";

#[test]
fn winograds_are_right_in_every_direction_layout_and_precision() {
    let mut cases = Vec::new();
    for direction in ["forward", "data"] {
        for layout in ["nchw", "nhwc"] {
            for dtype in ["f32", "f64"] {
                cases.push(format!("{SQUARES},direction={direction},layout={layout},dtype={dtype}"));
            }
        }
    }
    // Groups are few among the inputs that are drawn.
    cases.push(format!("{SQUARES},groups=3,direction=forward"));
    cases.push(format!("{SQUARES},groups=2,direction=data,layout=nhwc"));
    let configs = ["side=2", "side=4", "", "load=async", "side=4,bounds=whole"];
    let cases: Vec<(u64, &String)> = (20_000..).zip(cases.iter().cycle().take(100)).collect();
    cases.into_par_iter().for_each(|(seed, words)| {
        check_any::<WinogradConv>(words, configs[seed as usize / 10 % configs.len()], seed);
    });
}

#[test]
fn winograds_convolution_keeps_its_contract() {
    let inputs = [
        "n=2,c=9,h=9,w=7,k=6,r=3,pad=1,bias=1,residual=1,activation=relu",
        "n=1,c=8,h=8,k=8,r=3,pad=2,direction=data,layout=nhwc,dtype=f64",
        "n=1,c=6,h=5,k=6,r=3,groups=6,layout=nhwc,align=4",
        "n=0,c=2,h=4,k=3,r=3,dtype=f64",
    ];
    for target in ["sm_50", "sm_90"] {
        let effort = Effort { probes: 300, runs: 4, repeatable: true, seed: 3 };
        kernel(&Arc::new(WinogradConv::new()), &mut device(target), &inputs.map(input), &effort).unwrap();
    }
}

#[test]
fn the_kernel_keeps_its_contract() {
    let inputs = [
        "n=2,c=5,h=9,w=7,k=6,r=3,s=2,pad=1,bias=1,residual=1,activation=relu",
        "n=1,c=8,h=8,k=8,r=3,stride=2,direction=data,layout=nhwc,dtype=f64",
        "n=3,c=4,h=6,k=8,r=3,pad=2,direction=filter,groups=2",
        "n=1,c=6,h=5,k=6,r=3,groups=6,layout=nhwc,align=4",
        "n=1,c=0,h=4,k=3,r=1,bias=1",
        "n=0,c=2,h=4,k=3,r=3,direction=filter,dtype=f64",
        "n=2,c=8,h=6,k=8,r=3,pad=1,layout=nhwc,dtype=f16,bias=1,residual=1",
        "n=1,c=6,h=5,k=6,r=3,direction=data,dtype=bf16,out=f32",
    ];
    for target in ["sm_50", "sm_90"] {
        let effort = Effort { probes: 300, runs: 4, repeatable: true, seed: 3 };
        kernel(&Arc::new(SimtConv::new()), &mut device(target), &inputs.map(input), &effort).unwrap();
    }
}
