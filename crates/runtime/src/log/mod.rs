//! Campaign logs: append-only files that survive a kill at any byte.
//!
//! A log has one record a line with its length and checksum. A kill during an append leaves a line without its end;
//! opening the log removes that line and keeps everything before it. A whole line with a wrong checksum is damage of
//! another kind: opening refuses, and touches nothing. The file is locked while it is open, so that a second process
//! that tunes the same kernel on the same device gets an error instead of mixing its records in.

mod record;

pub use record::{LogHeader, Record, Sample};

use crate::store::{OtherDevice, StoreError, StoreErrorKind};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// First line of every log.
const MAGIC: &str = "tilewright log 1\n";
const NAME: &str = "log";
const VERSION: u32 = 1;

/// A log of this many bytes is no log: it would not be read into memory.
const LARGEST: u64 = 4 << 30;

/// Where records go: a file, or a stand-in whose disk is full.
trait Sink: Send {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn cut_to(&mut self, length: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// An open campaign log.
pub struct CampaignLog {
    path: PathBuf,
    sink: Box<dyn Sink>,
    /// Bytes of whole records.
    length: u64,
}

/// A log with what it held when it was opened.
pub struct Opened {
    /// The log, ready to append.
    pub log: CampaignLog,
    /// The measurements in it, in order.
    pub samples: Vec<Sample>,
    /// How many of the samples belong to campaigns that ended.
    pub finished: usize,
    /// Bytes of a torn last record that were removed.
    pub torn: u64,
}

impl CampaignLog {
    /// Opens a log, or begins one. A torn tail is removed.
    ///
    /// # Errors
    /// Another process has it open, it is damaged, of another version, or for another kernel or device; or the file
    /// cannot be written.
    pub fn open(path: &Path, header: &LogHeader) -> Result<Opened, StoreError> {
        let fail = |kind| StoreError::new(path, kind);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|e| StoreError::io(directory, e))?;
        }
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| StoreError::io(path, e))?;
        file.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => fail(StoreErrorKind::Locked),
            TryLockError::Error(e) => StoreError::io(path, e),
        })?;
        let bytes = read_whole(&mut file).map_err(|e| StoreError::io(path, e))?;
        let (records, end) = parse(&bytes).map_err(fail)?;
        let mut log = Self { path: path.to_owned(), sink: Box::new(file), length: end };
        let torn = bytes.len() as u64 - end;
        if torn > 0 {
            tracing::warn!(path = %path.display(), bytes = torn, "removing a torn record");
        }
        log.sink.cut_to(end).map_err(|e| StoreError::io(path, e))?;
        let (samples, finished) = log.begin(records, header)?;
        Ok(Opened { log, samples, finished, torn })
    }

    /// Reads the samples of a log without opening it for writing. A torn tail is ignored.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<(LogHeader, Vec<Sample>), StoreError> {
        let bytes = File::open(path).and_then(|mut f| read_whole(&mut f)).map_err(|e| StoreError::io(path, e))?;
        let (records, _) = parse(&bytes).map_err(|kind| StoreError::new(path, kind))?;
        let mut records = records.into_iter();
        let Some(Record::Header(header)) = records.next() else {
            let kind = StoreErrorKind::Corrupt("it does not begin with a header".into());
            return Err(StoreError::new(path, kind));
        };
        let sample = |r| if let Record::Sample(s) = r { Some(s) } else { None };
        Ok((header, records.filter_map(sample).collect()))
    }

    /// Checks what was read, or writes the first lines of a new log.
    fn begin(&mut self, records: Vec<Record>, header: &LogHeader) -> Result<(Vec<Sample>, usize), StoreError> {
        let (mut samples, mut finished) = (Vec::new(), 0);
        let fresh = records.is_empty();
        for (i, record) in records.into_iter().enumerate() {
            match record {
                Record::Header(found) if i == 0 => {
                    expect(&found, header).map_err(|kind| StoreError::new(&self.path, kind))?;
                }
                Record::Sample(sample) if i > 0 => samples.push(sample),
                Record::Finished { .. } if i > 0 => finished = samples.len(),
                _ => {
                    let kind = StoreErrorKind::Corrupt(format!("record {i} is out of place"));
                    return Err(StoreError::new(&self.path, kind));
                }
            }
        }
        if fresh {
            if self.length == 0 {
                self.append_bytes(MAGIC.as_bytes())?;
            }
            self.append(&Record::Header(header.clone()))?;
            self.sync()?;
        }
        Ok((samples, finished))
    }

    /// Appends a record: whole, or not at all.
    ///
    /// # Errors
    /// The disk is full, or writing fails otherwise; what was there before stays.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let unfit = |e: serde_json::Error| {
            StoreError::new(&self.path, StoreErrorKind::Corrupt(format!("a record cannot be written: {e}")))
        };
        let line = record::to_line(record).map_err(unfit)?;
        self.append_bytes(&line)
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if let Err(error) = self.sink.append(bytes) {
            // A part may have been written. If it cannot be removed now, the next opening will.
            let _ = self.sink.cut_to(self.length);
            return Err(StoreError::io(&self.path, error));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Makes everything appended so far survive a loss of power. A kill of the process alone loses nothing anyway.
    ///
    /// # Errors
    /// The device reports a failure.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.sink.sync().map_err(|e| StoreError::io(&self.path, e))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read_whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The records of a log's bytes and the length of its whole lines.
fn parse(bytes: &[u8]) -> Result<(Vec<Record>, u64), StoreErrorKind> {
    if bytes.len() < MAGIC.len() && MAGIC.as_bytes().starts_with(bytes) {
        // Killed while the first line was written.
        return Ok((Vec::new(), 0));
    }
    let Some(mut rest) = bytes.strip_prefix(MAGIC.as_bytes()) else {
        return Err(foreign(bytes));
    };
    let mut records = Vec::new();
    let mut end = MAGIC.len();
    while let Some(newline) = rest.iter().position(|b| *b == b'\n') {
        let at_byte = |why| StoreErrorKind::Corrupt(format!("record {} at byte {end}: {why}", records.len()));
        let record = record::from_line(&rest[..newline]).map_err(at_byte)?;
        records.push(record);
        rest = &rest[newline + 1..];
        end += newline + 1;
    }
    Ok((records, end as u64))
}

/// What a file is that does not begin as this version's logs do.
fn foreign(bytes: &[u8]) -> StoreErrorKind {
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let version = std::str::from_utf8(line).ok().and_then(|l| l.strip_prefix("tilewright log "));
    match version.and_then(|v| v.parse().ok()) {
        Some(found) if found != VERSION => StoreErrorKind::ForeignVersion { found, known: VERSION },
        _ => StoreErrorKind::NotOurs { expected: NAME },
    }
}

fn expect(found: &LogHeader, header: &LogHeader) -> Result<(), StoreErrorKind> {
    if found.kernel != header.kernel {
        let (found, expected) = (found.kernel.to_string(), header.kernel.to_string());
        return Err(StoreErrorKind::OtherKernel { found, expected });
    }
    if found.fingerprint != header.fingerprint {
        return Err(StoreErrorKind::OtherDevice(Box::new(OtherDevice {
            found: found.fingerprint.clone(),
            found_name: found.device.clone(),
            expected: header.fingerprint.clone(),
            expected_name: header.device.clone(),
            lacking: Vec::new(),
        })));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
