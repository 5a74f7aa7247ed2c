//! The envelope of stored files: kind and version, length and checksum, a header, a body.
//!
//! ```text
//! tilewright profile 1
//! 1234 <64 hexadecimal digits: BLAKE3 of the first line and of everything after this one>
//! {"kernel":...}                      the header, one line of JSON
//! {...}                               the body, JSON; together 1234 bytes
//! ```

use super::{StoreError, StoreErrorKind, write_atomically};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use tilewright_core::text::counted;
use tilewright_files::{MOST, read_file};

/// A kind of stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The name in the first line and in errors.
    pub name: &'static str,
    /// The version that is written, and the only one that is read.
    pub version: u32,
}

/// The bytes of a file with this header and body.
///
/// # Errors
/// What JSON cannot hold.
pub fn encode(format: Format, header: &impl Serialize, body: &impl Serialize) -> Result<Vec<u8>, StoreErrorKind> {
    let unfit = |e: serde_json::Error| StoreErrorKind::Unwritable(e.to_string());
    let first = first_line(format);
    let mut rest = serde_json::to_vec(header).map_err(unfit)?;
    rest.push(b'\n');
    serde_json::to_writer(&mut rest, body).map_err(unfit)?;
    rest.push(b'\n');
    let mut out = first.clone().into_bytes();
    out.extend_from_slice(format!("{} {}\n", rest.len(), checksum(&first, &rest)).as_bytes());
    out.extend_from_slice(&rest);
    Ok(out)
}

/// Header and body of a file's bytes.
///
/// # Errors
/// Another kind of file, another version, a short file, a wrong checksum, or a header or body of another shape.
pub fn decode<H: DeserializeOwned, B: DeserializeOwned>(
    format: Format,
    bytes: &[u8],
) -> Result<(H, B), StoreErrorKind> {
    let rest = checked(format, bytes)?;
    let unread = |what: &str, e: serde_json::Error| StoreErrorKind::Corrupt(format!("{what}: {e}"));
    let (header, body) = split_line(rest).ok_or_else(|| StoreErrorKind::Corrupt("no header line".into()))?;
    let header = serde_json::from_slice(header).map_err(|e| unread("header", e))?;
    let body = serde_json::from_slice(body).map_err(|e| unread("body", e))?;
    Ok((header, body))
}

/// What follows the first two lines, its checksum verified.
fn checked(format: Format, bytes: &[u8]) -> Result<&[u8], StoreErrorKind> {
    let not_ours = || StoreErrorKind::NotOurs { expected: format.name };
    let prefix = format!("tilewright {} ", format.name);
    if bytes.len() < prefix.len() && prefix.as_bytes().starts_with(bytes) {
        return Err(StoreErrorKind::Truncated { found: 0, expected: 0 });
    }
    let after = bytes.strip_prefix(prefix.as_bytes()).ok_or_else(not_ours)?;
    let cut = || StoreErrorKind::Truncated { found: 0, expected: 0 };
    let (version, after) = split_line(after).ok_or_else(cut)?;
    let version: u32 = parse(version).ok_or_else(not_ours)?;
    if version != format.version {
        return Err(StoreErrorKind::ForeignVersion { found: version, known: format.version });
    }
    let (sizes, rest) = split_line(after).ok_or_else(cut)?;
    let corrupt = || StoreErrorKind::Corrupt("its second line is not a length and a checksum".into());
    let text = std::str::from_utf8(sizes).map_err(|_| corrupt())?;
    let (length, sum) = text.split_once(' ').ok_or_else(corrupt)?;
    let expected: u64 = length.parse().map_err(|_| corrupt())?;
    let found = rest.len() as u64;
    if found < expected {
        return Err(StoreErrorKind::Truncated { found, expected });
    }
    if found > expected {
        return Err(StoreErrorKind::Corrupt(format!("{} too many at its end", counted(found - expected, "byte"))));
    }
    if checksum(&first_line(format), rest) != sum {
        return Err(StoreErrorKind::Corrupt("the checksum does not match".into()));
    }
    Ok(rest)
}

fn first_line(format: Format) -> String {
    format!("tilewright {} {}\n", format.name, format.version)
}

fn checksum(first: &str, rest: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(first.as_bytes());
    hasher.update(rest);
    hasher.finalize().to_hex().to_string()
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// A number without sign, space or leading zero, so that one number has one spelling.
fn parse(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    text.parse::<u32>().ok().filter(|n| n.to_string() == text)
}

/// Writes a file in its envelope, atomically.
///
/// # Errors
/// See [`write_atomically`].
pub fn write(path: &Path, format: Format, header: &impl Serialize, body: &impl Serialize) -> Result<(), StoreError> {
    let bytes = encode(format, header, body).map_err(|kind| StoreError::new(path, kind))?;
    write_atomically(path, &bytes)
}

/// Reads a file in its envelope.
///
/// # Errors
/// The file cannot be read, or see [`decode`].
pub fn read<H: DeserializeOwned, B: DeserializeOwned>(path: &Path, format: Format) -> Result<(H, B), StoreError> {
    let bytes = read_file(path, MOST).map_err(|e| StoreError::io(path, e))?;
    decode(format, &bytes).map_err(|kind| StoreError::new(path, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const FORMAT: Format = Format { name: "thing", version: 3 };
    type Thing = (BTreeMap<String, f64>, Vec<String>);

    fn thing() -> Thing {
        (BTreeMap::from([("x".into(), 0.1)]), vec!["multi\nline".into(), "ünïcode".into()])
    }

    fn bytes() -> Vec<u8> {
        let (header, body) = thing();
        encode(FORMAT, &header, &body).unwrap()
    }

    fn decoded(bytes: &[u8]) -> Result<Thing, StoreErrorKind> {
        decode(FORMAT, bytes)
    }

    #[test]
    fn round_trip() {
        assert_eq!(decoded(&bytes()).unwrap(), thing());
    }

    #[test]
    fn truncation_at_every_byte_is_truncation() {
        let whole = bytes();
        for end in 0..whole.len() {
            let error = decoded(&whole[..end]).unwrap_err();
            assert!(matches!(error, StoreErrorKind::Truncated { .. }), "{end} bytes: {error}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = bytes();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decoded(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn foreign_versions_and_kinds_are_named() {
        let (header, body) = thing();
        let newer = encode(Format { version: 4, ..FORMAT }, &header, &body).unwrap();
        let error = decoded(&newer).unwrap_err();
        assert!(matches!(error, StoreErrorKind::ForeignVersion { found: 4, known: 3 }), "{error}");
        let other = encode(Format { name: "other", version: 3 }, &header, &body).unwrap();
        assert!(matches!(decoded(&other), Err(StoreErrorKind::NotOurs { expected: "thing" })));
        let mut longer = bytes();
        longer.push(b'x');
        assert!(matches!(decoded(&longer), Err(StoreErrorKind::Corrupt(_))));
    }

    #[test]
    fn a_good_checksum_over_another_shape_is_corrupt() {
        let other = encode(FORMAT, &1, &2).unwrap();
        assert!(matches!(decoded(&other), Err(StoreErrorKind::Corrupt(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decoded(&bytes).is_err());
            let mut behind = b"tilewright thing 3\n".to_vec();
            behind.extend_from_slice(&bytes);
            prop_assert!(decoded(&behind).is_err());
        }
    }
}
