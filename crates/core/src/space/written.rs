//! Values of parameters as descriptions write them: a JSON list, or a text in Python's words.

use crate::expr::{List, ParseError, Value};
use serde_json::Value as Json;

/// More values than an index counts, so that the error names the number.
const MAX_VALUES: usize = 1 << 17;

/// The values of a list, or of a text such as `[32 * i for i in range(1, 32)]`. Nothing of a text is executed.
///
/// # Errors
/// What is neither a list nor the text of one, cannot be computed, or holds something else than numbers, truths and words.
pub fn written_values(values: &Json) -> Result<Vec<Value>, String> {
    match values {
        Json::String(text) => {
            let list: List = text.parse().map_err(|error: ParseError| error.to_string())?;
            list.values(MAX_VALUES).map_err(|error| error.to_string())
        }
        Json::Array(list) => list.iter().map(value).collect(),
        other => Err(no_value(other)),
    }
}

fn value(value: &Json) -> Result<Value, String> {
    match value {
        Json::Bool(b) => Ok(Value::Bool(*b)),
        Json::String(s) => Ok(Value::Str(s.clone())),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(i), _) => Ok(Value::Int(i)),
            // Beyond 64 bits it would silently lose digits.
            (None, Some(x)) if !n.is_u64() => Ok(Value::Float(x)),
            _ => Err(no_value(value)),
        },
        other => Err(no_value(other)),
    }
}

fn no_value(value: &Json) -> String {
    format!("{value} is no number, truth or word")
}
