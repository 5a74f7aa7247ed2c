//! JSON documents that say what they are and whether they are whole.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// The version that is written, and the only one that is read.
    pub version: u64,
}

/// Why a value is no document of a format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or a field that is missing, unknown or of the wrong type.
    #[error("not a document of this format: {0}")]
    Syntax(#[from] serde_json::Error),
    /// Another format.
    #[error("format is {found:?}, expected {expected:?}")]
    Format {
        /// What the document says it is.
        found: String,
        /// What is read.
        expected: &'static str,
    },
    /// Another version.
    #[error("version is {found}, this build reads version {known}")]
    Version {
        /// The document's version.
        found: u64,
        /// What is read.
        known: u64,
    },
    /// The contents are not those that were written.
    #[error("checksum is {found}, the contents have {computed}: the document is damaged")]
    Checksum {
        /// The document's checksum.
        found: String,
        /// That of its contents.
        computed: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    version: u64,
    checksum: String,
    model: Value,
}

impl Format {
    /// The document of a model.
    ///
    /// # Errors
    /// What JSON does not have.
    pub fn seal(&self, model: &impl Serialize) -> Result<Value, DocumentError> {
        let model = serde_json::to_value(model)?;
        let (format, version) = (self.name.to_owned(), self.version);
        Ok(serde_json::to_value(Document { format, version, checksum: checksum(&model), model })?)
    }

    /// The model that [`Format::seal`] was given.
    ///
    /// # Errors
    /// A foreign or damaged document. Never panics, whatever the value.
    pub fn open<T: DeserializeOwned>(&self, value: Value) -> Result<T, DocumentError> {
        let found = value.get("format").and_then(Value::as_str).unwrap_or_default();
        if found != self.name {
            return Err(DocumentError::Format { found: found.to_owned(), expected: self.name });
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(found) if found != self.version => Err(DocumentError::Version { found, known: self.version }),
            _ => {
                let Document { checksum: found, model, .. } = serde_json::from_value(value)?;
                let computed = checksum(&model);
                if computed != found {
                    return Err(DocumentError::Checksum { found, computed });
                }
                Ok(serde_json::from_value(model)?)
            }
        }
    }
}

/// Of the canonical text, so that white space does not matter.
fn checksum(model: &Value) -> String {
    blake3::hash(model.to_string().as_bytes()).to_hex()[..32].to_owned()
}
