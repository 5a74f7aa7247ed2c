//! key=value fields of the command line.

use crate::failure::{Failure, Kind};
use tilewright_core::space::Config;

/// Reads INPUT fields; the error names the field.
pub(crate) fn parse(fields: &[String]) -> Result<Config, Failure> {
    Config::from_fields(fields.iter().map(String::as_str)).map_err(|e| Failure::new(Kind::Usage, e.name(), &e))
}
