//! A program ready to be put on the stream.

use super::device::Held;
use super::driver::{Function, Memory};
use super::library::{DeviceLibrary, Stage};
use std::ffi::c_void;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, DeviceError, LibraryCall};

/// A step with everything but the addresses of this moment.
pub(super) enum Ready {
    Fill { offset: usize, bytes: usize, value: u8 },
    Kernel { function: Function, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, params: Vec<u64> },
    Library(LibraryCall),
}

/// What steps are put on the stream with.
pub(super) struct Ground<'a> {
    pub(super) stream: *mut c_void,
    pub(super) held: &'a Held,
    pub(super) workspace: Option<&'a Memory>,
    pub(super) scratch: Option<&'a Memory>,
    pub(super) libraries: &'a mut [Box<dyn DeviceLibrary>],
}

/// Puts all steps on the stream.
pub(super) fn enqueue(steps: &[Ready], ground: &mut Ground<'_>) -> Result<(), DeviceError> {
    for step in steps {
        match step {
            Ready::Fill { offset, bytes, value } => {
                let memory = ground.workspace.ok_or_else(|| argument("workspace", "there is none".into()))?;
                memory.set(*offset..offset + bytes, *value)?;
            }
            Ready::Kernel { function, grid, block, shared_bytes, params } => {
                function.launch(*grid, *block, *shared_bytes, params)?;
            }
            Ready::Library(call) => {
                let stage = stage(ground.stream, ground.held, ground.scratch);
                library(ground.libraries, call)?.enqueue(call, &stage)?;
            }
        }
    }
    Ok(())
}

/// Where a library's routine works.
pub(super) fn stage<'a>(stream: *mut c_void, held: &'a Held, scratch: Option<&Memory>) -> Stage<'a> {
    Stage {
        stream,
        buffers: &held.addresses,
        bytes: &held.lengths,
        scalars: &held.scalars,
        scratch: scratch.map_or(0, Memory::address),
        scratch_bytes: scratch.map_or(0, Memory::len),
    }
}

pub(super) fn library<'a>(
    libraries: &'a mut [Box<dyn DeviceLibrary>],
    call: &LibraryCall,
) -> Result<&'a mut Box<dyn DeviceLibrary>, DeviceError> {
    libraries.iter_mut().find(|l| l.name() == call.library).ok_or_else(|| DeviceError::Unsupported {
        device: "cuda".into(),
        feature: format!("the library {}", call.library),
    })
}

pub(super) fn argument(name: &str, message: String) -> DeviceError {
    DeviceError::Argument { name: name.to_owned(), message }
}

/// What arguments refer to.
pub(super) struct Referents<'a> {
    pub(super) buffers: &'a [u64],
    pub(super) workspace: Option<u64>,
    pub(super) scalars: &'a [f64],
    /// Element type of the first buffer, in which scalars are passed.
    pub(super) dtype: Option<DType>,
}

/// The parameters of a launch, each at the beginning of a word.
///
/// # Errors
/// An argument that refers to nothing, or has another length than the entry's parameter.
pub(super) fn parameters(
    entry: &str,
    lengths: &[u32],
    args: &[Arg],
    to: &Referents<'_>,
) -> Result<Vec<u64>, DeviceError> {
    if lengths.len() != args.len() {
        let message = format!("it takes {} parameters, {} are given", lengths.len(), args.len());
        return Err(argument(entry, message));
    }
    let mut out = Vec::with_capacity(args.len());
    for (i, (arg, &length)) in args.iter().zip(lengths).enumerate() {
        let (word, bytes) = value(arg, length, to)?;
        if bytes != length {
            let message = format!("parameter {i} has {length} bytes, {arg:?} has {bytes}");
            return Err(argument(entry, message));
        }
        out.push(word);
    }
    Ok(out)
}

/// The bits of an argument and how many bytes of them count.
fn value(arg: &Arg, length: u32, to: &Referents<'_>) -> Result<(u64, u32), DeviceError> {
    let missing = |name: &str, i: usize| argument(name, format!("number {i} is not there"));
    Ok(match *arg {
        Arg::Buffer(i, offset) => (to.buffers.get(i).ok_or_else(|| missing("buffer", i))? + offset, 8),
        Arg::Workspace(offset) => (to.workspace.ok_or_else(|| missing("workspace", 0))? + offset, 8),
        Arg::U32(x) => (x.into(), 4),
        Arg::U64(x) => (x, 8),
        Arg::Scalar(i) => {
            let x = *to.scalars.get(i).ok_or_else(|| missing("scalar", i))?;
            match (to.dtype, length) {
                (Some(DType::I8 | DType::I32), _) => ((x as i32 as u32).into(), 4),
                // Kernels on 16-bit types take their scalars in binary32.
                (Some(DType::F64), _) => (x.to_bits(), 8),
                _ => ((x as f32).to_bits().into(), 4),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_compared_with_the_parameters() {
        let to = Referents { buffers: &[4096], workspace: None, scalars: &[1.5], dtype: Some(DType::F32) };
        let args = [Arg::Buffer(0, 64), Arg::U32(7), Arg::Scalar(0), Arg::U64(9)];
        let words = parameters("k", &[8, 4, 4, 8], &args, &to).unwrap();
        assert_eq!(words, [4160, 7, u64::from(1.5f32.to_bits()), 9]);
        let message = |lengths: &[u32], args: &[Arg]| parameters("k", lengths, args, &to).unwrap_err().to_string();
        assert!(message(&[8, 4], &args).contains("takes 2 parameters, 4 are given"));
        assert!(message(&[8], &[Arg::U32(1)]).contains("parameter 0 has 8 bytes"));
        assert!(message(&[8], &[Arg::Buffer(1, 0)]).contains("number 1 is not there"));
        assert!(message(&[8], &[Arg::Workspace(0)]).contains("workspace"));
        let double = Referents { dtype: Some(DType::F64), ..to };
        assert_eq!(parameters("k", &[8], &[Arg::Scalar(0)], &double).unwrap(), [1.5f64.to_bits()]);
    }
}
