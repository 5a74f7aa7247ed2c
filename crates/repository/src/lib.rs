#![doc = include_str!("../README.md")]

mod embedded;
mod error;
mod key;
mod line;
mod record;
#[cfg(feature = "redis")]
mod resp;
#[cfg(feature = "redis")]
mod server;
mod training;

pub use embedded::Embedded;
pub use error::RepositoryError;
pub use key::Key;
pub use line::RecordId;
pub use record::{Record, RecordedCase, RecordedFeature, RecordedTime};
#[cfg(feature = "redis")]
pub use server::{RedisRepository, RedisSettings};
pub use training::{Training, training};

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

    /// All keys, sorted.
    ///
    /// # Errors
    /// A store that cannot be read or reached.
    fn keys(&mut self) -> Result<Vec<Key>, RepositoryError>;
}
