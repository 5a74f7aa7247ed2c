//! Any JSON as a linear model, as it comes and with a sound checksum: refused, or a model that predicts and reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tilewright_perfmodel_linear::LinearModel;

fuzz_target!(|text: &str| {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let _ = LinearModel::from_value(value.clone());
    let checksum = blake3::hash(value.to_string().as_bytes()).to_hex()[..32].to_owned();
    let sealed = json!({ "format": "tilewright linear model", "version": 1, "checksum": checksum, "model": value });
    let Ok(model) = LinearModel::from_value(sealed) else { return };
    let _ = model.predict(&vec![1.0; model.weights.len()], 1.0);
    assert_eq!(LinearModel::from_value(model.to_value().expect("finite weights")).expect("it was just written"), model);
});
