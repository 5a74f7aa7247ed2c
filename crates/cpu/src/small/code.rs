//! The routine of a plan, ready to be called: machine code where the host runs it, plain Rust elsewhere.

use super::blueprint::Blueprint;
use super::portable;
use super::routine::Constants;
#[cfg(target_arch = "x86_64")]
use super::routine::{Routine, assemble};
use crate::scalar::Float;
#[cfg(target_arch = "x86_64")]
use memmap2::Mmap;

/// Addresses of the operands of a product, the first of a batch, and of memory for a panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    pub(super) a: *const u8,
    pub(super) b: *const u8,
    pub(super) c: *mut u8,
    pub(super) panel: *mut u8,
}

// SAFETY: threads compute different products, whose C do not overlap, with panels of their own; A and B are only read.
unsafe impl Sync for Operands {}

/// What runs the products of a plan.
#[derive(Debug)]
pub(super) enum Code {
    #[cfg(target_arch = "x86_64")]
    Native(Mmap),
    Portable,
}

impl Code {
    /// Generates the routine where the host can run it.
    ///
    /// # Errors
    /// The operating system's refusal of executable memory.
    pub(super) fn new(blueprint: &Blueprint) -> Result<Self, String> {
        #[cfg(target_arch = "x86_64")]
        if crate::device::generates() {
            let code = assemble(blueprint).map_err(|e| format!("encoding: {e}"))?;
            let code = crate::exec::memory::executable(&code).map_err(|e| format!("executable memory: {e}"))?;
            return Ok(Self::Native(code));
        }
        let _ = blueprint;
        Ok(Self::Portable)
    }

    /// Computes `count` products one after the other.
    ///
    /// # Safety
    /// The operands must be readable and C writable over the extents of so many products of the plan's input, the panel over its
    /// size and aligned to 64 bytes, nobody else may touch C or the panel meanwhile, and the host must have the instructions of the plan.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        blueprint: &Blueprint,
        Operands { a, b, c, panel }: Operands,
        count: usize,
        constants: &Constants,
    ) {
        let (v, s) = if blueprint.swapped { (b, a) } else { (a, b) };
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the mapping begins with a routine of this signature that the generator wrote for this plan; the rest is
            // the caller's contract.
            Self::Native(code) => unsafe {
                std::mem::transmute::<*const u8, Routine>(code.as_ptr())(v, s, c, count, constants, panel);
            },
            Self::Portable => {
                let [v_stride, s_stride, c_stride] = blueprint.strides.map(|bytes| bytes as isize);
                for i in 0..count as isize {
                    let v = v.wrapping_offset(i * v_stride);
                    let s = s.wrapping_offset(i * s_stride);
                    let c = c.wrapping_offset(i * c_stride);
                    // SAFETY: the caller's contract; the element type is the plan's.
                    unsafe {
                        match blueprint.isa.float {
                            Float::F32 => portable::product::<f32>(blueprint, v, s, c, constants),
                            Float::F64 => portable::product::<f64>(blueprint, v, s, c, constants),
                        }
                    }
                }
            }
        }
    }
}
