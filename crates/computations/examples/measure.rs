//! Measures every variant of every computation on every local device, and writes a dataset for each computation.
//!
//! `cargo run --release -p tilewright-computations --example measure -- --out FOLDER`, about six minutes on two
//! cores that have nothing else to do. Interrupted, it goes on where it was; with `--again 0.02` it measures again what was disturbed.

use clap::Parser;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilewright_computations::bfs::Bfs;
use tilewright_computations::campaign::{Log, METRICS, Measured, Protocol, Rounds, Trial, measure};
use tilewright_computations::computation::Computation;
use tilewright_computations::device::{Device, Effort, FEATURES, measure_in_turns, stay};
use tilewright_computations::histogram::Histogram;
use tilewright_computations::isa::Isa;
use tilewright_computations::multiply::Multiply;
use tilewright_computations::solver::Solver;
use tilewright_computations::sort::Sort;
use tilewright_computations::spmv::Spmv;
use tilewright_computations::transpose::Transpose;
use tilewright_core::expr::Value;
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
    #[arg(long, default_value_t = Protocol::default().rounds)]
    rounds: usize,
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
    campaign::<Spmv>(&arguments, &devices)?;
    campaign::<Sort>(&arguments, &devices)?;
    campaign::<Histogram>(&arguments, &devices)?;
    campaign::<Bfs>(&arguments, &devices)?;
    campaign::<Solver>(&arguments, &devices)?;
    campaign::<Transpose>(&arguments, &devices)?;
    // PHiPAC's comparison is on one device.
    let widest = Isa::detected().into_iter().max().unwrap_or(Isa::BASE);
    campaign::<Multiply>(&arguments, &[Device::single(widest)])
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

fn campaign<C: Computation>(arguments: &Arguments, devices: &[Device]) -> Result<(), Fault> {
    if !arguments.only.is_empty() && !arguments.only.iter().any(|name| name == C::NAME) {
        return Ok(());
    }
    let protocol = Protocol { rounds: arguments.rounds, ..Protocol::default() };
    let mut log = Log::open(&arguments.out.join(format!("{}.log", C::NAME)))?;
    if let Some(most) = arguments.again {
        println!("{}: {} inputs again", C::NAME, log.forget(|line| line.doubt() > most)?);
    }
    let start = Instant::now();
    let (mut done, mut known) = (0, 0);
    for input in C::inputs().into_iter().step_by(arguments.every.max(1)) {
        if log.has(C::NAME, &input.name) {
            known += 1;
            continue;
        }
        log.push(measure::<C>(&input, devices, &protocol)?)?;
        done += 1;
    }
    let path = arguments.out.join(format!("{}.csv", C::NAME));
    write_dataset(log.lines(), &path)?;
    write_profiles(log.lines(), &arguments.out.join(format!("{}-profiles.csv", C::NAME)))?;
    let data = Dataset::read(&path)?;
    println!(
        "{}: {done} inputs measured, {known} known, {} rows, {:.1} s",
        C::NAME,
        data.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

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
        let features_s: f64 = line.features_s.iter().sum();
        let shown = |seconds: Option<f64>| seconds.map_or_else(String::new, |s| format!("{s:.4e}"));
        let [all, even, odd] = [Rounds::All, Rounds::Even, Rounds::Odd].map(|rounds| line.times(rounds));
        for (i, trial) in line.trials.iter().enumerate() {
            let [time, even, odd, least] = [all[i], even[i], odd[i], trial.fastest()].map(shown);
            let times = format!("{time},{even},{odd},{least},{}", trial.visits());
            let Trial { device, variant, status, .. } = trial;
            let (input, values) = (quoted(&line.input), values.join(","));
            writeln!(text, "{device},{input},{},{values},{variant},{times},{status},{features_s:.3e}", line.family)?;
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

/// Operations by kind over all operations, for each variant and input, under a profiler's names.
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
