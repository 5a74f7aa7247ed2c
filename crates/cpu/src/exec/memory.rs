//! Executable memory: written while it is only writable, run while it is only executable.

use std::io;

use memmap2::{Mmap, MmapMut};

/// Machine code mapped read + execute. It was never writable and executable at the same time.
///
/// # Errors
/// The operating system's error when it gives no pages or forbids executable ones.
pub(crate) fn executable(code: &[u8]) -> io::Result<Mmap> {
    let mut map = MmapMut::map_anon(code.len().max(1))?;
    map[..code.len()].copy_from_slice(code);
    map.make_exec()
}
