//! `tilewright verify`: random legal configurations on odd inputs, against the reference.

use crate::args::VerifyArgs;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::progress::Bar;
use crate::wiring::Wiring;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::BTreeMap;
use tilewright_core::buffer::{Filling, Verdict};
use tilewright_core::computation::InputLimits;
use tilewright_core::expr::Value;
use tilewright_core::problem::{AnyKernel, Executor, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_sampler::{Chained, Sampler, Settings};

/// Inputs stay small, so that many configurations and every kind of edge are seen.
const LIMITS: InputLimits = InputLimits { max_flops: 4e6, max_bytes: 4e6 };
/// Configurations tried on one input.
const PER_INPUT: u32 = 4;
/// Parameters whose every value is counted in the coverage; longer ones would drown it.
const MOST_VALUES: usize = 4;

#[derive(Default, Serialize)]
struct Answer {
    cases: u32,
    failed: u32,
    worst_rel_error: f64,
    /// Largest error as a fraction of its bound.
    worst_of_bound: f64,
    /// Only an emulator sees these.
    races: Option<u64>,
    out_of_bounds: Option<u64>,
    coverage: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailedCase>,
}

#[derive(Serialize)]
struct FailedCase {
    input: Config,
    config: Config,
    filling: Filling,
    message: String,
}

pub(crate) fn run(args: &VerifyArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let kernel = wiring.kernel(&args.kernel)?;
    let mut executor = wiring.executor(&args.device)?;
    let mut fixed = Config::default();
    if let Some(dtype) = &args.dtype {
        fixed.0.push(("dtype".into(), Value::parse(dtype)));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sampler = Chained::new(kernel.space(), Settings::default());
    let mut answer = Answer::default();
    let bar = Bar::counting("verify", args.cases.into());
    while answer.cases < args.cases {
        let words = kernel
            .draw(&fixed, &LIMITS, &mut || rng.random())
            .map_err(|e| Failure::new(Kind::Input, &e.field, e.message))?;
        let problem = wiring.problem(kernel, executor.spec(), &words)?;
        for _ in 0..PER_INPUT.min(args.cases - answer.cases) {
            // An input without a legal configuration is possible, and says nothing about the kernel.
            let Ok(draw) = sampler.draw(problem.space(), &mut rng) else { break };
            case(&*problem, &draw.point, &mut *executor, rng.random(), &mut answer);
            bar.set(answer.cases.into());
        }
    }
    bar.finish();
    let wrong = answer.failed;
    output.answer(&answer, || text(&answer, kernel))?;
    if wrong == 0 { Ok(()) } else { Err(Failure::new(Kind::Wrong, "cases", format!("{wrong} cases failed"))) }
}

fn case(problem: &dyn Problem, point: &Point, executor: &mut dyn Executor, seed: u64, answer: &mut Answer) {
    let filling = [Filling::Real, Filling::Exact, Filling::Special][answer.cases as usize % 3];
    answer.cases += 1;
    cover(problem, point, &mut answer.coverage);
    let message = match check(problem, point, executor, filling, seed) {
        Ok(verdict) => {
            answer.worst_rel_error = answer.worst_rel_error.max(verdict.max_rel_error);
            answer.worst_of_bound = answer.worst_of_bound.max(verdict.worst_of_bound);
            match verdict.first {
                None => return,
                Some(first) => format!("{} wrong elements, the first {first:?}", verdict.wrong),
            }
        }
        Err(message) => message,
    };
    answer.failed += 1;
    let config = problem.space().config(point);
    answer.failures.push(FailedCase { input: problem.input(), config, filling, message });
}

fn check(
    problem: &dyn Problem,
    point: &Point,
    executor: &mut dyn Executor,
    filling: Filling,
    seed: u64,
) -> Result<Verdict, String> {
    let program = problem.program(point).map_err(|e| e.to_string())?;
    let work = problem.workload(filling, seed);
    let expected = problem.reference(&work.buffers, &work.scalars);
    let mut loaded = executor.prepare(&program, &work).map_err(|e| e.to_string())?;
    loaded.run().map_err(|e| e.to_string())?;
    let after = loaded.read().map_err(|e| e.to_string())?;
    Ok(expected.compare(&after))
}

/// Counts the values of the input's words and of the short parameters, and sizes that are odd.
fn cover(problem: &dyn Problem, point: &Point, coverage: &mut BTreeMap<String, u32>) {
    let mut count = |key: String| *coverage.entry(key).or_default() += 1;
    for (name, value) in &problem.input().0 {
        match value {
            Value::Str(word) => count(format!("{name}:{word}")),
            Value::Int(i) if matches!(name.as_str(), "m" | "n" | "k") && i % 2 == 1 => count(format!("odd {name}")),
            _ => {}
        }
    }
    for (param, value) in problem.space().params().iter().zip(problem.space().values(point)) {
        if param.values.len() <= MOST_VALUES {
            count(format!("{}:{value}", param.name));
        } else if param.name.starts_with("k_") && value.as_int() > Some(1) {
            count(format!("{}>1", param.name));
        }
    }
}

fn text(answer: &Answer, kernel: &dyn AnyKernel) -> String {
    let coverage: Vec<String> = answer.coverage.iter().map(|(k, n)| format!("{k} {n}")).collect();
    let mut out = format!(
        "{}: {} cases, {} failed; worst relative error {:.2e}, worst {:.1}% of its bound\ncovered: {}\n",
        kernel.id(),
        answer.cases,
        answer.failed,
        answer.worst_rel_error,
        100.0 * answer.worst_of_bound,
        coverage.join(", ")
    );
    for f in &answer.failures {
        out.push_str(&format!("FAILED {} with {} on {:?} data: {}\n", f.input, f.config, f.filling, f.message));
    }
    out
}
