//! Arrays in NumPy's format (`.npy`, versions 1 to 3, C order), as bytes and element type.

use std::path::Path;

/// The largest file.
const MOST: u64 = 4 << 30;

/// The elements of an array.
#[derive(Debug, PartialEq)]
pub(crate) struct Array {
    /// As NumPy writes it, without the byte order: `f4`, `i8`.
    pub(crate) of: String,
    /// Number of elements.
    pub(crate) len: usize,
    /// Little end first.
    pub(crate) bytes: Vec<u8>,
}

/// Reads an array.
pub(crate) fn read(path: &Path) -> Result<Array, String> {
    let bytes = tilewright_files::read_file(path, MOST).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&bytes).map_err(|message| format!("{}: {message}", path.display()))
}

fn parse(bytes: &[u8]) -> Result<Array, String> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("no array in NumPy's format")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or("cut off")?;
    let (length, rest) = if version[0] == 1 {
        let (length, rest) = rest.split_first_chunk::<2>().ok_or("cut off")?;
        (usize::from(u16::from_le_bytes(*length)), rest)
    } else {
        let (length, rest) = rest.split_first_chunk::<4>().ok_or("cut off")?;
        (u32::from_le_bytes(*length) as usize, rest)
    };
    if rest.len() < length {
        return Err("cut off".into());
    }
    let (header, data) = rest.split_at(length);
    let header = String::from_utf8_lossy(header);
    let descr = field(&header, "descr").ok_or("its header names no type")?.trim_matches(['\'', '"']);
    if descr.starts_with('>') {
        return Err(format!("its elements {descr} have the big end first"));
    }
    if field(&header, "fortran_order") == Some("True") {
        return Err("it is in Fortran's order: save a C-ordered copy".into());
    }
    let of = descr.trim_start_matches(['<', '|', '=']).to_owned();
    let size: usize = of
        .get(1..)
        .and_then(|n| n.parse().ok())
        .filter(|n| (1..=16).contains(n))
        .ok_or_else(|| format!("elements of type {descr}"))?;
    let (_, shape) = header.split_once("shape").ok_or("its header has no shape")?;
    let shape = shape.split_once('(').and_then(|(_, s)| s.split_once(')')).ok_or("its header has no shape")?.0;
    let sides = shape.split(',').map(str::trim).filter(|side| !side.is_empty()).map(str::parse::<usize>);
    let sides = sides.collect::<Result<Vec<_>, _>>().map_err(|_| format!("its shape is ({shape})"))?;
    let len = sides.into_iter().try_fold(1usize, usize::checked_mul).ok_or("its shape is too large")?;
    if len.checked_mul(size) != Some(data.len()) {
        return Err(format!("{} bytes for {len} elements of {size}", data.len()));
    }
    Ok(Array { of, len, bytes: data.to_vec() })
}

/// The value of a key in the header, a Python dictionary.
fn field<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    Some(rest.split([',', '}']).next()?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn arrays_are_read_or_refused() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
        let array = parse(&file(header, &[0; 24])).unwrap();
        assert_eq!((array.of.as_str(), array.len), ("f4", 6));
        assert_eq!(parse(&file(&header.replace("(2, 3)", "()"), &[0; 4])).unwrap().len, 1);
        for (bad, part) in [
            (file(header, &[0; 20]), "20 bytes for 6"),
            (file(&header.replace('<', ">"), &[0; 24]), "big end"),
            (file(&header.replace("False", "True"), &[0; 24]), "Fortran"),
            (file(header, &[0; 24])[..30].to_vec(), "cut off"),
            (b"PK".to_vec(), "no array"),
        ] {
            let error = parse(&bad).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
