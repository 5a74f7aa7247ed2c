//! A repository on a Redis server.
//!
//! ```text
//! tilewright:repository:version          1
//! tilewright:repository:keys             set of <set>/<device>
//! tilewright:repository:<set>/<device>   hash of record id to line
//! ```
//!
//! A record is written under its own id, and only if that is not there: a writer that lost its connection can send again
//! what it has no answer for, and no record comes twice. What survives the death of the server itself is the server's
//! affair: everything that it answered for with `appendfsync always`, all but the last two seconds with `everysec`.

use crate::error::{Fault, RepositoryError};
use crate::key::{decoded, encoded};
use crate::line::{RecordId, decode, encode, writer_name};
use crate::record::Record;
use crate::resp::{Connection, Reply, ReplyError};
use crate::{Key, Repository};
use std::time::{Duration, Instant};
use tilewright_core::text::counted;

const VERSION: u32 = 1;
const PREFIX: &str = "tilewright:repository:";
/// The first with the commands and the persistence that this relies on.
const NEEDED: (u32, &str) = (4, "4.0");

/// How patient a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// How long connecting and each answer may take.
    pub timeout: Duration,
    /// How often an operation is tried in all.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles each time.
    pub pause: Duration,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), attempts: 6, pause: Duration::from_millis(50) }
    }
}

/// A repository that many machines share.
pub struct RedisRepository {
    /// Host and port.
    address: String,
    database: u32,
    place: String,
    settings: RedisSettings,
    connection: Option<Connection>,
    writer: String,
    written: u64,
}

impl RedisRepository {
    /// Connects to `redis://host[:port][/database]`.
    ///
    /// # Errors
    /// An address that is none, a server that cannot be reached or is too old, another version of the format.
    pub fn open(address: &str, settings: RedisSettings) -> Result<Self, RepositoryError> {
        let (host, database) = parse(address)?;
        let place = format!("Redis at {host}");
        let (connection, writer) = (None, writer_name());
        let mut repository = Self { address: host, database, place, settings, connection, writer, written: 0 };
        repository.with(|_| Ok(()))?;
        Ok(repository)
    }

    /// Does something with a connection, a new one where the last was lost. What is done must be repeatable.
    fn with<T>(&mut self, act: impl Fn(&mut Connection) -> Result<T, ReplyError>) -> Result<T, RepositoryError> {
        let mut pause = self.settings.pause;
        let mut last = String::new();
        let attempts = self.settings.attempts.max(1);
        // A server that is silent is not waited for as often as one that is busy for a moment.
        let deadline = Instant::now() + self.settings.timeout;
        let mut tried = 0;
        for attempt in 0..attempts {
            if attempt > 0 && Instant::now() >= deadline {
                break;
            }
            tried += 1;
            if attempt > 0 {
                std::thread::sleep(pause);
                pause *= 2;
            }
            let connection = self.connection.take().map_or_else(|| self.connect(), Ok);
            match connection.and_then(|mut connection| Ok((act(&mut connection)?, connection))) {
                Ok((value, connection)) => {
                    self.connection = Some(connection);
                    return Ok(value);
                }
                Err(error) if error.is_transient() => last = error.to_string(),
                Err(ReplyError::Fault(fault)) => return Err(fault),
                Err(error) => return Err(self.refused(&error)),
            }
        }
        let message = format!("cannot be reached after {}: {last}", counted(tried, "attempt"));
        Err(RepositoryError::new(Fault::Unreachable, &self.place, message))
    }

    fn refused(&self, error: &ReplyError) -> RepositoryError {
        RepositoryError::new(Fault::Refused, &self.place, format!("refuses: {error}"))
    }

