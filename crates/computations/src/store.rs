//! Data by their names: made or read once and shared, as many as fit; what is known of them is small and stays longer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tilewright_core::computation::Work;

/// What is known of data without looking at them again.
pub(crate) struct Facts {
    pub(crate) symbols: Vec<(&'static str, i64)>,
    pub(crate) work: Work,
    /// Found when a choice needs them, with the seconds that it took.
    pub(crate) features: OnceLock<(Vec<f32>, f64)>,
}

/// A map that forgets what was used longest ago.
pub(crate) struct Kept<K, V> {
    entries: HashMap<K, (V, u64, u64)>,
    turn: u64,
    /// What all values may weigh together.
    most: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Kept<K, V> {
    pub(crate) fn up_to(most: u64) -> Self {
        Self { entries: HashMap::new(), turn: 0, most }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        self.turn += 1;
        let (value, _, used) = self.entries.get_mut(key)?;
        *used = self.turn;
        Some(value.clone())
    }

    /// Keeps a value of this weight, whatever it is, and as many others as may be kept with it.
    pub(crate) fn put(&mut self, key: &K, value: V, weight: u64) {
        self.turn += 1;
        self.entries.insert(key.clone(), (value, weight, self.turn));
        let mut total: u64 = self.entries.values().map(|e| e.1).sum();
        while total > self.most && self.entries.len() > 1 {
            let Some(oldest) = self.entries.iter().min_by_key(|(_, e)| e.2).map(|(k, _)| k.clone()) else { return };
            total -= self.entries.remove(&oldest).map_or(0, |e| e.1);
        }
    }
}

/// Locks what stays whole if its holder panics.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
