#![doc = include_str!("../README.md")]

mod embedded;
mod error;
mod key;
mod line;
mod record;
#[cfg(feature = "redis")]
mod resp;
mod samples;
#[cfg(feature = "redis")]
mod server;
mod training;

pub use embedded::Embedded;
pub use error::{Fault, RepositoryError};
pub use key::Key;
pub use line::{RecordId, decode as decode_line};
pub use record::{Record, RecordedCase, RecordedFeature, RecordedTime};
pub use samples::{LeftOut, RecordedOutcome, RecordedSamples, RecordedTrial, Sampled, sampled};
#[cfg(feature = "redis")]
pub use server::{RedisRepository, RedisSettings};
pub use training::{Training, training};

use std::collections::HashSet;

/// Where records of many devices are kept, by set of variants and device.
///
/// What [`Repository::append`] acknowledged is not lost when its writer dies, or any other.
pub trait Repository: Send {
    /// Adds a record; it is there for every reader when this returns.
    ///
    /// # Errors
    /// A poisoned record, which is not written; a store that cannot be written or reached.
    fn append(&mut self, key: &Key, record: &Record) -> Result<RecordId, RepositoryError>;

    /// All records of a key, each once, those of a writer in its order.
    ///
    /// # Errors
    /// A store that cannot be read or reached, a damaged or poisoned record, which is named.
    fn read(&mut self, key: &Key) -> Result<Vec<(RecordId, Record)>, RepositoryError>;

    /// What changes with every record of a key, without reading them: for whoever keeps what was made of them.
    ///
    /// # Errors
    /// A store that cannot be read or reached.
    fn state(&mut self, key: &Key) -> Result<String, RepositoryError>;

    /// Files of a key that end within a record, and whom nobody writes to any more: what stood behind was lost, what stands before is
    /// read. None where records are no lines of files.
    ///
    /// # Errors
    /// A store that cannot be read.
    fn unfinished(&mut self, key: &Key) -> Result<Vec<RepositoryError>, RepositoryError> {
        let _ = key;
        Ok(Vec::new())
    }

    /// All keys, sorted.
    ///
    /// # Errors
    /// A store that cannot be read or reached.
    fn keys(&mut self) -> Result<Vec<Key>, RepositoryError>;
}

/// Opens `redis://host[:port][/database]`, or a folder, which is begun unless it is there.
///
/// # Errors
/// As [`Embedded::open`] and `RedisRepository::open`; an address where this was built without the feature `redis`.
pub fn open(place: &str) -> Result<Box<dyn Repository>, RepositoryError> {
    if !is_address(place) {
        return Ok(Box::new(Embedded::open(place)?));
    }
    #[cfg(feature = "redis")]
    return Ok(Box::new(RedisRepository::open(place, RedisSettings::default())?));
    #[cfg(not(feature = "redis"))]
    Err(RepositoryError::new(Fault::Address, place, "this was built without the feature redis"))
}

/// [`open`], but no folder is begun: none where nothing was begun.
///
/// # Errors
/// As [`open`].
pub fn open_existing(place: &str) -> Result<Option<Box<dyn Repository>>, RepositoryError> {
    if is_address(place) {
        return open(place).map(Some);
    }
    Ok(Embedded::open_existing(place)?.map(|found| Box::new(found) as Box<dyn Repository>))
}

fn is_address(place: &str) -> bool {
    place.starts_with("redis://")
}

/// Appends what a key does not have yet, and says how much that was: trials one by one, all other records as wholes. Who
/// records a longer version of a campaign again adds what is new.
///
/// # Errors
/// As [`Repository::read`] and [`Repository::append`].
pub fn append_new(
    repository: &mut dyn Repository,
    key: &Key,
    records: impl IntoIterator<Item = Record>,
) -> Result<usize, RepositoryError> {
    let mut known = HashSet::new();
    for (_, record) in repository.read(key)? {
        record.retain_new(&mut known);
    }
    let mut added = 0;
    for record in records {
        let Some((record, count)) = record.retain_new(&mut known) else { continue };
        repository.append(key, &record)?;
        added += count;
    }
    Ok(added)
}
