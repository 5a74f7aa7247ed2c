//! A record as one line: its checksum and its JSON.

use crate::error::{Fault, RepositoryError};
use crate::record::Record;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Which record: its writer, and how many that had written before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId(pub String, pub u64);

impl std::fmt::Display for RecordId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

#[derive(Serialize, Deserialize)]
struct Line<R> {
    id: RecordId,
    record: R,
}

/// A name that no other writer has: of the time, the process, a count, and the system's randomness.
pub(crate) fn writer_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = blake3::Hasher::new();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    hasher.update(&now.to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.update(&COUNT.fetch_add(1, Relaxed).to_le_bytes());
    for _ in 0..2 {
        hasher.update(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    hasher.finalize().to_hex()[..24].to_owned()
}

const SUM: usize = 16;

fn checksum(json: &str) -> String {
    blake3::hash(json.as_bytes()).to_hex()[..SUM].to_owned()
}

/// The line of a record, without its end.
pub(crate) fn encode(id: &RecordId, record: &Record) -> Result<String, RepositoryError> {
    record.check(&id.to_string())?;
    let json = serde_json::to_string(&Line { id: id.clone(), record })
        .map_err(|e| RepositoryError::new(Fault::Damaged, id, e))?;
    Ok(format!("{} {json}", checksum(&json)))
}

/// The record of a line; `place` is for messages.
///
/// # Errors
/// A line without its checksum or with another, another record than this version's, values that no measurement gives.
pub fn decode(line: &str, place: &str) -> Result<(RecordId, Record), RepositoryError> {
    let damaged = |message: String| RepositoryError::new(Fault::Damaged, place, message);
    let (sum, json) = line.split_once(' ').ok_or_else(|| damaged("no checksum".into()))?;
    if sum != checksum(json) {
        return Err(damaged("the checksum does not match".into()));
    }
    let line: Line<Record> = serde_json::from_str(json).map_err(|e| damaged(e.to_string()))?;
    line.record.check(&format!("{place}, record {}", line.id))?;
    Ok((line.id, line.record))
}
