//! Saved models: what is written is read back, and nothing else is.

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

use std::sync::OnceLock;

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tilewright_core::document::DocumentError;
use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_perfmodel_mlp::{Layout, Mlp, MlpFit, ModelFileError, ScreenSettings, Settings};

fn model() -> &'static Mlp {
    static MODEL: OnceLock<Mlp> = OnceLock::new();
    MODEL.get_or_init(|| {
        let data = synthetic::training_set(20, 8, &mut ChaCha8Rng::seed_from_u64(1));
        let layout = Layout::new(vec![5, 3]).expect("a layout");
        let settings = Settings { layout: layout.clone(), epochs: 2, ..Settings::default() };
        let screen = ScreenSettings { layout, epochs: 1, points: 300, ..ScreenSettings::default() };
        MlpFit { settings, screen: Some(screen) }.fit(&data, 1).expect("the rows are sound")
    })
}

fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| model().to_json())
}

/// A document whose contents were changed on purpose, with a checksum that agrees.
fn forged(change: impl FnOnce(&mut Value)) -> Result<Mlp, ModelFileError> {
    let mut document = model().to_value();
    change(&mut document["model"]);
    let sum = blake3::hash(document["model"].to_string().as_bytes()).to_hex();
    document["checksum"] = json!(sum[..32]);
    Mlp::from_value(document)
}

#[test]
fn what_is_written_is_read_back() {
    let read = Mlp::from_json(text()).expect("it was just written");
    assert_eq!(read.to_json(), text());
    let rows = synthetic::training_set(3, 5, &mut ChaCha8Rng::seed_from_u64(2)).rows;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    model().predict(&rows, &mut before);
    read.predict(&rows, &mut after);
    assert_eq!(before, after);
    assert_eq!(read.screen_settings(), model().screen_settings());
    let pretty = serde_json::to_string_pretty(&model().to_value()).expect("it is JSON");
    assert!(Mlp::from_json(&pretty).is_ok(), "white space does not matter");
}

#[test]
fn foreign_documents_are_refused() {
    assert!(matches!(Mlp::from_json("{}"), Err(ModelFileError::Document(DocumentError::Format { .. }))));
    assert!(matches!(Mlp::from_json(""), Err(ModelFileError::Document(DocumentError::Syntax(_)))));
    let mut document = model().to_value();
    document["version"] = json!(2);
    assert!(matches!(
        Mlp::from_value(document),
        Err(ModelFileError::Document(DocumentError::Version { found: 2, .. }))
    ));
    let mut document = model().to_value();
    document["model"]["network"]["target_mean"] = json!(0.5);
    assert!(matches!(Mlp::from_value(document), Err(ModelFileError::Document(DocumentError::Checksum { .. }))));
    let mut document = model().to_value();
    document["extra"] = json!(1);
    assert!(matches!(Mlp::from_value(document), Err(ModelFileError::Document(DocumentError::Syntax(_)))));
}

#[test]
fn contents_that_do_not_fit_together_are_refused() {
    let network = |change: fn(&mut Value)| forged(|model| change(&mut model["network"]));
    assert!(forged(|_| {}).is_ok());
    let renamed = forged(|model| model["schema"]["input"][0]["name"] = json!("x"));
    assert!(matches!(renamed, Err(ModelFileError::Schema(_))));
    let fewer = network(|network| drop(network["columns"].as_array_mut().map(Vec::pop)));
    assert!(matches!(fewer, Err(ModelFileError::Shape { field: "number of columns", .. })));
    let wider = network(|network| network["layout"] = json!([6, 3]));
    assert!(matches!(wider, Err(ModelFileError::Shape { field: "weights", .. })));
    let deeper = network(|network| network["layout"] = json!([5, 3, 3]));
    assert!(matches!(deeper, Err(ModelFileError::Shape { field: "number of weight matrices", .. })));
    let huge = network(|network| network["layout"] = json!([u64::MAX]));
    assert!(matches!(huge, Err(ModelFileError::Document(DocumentError::Syntax(_)))));
    let letters = network(|network| network["biases"][0] = json!("z".repeat(40)));
    assert!(matches!(letters, Err(ModelFileError::Hexadecimal { field: "biases" })));
    let infinite = network(|network| network["biases"][0] = json!("0000807f".repeat(5)));
    assert!(matches!(infinite, Err(ModelFileError::Number { field: "biases", .. })));
    let flat = network(|network| network["target_deviation"] = json!(0.0));
    assert!(matches!(flat, Err(ModelFileError::Number { field: "target deviation", .. })));
    let floor = network(|network| network["columns"][0]["floor"] = json!(-1.0));
    assert!(matches!(floor, Err(ModelFileError::Number { field: "column floor", .. })));
    let safety = forged(|model| model["screen"]["safety"] = json!(-1.0));
    assert!(matches!(safety, Err(ModelFileError::Screen(_))));
    // Files of before it was a setting.
    assert!(forged(|model| drop(model["screen"].as_object_mut().map(|s| s.remove("least_kept")))).is_ok());
}

#[test]
fn every_truncated_document_is_refused() {
    for end in 0..text().len() {
        assert!(
            matches!(Mlp::from_json(&text()[..end]), Err(ModelFileError::Document(DocumentError::Syntax(_)))),
            "{end} bytes"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_changed_byte_is_never_read_as_a_different_model(at: prop::sample::Index, byte in 0u8..128) {
        let mut bytes = text().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = Mlp::from_json(std::str::from_utf8(&bytes).expect("ASCII stays ASCII")) {
            prop_assert_eq!(read.to_json(), text());
        }
    }

    #[test]
    fn contents_changed_with_intent_never_panic(part in 0usize..8, value in any_json()) {
        let result = forged(|model| {
            let network = &mut model["network"];
            match part {
                0 => network["layout"] = value,
                1 => network["weights"] = value,
                2 => network["biases"][0] = value,
                3 => network["columns"][1] = value,
                4 => network["target_mean"] = value,
                5 => model["schema"] = value,
                6 => model["screen"] = value,
                _ => network["report"] = value,
            }
        });
        drop(result);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,200}") {
        prop_assert!(Mlp::from_json(&text).is_err());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9a-f]{0,48}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::from))
}
