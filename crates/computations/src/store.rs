//! Data by their names: made or read once and shared, as many as fit; what is known of them is small and stays longer.

use crate::source::{Content, Source};
use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;
use tilewright_core::computation::Work;

/// Data are kept up to this many bytes together, the latest ones in any case.
const MOST_BYTES: u64 = 1 << 30;
/// Inputs whose facts are kept.
const MOST_FACTS: usize = 1 << 16;

/// What is known of data without looking at them again.
pub(crate) struct Facts {
    pub(crate) symbols: Vec<(&'static str, i64)>,
    pub(crate) work: Work,
    /// Seconds to make or read the data, and to find the symbols.
    pub(crate) made_s: f64,
    pub(crate) symbols_s: f64,
    /// Found when a choice needs them, with the seconds that it took.
    pub(crate) features: OnceLock<(Vec<f32>, f64)>,
}

/// A map that forgets what was used longest ago.
struct Kept<K, V> {
    entries: HashMap<K, (V, u64, u64)>,
    turn: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Kept<K, V> {
    fn new() -> Self {
        Self { entries: HashMap::new(), turn: 0 }
    }

    fn get(&mut self, key: &K) -> Option<V> {
        self.turn += 1;
        let (value, _, used) = self.entries.get_mut(key)?;
        *used = self.turn;
        Some(value.clone())
    }

    /// Keeps a value of this weight, and as many others as weigh so much together.
    fn put(&mut self, key: &K, value: V, weight: u64, most: u64) {
        self.turn += 1;
        self.entries.insert(key.clone(), (value, weight, self.turn));
        let mut total: u64 = self.entries.values().map(|e| e.1).sum();
        while total > most && self.entries.len() > 1 {
            let Some(oldest) = self.entries.iter().min_by_key(|(_, e)| e.2).map(|(k, _)| k.clone()) else { return };
            total -= self.entries.remove(&oldest).map_or(0, |e| e.1);
        }
    }
}

/// Size and time of the last change of a file whose content is known.
type Seen = (u64, Option<SystemTime>, Content);

/// What is kept of one computation's inputs.
pub(crate) struct Store<D> {
    data: Mutex<Kept<Source, Arc<D>>>,
    facts: Mutex<Kept<Source, Arc<Facts>>>,
    files: Mutex<HashMap<PathBuf, Seen>>,
    /// What the caller holds, by name.
    held: Mutex<HashMap<String, (Content, Arc<D>)>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What panicked while it held the lock left a map that is whole.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D> Store<D> {
    pub(crate) fn new() -> Self {
        Self {
            data: Mutex::new(Kept::new()),
            facts: Mutex::new(Kept::new()),
            files: Mutex::default(),
            held: Mutex::default(),
        }
    }

    pub(crate) fn data(&self, source: &Source) -> Option<Arc<D>> {
        lock(&self.data).get(source)
    }

    pub(crate) fn put_data(&self, source: &Source, data: Arc<D>, bytes: u64) {
        lock(&self.data).put(source, data, bytes, MOST_BYTES);
    }

    pub(crate) fn facts(&self, source: &Source) -> Option<Arc<Facts>> {
        lock(&self.facts).get(source)
    }

    pub(crate) fn put_facts(&self, source: &Source, facts: Arc<Facts>) {
        lock(&self.facts).put(source, facts, 1, MOST_FACTS as u64);
    }

    /// The content that a file had when it was read, if it has not been written since.
    pub(crate) fn content(&self, path: &Path, size: u64, changed: Option<SystemTime>) -> Option<Content> {
        let files = lock(&self.files);
        files
            .get(path)
            .filter(|(s, c, _)| *s == size && *c == changed && c.is_some())
            .map(|(.., content)| content.clone())
    }

    pub(crate) fn put_content(&self, path: &Path, size: u64, changed: Option<SystemTime>, content: Content) {
        lock(&self.files).insert(path.to_owned(), (size, changed, content));
    }

    pub(crate) fn held(&self, name: &str) -> Option<(Content, Arc<D>)> {
        lock(&self.held).get(name).cloned()
    }

    pub(crate) fn hold(&self, name: &str, content: Content, data: Arc<D>) {
        lock(&self.held).insert(name.to_owned(), (content, data));
    }

    pub(crate) fn release(&self, name: &str) {
        lock(&self.held).remove(name);
    }
}
