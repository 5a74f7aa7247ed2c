//! Fits the linear model of this host and judges it by the test kernels: each term beyond the paper on its own.
//!
//! `cargo run --release -p tilewright-bench-suite --example linear_model -- [threads] [rounds]`

use tilewright_bench_suite::linear::{Columns, HostTerms, LinearMeasure, fit, judge, launch_overhead};
use tilewright_cpu::{CpuDevice, host_program};
use tilewright_loops::Instance;
use tilewright_loops::library::{Scale, measurement_set, test_set};
use tilewright_perfmodel_linear::{Form, LinearFit};
use tilewright_runtime::station::HostStation;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1).map(|w| w.parse::<usize>());
    let threads = words.next().transpose()?.unwrap_or(1);
    let rounds = words.next().transpose()?.unwrap_or(2);
    let device = CpuDevice::new(threads)?;
    let spec = device.spec().clone();
    let mut station = HostStation::new(device);
    let lower = |instance: &Instance| host_program(instance, threads).map_err(|e| e.to_string());
    let how = LinearMeasure { rounds: u32::try_from(rounds)?, ..LinearMeasure::default() };
    let begun = std::time::Instant::now();
    let launch_s = launch_overhead(&mut station, &lower, &how.policy)?;
    let (rows, failures) = how.run(&mut station, &lower, &measurement_set(Scale::Host)?, &mut |_, _| {})?;
    println!("launch {launch_s:.2e} s; {} cases in {:.1} s", rows.len(), begun.elapsed().as_secs_f64());
    failures.iter().for_each(|f| println!("failed: {f}"));
    let (tests, _) = how.run(&mut station, &lower, &test_set(Scale::Host)?, &mut |_, _| {})?;
    let sum = LinearFit { form: Form::NonNegative, ridge: 1e-6, ..LinearFit::default() };
    let overlap = LinearFit { overlap: true, ..sum };
    for (name, footprint, chains, how) in [
        ("operations", false, false, sum),
        ("and footprint", true, false, sum),
        ("and overlap", true, false, overlap),
        ("and chains", true, true, overlap),
    ] {
        let Some(columns) = Columns::host(&spec, HostTerms { footprint, chains }) else { continue };
        let fitted = fit(&rows, &columns, &how, launch_s, &spec.fingerprint())?;
        let verdicts = judge(&fitted.model, &columns, &tests);
        let kernels: Vec<String> =
            verdicts.kernels.iter().map(|k| format!("{} {:.1}%", k.kernel, 100.0 * k.geomean_error)).collect();
        println!(
            "{name}: {:.1}% ({}); fit {:?}",
            100.0 * verdicts.geomean_error,
            kernels.join(", "),
            fitted.model.report
        );
        if std::env::var_os("DETAILS").is_some() {
            println!("{:?}, {} rejected", fitted.model.sharpness, fitted.rejected.len());
            for w in &fitted.model.weights {
                println!("  {:<16} {:.3e} +- {:.1e}", w.property.name, w.seconds, w.uncertainty);
            }
            for c in &verdicts.cases {
                println!(
                    "  {:<20} {:<30} {:.3e} {:.3e} {:+.2}",
                    c.kernel,
                    c.case,
                    c.measured_s,
                    c.predicted_s,
                    c.predicted_s / c.measured_s - 1.0
                );
            }
            for m in &rows {
                let predicted = fitted.model.predict(&columns.counts(&m.case.instance), 1.0).seconds;
                println!(
                    "  row {:<18} {:<40} {:.3e} {:+.2}",
                    m.case.class,
                    m.case.name,
                    m.time_s,
                    predicted / m.time_s - 1.0
                );
            }
        }
    }
    Ok(())
}
