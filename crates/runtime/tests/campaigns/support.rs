//! What the tests of whole campaigns share: the toy kernel, an instant device, a model that is stored as its rows.

use std::path::Path;
use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::predictor::{Fit, Predictor};
use tilewright_core::problem::{AnyKernel, Erased, Measure};
use tilewright_core::space::{Config, ParamSpace};
use tilewright_core::training::TrainingSet;
use tilewright_runtime::RuntimeError;
use tilewright_runtime::trainer::{TrainError, Trained, Trainer};
use tilewright_runtime::tune::{Observer, TunePaths, TuneReport, TuneSettings, Tuner};
use tilewright_sampler::{Sampler, Uniform};
use tilewright_testkit::toy::{self, AnalyticMeasure, LogLinearFit, ScaleKernel};

/// Fits the toy model; stores the rows and fits again when it is read back.
pub(crate) struct RowTrainer;

impl Trainer for RowTrainer {
    fn kind(&self) -> &str {
        "log-linear"
    }

    fn train(&self, data: &TrainingSet, seed: u64) -> Result<Trained, TrainError> {
        let predictor = LogLinearFit.fit(data, seed).map_err(|e| TrainError::new(self.kind(), e))?;
        let model = serde_json::json!({ "rows": data.rows, "costs": data.costs });
        Ok(Trained { predictor: Box::new(predictor), model, cv_mse: Some(0.01) })
    }

    fn load(&self, model: &serde_json::Value, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError> {
        let damaged = |e: serde_json::Error| TrainError::new("log-linear", e);
        let rows: Vec<f32> = serde_json::from_value(model["rows"].clone()).map_err(damaged)?;
        let costs: Vec<f64> = serde_json::from_value(model["costs"].clone()).map_err(damaged)?;
        let groups = vec![0; costs.len()];
        let data = TrainingSet { schema: schema.clone(), rows, costs, groups };
        Ok(Box::new(LogLinearFit.fit(&data, 0).map_err(|e| TrainError::new(self.kind(), e))?))
    }
}

pub(crate) fn kernel() -> Erased<ScaleKernel> {
    Erased::new(ScaleKernel::new())
}

pub(crate) fn device() -> Arc<DeviceSpec> {
    toy::device()
}

pub(crate) fn words(text: &str) -> Config {
    Config::parse(text).unwrap()
}

pub(crate) fn settings(samples: u64) -> TuneSettings {
    TuneSettings { samples: Some(samples), configs_per_input: 10, seed: 11, ..TuneSettings::default() }
}

pub(crate) fn paths(dir: &Path) -> TunePaths {
    TunePaths { log: dir.join("toy.log"), profile: dir.join("toy.profile") }
}

/// Tunes the toy kernel on the instant device.
pub(crate) fn tune(
    dir: &Path,
    settings: TuneSettings,
    measure: &mut AnalyticMeasure,
    observer: &mut dyn Observer,
) -> Result<TuneReport, RuntimeError> {
    tune_all(&[&kernel()], &[paths(dir)], settings, vec![measure], observer)
}

/// Tunes kernels on devices.
pub(crate) fn tune_all<'a>(
    kernels: &[&'a dyn AnyKernel],
    paths: &[TunePaths],
    settings: TuneSettings,
    devices: Vec<&'a mut dyn Measure>,
    observer: &'a mut dyn Observer,
) -> Result<TuneReport, RuntimeError> {
    let sampler = |_: &ParamSpace| Box::new(Uniform::new(100_000)) as Box<dyn Sampler>;
    Tuner { kernels: kernels.to_vec(), devices, sampler, trainer: &RowTrainer, observer, settings }.run(paths)
}
