//! Plans whose threads each compute a part of C by generated code of their own, as code that the host runs.

use super::code::Invoke;
use super::driver::Call;
use super::scratch;
use crate::device::GemmCheck;
use iced_x86::IcedError;
use tilewright_core::program::{DeviceError, HostArgs, HostCode};
use tilewright_ops::gemm::GemmInput;

#[cfg(target_arch = "x86_64")]
use memmap2::Mmap;

/// What a plan derives, and how its parts are computed.
pub(crate) trait Parts: Send + Sync {
    /// Where each routine starts.
    type Entries: Send + Sync;

    /// Machine code of all routines that the plan needs, and where each starts.
    ///
    /// # Errors
    /// The encoder's; a legal plan gives none.
    fn generate(&self) -> Result<(Vec<u8>, Self::Entries), IcedError>;

    fn threads(&self) -> usize;

    /// Bytes of memory that the parts need, all together, aligned to 64 bytes.
    fn workspace(&self) -> usize {
        0
    }

    /// Whether this host runs the code, beyond having its vectors.
    fn runs_here(&self) -> bool {
        true
    }

    /// Computes the part of one thread.
    ///
    /// # Safety
    /// The operands must be readable and C writable over the extents of the input, the workspace over its size, no other thread may
    /// touch the part's C, and what runs the routines must be able to.
    unsafe fn run_part(&self, thread: usize, call: &Call, entries: &Self::Entries, runs: &impl Invoke);

    /// The same in plain Rust, on this thread.
    ///
    /// # Safety
    /// As for [`Parts::run_part`], over the whole of C.
    unsafe fn run_plainly(&self, call: &Call);
}

/// A plan, ready to be called.
pub(crate) struct HostParts<P: Parts> {
    check: GemmCheck,
    parts: P,
    /// Generated code, where the host runs it; or why there is none: executable memory was refused.
    #[cfg(target_arch = "x86_64")]
    code: Result<Option<(Mmap, P::Entries)>, String>,
}

impl<P: Parts> HostParts<P> {
    /// `vec`: bytes of the vectors that the code is generated for.
    pub(crate) fn new(input: &GemmInput, vec: usize, parts: P) -> Self {
        Self {
            check: GemmCheck::new(input, vec),
            #[cfg(target_arch = "x86_64")]
            code: native(&parts).transpose(),
            parts,
        }
    }

    /// # Safety
    /// As for [`Parts::run_part`], over the whole of C.
    unsafe fn compute(&self, call: &Call) -> Result<(), DeviceError> {
        #[cfg(target_arch = "x86_64")]
        if let Some((code, entries)) = self.code.as_ref().map_err(|e| DeviceError::Load(e.clone()))? {
            // SAFETY: the caller's contract; parts of different threads do not overlap.
            let part = |thread| unsafe { self.parts.run_part(thread, call, entries, code) };
            tilewright_threads::run(self.parts.threads(), &part);
            return Ok(());
        }
        // SAFETY: the caller's contract.
        unsafe { self.parts.run_plainly(call) };
        Ok(())
    }
}

impl<P: Parts> HostCode for HostParts<P> {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let Some(call) = self.check.call(args)? else { return Ok(()) };
        let bytes = self.parts.workspace();
        // SAFETY: the check has established the lengths of the operands, that C may be written, and that the host has the vectors; C is
        // borrowed mutably for the whole call, and the scratch memory is this call's.
        let compute = |workspace| unsafe { self.compute(&Call { workspace, ..call }) };
        scratch::with(bytes, compute).map_err(|e| DeviceError::Run(format!("{bytes} bytes for packed panels: {e}")))?
    }
}

/// Generated code, where the host runs it.
#[cfg(target_arch = "x86_64")]
fn native<P: Parts>(parts: &P) -> Option<Result<(Mmap, P::Entries), String>> {
    let map = || {
        let (code, entries) = parts.generate().map_err(|e| format!("encoding: {e}"))?;
        let code = super::memory::executable(&code).map_err(|e| format!("executable memory: {e}"))?;
        Ok((code, entries))
    };
    (crate::device::generates() && parts.runs_here()).then(map)
}
