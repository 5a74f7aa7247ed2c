//! The embedded store: a folder of files that each have one writer.
//!
//! ```text
//! FOLDER/format                         tilewright repository 1
//! FOLDER/<set>/<device>/<writer>.seg    tilewright segment 1, then one record a line
//! ```
//!
//! Writers share no file, so that none waits for another and none can damage what another wrote. A record is
//! acknowledged when its line is with the operating system, where the death of a process cannot touch it. A writer that is killed
//! within a line leaves a line without its end, which nobody acknowledged and readers leave out.

use crate::error::{Fault, RepositoryError};
use crate::key::{decoded, encoded};
use crate::line::{RecordId, decode, encode, writer_name};
use crate::record::Record;
use crate::{Key, Repository};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tilewright_core::expr::brief;
use tilewright_files::{Locked, MOST, is_absent, read_file};

const VERSION: u32 = 1;
const MAGIC: &str = "tilewright segment 1\n";

/// A repository in a folder, for all processes that see it.
pub struct Embedded {
    folder: PathBuf,
    writer: String,
    written: u64,
    open: HashMap<Key, Segment>,
    durable: bool,
}

/// A file of this writer, locked while it lives: what is not locked may be merged.
struct Segment {
    path: PathBuf,
    file: Locked,
    /// Bytes of whole lines.
    length: u64,
}

impl Embedded {
    /// Opens a repository, or begins one in a folder that is empty or not there.
    ///
    /// # Errors
    /// A folder that cannot be written, that another version wrote, or that holds something else.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, RepositoryError> {
        let folder = folder.into();
        if !is_begun(&folder)? {
            fs::create_dir_all(&folder).map_err(RepositoryError::io(&folder))?;
            let format = folder.join("format");
            // Of writers that begin together, each puts the same file there.
            let fresh = folder.join(format!("{BEGINNING}{}.tmp", writer_name()));
            fs::write(&fresh, this_format()).map_err(RepositoryError::io(&fresh))?;
            fs::rename(&fresh, &format).map_err(RepositoryError::io(&format))?;
        }
        Ok(Self::at(folder))
    }

    /// [`Embedded::open`], but writes nothing: none where nothing was begun.
    ///
    /// # Errors
    /// A folder that cannot be read, that another version wrote, or that holds something else.
    pub fn open_existing(folder: impl Into<PathBuf>) -> Result<Option<Self>, RepositoryError> {
        let folder = folder.into();
        Ok(is_begun(&folder)?.then(|| Self::at(folder)))
    }

    fn at(folder: PathBuf) -> Self {
        Self { folder, writer: writer_name(), written: 0, open: HashMap::new(), durable: false }
    }

    /// Whether an acknowledged record also survives a loss of power: each costs a write to the disk.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    fn place(&self, key: &Key) -> PathBuf {
        self.folder.join(encoded(key.set())).join(encoded(key.device()))
    }

    /// Merges the files of writers that are gone into one; how many there were. Readers and writers may go on.
    ///
    /// # Errors
    /// As [`Repository::read`]; nothing is removed before all of it is in the new file.
    pub fn compact(&mut self, key: &Key) -> Result<usize, RepositoryError> {
        let folder = self.place(key);
        let mut records = BTreeMap::new();
        let mut gone: Vec<(PathBuf, Locked)> = Vec::new();
        for path in segments(&folder)? {
            let Ok(file) = File::open(&path) else { continue };
            let Some(file) = Locked::attempt(file).map_err(RepositoryError::io(&path))? else { continue };
            read_segment(&path, &mut records)?;
            gone.push((path, file));
        }
        if gone.len() < 2 {
            return Ok(gone.len());
        }
        let mut merged = Segment::begin(&folder)?;
        for (id, record) in &records {
            merged.append(&encode(id, record)?, false)?;
        }
        merged.file.sync_all().map_err(RepositoryError::io(&merged.path))?;
        for (path, _) in &gone {
            fs::remove_file(path).map_err(RepositoryError::io(path))?;
        }
        Ok(gone.len())
    }
}

/// Begins the name of the file with which a repository is begun.
const BEGINNING: &str = "format-";

