//! The counts of generated convolutions are the emulator's dynamic counts, exactly.

use crate::convolutions::{drawn, input, problem};
use crate::counts::{Shares, counted_and_run, emulated, triples};
use crate::stand::rng;
use rayon::prelude::*;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_ops::conv::{Conv, ConvInput};
use tilewright_ptxgen::conv::SimtConv;

fn check(input: &ConvInput, problem: &Bound<SimtConv>, point: &Point) {
    let what = format!("{}, {}", Conv.fields(input), problem.space().config(point));
    let legal = problem.space().check(point).unwrap();
    let counts = problem.plan(&legal).count().unwrap_or_else(|e| panic!("{what}: {e}"));
    let ran = emulated(&problem.program(&legal), &Conv.workload(input, Filling::Exact, 1), &what);
    counted_and_run(&counts, &Conv.fields(input), &ran, Shares::LeftOut, &what);
}

fn random(seed: u64) {
    let [direction, layout, dtype, config] = [
        ["forward", "data", "filter"][seed as usize % 3],
        ["nchw", "nhwc"][seed as usize / 3 % 2],
        ["f32", "f16", "f64", "bf16"][seed as usize / 6 % 4],
        ["", "c_g=2", "load=async", "", "scan=steps", "c_l=2", "stages=1"][seed as usize % 7],
    ];
    // Elements of 16 bits are copied asynchronously in pairs at least, which few inputs have.
    let dtype = if config == "load=async" { "f32" } else { dtype };
    let words = format!("direction={direction},layout={layout},dtype={dtype}");
    let (input, problem, point) = drawn("sm_80", &words, config, &mut rng(seed));
    check(&input, &problem, &point);
}

#[test]
fn random_convolutions() {
    (0..triples()).into_par_iter().for_each(random);
}

#[test]
fn borders() {
    for (words, config) in [
        ("n=2,c=3,h=9,w=7,k=5,r=3,s=2,pad=1", ""),
        ("n=3,c=4,h=11,k=8,r=3,stride=2,pad_h=2,layout=nhwc", ""),
        ("n=1,c=6,h=10,k=4,r=2,dilation=3,groups=2,direction=data,stride=2,pad=1", ""),
        ("n=2,c=5,h=8,k=6,r=3,direction=filter,pad=1,dtype=f64", ""),
        ("n=2,c=8,h=7,k=10,r=3,pad=1,dtype=f16,layout=nhwc,bias=1", ""),
        ("n=2,c=40,h=9,k=12,r=3,pad=1,bias=1,residual=1,activation=relu", "c_g=4"),
        ("n=1,c=0,h=4,k=3,r=1,bias=1", ""),
    ] {
        let input = input(words);
        let problem = problem::<SimtConv>("sm_80", &input);
        let mut fixed = Config::parse(config).unwrap();
        let default = problem.default_point().unwrap();
        fixed = if config.is_empty() { problem.space().config(&default) } else { fixed };
        let point = crate::convolutions::point(&problem, &fixed, &mut rng(1)).unwrap();
        check(&input, &problem, &point);
    }
}
