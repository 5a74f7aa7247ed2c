//! The registry of models, and a model over a prior from rows to file and back.
#![cfg(all(feature = "mlp", feature = "linear"))]

use tilewright_core::feature::FeatureSchema;
use tilewright_core::id::KernelId;
use tilewright_core::predictor::{Fit, Predictor};
use tilewright_core::problem::Problem;
use tilewright_core::training::TrainingSet;
use tilewright_perfmodel_linear::{LinearFit, LinearModel, Part, Property, Row, Table};
use tilewright_runtime::store::{Profile, ProfileHeader};
use tilewright_runtime::trainer::{OverLinear, TrainError, Trained, Trainer, Trainers};
use tilewright_testkit::toy::{self, LogLinearFit};

/// A kind of a user's own.
struct Mine(&'static str);

impl Trainer for Mine {
    fn kind(&self) -> &str {
        self.0
    }

    fn train(&self, data: &TrainingSet, seed: u64) -> Result<Trained, TrainError> {
        let predictor = LogLinearFit.fit(data, seed).map_err(|e| TrainError::new(self.0, e))?;
        Ok(Trained { predictor: Box::new(predictor), model: serde_json::json!({ "seed": seed }), cv_mse: None })
    }

    fn load(&self, model: &serde_json::Value, schema: &FeatureSchema) -> Result<Box<dyn Predictor>, TrainError> {
        let mut data = TrainingSet::new(schema.clone());
        let row = vec![1.0; schema.width()];
        data.push(&row, model["seed"].as_f64().unwrap_or(0.0), 0).map_err(|e| TrainError::new(self.0, e))?;
        Ok(self.train(&data, 0)?.predictor)
    }
}

fn weights() -> LinearModel {
    let property = |name: &str, part| Property { name: name.to_owned(), part };
    let mut table = Table::new(vec![property("constant", Part::Overhead), property("fma", Part::Arithmetic)], 0.0);
    for i in 1..5 {
        let (fma, time_s) = (f64::from(i * i), 1e-6 + 1e-9 * f64::from(i * i));
        table.push(Row { name: i.to_string(), counts: vec![1.0, fma], quantised: 1.0, time_s }).unwrap();
    }
    LinearFit::default().fit(&table, "a device").unwrap()
}

fn profile(kind: &str, model: serde_json::Value) -> Profile {
    let problem = toy::problem(1);
    let header = ProfileHeader::new(KernelId::new("scale.toy"), &toy::device(), problem.schema(), Default::default());
    Profile { header: ProfileHeader { model_kind: kind.to_owned(), ..header }, model }
}

#[test]
fn profiles_are_read_by_the_kind_that_they_name() {
    let (schema, rows) = (toy::problem(1).schema().clone(), toy::training_set(&[100, 1000], 60, 1));
    let trainers = Trainers::standard().with(Mine("mine")).with(Mine("mine"));
    assert_eq!(trainers.kinds().collect::<Vec<_>>(), ["mlp", "mlp-over-linear", "mine"]);
    let trained = trainers.get("mine").unwrap().train(&rows, 3).unwrap();
    let read = trainers.load(&profile("mine", trained.model.clone()), &schema).unwrap();
    tilewright_testkit::predictor(&read, &toy::problem(1000)).unwrap();
    let unknown = Trainers::standard().load(&profile("mine", trained.model), &schema).err().unwrap();
    assert_eq!(unknown.kind, "mine");
    assert!(unknown.to_string().contains("mlp, mlp-over-linear"), "{unknown}");
}

#[test]
fn a_model_over_the_linear_one_needs_weights_and_stores_them() {
    let (schema, rows) = (toy::problem(1).schema().clone(), toy::training_set(&[100, 1000], 60, 1));
    let reading = OverLinear::reading(Mine("mine"));
    assert!(reading.prior().is_none() && reading.train(&rows, 1).is_err());
    let fitting = OverLinear::new(Mine("mine"), weights());
    assert_eq!((fitting.kind(), fitting.prior().map(Predictor::kind)), ("mine-over-linear", Some("linear")));
    let trained = fitting.train(&rows, 1).unwrap();
    assert!(trained.predictor.kind() == "fitted-over-linear" && trained.predictor.is_costly());
    let read = reading.load(&trained.model, &schema).unwrap();
    assert_eq!(read.kind(), trained.predictor.kind());
    // Nothing counts the toy's operations.
    assert!(read.bind(&toy::problem(1000)).is_err());
    let mut damaged = trained.model;
    damaged["prior"]["model"]["device"] = "another".into();
    assert!(reading.load(&damaged, &schema).is_err());
}
