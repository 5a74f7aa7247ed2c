//! key=value fields of the command line.

use crate::failure::{Failure, Kind};
use tilewright_core::space::Config;

/// Reads INPUT fields; the error names the field.
pub(crate) fn parse(fields: &[String]) -> Result<Config, Failure> {
    Config::from_fields(fields.iter().map(String::as_str)).map_err(|e| Failure::new(Kind::Usage, e.name(), &e))
}

/// The fields that inputs share which are measured for the sake of one: what says which kernels have code, element types and accuracy.
pub(crate) fn deciding(input: &Config) -> Config {
    let decides = |name: &str| ["dtype", "acc", "out", "accuracy"].contains(&name);
    Config(input.0.iter().filter(|(name, _)| decides(name)).cloned().collect())
}
