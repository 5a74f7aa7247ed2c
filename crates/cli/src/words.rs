//! key=value words of the command line.

use crate::failure::{Failure, Kind};
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// Reads INPUT words.
pub(crate) fn parse(words: &[String]) -> Result<Config, Failure> {
    let mut out = Config::default();
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(Failure::new(Kind::Usage, word, "not of the form key=value, as in m=2560"));
        };
        if out.get(name).is_some() {
            return Err(Failure::new(Kind::Usage, name, "given twice"));
        }
        out.0.push((name.to_owned(), Value::parse(value)));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_pairs_given_once() {
        let words = |w: &[&str]| parse(&w.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["m=4", "dtype=f32"]).unwrap().to_string(), "m=4,dtype=f32");
        assert_eq!(words(&["m"]).unwrap_err().field, "m");
        assert_eq!(words(&["m=4", "m=5"]).unwrap_err().field, "m");
    }
}
