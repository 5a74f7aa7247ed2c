//! What a record belongs to.

use crate::error::{Fault, RepositoryError};
use serde::Serialize;

/// The longest name.
const LONGEST: usize = 100;

/// A set of variants on a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Key {
    set: String,
    device: String,
}

impl Key {
    /// Names of 1 to 100 characters; any characters but control ones.
    ///
    /// # Errors
    /// A name of another kind.
    pub fn new(set: &str, device: &str) -> Result<Self, RepositoryError> {
        for (field, name) in [("set", set), ("device", device)] {
            let fits = !name.is_empty() && name.chars().count() <= LONGEST && !name.chars().any(char::is_control);
            if !fits {
                let message =
                    format!("expected a {field} of 1 to {LONGEST} characters, none of them a control character");
                let shown: String = name.chars().take(120).collect();
                return Err(RepositoryError::new(Fault::Name(field), format!("{shown:?}"), message));
            }
        }
        Ok(Self { set: set.into(), device: device.into() })
    }

    /// The set of variants.
    pub fn set(&self) -> &str {
        &self.set
    }

    /// The device.
    pub fn device(&self) -> &str {
        &self.device
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.set, self.device)
    }
}

/// A name as one part of a path or a key: letters, digits, `-` and `_` stay, other bytes become `%XX`.
pub(crate) fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The name that was encoded; none where the text is none of [`encoded`]'s.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        rest = others;
        if first == b'%' {
            let hex = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_paths() {
        for name in ["spmv", "GTX 1080 Ti", "../x", "a/b%20", "µarch", "."] {
            let text = encoded(name);
            assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_%".contains(&b)), "{text}");
            assert_eq!(decoded(&text).as_deref(), Some(name));
        }
        assert_eq!(decoded("%4"), None);
        assert_eq!(Key::new("", "x").unwrap_err().fault, Fault::Name("set"));
        assert_eq!(Key::new("x", "a\nb").unwrap_err().fault, Fault::Name("device"));
    }
}
