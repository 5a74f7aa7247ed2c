//! `tilewright space`: how large the legal space is, how samplers fare in it, what rejects.

mod bacugen;
mod counted;
mod t1;

use crate::args::SpaceArgs;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, seconds};
use crate::wiring::Wiring;
use crate::words;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;
use tilewright_core::space::{BoundSpace, Config, ParamSpace};
use tilewright_sampler::{Acceptance, LegalSet, Settings, compare};

/// Accepted samples that the generative models learn from before they are judged.
const LEARN: u64 = 60_000;

#[derive(Serialize)]
struct Answer {
    kernel: String,
    input: Config,
    cartesian: f64,
    legal: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_by: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptance: Option<Sampled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samplers: Option<Vec<counted::Record>>,
}

#[derive(Serialize)]
struct Sampled {
    samples: u32,
    uniform: f64,
    categorical: f64,
    chained: f64,
}

pub(crate) fn run(args: &SpaceArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    if let Some(path) = &args.t1 {
        return t1::run(args, path, seed, output);
    }
    let name = args.kernel.as_deref().unwrap_or_default();
    if name == "bacugen" {
        return bacugen::run(args, seed, output);
    }
    let kernel = wiring.kernel(name, &args.device)?;
    let spec = wiring.spec(&args.device)?;
    let problem = wiring.problem(kernel, &spec, &words::parse(&args.input)?)?;
    let space = problem.space();
    let start = Instant::now();
    let legal = space.count_legal();
    let took = start.elapsed().as_secs_f64();
    let rejected_by = args.why.then(|| rejections(space));
    let sampled = args.sample.filter(|_| legal > 0);
    let acceptance = sampled.map(|n| sample(kernel.space(), space, n, seed)).transpose()?;
    let samplers = sampled.and_then(|n| beside(kernel.space(), space, n, seed).transpose()).transpose()?;
    if let Some(path) = &args.list {
        list(space, path).map_err(|e| Failure::new(Kind::Store, &path.display().to_string(), e))?;
    }
    if legal == 0 {
        return Err(Failure::nothing_legal(space));
    }
    let answer = Answer {
        kernel: problem.kernel().to_string(),
        input: problem.input(),
        cartesian: space.cartesian() as f64,
        legal,
        seconds: took,
        rejected_by,
        acceptance,
        samplers,
    };
    output.answer(&answer, || text(&answer))
}

fn rejections(space: &BoundSpace) -> BTreeMap<String, u64> {
    let count = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    space.census().rejected_by.into_iter().map(|(rule, n)| (rule, count(n))).collect()
}

fn sample(params: &ParamSpace, space: &BoundSpace, n: u32, seed: u64) -> Result<Sampled, Failure> {
    let found = compare(params, space, Settings::default(), (LEARN, n.into()), seed)
        .map_err(|e| Failure::new(Kind::Nothing, "sample", e))?;
    let rate = |a: &Acceptance| a.rate();
    Ok(Sampled {
        samples: n,
        uniform: rate(&found.uniform),
        categorical: rate(&found.categorical),
        chained: rate(&found.chained),
    })
}

/// The samplers side by side; none for a space too entangled to count.
fn beside(params: &ParamSpace, space: &BoundSpace, n: u32, seed: u64) -> Result<Option<Vec<counted::Record>>, Failure> {
    let set = match LegalSet::of(space) {
        Ok(set) => set,
        Err(e) => {
            tracing::warn!("samplers are not compared: {e}");
            return Ok(None);
        }
    };
    counted::samplers((params, space), &set, n, LEARN, seed).map(Some)
}

fn list(space: &BoundSpace, path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let names: Vec<&str> = space.params().iter().map(|p| p.name.as_str()).collect();
    writeln!(file, "{}", names.join(","))?;
    let mut result = Ok(());
    space.for_each_legal(|point| {
        let cells: Vec<String> = space.values(point).map(ToString::to_string).collect();
        result = writeln!(file, "{}", cells.join(","));
        result.is_ok()
    });
    result?;
    file.flush()
}

fn text(answer: &Answer) -> String {
    let mut out = format!(
        "{} for {}\n{} legal of {:.3e} configurations, counted in {}\n",
        answer.kernel,
        answer.input,
        answer.legal,
        answer.cartesian,
        seconds(answer.seconds)
    );
    if let Some(s) = &answer.acceptance {
        let percent = |x: f64| format!("{:.2}%", 100.0 * x);
        let rows = [("uniform", s.uniform), ("categorical (ISAAC)", s.categorical), ("chained", s.chained)];
        let rows: Vec<Vec<String>> = rows.iter().map(|(n, x)| vec![(*n).to_owned(), percent(*x)]).collect();
        let _ = write!(out, "\naccepted of drawn candidates, {} samples:\n{}", s.samples, aligned(&rows));
    }
    if let Some(records) = &answer.samplers {
        let _ = write!(out, "\n{}", counted::text_of(records));
    }
    if let Some(rejected) = &answer.rejected_by {
        let mut rows: Vec<(&String, &u64)> = rejected.iter().collect();
        rows.sort_by(|a, b| b.1.cmp(a.1));
        let rows: Vec<Vec<String>> = rows.iter().map(|(n, c)| vec![(*n).clone(), c.to_string()]).collect();
        let _ = write!(out, "\nconfigurations rejected first by a rule:\n{}", aligned(&rows));
    }
    out
}
