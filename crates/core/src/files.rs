//! Files of users: read within a limit, and written so that they are there whole or not at all.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Prefix of temporary files, which a killed process may leave behind.
pub const TEMPORARY: &str = ".tilewright-";

/// More than any file that is read whole.
pub const MOST: u64 = 4 << 30;

/// Reads a regular file of at most so many bytes: a device or a pipe may have no end.
///
/// # Errors
/// No regular file, a longer one, what the system reports.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file"));
    }
    let mut out = Vec::new();
    let length = File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut out)?;
    if length as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {most} bytes")));
    }
    Ok(out)
}

/// Writes a file: into a temporary file of the same directory, synced, renamed over `path`, and the directory synced. Folders that are
/// missing are made. Whoever reads `path` sees the old contents or the new, never a part; so do concurrent writers.
///
/// A symbolic link stays one: the file that it leads to is written. What is no regular file, a device or a pipe, is written through.
///
/// # Errors
/// What the system reports; then the old file stands untouched.
pub fn replace(path: &Path, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // Before links are followed one by one: some lead to pipes, which have no path.
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return File::options().write(true).open(path).and_then(|mut file| fill(&mut file));
    }
    let path = &destination(path)?;
    let directory = match path.parent() {
        Some(d) if !d.as_os_str().is_empty() => d,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    let temporary = temporary_name(directory);
    let written = write_and_rename(&temporary, path, fill);
    if written.is_err() {
        // The error that matters is the first one; the leftover is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_directory(directory))
}

/// Where symbolic links lead, also to a file that is not there yet.
fn destination(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const LINKS: usize = 40;
    let mut at = path.to_path_buf();
    for _ in 0..LINKS {
        let Ok(to) = fs::read_link(&at) else { return Ok(at) };
        at = at.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("too many symbolic links"))
}

fn write_and_rename(
    temporary: &Path,
    path: &Path,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(temporary)?;
    fill(&mut file)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// A name that no other thread or process uses: of a count, and of the system's randomness, which differs between processes.
fn temporary_name(directory: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    directory.join(format!("{TEMPORARY}{count}-{:016x}", RandomState::new().build_hasher().finish()))
}

/// Makes a rename durable. Directories can only be synced on Unix; elsewhere the file system orders renames itself.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
