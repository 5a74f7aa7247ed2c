//! Tunes a kernel of one's own: a blocked transpose in plain Rust.
//!
//! `cargo run --release -p tilewright-runtime --example tune_your_own`

mod transpose;

use std::error::Error;
use std::time::Duration;
use tilewright_core::computation::InputLimits;
use tilewright_core::problem::{AnyKernel, Erased, Measure};
use tilewright_core::space::Config;
use tilewright_cpu::CpuDevice;
use tilewright_runtime::Live;
use tilewright_runtime::plan::{PlanSettings, Planner};
use tilewright_runtime::trainer::MlpTrainer;
use tilewright_runtime::tune::{Silent, TunePaths, TuneSettings, Tuner};
use tilewright_sampler::{Chained, Settings};
use transpose::TransposeKernel;

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = Erased::new(TransposeKernel::new()?);
    let mut measure = Live::new(CpuDevice::new(1)?);
    let mut sampler = Chained::new(AnyKernel::space(&kernel), Settings::default());
    let directory = tempfile::tempdir()?;
    let paths = TunePaths { log: directory.path().join("log"), profile: directory.path().join("profile") };
    let mut tuner = Tuner {
        kernel: &kernel,
        measure: &mut measure,
        sampler: &mut sampler,
        trainer: &MlpTrainer,
        observer: &mut Silent,
        settings: TuneSettings {
            budget: Duration::from_secs(5),
            limits: InputLimits { max_flops: f64::INFINITY, max_bytes: 32e6 },
            ..TuneSettings::default()
        },
    };
    let report = tuner.run(&paths)?;
    println!("{} samples of {} inputs in {:.1} s", report.samples, report.inputs, report.seconds);

    let device = measure.spec().clone();
    let mut planner = Planner {
        kernel: &kernel,
        device: &device,
        measure: Some(&mut measure),
        predictor: Some(&*report.predictor),
        sampler: &mut sampler,
        cache: None,
        settings: PlanSettings::default(),
    };
    let planned = planner.plan(&Config::parse("rows=1000,columns=1500")?)?;
    println!("{} for {}\n{}", planned.config, planned.input, planned.reason);
    Ok(())
}
