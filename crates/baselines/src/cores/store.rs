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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::choice::Attempt;
    use std::time::{Duration, SystemTime};

    fn tried(outcome: Failure) -> Tried {
        let attempt = Attempt { file: "libx.so".into(), setting: None, outcome: Err(outcome) };
        let (library, variable) = ("x".to_owned(), "X_CORE".to_owned());
        Tried { library, variable, asked: None, attempts: vec![attempt], chosen: None }
    }

    #[test]
    fn an_entry_holds_for_its_files_its_host_and_what_was_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = (folder.path().join("kept/cores.json"), folder.path().join("libx.so"));
        std::fs::write(&file, b"one").unwrap();
        let files = [file.clone()];
        let known = tried(Failure::Died("signal 6".to_owned()));
        let mut store = Store::read(&path);
        store.put(Key::of("x", "host", None, &files), &known);
        store.write(&path).unwrap();
        let store = Store::read(&path);
        assert_eq!(store.get(&Key::of("x", "host", None, &files)), Some(&known));
        for key in [
            Key::of("y", "host", None, &files),
            Key::of("x", "other", None, &files),
            Key::of("x", "host", Some("Haswell"), &files),
            Key::of("x", "host", None, &[]),
        ] {
            assert_eq!(store.get(&key), None, "{key:?}");
        }
        let later = SystemTime::now() + Duration::from_secs(60);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(store.get(&Key::of("x", "host", None, &files)), None);
    }

    #[test]
    fn spoilt_files_other_versions_and_slow_probes_are_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cores.json");
        let key = || Key::of("x", "host", None, &[]);
        let mut store = Store::default();
        store.put(key(), &tried(Failure::Silent(10)));
        assert_eq!(store.get(&key()), None);
        let mut unsound = tried(Failure::Died(String::new()));
        unsound.chosen = Some(0);
        store.put(key(), &unsound);
        store.write(&path).unwrap();
        assert_eq!(Store::read(&path).get(&key()), None);
        for text in ["", "{", r#"{"version":0,"entries":[]}"#] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Store::read(&path).get(&key()), None, "{text}");
        }
    }

    #[test]
    fn few_entries_of_a_library_are_kept() {
        let mut store = Store::default();
        for host in 0..9 {
            store.put(Key::of("x", &host.to_string(), None, &[]), &tried(Failure::Died(String::new())));
        }
        assert_eq!(store.entries.len(), MOST_OF_ONE);
        assert!(store.get(&Key::of("x", "8", None, &[])).is_some());
    }
}
