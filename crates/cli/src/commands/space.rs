//! `tilewright space`: how large the legal space is, how samplers fare in it, what rejects.

mod bacugen;
mod counted;
mod t1;

use crate::args::SpaceArgs;
use crate::failure::Failure;
use crate::fields;
use crate::output::{Output, expect_writable};
use crate::wiring::{Wiring, open};
use counted::{Answer, list, refused, rejected_in_order, samplers};
use std::time::Instant;
use tilewright::planning::problem;
use tilewright_core::problem::Measure as _;
use tilewright_sampler::LegalSet;

/// Accepted samples that the generative models learn from before they are judged.
const LEARN: u64 = 60_000;

pub(crate) fn run(args: &SpaceArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let _list = expect_writable("list", &args.list)?;
    if let Some(path) = &args.t1 {
        return t1::run(args, path, seed, output);
    }
    let name = args.kernel.as_deref().unwrap_or_default();
    if name == "bacugen" {
        return bacugen::run(args, seed, output);
    }
    let kernel = wiring.kernel(name, &args.device)?;
    let spec = open(&args.device)?.spec().clone();
    let problem = problem(kernel, &spec, &fields::parse(&args.input)?)?;
    let space = problem.space();
    let start = Instant::now();
    let set = LegalSet::of(space).map_err(|e| refused(&e, name))?;
    let took = start.elapsed().as_secs_f64();
    if set.is_empty() {
        return Err(Failure::nothing_legal(space));
    }
    let mut answer = Answer::new(&problem.kernel().to_string(), problem.input(), &set, took);
    if args.why {
        answer.rejected_by = Some(rejected_in_order(space));
    }
    if let Some(count) = args.sample {
        answer.sampled(samplers((kernel.space(), space), &set, count, LEARN, seed)?);
    }
    if let Some(to) = &args.list {
        list(&set, to)?;
    }
    answer.print(output)
}
