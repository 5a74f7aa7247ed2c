//! Measures every variant of every computation on every local device, and writes a dataset for each computation.
//!
//! `cargo run --release -p tilewright-computations --example measure -- --out FOLDER`, some minutes on two cores that have nothing
//! else to do. Interrupted, it goes on where it was; with `--again 0.02` it measures again what was disturbed.

#[path = "measure/log.rs"]
mod log;
#[path = "measure/one.rs"]
mod one;

use clap::Parser;
use log::{Log, Measured, Rounds, Trial};
use one::measure;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tilewright_computations::bfs::Bfs;
use tilewright_computations::described::Described;
use tilewright_computations::description::Description;
use tilewright_computations::device::{Device, Effort, FEATURES, measure_in_turns, stay};
use tilewright_computations::histogram::Histogram;
use tilewright_computations::isa::Isa;
use tilewright_computations::kernel::VariantKernel;
use tilewright_computations::multiply::Multiply;
use tilewright_computations::solver::Solver;
use tilewright_computations::sort::Sort;
use tilewright_computations::source::Source;
use tilewright_computations::spmv::Spmv;
use tilewright_computations::transpose::Transpose;
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::expr::Value;
use tilewright_core::space::Config;
use tilewright_datasets::{Columns, Dataset, DatasetSchema, Status, Time, TimeUnit};

#[derive(Parser)]
struct Arguments {
    /// Where logs and datasets stand.
    #[arg(long)]
    out: PathBuf,
    /// Computations, separated by commas; all if none are given.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Visits of each variant on each device.
    #[arg(long, default_value_t = 32)]
    rounds: u32,
    /// Every so many inputs of the default collection.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// First forgets inputs whose two halves of rounds disagree by more than this share of the performance: something else ran.
    #[arg(long)]
    again: Option<f64>,
    /// Measures the features of the devices, and no computations.
    #[arg(long)]
    features: bool,
}

type Fault = Box<dyn Error>;

/// The largest inputs, in bytes that cross memory in a run: they fit the last cache of most hosts.
const LARGEST: f64 = 4e6;

fn main() -> Result<(), Fault> {
    let arguments = Arguments::parse();
    fs::create_dir_all(&arguments.out)?;
    let devices = Device::local(&[1, 2])?;
    // After the devices' own threads were started.
    stay();
    write_devices(&arguments, &devices)?;
    if arguments.features {
        return Ok(());
    }
    campaign::<Spmv>(&arguments, &devices, 243)?;
    campaign::<Sort>(&arguments, &devices, 210)?;
    campaign::<Histogram>(&arguments, &devices, 240)?;
    campaign::<Bfs>(&arguments, &devices, 200)?;
    campaign::<Solver>(&arguments, &devices, 200)?;
    campaign::<Transpose>(&arguments, &devices, 240)?;
    // PHiPAC's comparison is on one device.
    let widest = Isa::detected().into_iter().max().unwrap_or(Isa::BASE);
    campaign::<Multiply>(&arguments, &[Device::single(widest)], 600)
}

fn write_devices(arguments: &Arguments, devices: &[Device]) -> Result<(), Fault> {
    let path = arguments.out.join("devices.csv");
    if path.exists() {
        return Ok(());
    }
    // Two digits: the others are different the next time.
    let shown = |value: f64| {
        let unit = 10f64.powf(value.log10().floor() - 1.0);
        if value.fract() == 0.0 { value.to_string() } else { format!("{:.4}", (value / unit).round() * unit) }
    };
    let all = measure_in_turns(devices, Effort::Full, 8);
    let rows: Vec<Vec<String>> = all.iter().map(|device| device.iter().map(|f| shown(f.value)).collect()).collect();
    // What all devices share, such as the sizes of caches, tells none of them apart, and a choice of features is not to fall on it.
    let differs = |&column: &usize| rows.iter().any(|row| row[column] != rows[0][column]);
    let kept: Vec<usize> = (0..FEATURES.len()).filter(differs).collect();
    let line = |cells: Vec<&str>| cells.join(",");
    let mut text = format!("device,{}\n", line(kept.iter().map(|&c| FEATURES[c]).collect()));
    for (device, row) in devices.iter().zip(&rows) {
        writeln!(text, "{},{}", device.name(), line(kept.iter().map(|&c| row[c].as_str()).collect()))?;
    }
    print!("{text}");
    Ok(fs::write(path, text)?)
}

/// So many different inputs, always the same ones.
fn collection<D: Description>(of: &Described<D>, count: usize) -> Result<Vec<Source>, Fault> {
    let (mut rng, mut seen, mut all) = (ChaCha8Rng::seed_from_u64(1), HashSet::new(), Vec::new());
    let limits = InputLimits { max_flops: 3e8, max_bytes: LARGEST };
    while all.len() < count {
        let source = of.draw(&Config::default(), &limits, &mut || rng.random())?;
        if seen.insert(source.clone()) {
            all.push(source);
        }
    }
    Ok(all)
}

