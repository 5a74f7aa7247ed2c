//! key=value words of the command line.

use crate::failure::{Failure, Kind};
use tilewright_core::space::Config;

/// Reads INPUT words; the error names the word.
pub(crate) fn parse(words: &[String]) -> Result<Config, Failure> {
    Config::from_words(words.iter().map(String::as_str)).map_err(|e| Failure::new(Kind::Usage, e.name(), &e))
}
