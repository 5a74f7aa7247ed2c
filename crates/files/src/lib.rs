#![doc = include_str!("../README.md")]

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::ops::{Deref, DerefMut};
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
    if is_special(path) {
        return open_special(path).and_then(|mut file| fill(&mut file));
    }
    let path = &destination(path)?;
    let directory = &folder_for(path)?;
    let temporary = temporary_name(directory);
    let written = write_and_rename(&temporary, path, fill);
    if written.is_err() {
        // The error that matters is the first one; the leftover is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_directory(directory))
}

/// A place where [`replace`] can write. While this lives, whoever reads a pipe there is not told that nothing more comes.
#[derive(Debug)]
pub struct Writable {
    _pipe: Option<File>,
}

/// Whether [`replace`] will be able to write there, to be asked before the work whose result goes there. Folders that are missing are
/// made; a file that is there stays as it is.
///
/// # Errors
/// A folder, a pipe that nobody reads, what the system reports.
pub fn expect_writable(path: &Path) -> io::Result<Writable> {
    if is_special(path) {
        return Ok(Writable { _pipe: Some(open_special(path)?) });
    }
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let path = &destination(path)?;
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return refused("is a folder");
    }
    if path.file_name().is_none() {
        return refused("names no file");
    }
    let temporary = temporary_name(&folder_for(path)?);
    File::options().write(true).create_new(true).open(&temporary)?;
    fs::remove_file(&temporary)?;
    Ok(Writable { _pipe: None })
}

/// An open file that is locked against other processes and other openings until this is dropped.
///
/// Closing alone would not free it in time: a child of another thread holds a copy of every open file between its fork and its exec.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Locks a file; none where it is locked already.
    ///
    /// # Errors
    /// What the system reports, such as a file system without locks.
    pub fn attempt(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Where this fails, closing is what is left.
        let _ = self.0.unlock();
    }
}

/// Whether there is nothing under a name: also where a part of it is no folder, or a link that leads to itself.
pub fn is_absent(error: &io::Error) -> bool {
    let is_circle = cfg!(unix) && error.raw_os_error() == Some(CIRCLE);
    is_circle || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(unix)]
const CIRCLE: i32 = rustix::io::Errno::LOOP.raw_os_error();
#[cfg(not(unix))]
const CIRCLE: i32 = 0;

/// Whether something is there that is neither a file nor a folder.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Opens a device or a pipe. A pipe that nobody reads is refused: waiting for a reader may take for ever.
#[cfg(unix)]
fn open_special(path: &Path) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use rustix::io::Errno;
    use std::os::unix::fs::OpenOptionsExt;
    let opened = File::options().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = opened.map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::NXIO) => io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe that nobody reads"),
        _ => e,
    })?;
    // Writing waits for the reader as ever.
    fcntl_setfl(&file, fcntl_getfl(&file)?.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

#[cfg(not(unix))]
fn open_special(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// The folder that a file is in, made where it is missing.
fn folder_for(path: &Path) -> io::Result<PathBuf> {
    let directory = match path.parent() {
        Some(d) if !d.as_os_str().is_empty() => d,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    Ok(directory.to_path_buf())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_devices_are_written_through() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &[u8]| replace(&at(name), &mut |file| file.write_all(text));
        symlink("second", at("first")).unwrap();
        symlink(at("deeper/file"), at("second")).unwrap();
        for text in ["one", "two"] {
            write("first", text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(at("deeper/file")).unwrap(), text);
        }
        assert!(["first", "second"].iter().all(|name| at(name).is_symlink()));
        symlink("/dev/null", at("device")).unwrap();
        write("device", b"gone").unwrap();
        assert!(at("device").is_symlink() && !fs::metadata("/dev/null").unwrap().is_file());
        symlink("turn", at("turn")).unwrap();
        assert!(write("turn", b"nowhere").unwrap_err().to_string().contains("symbolic links"));
    }
    /// What is asked before the work is answered as writing will be after it.
    #[cfg(unix)]
    #[test]
    fn places_are_judged_before_anything_is_written() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "old").unwrap();
        symlink("turn", at("turn")).unwrap();
        symlink(at("folder"), at("away")).unwrap();
        let pipe = at("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (name, why) in [
            ("", "folder"),
            ("folder/", "folder"),
            ("file/below", ""),
            ("turn", "symbolic links"),
            ("turn/below", ""),
            ("pipe", "nobody reads"),
            ("missing/..", ""),
        ] {
            let refused = expect_writable(&at(name)).map(drop).expect_err(name);
            assert!(refused.to_string().contains(why), "{name}: {refused}");
            assert!(replace(&at(name), &mut |file| file.write_all(b"new")).is_err(), "{name}");
        }
        assert!(expect_writable(Path::new("")).is_err() && expect_writable(Path::new("/proc/none/file")).is_err());
        for name in ["file", "deep/er/file", "away"] {
            expect_writable(&at(name)).unwrap();
            assert_eq!(
                fs::read_dir(folder.path().join(name).parent().unwrap())
                    .unwrap()
                    .filter(|e| { e.as_ref().unwrap().file_name().to_string_lossy().starts_with(TEMPORARY) })
                    .count(),
                0,
                "nothing is left"
            );
        }
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "old");
        assert!(expect_writable(Path::new("/dev/null")).is_ok());
    }

    /// As where another thread starts a process: its copy of the file lives on for a moment.
    #[test]
    fn a_lock_ends_with_its_holder_and_not_with_the_last_copy() {
        let folder = tempfile::tempdir().unwrap();
        let open =
            || File::options().write(true).create(true).truncate(false).open(folder.path().join("file")).unwrap();
        let held = Locked::attempt(open()).unwrap().unwrap();
        assert!(Locked::attempt(open()).unwrap().is_none());
        let _copy = held.try_clone().unwrap();
        drop(held);
        assert!(Locked::attempt(open()).unwrap().is_some());
    }

    /// With somebody who reads it, a pipe is a place, and stays open until the end.
    #[cfg(unix)]
    #[test]
    fn a_pipe_with_a_reader_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        let held = loop {
            match expect_writable(&pipe) {
                Ok(held) => break held,
                Err(_) => std::thread::yield_now(),
            }
        };
        replace(&pipe, &mut |file| file.write_all(b"answer")).unwrap();
        drop(held);
        assert_eq!(reader.join().unwrap(), "answer");
    }

    #[cfg(unix)]
    #[test]
    fn a_name_below_a_file_or_a_circle_of_links_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("turn", at("turn")).unwrap();
        for name in ["none", "file/below", "turn", "turn/below"] {
            assert!(is_absent(&fs::read(at(name)).unwrap_err()), "{name}");
        }
        assert!(!is_absent(&fs::read(folder.path()).unwrap_err()), "a folder is there");
    }
}
