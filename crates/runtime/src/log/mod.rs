//! Campaign logs: append-only files that survive a kill at any byte.
//!
//! A log has one record a line with its length and checksum. A kill during an append leaves a line without its end;
//! opening the log removes that line and keeps everything before it. A whole line with a wrong checksum is damage of
//! another kind: opening refuses, and touches nothing. The file is locked while it is open, so that a second process
//! that tunes the same kernel on the same device gets an error instead of mixing its records in.

mod record;

pub use record::{LogHeader, Record, Sample};

use crate::store::{OtherDevice, StoreError, StoreErrorKind};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tilewright_files::Locked;

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

impl Sink for Locked {
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

/// Where records go that are not kept.
struct Nowhere;

impl Sink for Nowhere {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn cut_to(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
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
        let mut file = open_locked(path, true)?;
        let bytes = read_whole(&mut file).map_err(fail)?;
        let (records, end) = parse(&bytes).map_err(fail)?;
        let mut log = Self { path: path.to_owned(), sink: Box::new(file), length: end };
        let torn = bytes.len() as u64 - end;
        if torn > 0 {
            tracing::warn!(path = %path.display(), bytes = torn, "removing a torn record");
        }
        log.sink.cut_to(end).map_err(|e| StoreError::io(path, e))?;
        let contents = log.begin(records, header)?;
        Ok(Opened { log, samples: contents.samples, finished: contents.finished, torn })
    }

    /// An empty log of which nothing is kept, in the place of one that cannot be written.
    pub fn unkept(path: &Path) -> Opened {
        let log = Self { path: path.to_owned(), sink: Box::new(Nowhere), length: 0 };
        Opened { log, samples: Vec::new(), finished: 0, torn: 0 }
    }

    /// Keeps nothing that is appended from now on; what was appended stays. The file is free for others.
    pub fn close(&mut self) {
        self.sink = Box::new(Nowhere);
    }

    /// Empties a log, whatever it holds. The file stays, so that a process that waits for its lock gets the same file.
    ///
    /// # Errors
    /// Another process has it open, or it cannot be written.
    pub fn clear(path: &Path) -> Result<(), StoreError> {
        match open_locked(path, false) {
            Ok(file) => file.set_len(0).map_err(|e| StoreError::io(path, e)),
            Err(e) if e.is_missing() => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Reads the samples of a log without opening it for writing. A torn tail is ignored.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<(LogHeader, Vec<Sample>), StoreError> {
        let fail = |kind| StoreError::new(path, kind);
        let mut file = File::open(path).map_err(|e| StoreError::io(path, e))?;
        read_whole(&mut file).and_then(|bytes| Self::from_bytes(&bytes)).map_err(fail)
    }

    /// [`CampaignLog::read`] of a file's bytes.
    ///
    /// # Errors
    /// The bytes are no log, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<(LogHeader, Vec<Sample>), StoreErrorKind> {
        let contents = Contents::of(parse(bytes)?.0)?;
        let header =
            contents.header.ok_or_else(|| StoreErrorKind::Corrupt("it does not begin with a header".into()))?;
        Ok((header, contents.samples))
    }

    /// Checks what was read, or writes the first lines of a new log.
    fn begin(&mut self, records: Vec<Record>, header: &LogHeader) -> Result<Contents, StoreError> {
        let fail = |kind| StoreError::new(&self.path, kind);
        let contents = Contents::of(records).map_err(fail)?;
        if let Some(found) = &contents.header {
            expect(found, header).map_err(fail)?;
        } else {
            if self.length == 0 {
                self.append_bytes(MAGIC.as_bytes())?;
            }
            self.append(&Record::Header(header.clone()))?;
            self.sync()?;
        }
        Ok(contents)
    }

    /// Appends a record: whole, or not at all.
    ///
    /// # Errors
    /// A number in it that is none, a full disk, or another failure of writing; what was there before stays.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let unfit = |why| StoreError::new(&self.path, StoreErrorKind::Unwritable(why));
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

    /// Bytes of whole records.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The records of a log, sorted out.
struct Contents {
    /// None if there is no record at all.
    header: Option<LogHeader>,
    samples: Vec<Sample>,
    finished: usize,
}

impl Contents {
    fn of(records: Vec<Record>) -> Result<Self, StoreErrorKind> {
        let mut contents = Self { header: None, samples: Vec::new(), finished: 0 };
        for (i, record) in records.into_iter().enumerate() {
            match record {
                Record::Header(found) if i == 0 => contents.header = Some(found),
                Record::Sample(sample) if i > 0 => contents.samples.push(sample),
                Record::Finished { .. } if i > 0 => contents.finished = contents.samples.len(),
                _ => return Err(StoreErrorKind::Corrupt(format!("record {i} is out of place"))),
            }
        }
        Ok(contents)
    }
}

/// The file, locked against other processes until it is closed.
fn open_locked(path: &Path, create: bool) -> Result<Locked, StoreError> {
    let opened = File::options().read(true).write(true).create(create).truncate(false).open(path);
    let locked = opened.and_then(Locked::attempt).map_err(|e| StoreError::io(path, e))?;
    locked.ok_or_else(|| StoreError::new(path, StoreErrorKind::Locked))
}

fn read_whole(file: &mut File) -> Result<Vec<u8>, StoreErrorKind> {
    let length = file.metadata()?.len();
    if length > LARGEST {
        return Err(StoreErrorKind::Corrupt(format!("{length} bytes, more than the {LARGEST} of the largest log")));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
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
