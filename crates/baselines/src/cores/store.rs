//! What was tried, kept for later commands.

use super::choice::Tried;
use super::probe::Failure;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Changed whenever what is tried, or how, changes: older entries are then tried again.
const VERSION: u32 = 1;

/// More than any such file has.
const MOST: u64 = 1 << 22;

/// What an entry holds for: the files as they are, the host, and what whoever started this process said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Key {
    library: String,
    host: String,
    asked: Option<String>,
    files: Vec<Stamp>,
}

/// A file as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    /// Since 1970; 0 where the system does not say.
    modified_ns: u64,
}

impl Key {
    pub(super) fn of(library: &str, host: &str, asked: Option<&str>, files: &[PathBuf]) -> Self {
        let stamp = |path: &PathBuf| {
            let told = std::fs::metadata(path);
            let modified = told.as_ref().ok().and_then(|told| told.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            Stamp {
                path: path.clone(),
                bytes: told.map_or(0, |told| told.len()),
                modified_ns: modified.map_or(0, |since| since.as_nanos() as u64),
            }
        };
        let files = files.iter().map(stamp).collect();
        Self { library: library.to_owned(), host: host.to_owned(), asked: asked.map(str::to_owned), files }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    key: Key,
    tried: Tried,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Store {
    version: u32,
    entries: Vec<Entry>,
    #[serde(skip)]
    changed: bool,
}

/// Of one library under different circumstances, so many are kept.
const MOST_OF_ONE: usize = 4;

impl Store {
    /// What is kept there; nothing where the file is missing, spoilt, or of another version.
    pub(super) fn read(path: &Path) -> Self {
        let read = tilewright_files::read_file(path, MOST).ok();
        let parsed = read.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        parsed.filter(|store| store.version == VERSION && store.entries.iter().all(Entry::is_sound)).unwrap_or_default()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Tried> {
        self.entries.iter().find(|entry| entry.key == *key).map(|entry| &entry.tried)
    }

    /// Keeps what was tried, unless a probe was ended for its length: that may have been another load's doing.
    pub(super) fn put(&mut self, key: Key, tried: &Tried) {
        if tried.attempts.iter().any(|attempt| matches!(attempt.outcome, Err(Failure::Silent(_)))) {
            return;
        }
        let of_one = self.entries.iter().filter(|entry| entry.key.library == key.library).count();
        if of_one >= MOST_OF_ONE {
            // The oldest stands first.
            let oldest = self.entries.iter().position(|entry| entry.key.library == key.library);
            oldest.map(|at| self.entries.remove(at));
        }
        self.entries.push(Entry { key, tried: tried.clone() });
        self.changed = true;
    }

    /// Writes what is new.
    ///
    /// # Errors
    /// What the system reports.
    pub(super) fn write(&mut self, path: &Path) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        self.version = VERSION;
        let text = serde_json::to_vec_pretty(&self)?;
        tilewright_files::replace(path, &mut |out| out.write_all(&text))
    }
}

impl Entry {
    /// Whether the choice is one of the attempts that succeeded.
    fn is_sound(&self) -> bool {
        let Some(at) = self.tried.chosen else { return true };
        self.tried.attempts.get(at).is_some_and(|attempt| attempt.outcome.is_ok())
    }
}
