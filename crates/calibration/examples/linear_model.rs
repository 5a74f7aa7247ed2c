//! Fits the linear model of this host and judges it: every form by measurement kernels that it was not fitted on, and by the
//! test kernels.
//!
//! `cargo run --release -p tilewright-calibration --example linear_model -- [THREADS] [ROUNDS] [FILE]`. Times are kept in FILE, and
//! read from it where it is there. With `DETAILS` set, weights, cases and rows are printed too.

use std::collections::BTreeMap;
use std::path::Path;
use tilewright_calibration::{
    Candidate, LinearMeasure, Measured, Verdicts, candidates, case_name, fit, judge, launch_overhead,
};
use tilewright_core::device::DeviceSpec;
use tilewright_cpu::{CpuDevice, host_program};
use tilewright_loops::Instance;
use tilewright_loops::library::{Case, Scale, measurement_set, test_set};
use tilewright_perfmodel_linear::LinearModel;

type Failure = Box<dyn std::error::Error>;

/// Seconds by the names of cases; `launch` is that of an empty kernel.
type Times = BTreeMap<String, f64>;

const LAUNCH: &str = "launch";

const RIDGE: f64 = 1e-6;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| words.get(i).map_or(Ok(default), |w| w.parse());
    let (threads, rounds) = (number(0, 1)?, number(1, 20)?);
    let device = CpuDevice::new(threads)?;
    let spec = device.spec().clone();
    let (rows, tests) = (measurement_set(Scale::Host)?, test_set(Scale::Host)?);
    let file = words.get(2).map(Path::new);
    let times = match file.filter(|f| f.exists()) {
        Some(file) => serde_json::from_slice(&std::fs::read(file)?)?,
        None => time(device, threads, u32::try_from(rounds)?, &[rows.clone(), tests.clone()].concat())?,
    };
    if let Some(file) = file {
        std::fs::write(file, serde_json::to_vec_pretty(&times)?)?;
    }
    let timed = |cases: Vec<Case>| -> Vec<Measured> {
        let found = cases.into_iter().filter_map(|case| Some((times.get(&case_name(&case)).copied()?, case)));
        found.map(|(time_s, case)| Measured { case, time_s }).collect()
    };
    let launch_s = times.get(LAUNCH).copied().unwrap_or(0.0);
    report(&spec, &timed(rows), &timed(tests), launch_s)
}

fn time(mut device: CpuDevice, threads: usize, rounds: u32, cases: &[Case]) -> Result<Times, Failure> {
    let lower = |instance: &Instance| host_program(instance, threads).map_err(|e| e.to_string());
    let how = LinearMeasure { rounds, ..LinearMeasure::default() };
    let begun = std::time::Instant::now();
    let launch_s = launch_overhead(&mut device, &lower, &how.policy)?;
    let (measured, failures) = how.run(&mut device, &lower, cases, &mut |_, _| {})?;
    println!("launch {launch_s:.2e} s; {} cases in {:.1} s", measured.len(), begun.elapsed().as_secs_f64());
    failures.iter().for_each(|f| println!("failed: {f}"));
    let times = measured.iter().map(|m| (case_name(&m.case), m.time_s));
    Ok(times.chain([(LAUNCH.to_owned(), launch_s)]).collect())
}

fn report(spec: &DeviceSpec, rows: &[Measured], tests: &[Measured], launch_s: f64) -> Result<(), Failure> {
    let begun = std::time::Instant::now();
    let candidates = candidates(spec, rows, tests, RIDGE, launch_s)?;
    println!("forms, best first by kernels left out ({:.1} s):", begun.elapsed().as_secs_f64());
    for Candidate { name, columns, fit: how, held_out } in &candidates {
        let model = fit(rows, columns, how, launch_s, &spec.fingerprint())?.model;
        let verdicts = judge(&model, columns, tests);
        let percent = |x: f64| format!("{:.1}%", 100.0 * x);
        let kernels: Vec<String> =
            verdicts.kernels.iter().map(|k| format!("{} {}", k.kernel, percent(k.geomean_error))).collect();
        println!(
            "{}: left out {}, tests {} ({}); {:?}",
            name,
            percent(held_out.geomean_error),
            percent(verdicts.geomean_error),
            kernels.join(", "),
            model.report,
        );
        if std::env::var_os("DETAILS").is_some() {
            details(&model, held_out, &verdicts);
        }
    }
    Ok(())
}

fn details(model: &LinearModel, held_out: &Verdicts, verdicts: &Verdicts) {
    println!("{:?}", model.sharpness);
    for w in &model.weights {
        println!("  {:<16} {:.3e} +- {:.1e}", w.property.name, w.seconds, w.uncertainty);
    }
    for k in &held_out.kernels {
        println!("  left out {:<24} {:.1}%", k.kernel, 100.0 * k.geomean_error);
    }
    for (what, judged) in [("test", verdicts), ("left out", held_out)] {
        for c in &judged.cases {
            let error = c.predicted_s / c.measured_s - 1.0;
            println!("  {what} {:<20} {:<40} {:.3e} {:.3e} {error:+.2}", c.kernel, c.case, c.measured_s, c.predicted_s);
        }
    }
}
