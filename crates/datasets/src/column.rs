//! Columns of a table, by distinct value: what splits, counts and one-hot features need.

use std::collections::HashMap;
use tilewright_core::expr::Value;

/// The code of a missing cell.
const MISSING: u32 = u32::MAX;

/// One column: its distinct values in order of appearance, and which of them stands in each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    levels: Vec<Value>,
    codes: Vec<u32>,
}

impl Column {
    /// The name in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The distinct values, in order of appearance.
    pub fn levels(&self) -> &[Value] {
        &self.levels
    }

    /// The distinct values, numbers first in order of size, then words in order of text.
    pub(crate) fn sorted_levels(&self) -> Vec<Value> {
        sorted(self.levels.clone())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The value in a row; none where the cell is missing.
    ///
    /// # Panics
    /// Beyond the last row.
    pub fn get(&self, row: usize) -> Option<&Value> {
        self.levels.get(self.codes[row] as usize)
    }

    /// Which of the distinct values stands in a row; none where the cell is missing.
    ///
    /// # Panics
    /// Beyond the last row.
    pub fn code(&self, row: usize) -> Option<u32> {
        Some(self.codes[row]).filter(|c| *c != MISSING)
    }

    /// The code of a value, numbers compared as numbers.
    pub fn code_of(&self, value: &Value) -> Option<u32> {
        let same = |v: &Value| v == value || (v.as_f64().is_some() && v.as_f64() == value.as_f64());
        self.levels.iter().position(same).map(|i| i as u32)
    }

    /// The cell as it stands for a key: missing cells are alike.
    pub(crate) fn raw_code(&self, row: usize) -> u32 {
        self.codes[row]
    }
}

/// Numbers first in order of size, then words in order of text, the empty word last.
pub(crate) fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by(|a, b| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (None, None) => (a.as_str() == Some(""), a.to_string()).cmp(&(b.as_str() == Some(""), b.to_string())),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    values
}

/// The value of a cell: empty and `nan` are missing, a number without a fraction is an integer however it is written.
pub(crate) fn cell(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("nan") {
        return None;
    }
    Some(canonical(Value::parse(text)))
}

fn canonical(value: Value) -> Value {
    match value {
        // Below 2^53 every such float is one integer.
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Value::Int(f as i64),
        other => other,
    }
}

/// Collects a column cell by cell.
pub(crate) struct ColumnBuilder {
    column: Column,
    by_text: HashMap<Box<str>, u32>,
    by_value: HashMap<String, u32>,
}

impl ColumnBuilder {
    pub(crate) fn new(name: &str) -> Self {
        let column = Column { name: name.to_owned(), levels: Vec::new(), codes: Vec::new() };
        Self { column, by_text: HashMap::new(), by_value: HashMap::new() }
    }

    pub(crate) fn push(&mut self, text: &str) {
        let code = match self.by_text.get(text) {
            Some(&code) => code,
            None => {
                let code = self.code(cell(text));
                self.by_text.insert(text.into(), code);
                code
            }
        };
        self.column.codes.push(code);
    }

    /// Adds a value that does not come from a text; words are read as a cell would be, so that a written table reads back
    /// the same.
    pub(crate) fn push_value(&mut self, value: Option<&Value>) {
        let code = match value {
            None => MISSING,
            Some(Value::Str(text)) => self.code(cell(text)),
            Some(Value::Float(f)) if !f.is_finite() => MISSING,
            Some(other) => self.code(Some(canonical(other.clone()))),
        };
        self.column.codes.push(code);
    }

    fn code(&mut self, value: Option<Value>) -> u32 {
        let Some(value) = value else { return MISSING };
        let next = self.column.levels.len() as u32;
        // Display tells the kinds apart: a word that looked like a number would have been read as one.
        let code = *self.by_value.entry(value.to_string()).or_insert(next);
        if code == next {
            self.column.levels.push(value);
        }
        code
    }

    pub(crate) fn finish(self) -> Column {
        self.column
    }
}
