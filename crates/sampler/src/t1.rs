//! Kernel Tuner's description of a kernel (the T1 format): parameters and constraints as Python text.
//!
//! Text becomes core's expressions and is evaluated there; nothing is executed. Other parts of the file (arguments,
//! problem size, source) are not looked at.

use crate::legal::{Description, LegalError};
use serde::Deserialize;
use serde_json::Value as Json;
use tilewright_core::expr::Value;
use tilewright_core::space::{Param, RuleGroup, written_values};

/// Why a text is no description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum T1Error {
    /// No JSON, or a field that is missing or of another type.
    #[error("no T1 description: {0}")]
    Json(String),
    /// Values that are neither a list nor the text of one, that cannot be computed, or that are no numbers, truths or words.
    #[error("values of parameter {parameter:?}: {message}")]
    Values {
        /// The parameter.
        parameter: String,
        /// Which, and why.
        message: String,
    },
    /// A constraint that does not parse, or a space that cannot be built.
    #[error(transparent)]
    Space(#[from] LegalError),
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "ConfigurationSpace")]
    space: Space,
}

#[derive(Deserialize)]
struct Space {
    #[serde(rename = "TuningParameters")]
    parameters: Vec<Parameter>,
    #[serde(rename = "Conditions", default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Parameter {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Values")]
    values: Json,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "Expression")]
    expression: String,
}

impl Description {
    /// Reads a T1 description.
    ///
    /// # Errors
    /// A text that is no such description; values or constraints that do not parse.
    pub fn from_t1(text: &str) -> Result<Self, T1Error> {
        // Editors on Windows begin a file with the mark of its byte order, which JSON does not know.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document: Document = serde_json::from_str(text).map_err(|e| T1Error::Json(e.to_string()))?;
        let mut out = Self::new();
        for parameter in document.space.parameters {
            let values = values(&parameter)?;
            out = out.param(Param { name: parameter.name, values });
        }
        for Condition { expression } in document.space.conditions {
            let expr = expression.parse();
            let expr = expr.map_err(|error| LegalError::Parse { constraint: expression.clone(), error })?;
            out = out.rule(&expression, RuleGroup::User, expr);
        }
        Ok(out)
    }
}

fn values(parameter: &Parameter) -> Result<Vec<Value>, T1Error> {
    let fault = |message| T1Error::Values { parameter: parameter.name.clone(), message };
    written_values(&parameter.values).map_err(fault)
}
