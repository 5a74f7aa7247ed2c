//! What was measured so far, one line of JSON an input.

use super::Measured;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log on disk. A line that was being written when the process died is dropped and measured again.
pub struct Log {
    path: PathBuf,
    file: File,
    lines: Vec<Measured>,
    known: HashSet<(String, String)>,
}

/// A log that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// What the system reports.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The report.
        error: io::Error,
    },
    /// A line that is no measurement, and not the last one.
    #[error("{}, line {line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

impl Log {
    /// Opens a log or begins it.
    ///
    /// # Errors
    /// What the system reports; a line in the middle that does not parse.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let io = |error| LogError::Io { path: path.into(), error };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io(error)),
        };
        // Only what ends in a line break was written whole.
        let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let mut lines: Vec<Measured> = Vec::new();
        for (i, line) in text[..whole].split(|&b| b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
            let parsed = serde_json::from_slice(line);
            lines.push(parsed.map_err(|e| LogError::Line {
                path: path.into(),
                line: i + 1,
                message: e.to_string(),
            })?);
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(io)?;
        file.set_len(whole as u64).map_err(io)?;
        let known = lines.iter().map(|l| (l.computation.clone(), l.input.clone())).collect();
        Ok(Self { path: path.into(), file, lines, known })
    }

    /// Whether an input was measured.
    pub fn has(&self, computation: &str, input: &str) -> bool {
        self.known.contains(&(computation.to_owned(), input.to_owned()))
    }

    /// Everything so far.
    pub fn lines(&self) -> &[Measured] {
        &self.lines
    }

    /// Drops inputs, so that they are measured again.
    ///
    /// # Errors
    /// What the system reports; the log is whole before and after.
    pub fn forget(&mut self, which: impl Fn(&Measured) -> bool) -> Result<usize, LogError> {
        let io = |error: io::Error| LogError::Io { path: self.path.clone(), error };
        let before = self.lines.len();
        self.lines.retain(|line| !which(line));
        let mut text = Vec::new();
        for line in &self.lines {
            serde_json::to_writer(&mut text, line).map_err(|e| io(e.into()))?;
            text.push(b'\n');
        }
        let new = self.path.with_extension("log.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path)).map_err(io)?;
        self.file = OpenOptions::new().append(true).open(&self.path).map_err(io)?;
        self.known = self.lines.iter().map(|l| (l.computation.clone(), l.input.clone())).collect();
        Ok(before - self.lines.len())
    }

    /// Appends an input.
    ///
    /// # Errors
    /// What the system reports.
    pub fn push(&mut self, measured: Measured) -> Result<(), LogError> {
        let io = |error: io::Error| LogError::Io { path: self.path.clone(), error };
        let mut line = serde_json::to_vec(&measured).map_err(|e| io(e.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.flush()).map_err(io)?;
        self.known.insert((measured.computation.clone(), measured.input.clone()));
        self.lines.push(measured);
        Ok(())
    }
}
