//! `tilewright verify`: random legal configurations on odd inputs, against the reference.

mod cases;
mod junit;

use crate::args::VerifyArgs;
use crate::commands::contest::fixed;
use crate::described;
use crate::device::{DeviceName, named, opened};
use crate::failure::{Failure, Kind};
use crate::output::{Output, expect_writable, write};
use crate::progress::Bar;
use crate::wiring::Wiring;
use cases::{Bench, Outcome};
use rayon::ThreadPool;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;
use tilewright::device::{compilers, emulator};
use tilewright_bench_suite::cases::Cases;
use tilewright_compile::Compiling;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::Device;
use tilewright_core::expr::Value;
use tilewright_core::id::KernelId;
use tilewright_core::space::Config;
use tilewright_core::text::counted;
use tilewright_emulator::{Fault, Finding};

/// Inputs stay small, so that many configurations and every kind of edge are seen.
const LIMITS: InputLimits = InputLimits { max_flops: 4e6, max_bytes: 4e6 };

/// Thread instructions of a case of a user's kernel, about: beyond them a sample of its blocks runs.
const SAMPLE: u64 = 20_000_000;

/// Findings of one case that its failure spells out.
const SPELT_OUT: usize = 3;

#[derive(Default, Serialize)]
struct Answer {
    device: String,
    cases: u32,
    failed: u32,
    worst_rel_error: f64,
    /// Largest error as a fraction of its bound.
    worst_of_bound: f64,
    /// Only an emulator sees these.
    races: Option<u64>,
    out_of_bounds: Option<u64>,
    /// Every other fault, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_findings: Option<BTreeMap<&'static str, u64>>,
    /// Elements that are right for data within the rounding of those that were given, and not for those.
    #[serde(skip_serializing_if = "Option::is_none")]
    within_rounding: Option<u64>,
    /// Configurations that were drawn and that the device cannot launch: others took their places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlaunched: Vec<Unlaunched>,
    coverage: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailedCase>,
    #[serde(skip)]
    junit: junit::Report,
}

#[derive(Serialize)]
struct Unlaunched {
    config: Config,
    lacks: String,
}

#[derive(Serialize)]
struct FailedCase {
    kernel: KernelId,
    input: Config,
    config: Config,
    filling: Filling,
    message: String,
}

pub(crate) fn run(args: &VerifyArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let (began, _junit) = (Instant::now(), expect_writable("junit", &args.junit)?);
    let name = named(&args.device)?;
    let kernels = match &args.variant {
        Some(variant) => vec![wiring.kernels.variant(&args.kernel, Some(variant), name.kind())?],
        None => wiring.kernels.variants(&args.kernel, name.kind())?,
    };
    let fixed = fixed(args.dtype.as_ref(), &args.fields)?;
    let threads = args.device.threads.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from);
    let sampled = described::is_file(&args.kernel).then_some(seed);
    let benches = benches(&name, args.device.threads, threads.min(args.cases as usize), sampled)?;
    let (spec, elsewhere) = (benches[0].device.spec().clone(), cases::elsewhere()?);
    let mut answer = Answer { device: spec.id.clone(), ..Answer::default() };
    let cases = |kernel| Cases { kernel, spec: spec.clone(), fixed: fixed.clone(), limits: LIMITS, seed };
    let drawn = taking(kernels.iter().map(|kernel| cases(&***kernel)).collect())?;
    let names: Vec<String> = drawn.iter().map(|cases| cases.kernel.id().to_string()).collect();
    if benches.iter().any(|s| s.log.is_some()) {
        (answer.races, answer.out_of_bounds, answer.other_findings) = (Some(0), Some(0), Some(BTreeMap::new()));
    }
    for outcome in check_all((&drawn, &elsewhere), benches, args.cases) {
        answer.add(outcome?);
    }
    if let Some(to) = &args.junit {
        let xml =
            answer.junit.xml(&format!("{} on {}", names.join(", "), answer.device), began.elapsed().as_secs_f64());
        write(to, &xml)?;
    }
    let wrong = answer.failed;
    output.answer(&answer, || text(&answer, &names.join(", ")))?;
    if wrong == 0 {
        Ok(())
    } else {
        Err(Failure::new(Kind::Wrong, "cases", format!("{} failed", counted(wrong, "case"))))
    }
}