/// What the file `format` says before the version.
const FORMAT: &str = "tilewright repository ";

fn this_format() -> String {
    format!("{FORMAT}{VERSION}\n")
}

/// Whether a folder is a repository of this version; not where it is empty or not there.
fn is_begun(folder: &Path) -> Result<bool, RepositoryError> {
    let is_written = || match fs::read_to_string(folder.join("format")) {
        // A copy by way of other systems may end the line otherwise.
        Ok(text) if text.trim_end() == this_format().trim_end() => Ok(true),
        Ok(text) => match text.trim_end().strip_prefix(FORMAT) {
            Some(found) => Err(RepositoryError::version(folder.display(), found, VERSION)),
            None => {
                let message = format!("is no repository: its file `format` holds {:?}", brief(text.trim_end()));
                Err(RepositoryError::new(Fault::Version, folder.display(), message))
            }
        },
        Err(e) if is_absent(&e) => Ok(false),
        Err(e) => Err(RepositoryError::io(&folder.join("format"))(e)),
    };
    if is_written()? {
        return Ok(true);
    }
    let entries = match fs::read_dir(folder) {
        Err(e) if is_absent(&e) => return Ok(false),
        entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(RepositoryError::io(folder))?,
    };
    let is_other = |name: &str| !name.starts_with(BEGINNING);
    if !entries.iter().any(|e| is_other(&e.file_name().to_string_lossy())) {
        return Ok(false);
    }
    // Another writer may have begun it, and written, since the first look.
    if is_written()? {
        return Ok(true);
    }
    Err(RepositoryError::new(
        Fault::Version,
        folder.display(),
        "is no repository: it holds other files and no file `format`",
    ))
}

impl Repository for Embedded {
    fn append(&mut self, key: &Key, record: &Record) -> Result<RecordId, RepositoryError> {
        let id = RecordId(self.writer.clone(), self.written);
        let line = encode(&id, record)?;
        let mut segment = match self.open.remove(key) {
            Some(segment) => segment,
            None => Segment::begin(&self.place(key))?,
        };
        // Also of what fails: a part of it may stand there.
        self.written += 1;
        segment.append(&line, self.durable)?;
        // A segment that failed is not used again: nothing may follow an unfinished line.
        self.open.insert(key.clone(), segment);
        Ok(id)
    }

    fn read(&mut self, key: &Key) -> Result<Vec<(RecordId, Record)>, RepositoryError> {
        let folder = self.place(key);
        // A file that is gone was merged meanwhile: look again. Merging ends, since it leaves one file.
        'again: for _ in 0..100 {
            let mut records = BTreeMap::new();
            for path in segments(&folder)? {
                match read_segment(&path, &mut records) {
                    Err(e) if e.fault == Fault::Io(io::ErrorKind::NotFound) => continue 'again,
                    other => other?,
                }
            }
            return Ok(records.into_iter().collect());
        }
        Err(RepositoryError::io(&folder)(io::Error::other("its files change faster than they can be read")))
    }

    fn state(&mut self, key: &Key) -> Result<String, RepositoryError> {
        let mut hasher = blake3::Hasher::new();
        for path in segments(&self.place(key))? {
            hasher.update(path.to_string_lossy().as_bytes());
            let metadata = fs::metadata(&path).map_err(RepositoryError::io(&path))?;
            hasher.update(&metadata.len().to_le_bytes());
            // What is damaged later may be as long as before.
            let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            hasher.update(&changed.unwrap_or_default().as_nanos().to_le_bytes());
        }
        Ok(hasher.finalize().to_hex()[..16].to_owned())
    }

    fn unfinished(&mut self, key: &Key) -> Result<Vec<RepositoryError>, RepositoryError> {
        let is_cut = |path: &PathBuf| {
            let bytes = read_file(path, MOST).unwrap_or_default();
            bytes.last().is_some_and(|last| *last != b'\n')
                // Whoever still writes it has it locked.
                && File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
        };
        let message = "ends within a record: its writer was killed, or it was cut short; what stands before counts";
        let cut = segments(&self.place(key))?.into_iter().filter(is_cut);
        Ok(cut.map(|path| RepositoryError::new(Fault::Damaged, path.display(), message)).collect())
    }

    fn keys(&mut self) -> Result<Vec<Key>, RepositoryError> {
        let mut keys = Vec::new();
        for set in folders(&self.folder)? {
            for device in folders(&self.folder.join(encoded(&set)))? {
                keys.push(Key::new(&set, &device)?);
            }
        }
        keys.sort();
        Ok(keys)
    }
}