    fn connect(&self) -> Result<Connection, ReplyError> {
        let mut connection = Connection::open(&self.address, self.settings.timeout)?;
        if self.database > 0 {
            connection.ask(&["SELECT", &self.database.to_string()])?;
        }
        let about = connection.ask(&["INFO", "server"])?.text()?;
        let found = about.lines().find_map(|l| l.strip_prefix("redis_version:")).unwrap_or("unknown").trim();
        let major: u32 = found.split('.').next().and_then(|v| v.parse().ok()).unwrap_or(0);
        if major < NEEDED.0 {
            let message = format!("runs Redis {found}; at least {} is needed", NEEDED.1);
            return Err(RepositoryError::new(Fault::Server, &self.place, message).into());
        }
        let key = format!("{PREFIX}version");
        connection.ask(&["SETNX", &key, &VERSION.to_string()])?;
        let found = connection.ask(&["GET", &key])?.text()?;
        if found.trim() != VERSION.to_string() {
            return Err(RepositoryError::version(&self.place, &found, VERSION).into());
        }
        Ok(connection)
    }
}

/// Host with port, and the database, of `redis://host[:port][/database]`.
fn parse(address: &str) -> Result<(String, u32), RepositoryError> {
    let public = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
    let fault = |message: &str| {
        let message = format!("no address of a Redis server: {message}");
        RepositoryError::new(Fault::Address, format!("{public:?}"), message)
    };
    let rest = address.strip_prefix("redis://").ok_or_else(|| fault("expected redis://host[:port][/database]"))?;
    let (host, database) = rest.split_once('/').unwrap_or((rest, ""));
    if host.contains('@') {
        return Err(fault("users and passwords are not supported"));
    }
    let database = if database.is_empty() { Ok(0) } else { database.parse() };
    let database = database.map_err(|_| fault("the database is no number"))?;
    // Colons within brackets are those of an IPv6 address.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    if name.is_empty() {
        return Err(fault("expected a host"));
    }
    let port = port.map_or(Ok(6379), str::parse::<u16>).ok().filter(|p| *p > 0);
    let port = port.ok_or_else(|| fault("the port is no number of 1 to 65535"))?;
    Ok((format!("{name}:{port}"), database))
}

fn name(key: &Key) -> String {
    format!("{}/{}", encoded(key.set()), encoded(key.device()))
}

impl Repository for RedisRepository {
    fn append(&mut self, key: &Key, record: &Record) -> Result<RecordId, RepositoryError> {
        let id = RecordId(self.writer.clone(), self.written);
        let line = encode(&id, record)?;
        // Also of what fails: it may have arrived, and nothing else may have its name.
        self.written += 1;
        let (name, field) = (name(key), id.to_string());
        let (keys, data) = (format!("{PREFIX}keys"), format!("{PREFIX}{name}"));
        self.with(|connection| {
            connection.ask_both(&["SADD", &keys, &name], &["HSETNX", &data, &field, &line]).map(drop)
        })?;
        Ok(id)
    }

    fn read(&mut self, key: &Key) -> Result<Vec<(RecordId, Record)>, RepositoryError> {
        let stored = format!("{PREFIX}{}", name(key));
        let lines = self.with(|connection| connection.ask(&["HVALS", &stored])?.texts())?;
        let place = format!("{}, {key}", self.place);
        let mut records = lines.iter().map(|line| decode(line, &place)).collect::<Result<Vec<_>, _>>()?;
        records.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(records)
    }

    fn state(&mut self, key: &Key) -> Result<String, RepositoryError> {
        let stored = format!("{PREFIX}{}", name(key));
        match self.with(|connection| connection.ask(&["HLEN", &stored]))? {
            Reply::Number(count) => Ok(count.to_string()),
            other => Err(self.refused(&ReplyError::Unexpected(format!("{other:?}")))),
        }
    }

    fn keys(&mut self) -> Result<Vec<Key>, RepositoryError> {
        let stored = format!("{PREFIX}keys");
        let names = self.with(|connection| connection.ask(&["SMEMBERS", &stored])?.texts())?;
        let mut keys = Vec::with_capacity(names.len());
        for name in names {
            let parts = name.split_once('/').and_then(|(s, d)| Some((decoded(s)?, decoded(d)?)));
            let damaged = || RepositoryError::new(Fault::Damaged, &self.place, format!("{name:?} is no key"));
            let (set, device) = parts.ok_or_else(damaged)?;
            keys.push(Key::new(&set, &device)?);
        }
        keys.sort();
        Ok(keys)
    }
}