/// The cases of the kernels that take such inputs and have legal configurations for them; of a kernel that is alone whatever it takes.
fn taking(all: Vec<Cases<'_>>) -> Result<Vec<Cases<'_>>, Failure> {
    if all.len() == 1 {
        return Ok(all);
    }
    let (mut taking, mut nothing_legal, mut refused) = (Vec::new(), Vec::new(), None);
    for cases in all {
        match cases.draw(0) {
            Ok(Some(_)) => taking.push(cases),
            Ok(None) => nothing_legal.push(cases),
            Err(error) => drop(refused.get_or_insert(error)),
        }
    }
    match refused {
        _ if !taking.is_empty() => Ok(taking),
        Some(error) if nothing_legal.is_empty() => Err(error.into()),
        // The first case says so.
        _ => Ok(nothing_legal),
    }
}

/// Devices on which cases are checked beside each other, at most so many. Only the emulator has more than one: other devices
/// are in use as a whole by one case.
/// Inputs of users' kernels may be of one size, and large: with a seed for `sampled`, some of the blocks of a large grid run.
fn benches(name: &DeviceName, threads: Option<u16>, most: usize, sampled: Option<u64>) -> Result<Vec<Bench>, Failure> {
    let DeviceName::Emulator(target, behaviour) = name else {
        return Ok(vec![Bench { device: opened(name, threads)?, log: None, is_described: sampled.is_some() }]);
    };
    // With a log of its own each, so that findings go with their case.
    let bench = |_| {
        let mut device = emulator(*target, *behaviour)?.tolerant();
        if let Some(seed) = sampled {
            device = device.sampling(SAMPLE, seed);
        }
        let log = Some(device.log());
        let device = Box::new(Compiling::new(device, compilers()));
        Ok(Bench { log, device, is_described: sampled.is_some() })
    };
    (0..most.max(1)).map(bench).collect()
}

/// Checks the cases on all devices, of one kernel after the other in turns; the outcomes in the order of the cases. Ends early where a case cannot be drawn.
fn check_all(
    (drawn, elsewhere): (&[Cases<'_>], &ThreadPool),
    benches: Vec<Bench>,
    cases: u32,
) -> Vec<Result<Outcome, Failure>> {
    let bar = Bar::counting("verify", cases.into());
    let (next, done) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    let work = |mut bench: Bench| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases {
                return;
            }
            let kernels = drawn.len() as u32;
            let (of, turn) = (&drawn[(number % kernels) as usize], number / kernels);
            let outcome = cases::check(of, turn, &mut bench, elsewhere);
            if outcome.is_err() {
                next.store(cases, Ordering::Relaxed);
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((number, outcome));
            bar.set(done.len() as u64);
        }
    };
    std::thread::scope(|scope| {
        for bench in benches {
            let work = &work;
            // Blocks of an emulated grid run one after the other on a device: the cases keep the cores busy, and atomic
            // additions come in the same order every time.
            let alone = bench.log.is_some().then(|| rayon::ThreadPoolBuilder::new().num_threads(1).build());
            match alone {
                Some(Ok(pool)) => drop(scope.spawn(move || pool.install(|| work(bench)))),
                _ => work(bench),
            }
        }
    });
    bar.finish();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

impl Answer {
    fn add(&mut self, mut outcome: Outcome) {
        self.cases += 1;
        let unlaunched = std::mem::take(&mut outcome.unlaunched).into_iter();
        self.unlaunched.extend(unlaunched.map(|(config, lacks)| Unlaunched { config, lacks }));
        self.cover(&outcome);
        self.count(&outcome.findings);
        let mut complaints = Vec::new();
        match &outcome.result {
            Ok(found) => {
                self.worst_rel_error = self.worst_rel_error.max(found.max_rel_error());
                self.worst_of_bound = self.worst_of_bound.max(found.worst_of_bound());
                let within = found.checks.iter().map(|checked| checked.verdict.within_rounding).sum::<u64>();
                self.within_rounding =
                    (within > 0).then(|| self.within_rounding.unwrap_or(0) + within).or(self.within_rounding);
                complaints.extend(found.complaint());
            }
            Err(message) => complaints.push(message.clone()),
        }
        complaints.extend(outcome.findings.iter().take(SPELT_OUT).map(Finding::to_string));
        let message = (!complaints.is_empty()).then(|| complaints.join("; "));
        self.junit.add(&outcome, message.as_deref());
        let Some(message) = message else { return };
        self.failed += 1;
        let Outcome { kernel, input, config, filling, .. } = outcome;
        self.failures.push(FailedCase { kernel, input, config, filling, message });
    }

    fn count(&mut self, findings: &[Finding]) {
        for finding in findings {
            let counter = match &finding.fault {
                Fault::Race { .. } => self.races.get_or_insert(0),
                Fault::OutOfBounds { .. } => self.out_of_bounds.get_or_insert(0),
                other => self.other_findings.get_or_insert_default().entry(other.name()).or_default(),
            };
            *counter += finding.count;
        }
    }

    /// Counts what the input is an example of, every value of every parameter, and what split reductions meet with.
    fn cover(&mut self, outcome: &Outcome) {
        let mut count = |key: String| *self.coverage.entry(key).or_default() += 1;
        count(format!("variant:{}", outcome.kernel));
        count(format!("data:{:?}", outcome.filling).to_lowercase());
        if outcome.repeated {
            count("repeated bit by bit".to_owned());
        }
        outcome.aspects.iter().for_each(|aspect| count(aspect.clone()));
        outcome.config.0.iter().for_each(|(name, value)| count(format!("{name}:{value}")));
        let split = |(name, value): &&(String, Value)| name.starts_with("k_") && value.as_int() > Some(1);
        for (name, _) in outcome.config.0.iter().filter(split) {
            count(format!("{name}>1"));
            let words = outcome.config.0.iter().filter(|(_, v)| v.as_str().is_some());
            words.for_each(|(word, value)| count(format!("{name}>1 {word}:{value}")));
            outcome.aspects.iter().filter(|a| a.starts_with("beta")).for_each(|a| count(format!("{name}>1 {a}")));
        }
    }
}

fn text(answer: &Answer, kernels: &str) -> String {
    let coverage: Vec<String> = answer.coverage.iter().map(|(k, n)| format!("{k} {n}")).collect();
    let mut out = format!(
        "{} on {}: {}, {} failed; worst relative error {:.2e}, worst {:.1}% of its bound\n",
        kernels,
        answer.device,
        counted(answer.cases, "case"),
        answer.failed,
        answer.worst_rel_error,
        100.0 * answer.worst_of_bound,
    );
    if let (Some(races), Some(out_of_bounds), Some(others)) =
        (answer.races, answer.out_of_bounds, &answer.other_findings)
    {
        out.push_str(&format!(
            "{}, {} out of bounds, {}\n",
            counted(races, "race"),
            counted(out_of_bounds, "access"),
            counted(others.len(), "other finding")
        ));
    }
    if let Some(first) = answer.unlaunched.first() {
        let count = counted(answer.unlaunched.len(), "configuration");
        out.push_str(&format!(
            "{count} could not be launched, and others ran instead: {}: {}\n",
            first.config, first.lacks
        ));
    }
    if let Some(within) = answer.within_rounding {
        out.push_str(&format!("{} right within the rounding of the data alone\n", counted(within, "element")));
    }
    out.push_str(&format!("covered: {}\n", coverage.join(", ")));
    for f in &answer.failures {
        out.push_str(&format!(
            "FAILED {} of {} with {} on {:?} data: {}\n",
            f.kernel, f.input, f.config, f.filling, f.message
        ));
    }
    out
}
