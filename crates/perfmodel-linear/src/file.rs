//! Models as JSON, with version, device and checksum.

use crate::error::ModelFileError;
use crate::model::LinearModel;
use serde_json::Value;
use tilewright_core::document::Format;

const FORMAT: Format = Format { name: "tilewright linear model", version: 1 };

impl LinearModel {
    /// The model as a JSON value, to be embedded or written.
    ///
    /// # Errors
    /// Numbers that JSON does not have.
    pub fn to_value(&self) -> Result<Value, ModelFileError> {
        Ok(FORMAT.seal(self)?)
    }

    /// Reads what [`LinearModel::to_value`] wrote.
    ///
    /// # Errors
    /// A foreign or damaged document. Never panics, whatever the value.
    pub fn from_value(value: Value) -> Result<Self, ModelFileError> {
        let model: Self = FORMAT.open(value)?;
        let numbers = model.weights.iter().map(|w| (w.property.name.as_str(), w.seconds));
        let sharpness = [("sharpness core", model.sharpness.core), ("sharpness memory", model.sharpness.memory)];
        for (field, value) in numbers.chain(sharpness) {
            if !value.is_finite() || field.starts_with("sharpness ") && value < 1.0 {
                return Err(ModelFileError::Number { field: field.to_owned(), value: value.to_string() });
            }
        }
        Ok(model)
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
