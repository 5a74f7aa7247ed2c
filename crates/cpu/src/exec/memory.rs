//! Executable memory: written while it is only writable, run while it is only executable.

use std::io;

use memmap2::{Mmap, MmapMut};

/// Machine code mapped read + execute. It was never writable and executable at the same time.
#[derive(Debug)]
pub(crate) struct ExecBuffer {
    map: Mmap,
}

impl ExecBuffer {
    /// Copies `code` into fresh pages and seals them.
    ///
    /// # Errors
    /// The operating system's error when it gives no pages or forbids executable ones.
    pub(crate) fn new(code: &[u8]) -> io::Result<Self> {
        let mut map = MmapMut::map_anon(code.len().max(1))?;
        map[..code.len()].copy_from_slice(code);
        Ok(Self { map: map.make_exec()? })
    }

    /// Address of the byte at `offset`.
    pub(crate) fn at(&self, offset: usize) -> *const u8 {
        self.map[offset..].as_ptr()
    }
}
