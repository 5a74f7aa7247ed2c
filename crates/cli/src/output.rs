//! One JSON document, or text for people; never both on standard output.

use crate::failure::{Failure, Kind};
use serde::Serialize;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tilewright_files::{Writable, read_file};
use tilewright_runtime::store::write_atomically;

/// How the caller wants answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Exactly one JSON document.
    pub(crate) json: bool,
}

impl Output {
    /// Prints the answer in the wanted form; `text` is only made when people read it.
    pub(crate) fn answer(self, json: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let mut body = if self.json { to_json(json)? } else { text() };
        if !body.ends_with('\n') {
            body.push('\n');
        }
        document(&body, false).map_err(|e| Failure::new(Kind::Other, "stdout", e))
    }
}

/// Writes the one document of a command to standard output. After an answer, or while one is written, no error follows it: a signal may
/// come at any time, and from another thread.
pub(crate) fn document(body: &str, is_error: bool) -> std::io::Result<()> {
    static ANSWERED: Mutex<bool> = Mutex::new(false);
    let answered = if is_error { ANSWERED.try_lock().ok() } else { ANSWERED.lock().ok() };
    let Some(mut answered) = answered.filter(|answered| !**answered) else { return Ok(()) };
    *answered = true;
    let written = unless_closed(std::io::stdout().lock().write_all(body.as_bytes()));
    if is_error {
        // The process ends: whoever has an answer now waits for that.
        std::mem::forget(answered);
    }
    written
}

/// A reader that has seen enough (`| head`) is no failure.
pub(crate) fn unless_closed(written: std::io::Result<()>) -> std::io::Result<()> {
    written.or_else(|e| if e.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(e) })
}

/// Says something beside the answer. Where standard error is closed or full, nobody hears it.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|e| Failure::new(Kind::Other, "json", e))
}

/// Reads a text that the command line names. Descriptions are short; a device without an end is not read to its end.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    const MOST: u64 = 64 << 20;
    let bytes = read_file(path, MOST).map_err(|e| Failure::of_file(Kind::Input, path, e))?;
    String::from_utf8(bytes).map_err(|e| Failure::of_file(Kind::Input, path, e))
}

/// Refuses, before any work whose result goes there, a place that the flag names where no file can be written; folders that are missing
/// are made. What it gives is kept until the file is written.
pub(crate) fn expect_writable<'p>(
    flag: &str,
    path: impl Into<Option<&'p PathBuf>>,
) -> Result<Option<Writable>, Failure> {
    let Some(path) = path.into() else { return Ok(None) };
    let writable = tilewright_files::expect_writable(path);
    writable.map(Some).map_err(|e| Failure::new(Kind::Input, flag, format!("{}: {e}", path.display())))
}

/// Writes a file of an answer.
pub(crate) fn write(path: &Path, contents: &str) -> Result<(), Failure> {
    write_atomically(path, contents.as_bytes()).map_err(|e| Failure::of_file(Kind::Store, path, e))
}

/// Columns aligned by padding: the first to the left, all others to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    tilewright_bench_suite::report::align(rows, 1)
}

/// Seconds with a unit that suits them.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "-".to_owned(),
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|r| r.map(String::from).to_vec());
        assert_eq!(aligned(&rows), "a    bb\nccc   d\n");
    }

    #[test]
    fn seconds_have_units() {
        assert_eq!(seconds(2.5e-7), "250 ns");
        assert_eq!(seconds(2.5e-4), "250.0 us");
        assert_eq!(seconds(0.25), "250.00 ms");
        assert_eq!(seconds(f64::INFINITY), "-");
    }
}
