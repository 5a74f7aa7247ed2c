//! Feature vectors and the schema that a model checks before it trusts them.

use serde::{Deserialize, Serialize};

/// What kind of number a feature is, so that a model can transform it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureKind {
    /// A size, a count or a ratio: positive, on a multiplicative scale. ISAAC's section 5.2 feeds models its logarithm.
    Size,
    /// 0 or 1, or any other number that is best left as it is.
    Flag,
}

/// One feature.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Feature {
    /// The name, unique in its schema.
    pub name: String,
    /// How to read it.
    pub kind: FeatureKind,
}

impl Feature {
    /// A feature on a multiplicative scale.
    pub fn size(name: &str) -> Self {
        Self { name: name.to_owned(), kind: FeatureKind::Size }
    }

    /// A flag.
    pub fn flag(name: &str) -> Self {
        Self { name: name.to_owned(), kind: FeatureKind::Flag }
    }
}

/// The columns of a feature row: those of the input first, then those of the configuration. The split lets a model
/// compute the input's share once per search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureSchema {
    /// Features that only depend on the input (and the device).
    pub input: Vec<Feature>,
    /// Features that depend on the configuration too.
    pub config: Vec<Feature>,
}

/// A model met rows of another schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model was fitted on feature schema {model}, these rows have {rows}")]
pub struct SchemaMismatch {
    /// Hash of the model's schema.
    pub model: String,
    /// Hash of the rows' schema.
    pub rows: String,
}

impl FeatureSchema {
    /// Number of features of a row.
    pub fn width(&self) -> usize {
        self.input.len() + self.config.len()
    }

    /// All features, in row order.
    pub fn iter(&self) -> impl Iterator<Item = &Feature> {
        self.input.iter().chain(&self.config)
    }

    /// A hash of names, kinds and split: 32 hexadecimal digits.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (part, features) in [("input", &self.input), ("config", &self.config)] {
            hasher.update(part.as_bytes());
            for f in features {
                // Length first, so that no two lists of names share their bytes.
                hasher.update(&(f.name.len() as u64).to_le_bytes());
                hasher.update(f.name.as_bytes());
                hasher.update(&[u8::from(f.kind == FeatureKind::Flag)]);
            }
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Refuses rows of another schema.
    ///
    /// # Errors
    /// Both hashes, when they differ.
    pub fn expect(&self, rows: &Self) -> Result<(), SchemaMismatch> {
        if self == rows { Ok(()) } else { Err(SchemaMismatch { model: self.hash(), rows: rows.hash() }) }
    }
}
