//! Routines that are ready to be called: machine code where the host runs it, plain Rust elsewhere.

use super::portable::Portable;
use crate::codegen::abi::PanelArgs;
#[cfg(target_arch = "x86_64")]
use crate::codegen::abi::PanelFn;
use crate::codegen::tile::Tile;
use iced_x86::IcedError;
#[cfg(target_arch = "x86_64")]
use memmap2::Mmap;

/// Routines start at this alignment, in bytes.
const ROUTINE_ALIGN: usize = 64;

/// Runs a generated routine: the processor does, and in tests an interpreter.
pub(crate) trait Invoke {
    /// Runs the routine at an offset of the code.
    ///
    /// # Safety
    /// The routine must be one that the generator wrote, its arguments must describe tiles within memory that it may
    /// use, and the host must have its instruction set.
    unsafe fn invoke(&self, entry: usize, args: *mut PanelArgs);
}

#[cfg(target_arch = "x86_64")]
impl Invoke for Mmap {
    unsafe fn invoke(&self, entry: usize, args: *mut PanelArgs) {
        // SAFETY: the entry is the start of a routine that the generator wrote with this signature; the rest is the
        // caller's contract.
        unsafe { std::mem::transmute::<*const u8, PanelFn>(self[entry..].as_ptr())(args) };
    }
}

/// What runs the routines of a plan.
#[derive(Debug)]
pub(crate) enum Code {
    #[cfg(target_arch = "x86_64")]
    Native(Mmap),
    Portable(Portable),
}

impl Code {
    /// The routines of tiles, and where each starts: generated where the host can run them.
    ///
    /// # Errors
    /// The operating system's refusal of executable memory.
    pub(crate) fn new(tiles: Vec<Tile>) -> Result<(Self, Vec<usize>), String> {
        #[cfg(target_arch = "x86_64")]
        if crate::device::generates() {
            let (code, entries) = assemble(&tiles).map_err(|e| format!("encoding: {e}"))?;
            let code = super::memory::executable(&code).map_err(|e| format!("executable memory: {e}"))?;
            return Ok((Self::Native(code), entries));
        }
        Ok(Self::portable(tiles))
    }

    /// The same without generated code.
    pub(crate) fn portable(tiles: Vec<Tile>) -> (Self, Vec<usize>) {
        let entries = (0..tiles.len()).collect();
        (Self::Portable(Portable { tiles }), entries)
    }

    /// Whether the host's vector instructions may be used.
    pub(crate) fn is_native(&self) -> bool {
        !matches!(self, Self::Portable(_))
    }
}

/// Machine code of routines, and where each starts.
///
/// # Errors
/// The encoder's; tiles of a legal plan give none.
pub(crate) fn assemble(tiles: &[Tile]) -> Result<(Vec<u8>, Vec<usize>), IcedError> {
    let (mut code, mut entries) = (Vec::new(), Vec::with_capacity(tiles.len()));
    for tile in tiles {
        code.resize(code.len().next_multiple_of(ROUTINE_ALIGN), 0xcc);
        entries.push(code.len());
        code.extend(tile.assemble()?);
    }
    Ok((code, entries))
}
