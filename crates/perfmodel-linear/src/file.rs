//! Models as JSON, with version, device and checksum.

use crate::error::ModelFileError;
use crate::model::{LinearModel, Report, Sharpness, Weight};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const FORMAT: &str = "tilewright linear model";
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u64,
    checksum: String,
    model: Value,
}

#[derive(Serialize, Deserialize)]
struct Body {
    device: String,
    weights: Vec<Weight>,
    sharpness: Sharpness,
    quantised: bool,
    report: Report,
}

/// Of the canonical text, so that white space does not matter.
fn checksum(model: &Value) -> String {
    blake3::hash(model.to_string().as_bytes()).to_hex()[..32].to_owned()
}

impl LinearModel {
    /// The model as a JSON value, to be embedded or written.
    ///
    /// # Errors
    /// Numbers that JSON does not have.
    pub fn to_value(&self) -> Result<Value, ModelFileError> {
        let body = Body {
            device: self.device.clone(),
            weights: self.weights.clone(),
            sharpness: self.sharpness,
            quantised: self.quantised,
            report: self.report,
        };
        let model = serde_json::to_value(body)?;
        let document = Document { format: FORMAT.to_owned(), version: VERSION, checksum: checksum(&model), model };
        Ok(serde_json::to_value(document)?)
    }

    /// Reads what [`LinearModel::to_value`] wrote.
    ///
    /// # Errors
    /// A foreign or damaged document. Never panics, whatever the value.
    pub fn from_value(value: Value) -> Result<Self, ModelFileError> {
        let found = value.get("format").and_then(Value::as_str).unwrap_or_default();
        if found != FORMAT {
            return Err(ModelFileError::Format { found: found.to_owned() });
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) | None => {}
            Some(found) => return Err(ModelFileError::Version { found, known: VERSION }),
        }
        let document: Document = serde_json::from_value(value)?;
        if checksum(&document.model) != document.checksum {
            return Err(ModelFileError::Checksum);
        }
        let Body { device, weights, sharpness, quantised, report } = serde_json::from_value(document.model)?;
        let model = Self { device, weights, sharpness, quantised, report };
        model.check()?;
        Ok(model)
    }

    fn check(&self) -> Result<(), ModelFileError> {
        let numbers = self.weights.iter().map(|w| (w.property.name.as_str(), w.seconds));
        let sharpness = [("sharpness core", self.sharpness.core), ("sharpness memory", self.sharpness.memory)];
        for (field, value) in numbers.chain(sharpness) {
            if !value.is_finite() || field.starts_with("sharpness ") && value < 1.0 {
                return Err(ModelFileError::Number { field: field.to_owned(), value: value.to_string() });
            }
        }
        Ok(())
    }

    /// Refuses weights of another device, by its fingerprint.
    ///
    /// # Errors
    /// Both fingerprints, when they differ.
    pub fn expect_device(&self, fingerprint: &str) -> Result<(), ModelFileError> {
        if self.device == fingerprint {
            return Ok(());
        }
        Err(ModelFileError::Device { found: self.device.clone(), expected: fingerprint.to_owned() })
    }
}
