//! The model as text: a versioned JSON document with its checksum, weights as hexadecimal bytes.

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tilewright_core::document::{DocumentError, Format};
use tilewright_core::feature::{FeatureKind, FeatureSchema, SchemaMismatch};
use tilewright_core::setting::SettingError;

use crate::bound::TargetScale;
use crate::domain::Domain;
use crate::encoding::{Column, Encoding};
use crate::layout::{Layout, MAX_WIDTH};
use crate::model::Mlp;
use crate::network::{Dense, Network};
use crate::screen::ScreenSettings;
use crate::train::{TrainReport, Trained};

/// Version of the document that this code writes, and the only one it reads.
pub const FILE_VERSION: u64 = 1;
const FORMAT: Format = Format { name: "tilewright-mlp", version: FILE_VERSION };

/// Why a document is no model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// Not JSON, a foreign or a damaged document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The schema is not the one that the model was fitted on.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// Parts that do not fit together.
    #[error("{field} is {have}, expected {expected}")]
    Shape {
        /// Which part.
        field: &'static str,
        /// Its size.
        have: usize,
        /// The size that the other parts ask for.
        expected: usize,
    },
    /// A number that is not finite, or out of its range.
    #[error("{field} is {value}, expected {limit}")]
    Number {
        /// Which number.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        limit: &'static str,
    },
    /// Settings of the screen that are out of range.
    #[error(transparent)]
    Screen(#[from] SettingError),
    /// Weights that are not hexadecimal.
    #[error("{field} holds a character that is not hexadecimal")]
    Hexadecimal {
        /// Which weights.
        field: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelText {
    schema_hash: String,
    schema: FeatureSchema,
    network: NetworkText,
    /// Those beside the first, of a model of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<NetworkText>,
    screen: Option<ScreenSettings>,
    /// Inputs that it was fitted on, `[input][column]`, as weights are written. None of a model that was stored without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkText {
    columns: Vec<Column>,
    target_mean: f32,
    target_deviation: f32,
    layout: Layout,
    /// One string a layer: `[input][output]`, little-endian 32-bit floats.
    weights: Vec<String>,
    biases: Vec<String>,
    report: TrainReport,
}

impl Mlp {
    /// The model as a JSON value, to be embedded in a profile.
    pub fn to_value(&self) -> Value {
        let model = ModelText {
            schema_hash: self.schema.hash(),
            schema: self.schema.clone(),
            network: write_network(&self.members[0]),
            others: self.members[1..].iter().map(write_network).collect(),
            screen: self.screen.clone(),
            inputs: self.domain.as_ref().map(|domain| to_hex(domain.rows().iter())),
        };
        FORMAT.seal(&model).expect("the model's text has string keys only")
    }

    /// Reads what [`Mlp::to_value`] wrote.
    ///
    /// # Errors
    /// A foreign or damaged document; see [`ModelFileError`]. Never panics, whatever the value.
    pub fn from_value(value: Value) -> Result<Self, ModelFileError> {
        read_model(FORMAT.open(value)?)
    }

    /// The model as JSON text.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    /// Reads what [`Mlp::to_json`] wrote.
    ///
    /// # Errors
    /// As [`Mlp::from_value`].
    pub fn from_json(text: &str) -> Result<Self, ModelFileError> {
        Self::from_value(serde_json::from_str(text).map_err(DocumentError::from)?)
    }
}

fn write_network(trained: &Trained) -> NetworkText {
    let layers = &trained.network.layers;
    NetworkText {
        columns: trained.encoding.columns.clone(),
        target_mean: trained.target.mean,
        target_deviation: trained.target.deviation,
        layout: trained.network.layout(),
        weights: layers.iter().map(|layer| to_hex(layer.weights.iter())).collect(),
        biases: layers.iter().map(|layer| to_hex(layer.bias.iter())).collect(),
        report: trained.report.clone(),
    }
}

fn read_model(text: ModelText) -> Result<Mlp, ModelFileError> {
    let rows = text.schema.hash();
    if rows != text.schema_hash {
        return Err(SchemaMismatch { model: text.schema_hash, rows }.into());
    }
    let columns = text.schema.width();
    text.screen.iter().try_for_each(ScreenSettings::check)?;
    let networks = std::iter::once(text.network).chain(text.others);
    let members = networks.map(|network| read_network(network, columns)).collect::<Result<_, _>>()?;
    let kinds: Vec<bool> = text.schema.input.iter().map(|feature| feature.kind == FeatureKind::Size).collect();
    let values = text.inputs.map(|inputs| any_from_hex("inputs", &inputs, inputs.len() / DIGITS)).transpose()?;
    let width = kinds.len().max(1);
    values.iter().try_for_each(|values| shape("inputs", values.len(), values.len().next_multiple_of(width)))?;
    let domain = values.map(|values| Domain::new(kinds, values));
    Ok(Mlp::new(text.schema, members, text.screen).with_domain(domain))
}

fn read_network(text: NetworkText, columns: usize) -> Result<Trained, ModelFileError> {
    shape("number of columns", text.columns.len(), columns)?;
    if columns == 0 || columns > MAX_WIDTH {
        return Err(ModelFileError::Number { field: "columns", value: columns.to_string(), limit: "1 to 4096" });
    }
    for column in &text.columns {
        number("column mean", column.mean, column.mean.is_finite(), "finite")?;
        number("column scale", column.scale, column.scale.is_finite() && column.scale >= 0.0, "finite, not negative")?;
        number("column floor", column.floor, column.floor.is_normal() && column.floor > 0.0, "positive and normal")?;
    }
    let target = TargetScale { mean: text.target_mean, deviation: text.target_deviation };
    number("target mean", target.mean, target.mean.is_finite(), "finite")?;
    number("target deviation", target.deviation, target.deviation.is_normal() && target.deviation > 0.0, "positive")?;
    let encoding = Encoding { columns: text.columns };
    let sizes = text.layout.sizes(encoding.width());
    shape("number of weight matrices", text.weights.len(), sizes.len() - 1)?;
    shape("number of biases", text.biases.len(), sizes.len() - 1)?;
    let texts = text.weights.iter().zip(&text.biases);
    let layers = sizes.windows(2).zip(texts).map(|(pair, (weights, bias))| {
        let weights = from_hex("weights", weights, pair[0] * pair[1])?;
        let have = weights.len();
        let weights = Array2::from_shape_vec((pair[0], pair[1]), weights).map_err(|_| ModelFileError::Shape {
            field: "weights",
            have,
            expected: pair[0] * pair[1],
        })?;
        Ok(Dense { weights, bias: Array1::from_vec(from_hex("biases", bias, pair[1])?) })
    });
    let network = Network { layers: layers.collect::<Result<_, ModelFileError>>()? };
    Ok(Trained { encoding, network, target, report: text.report })
}

fn shape(field: &'static str, have: usize, expected: usize) -> Result<(), ModelFileError> {
    if have == expected { Ok(()) } else { Err(ModelFileError::Shape { field, have, expected }) }
}

fn number(field: &'static str, value: f32, good: bool, limit: &'static str) -> Result<(), ModelFileError> {
    if good { Ok(()) } else { Err(ModelFileError::Number { field, value: value.to_string(), limit }) }
}

/// Hexadecimal digits of a 32-bit float.
const DIGITS: usize = 8;

fn to_hex<'a>(values: impl Iterator<Item = &'a f32>) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).expect("a nibble is one digit");
    let bytes = values.flat_map(|value| value.to_le_bytes());
    bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(field: &'static str, text: &str, expected: usize) -> Result<Vec<f32>, ModelFileError> {
    let values = any_from_hex(field, text, expected)?;
    values.iter().try_for_each(|value| number(field, *value, value.is_finite(), "finite"))?;
    Ok(values)
}

/// The same of values that need not be finite.
fn any_from_hex(field: &'static str, text: &str, expected: usize) -> Result<Vec<f32>, ModelFileError> {
    shape(field, text.len(), expected * DIGITS)?;
    let nibble = |digit: u8| char::from(digit).to_digit(16).ok_or(ModelFileError::Hexadecimal { field });
    let value = |digits: &[u8; DIGITS]| {
        let mut bytes = [0u8; 4];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
        }
        Ok(f32::from_le_bytes(bytes))
    };
    text.as_bytes().as_chunks::<DIGITS>().0.iter().map(value).collect()
}
