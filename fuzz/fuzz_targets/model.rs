//! Any text as a saved model, and any contents with a sound checksum: refused, or a model that predicts and reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tilewright_core::predictor::RowPredictor;
use tilewright_perfmodel_mlp::Mlp;

fuzz_target!(|text: &str| {
    let _ = Mlp::from_json(text);
    let Ok(model) = serde_json::from_str::<Value>(text) else { return };
    let checksum = blake3::hash(model.to_string().as_bytes()).to_hex()[..32].to_owned();
    let document =
        serde_json::json!({ "format": "tilewright-mlp", "version": 1, "checksum": checksum, "model": model });
    let Ok(model) = Mlp::from_value(document) else { return };
    let mut out = Vec::new();
    model.predict(&vec![1.0; model.schema().width()], &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(Mlp::from_json(&model.to_json()).expect("it was just written").to_json(), model.to_json());
});
