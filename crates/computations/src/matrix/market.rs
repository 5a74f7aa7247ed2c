//! Matrix Market files: coordinate and array, real, integer and pattern, general and symmetric.

use super::Csr;
use crate::source::Fault;
use std::fmt::Display;
use std::str::FromStr;

/// The most rows or columns that are read: a short text must not ask for all memory.
const MOST: u64 = 1 << 27;

#[derive(Clone, Copy, PartialEq)]
enum Values {
    Numbers,
    Pattern,
}

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

struct Header {
    coordinate: bool,
    values: Values,
    symmetry: Symmetry,
}

/// Reads a matrix. Entries at the same place are added up, symmetric halves are mirrored.
///
/// # Errors
/// Another object, complex or Hermitian values, a size beyond 32 bits, places outside of the matrix, missing or excess
/// entries, what is no number: with the number of the line.
pub fn parse(text: &[u8]) -> Result<Csr, Fault> {
    // What some editors put in front of a text says nothing.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut lines = text.split(|&b| b == b'\n').enumerate().map(|(i, l)| (i + 1, String::from_utf8_lossy(l)));
    let (line, first) = lines.next().unwrap_or((1, "".into()));
    let header = header(&first).map_err(|message| fault(line, message))?;
    let mut last = line;
    let mut body = lines.filter(|(_, l)| !l.trim().is_empty() && !l.trim_start().starts_with('%'));
    let mut next = |what: &str| {
        let found = body.next().ok_or_else(|| fault(last, format!("the file ends before {what}")))?;
        last = found.0;
        Ok(found)
    };
    let (line, sizes) = next("the sizes")?;
    let sizes = Numbers { line, text: &sizes };
    if header.coordinate {
        let [rows, cols, count] = sizes.exactly("rows, columns and entries")?;
        let (rows, cols) = (sizes.size(rows)?, sizes.size(cols)?);
        if u128::from(count) > rows as u128 * cols as u128 {
            return Err(fault(line, format!("{count} entries in a matrix of {rows}x{cols}")));
        }
        // The count is the file's word: memory grows with what is there.
        let mut entries = Vec::new();
        for k in 0..count {
            let (line, text) = next(&format!("entry {} of {count}", k + 1))?;
            let (row, column, value) = entry(&Numbers { line, text: &text }, header.values, rows, cols)?;
            place(&mut entries, (row, column, value), header.symmetry, rows, cols, line)?;
        }
        finish(next("more"), rows, cols, entries)
    } else {
        let [rows, cols] = sizes.exactly("rows and columns")?;
        let (rows, cols) = (sizes.size(rows)?, sizes.size(cols)?);
        let mut entries = Vec::new();
        for column in 0..cols as u32 {
            let from = match header.symmetry {
                Symmetry::General => 0,
                Symmetry::Symmetric => column,
                Symmetry::Skew => column + 1,
            };
            for row in from..rows as u32 {
                let (line, text) = next(&format!("the value of row {}, column {}", row + 1, column + 1))?;
                let [value] = Numbers { line, text: &text }.exactly("a value")?;
                place(&mut entries, (row, column, finite(value, line)?), header.symmetry, rows, cols, line)?;
            }
        }
        finish(next("more"), rows, cols, entries)
    }
}

type Line<'a> = Result<(usize, std::borrow::Cow<'a, str>), Fault>;

fn finish(rest: Line<'_>, rows: usize, cols: usize, entries: Vec<(u32, u32, f64)>) -> Result<Csr, Fault> {
    match rest {
        Ok((line, _)) => Err(fault(line, "more entries than the sizes say".into())),
        Err(end) if u32::try_from(entries.len()).is_err() => Err(fault(end.line, "more than 2^32 - 1 entries".into())),
        Err(_) => Ok(Csr::of_entries(rows, cols, entries)),
    }
}

/// A fault of a whole line.
fn fault(line: usize, message: String) -> Fault {
    Fault { line, column: 1, message }
}