impl Segment {
    fn begin(folder: &Path) -> Result<Self, RepositoryError> {
        fs::create_dir_all(folder).map_err(RepositoryError::io(folder))?;
        let name = writer_name();
        // Locked before it has the name that merging looks for.
        let fresh = folder.join(format!("{name}.tmp"));
        let path = folder.join(format!("{name}.seg"));
        let fail = RepositoryError::io(&fresh);
        let created = File::create_new(&fresh).and_then(Locked::attempt).map_err(&fail)?;
        let mut file = created.ok_or_else(|| fail(io::ErrorKind::WouldBlock.into()))?;
        file.write_all(MAGIC.as_bytes()).map_err(&fail)?;
        fs::rename(&fresh, &path).map_err(fail)?;
        Ok(Self { path, file, length: MAGIC.len() as u64 })
    }

    fn append(&mut self, line: &str, durable: bool) -> Result<(), RepositoryError> {
        let bytes = format!("{line}\n");
        let written = self.file.write_all(bytes.as_bytes());
        let synced = written.and_then(|()| if durable { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = synced {
            // Not acknowledged, so it may not stay; what cannot be removed now is an unfinished line.
            let _ = self.file.set_len(self.length);
            let _ = io::Seek::seek(&mut *self.file, io::SeekFrom::Start(self.length));
            return Err(RepositoryError::io(&self.path)(error));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

fn read_segment(path: &Path, records: &mut BTreeMap<RecordId, Record>) -> Result<(), RepositoryError> {
    let bytes = read_file(path, MOST).map_err(RepositoryError::io(path))?;
    let place = path.display().to_string();
    let damaged = |message: &str| RepositoryError::new(Fault::Damaged, &place, message);
    // A line without its end was never acknowledged.
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let text = std::str::from_utf8(&bytes[..whole]).map_err(|_| damaged("it is no text"))?;
    let Some(lines) = text.strip_prefix(MAGIC) else {
        // The first line is written before the file has its name.
        return Err(if text.is_empty() {
            damaged("it ends before its first line does")
        } else {
            foreign(text, &place)
        });
    };
    for (number, line) in lines.lines().enumerate() {
        let (id, record) = decode(line, &format!("{place}, line {}", number + 2))?;
        records.insert(id, record);
    }
    Ok(())
}

fn foreign(text: &str, place: &str) -> RepositoryError {
    let first = text.lines().next().unwrap_or_default();
    match first.strip_prefix("tilewright segment ") {
        Some(found) if found.trim() == VERSION.to_string() => {
            let message = format!("its first line is not {:?} and the end of a line: it was changed", MAGIC.trim_end());
            RepositoryError::new(Fault::Damaged, place, message)
        }
        Some(found) => RepositoryError::version(place, found, VERSION),
        None => RepositoryError::new(Fault::Damaged, place, "it is no segment of a repository"),
    }
}

/// The segments in a folder, sorted; none where there is no such folder.
fn segments(folder: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let mut out: Vec<PathBuf> = entries(folder)?;
    out.retain(|p| p.extension().is_some_and(|e| e == "seg"));
    out.sort();
    Ok(out)
}

/// The decoded names of the folders in a folder.
fn folders(folder: &Path) -> Result<Vec<String>, RepositoryError> {
    let all = entries(folder)?.into_iter().filter(|p| p.is_dir());
    Ok(all.filter_map(|p| decoded(&p.file_name()?.to_string_lossy())).collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let fail = RepositoryError::io(folder);
    match fs::read_dir(folder) {
        Ok(all) => all.map(|e| e.map(|e| e.path()).map_err(&fail)).collect(),
        Err(e) if is_absent(&e) => Ok(Vec::new()),
        Err(e) => Err(fail(e)),
    }
}
