//! Memory for packed panels and partial sums: huge pages where the system has them, kept from call to call.
//!
//! A packed block is read again and again; on pages of 4 KiB its address translations do not fit the processor's buffers,
//! and walks of nested page tables (virtual machines) cost more than the cache misses. Memory that is kept also spares
//! every new plan the page faults.

use memmap2::MmapMut;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Size and alignment of a huge page.
const HUGE: usize = 2 << 20;

/// Idle memory, one piece for each call that ever ran at the same time as others.
static IDLE: Mutex<Vec<Scratch>> = Mutex::new(Vec::new());

/// A piece of memory.
#[derive(Debug)]
struct Scratch {
    map: MmapMut,
}

impl Scratch {
    fn new(bytes: usize) -> io::Result<Self> {
        let size = bytes.checked_next_multiple_of(HUGE).and_then(|b| b.checked_add(HUGE));
        let map = MmapMut::map_anon(size.ok_or(io::ErrorKind::OutOfMemory)?)?;
        // Only a wish: kernels without huge pages refuse it, and ordinary pages do as well.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { map })
    }

    /// Bytes that [`Scratch::start`] has at least.
    fn len(&self) -> usize {
        self.map.len() - HUGE
    }

    /// The first huge page.
    fn start(&mut self) -> *mut u8 {
        let start = self.map.as_mut_ptr();
        start.wrapping_add(start.align_offset(HUGE))
    }
}

/// Calls `use_it` with the address of at least `bytes` bytes, aligned to a huge page, that nobody else uses meanwhile. What
/// they hold is arbitrary.
///
/// # Errors
/// The system has no memory left.
pub(crate) fn with<R>(bytes: usize, use_it: impl FnOnce(*mut u8) -> R) -> io::Result<R> {
    if bytes == 0 {
        return Ok(use_it(std::ptr::null_mut()));
    }
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut scratch = match idle {
        Some(large_enough) if large_enough.len() >= bytes => large_enough,
        _ => Scratch::new(bytes)?,
    };
    let result = use_it(scratch.start());
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_no_two_calls_share_it() {
        with(100, |outer| {
            assert_eq!(outer.align_offset(HUGE), 0);
            with(HUGE + 1, |inner| assert_ne!(outer, inner)).unwrap();
        })
        .unwrap();
        assert!(with(0, |p| p.is_null()).unwrap());
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(with(usize::MAX, |_| ()).is_err());
        assert!(with(usize::MAX / 2, |_| ()).is_err());
    }
}
