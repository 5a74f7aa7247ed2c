//! Writing a file so that it is either there whole or not at all.

use super::StoreError;
use std::io::{self, Write};
use std::path::Path;
pub use tilewright_files::TEMPORARY;
use tilewright_files::replace;

/// Writes a file as [`replace`] does.
///
/// # Errors
/// The directory cannot be made, or writing fails; then the old file stands untouched.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    write_with(path, &mut |file| file.write_all(contents))
}

/// [`write_atomically`] with the writing done by the caller.
pub(crate) fn write_with(
    path: &Path,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    replace(path, fill).map_err(|e| StoreError::io(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreErrorKind;
    use std::fs::{self, File};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn replaces_a_file_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deeper/still/file");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(path.parent().unwrap()), ["file"]);
    }

    #[test]
    fn a_full_disk_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_atomically(&path, b"old").unwrap();
        let mut full = |w: &mut dyn Write| {
            w.write_all(b"half of it")?;
            Err(io::Error::from_raw_os_error(28))
        };
        let error = write_with(&path, &mut full).unwrap_err();
        assert!(matches!(error.kind, StoreErrorKind::DiskFull), "{error}");
        assert_eq!(error.path, path);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_really_full_device_is_named_as_such() {
        let mut device = File::options().write(true).open("/dev/full").unwrap();
        let error = StoreErrorKind::from(device.write_all(b"x").unwrap_err());
        assert!(matches!(error, StoreErrorKind::DiskFull), "{error}");
    }

    #[test]
    fn concurrent_writers_never_show_a_part() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_atomically(&path, &[0; 4096]).unwrap();
        std::thread::scope(|scope| {
            for byte in 1..4u8 {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| write_atomically(path, &[byte; 4096]).unwrap()));
            }
            for _ in 0..200 {
                let seen = fs::read(&path).unwrap();
                assert!(seen.len() == 4096 && seen.iter().all(|b| *b == seen[0]));
            }
        });
        assert_eq!(names(dir.path()), ["file"]);
    }
}