fn campaign<D: Description>(arguments: &Arguments, devices: &[Device], count: usize) -> Result<(), Fault> {
    if !arguments.only.is_empty() && !arguments.only.iter().any(|name| name == D::NAME) {
        return Ok(());
    }
    let mut log = Log::open(&arguments.out.join(format!("{}.log", D::NAME)))?;
    if let Some(most) = arguments.again {
        println!("{}: {} inputs again", D::NAME, log.forget(|line| line.doubt() > most)?);
    }
    let of = Arc::new(Described::<D>::default());
    let kernels: Vec<_> = VariantKernel::all(&of)?.into_iter().map(Arc::new).collect();
    let start = Instant::now();
    let (mut done, mut known) = (0, 0);
    for source in collection(&of, count)?.into_iter().step_by(arguments.every.max(1)) {
        if log.has(&of.words(&source).to_string()) {
            known += 1;
            continue;
        }
        log.push(measure(&of, &kernels, &source, devices, arguments.rounds)?)?;
        done += 1;
    }
    let path = arguments.out.join(format!("{}.csv", D::NAME));
    write_dataset(log.lines(), &path)?;
    write_profiles(log.lines(), &arguments.out.join(format!("{}-profiles.csv", D::NAME)))?;
    let data = Dataset::read(&path)?;
    println!(
        "{}: {done} inputs measured, {known} known, {} rows, {:.1} s",
        D::NAME,
        data.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The metrics of Nitro's Table 3 that the numbers in [`Measured::work`] stand for, with the share of each that a metric has:
/// loads and stores are not told apart. The last number is part of the total only.
const METRICS: [(&str, usize, f64); 9] = [
    ("flop_count_sp", 0, 1.0),
    ("inst_fp_32", 0, 1.0),
    ("flop_count_dp", 1, 1.0),
    ("inst_fp_64", 1, 1.0),
    ("atomic_transactions", 2, 1.0),
    ("gld_transactions", 3, 0.5),
    ("gst_transactions", 3, 0.5),
    ("shared_load_transactions", 4, 0.5),
    ("shared_store_transactions", 4, 0.5),
];

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn write_dataset(lines: &[Measured], path: &Path) -> Result<(), Fault> {
    let Some(first) = lines.first() else { return Ok(()) };
    let features: Vec<String> = first.features.iter().map(|(name, _)| name.clone()).collect();
    let mut text = format!(
        "device,input,family,{},variant,time_s,even_s,odd_s,fastest_s,visits,status,features_s\n",
        features.join(",")
    );
    for line in lines {
        let values: Vec<String> = line.features.iter().map(|(_, value)| value.to_string()).collect();
        let shown = |seconds: Option<f64>| seconds.map_or_else(String::new, |s| format!("{s:.4e}"));
        let [all, even, odd] = [Rounds::All, Rounds::Even, Rounds::Odd].map(|rounds| line.times(rounds));
        for (i, trial) in line.trials.iter().enumerate() {
            let [time, even, odd, least] = [all[i], even[i], odd[i], trial.fastest()].map(shown);
            let times = format!("{time},{even},{odd},{least},{}", trial.visits());
            let Trial { device, variant, status, .. } = trial;
            let (input, values) = (quoted(&line.input), values.join(","));
            writeln!(
                text,
                "{device},{input},{},{values},{variant},{times},{status},{:.3e}",
                line.family, line.features_s
            )?;
        }
    }
    let mut schema = DatasetSchema::new(Columns {
        device: Some("device".into()),
        input: features,
        config: Vec::new(),
        variant: Some("variant".into()),
        time: Time { column: "time_s".into(), unit: TimeUnit::Seconds },
        status: Some(Status { column: "status".into(), ok: Value::from("ok") }),
        group: Some("input".into()),
        clock: None,
    });
    schema.source = Some("tilewright-computations, example measure".into());
    schema.note =
        Some("time_s: the middle of interleaved rounds, variants of a device compared within a round (even_s, odd_s: of every second round); group = input, made by the seeded generator that it names".into());
    fs::write(path, text)?;
    Ok(fs::write(DatasetSchema::path_for(path), serde_json::to_vec_pretty(&schema)?)?)
}

/// OperationMix by kind over all operations, for each variant and input, under a profiler's names.
fn write_profiles(lines: &[Measured], path: &Path) -> Result<(), Fault> {
    let mut text = String::from("variant,kernel,input,metric,value\n");
    for line in lines {
        for (variant, work) in &line.work {
            let total = work.iter().sum::<f64>().max(1.0);
            for (metric, kind, share) in METRICS.iter().filter(|(_, kind, _)| work[*kind] > 0.0) {
                let value = share * work[*kind] / total;
                writeln!(text, "{variant},{variant},{},{metric},{value:.5}", quoted(&line.input))?;
            }
        }
    }
    Ok(fs::write(path, text)?)
}
