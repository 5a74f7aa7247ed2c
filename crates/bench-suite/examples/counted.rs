//! Whether NVIDIA's profiler counts the instructions on a GPU that the emulator counts, on the same kernels:
//!
//! ```text
//! counted expect 60 7 expected.json
//! ncu --csv --print-units base --metrics "$(counted metrics)" counted run 60 7 > ncu.csv
//! counted compare expected.json ncu.csv
//! ```
//!
//! `expect N SEED OUT.json` draws so many random legal cases of the kernels for GPUs of gemm and conv, in turns, runs them on the
//! emulator, and writes what it counts of every launch, by the names of the profiler's metrics. It needs no GPU.
//! `run N SEED [DEVICE]` runs the same cases on a device, `cuda:0` unless named, each program once, and prints a line for each.
//! `compare EXPECTED.json NCU.csv` matches the launches in their order and says which metrics are equal in which launches. It ends
//! with 1 where any differs or a case failed, and with 2 where the launches are not the expected ones.
//! `metrics` prints the metrics for the profiler's option.
//!
//! Both draw with the facts of the emulated target, since legal configurations depend on them: those of the device may differ.

#[path = "counted/compare.rs"]
mod compare;
#[path = "counted/draw.rs"]
mod draw;
#[path = "counted/metrics.rs"]
mod metrics;
#[path = "counted/ncu.rs"]
mod ncu;

use draw::Drawn;
use metrics::METRICS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use tilewright::DeviceName;
use tilewright::device::emulator;
use tilewright_core::device::Device;
use tilewright_core::program::{Code, Program, Step};
use tilewright_emulator::{Behaviour, Log};

const USAGE: &str = "counted expect N SEED OUT.json | run N SEED [DEVICE] | compare EXPECTED.json NCU.csv | metrics";

/// The target whose code is counted. Its facts decide what is drawn.
const TARGET: &str = "sm_90";

/// What `expect` writes.
#[derive(Serialize, Deserialize)]
struct Expectation {
    /// The target that was emulated.
    target: String,
    /// The seed of the cases.
    seed: u64,
    /// The launches of all cases in their order.
    launches: Vec<Launched>,
}

/// A launch, and what it is expected to count.
#[derive(Serialize, Deserialize)]
struct Launched {
    /// The number of the case, from zero.
    case: usize,
    /// The kernel that generated it.
    kernel: String,
    /// The input, as text.
    input: String,
    /// The configuration, as text.
    config: String,
    /// The name in the code.
    entry: String,
    /// Blocks.
    grid: [u32; 3],
    /// Threads of a block.
    block: [u32; 3],
    /// The numbers by metric; none where the emulator does not foretell it.
    expected: BTreeMap<String, Option<u64>>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    command(&words).unwrap_or_else(|error| {
        eprintln!("counted: {error}");
        ExitCode::from(2)
    })
}

/// Does what the words say.
fn command(words: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    match *words {
        ["expect", cases, seed, to] => expect(number("N", cases)?, number("SEED", seed)?, to)?,
        ["run", cases, seed] => return run(number("N", cases)?, number("SEED", seed)?, "cuda:0"),
        ["run", cases, seed, device] => return run(number("N", cases)?, number("SEED", seed)?, device),
        ["compare", expected, counted] => return compare(expected, counted),
        ["metrics"] => println!("{}", METRICS.map(|metric| metric.name).join(",")),
        _ => return Err(format!("usage: {USAGE}").into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn number<N: std::str::FromStr<Err: std::fmt::Display>>(what: &str, text: &str) -> Result<N, Box<dyn Error>> {
    text.parse().map_err(|e| format!("{what} is {text:?}: {e}").into())
}

/// Emulates the cases and writes what their launches count.
fn expect(cases: usize, seed: u64, to: &str) -> Result<(), Box<dyn Error>> {
    let mut device = emulator(TARGET.parse()?, Behaviour::default())?;
    let log = device.log();
    let mut launches = Vec::new();
    for (number, drawn) in draw::cases(device.spec(), cases, seed)?.into_iter().enumerate() {
        let counted = expected(number, &drawn, &mut device, &log);
        launches.extend(counted.map_err(|e| format!("case {number}, {drawn}: {e}"))?);
    }
    println!("{cases} cases, {} launches", launches.len());
    let out = Expectation { target: TARGET.to_owned(), seed, launches };
    std::fs::write(to, serde_json::to_string_pretty(&out)?).map_err(|e| format!("writing {to}: {e}"))?;
    Ok(())
}

/// What the launches of a case count.
fn expected(case: usize, drawn: &Drawn, device: &mut dyn Device, log: &Log) -> Result<Vec<Launched>, Box<dyn Error>> {
    let program = drawn.run(device)?;
    let (launches, reports) = (launches(&program)?, log.take());
    if launches.len() != reports.len() {
        return Err(format!("{} reports of {} launches", reports.len(), launches.len()).into());
    }
    let one = |((entry, grid, block), report): (Shape, tilewright_emulator::Report)| Launched {
        case,
        kernel: drawn.kernel(),
        input: drawn.input(),
        config: drawn.config(),
        entry,
        grid,
        block,
        expected: metrics::expected(&report.counts),
    };
    Ok(launches.into_iter().zip(reports).map(one).collect())
}

/// The name of a kernel, its blocks, and the threads of each.
type Shape = (String, [u32; 3], [u32; 3]);

/// The launches of a program in their order.
fn launches(program: &Program) -> Result<Vec<Shape>, Box<dyn Error>> {
    let mut out = Vec::new();
    for step in &program.steps {
        let Step::Launch(launch) = step else { continue };
        let Code::Ptx { entry, .. } = &launch.code else { return Err("a launch without PTX".into()) };
        out.push((entry.clone(), launch.grid, launch.block));
    }
    Ok(out)
}

/// Runs the programs of the cases, once each, and says of each whether it ran.
fn run(cases: usize, seed: u64, device: &str) -> Result<ExitCode, Box<dyn Error>> {
    let emulated = emulator(TARGET.parse()?, Behaviour::default())?;
    let drawn = draw::cases(emulated.spec(), cases, seed)?;
    let mut device = device.parse::<DeviceName>()?.open(None)?;
    let mut code = ExitCode::SUCCESS;
    for (number, drawn) in drawn.iter().enumerate() {
        match drawn.run(&mut *device) {
            Ok(_) => println!("case {number}: ok"),
            Err(error) => {
                // On one line, since `compare` reads it.
                println!("{}", ncu::failed(number, &error.to_string().replace('\n', " ")));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Compares the profiler's table with what was expected.
fn compare(expected: &str, counted: &str) -> Result<ExitCode, Box<dyn Error>> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| format!("reading {path}: {e}"));
    let expectation: Expectation = serde_json::from_str(&read(expected)?).map_err(|e| format!("{expected}: {e}"))?;
    let profile = ncu::read(&read(counted)?).map_err(|e| format!("{counted}: {e}"))?;
    let all_equal = compare::compare(&expectation, &profile)?;
    Ok(if all_equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