fn header(line: &str) -> Result<Header, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let &["%%matrixmarket", object, format, field, symmetry] = words.as_slice() else {
        return Err("expected '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'".into());
    };
    let refused = |what: &str, found: &str, known: &str| Err(format!("{what} {found:?}; known are {known}"));
    if object != "matrix" {
        return refused("object", object, "matrix");
    }
    let coordinate = match format {
        "coordinate" => true,
        "array" => false,
        _ => return refused("format", format, "coordinate, array"),
    };
    let values = match field {
        "real" | "integer" | "double" => Values::Numbers,
        "pattern" if coordinate => Values::Pattern,
        _ => return refused("field", field, "real, integer, and pattern of coordinates"),
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        _ => return refused("symmetry", symmetry, "general, symmetric, skew-symmetric"),
    };
    Ok(Header { coordinate, values, symmetry })
}

struct Numbers<'a> {
    line: usize,
    text: &'a str,
}

impl Numbers<'_> {
    fn exactly<T: FromStr<Err: Display>, const N: usize>(&self, what: &str) -> Result<[T; N], Fault> {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let count = words.len();
        let numbers = words.into_iter().map(|w| self.number(w)).collect::<Result<Vec<T>, _>>()?;
        numbers.try_into().map_err(|_| fault(self.line, format!("{count} words where {what} should stand")))
    }

    fn number<T: FromStr<Err: Display>>(&self, word: &str) -> Result<T, Fault> {
        word.parse().map_err(|e| self.at(word, format!("{word:?}: {e}")))
    }

    /// A fault of a word of the line.
    fn at(&self, word: &str, message: String) -> Fault {
        let column = word.as_ptr().addr().saturating_sub(self.text.as_ptr().addr()) + 1;
        Fault { line: self.line, column, message }
    }

    fn size(&self, size: u64) -> Result<usize, Fault> {
        let fits = usize::try_from(size).ok().filter(|_| size <= MOST);
        fits.ok_or_else(|| fault(self.line, format!("size {size}; at most {MOST} can be read")))
    }
}

fn finite(value: f64, line: usize) -> Result<f64, Fault> {
    if value.is_finite() { Ok(value) } else { Err(fault(line, format!("value {value} is not finite"))) }
}

fn entry(of: &Numbers<'_>, values: Values, rows: usize, cols: usize) -> Result<(u32, u32, f64), Fault> {
    let words: Vec<&str> = of.text.split_whitespace().collect();
    let (row, column, value) = match (values, words.as_slice()) {
        (Values::Pattern, [row, column]) => (row, column, 1.0),
        (Values::Numbers, [row, column, value]) => (row, column, finite(of.number(value)?, of.line)?),
        _ => return Err(fault(of.line, format!("{} words in an entry", words.len()))),
    };
    let place = |word: &str, most: usize, what: &str| {
        let place: u64 = of.number(word)?;
        let inside = place.checked_sub(1).filter(|&p| p < most as u64).and_then(|p| u32::try_from(p).ok());
        inside.ok_or_else(|| of.at(word, format!("{what} {place} of 1 to {most}")))
    };
    Ok((place(row, rows, "row")?, place(column, cols, "column")?, value))
}

fn place(
    entries: &mut Vec<(u32, u32, f64)>,
    (row, column, value): (u32, u32, f64),
    symmetry: Symmetry,
    rows: usize,
    cols: usize,
    line: usize,
) -> Result<(), Fault> {
    entries.push((row, column, value));
    if symmetry == Symmetry::General {
        return Ok(());
    }
    if rows != cols {
        return Err(fault(line, format!("a symmetric matrix of {rows}x{cols}")));
    }
    if symmetry == Symmetry::Skew && row == column {
        return Err(fault(line, format!("skew-symmetric with an entry on the diagonal, row {}", row + 1)));
    }
    if row != column {
        entries.push((column, row, if symmetry == Symmetry::Skew { -value } else { value }));
    }
    Ok(())
}
