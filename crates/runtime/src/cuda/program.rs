//! A program ready to be put on the stream.

use super::device::Held;
use super::driver::Memory;
use super::function::{Function, Params, Shape};
use super::library::{DeviceLibrary, Stage};
use super::signature::Parameter;
use std::ffi::c_void;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, ByValue, DeviceError, LibraryCall, TensorMap};

/// A step with everything but the addresses of this moment.
pub(super) enum Ready {
    Fill { offset: usize, bytes: usize, value: u8 },
    Kernel { function: Function, shape: Shape, params: Params },
    Library(LibraryCall),
}

/// What steps are put on the stream with.
pub(super) struct Session<'a> {
    pub(super) stream: *mut c_void,
    pub(super) held: &'a Held,
    pub(super) workspace: Option<&'a Memory>,
    pub(super) scratch: Option<&'a Memory>,
    pub(super) libraries: &'a mut [Box<dyn DeviceLibrary>],
}

/// Puts all steps on the stream.
pub(super) fn enqueue(steps: &[Ready], session: &mut Session<'_>) -> Result<(), DeviceError> {
    for step in steps {
        match step {
            Ready::Fill { offset, bytes, value } => {
                let memory = session.workspace.ok_or_else(|| argument("workspace", "there is none".into()))?;
                memory.set(*offset..offset + bytes, *value)?;
            }
            Ready::Kernel { function, shape, params } => function.launch(shape, params)?,
            Ready::Library(call) => {
                let stage = stage(session.stream, session.held, session.scratch);
                library(session.libraries, call)?.enqueue(call, &stage)?;
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
    /// Bytes of the buffers.
    pub(super) lengths: &'a [usize],
    pub(super) workspace: Option<u64>,
    pub(super) scalars: &'a [f64],
    /// Element type of the first buffer, in which scalars are passed.
    pub(super) dtype: Option<DType>,
    /// Encodes a tensor at an address.
    pub(super) encode: &'a dyn Fn(&TensorMap, u64) -> Result<ByValue, DeviceError>,
}

/// The parameters of a launch.
///
/// # Errors
/// An argument that refers to nothing, has another length than the entry's parameter, or is aligned less.
pub(super) fn parameters(
    entry: &str,
    taken: &[Parameter],
    args: &[Arg],
    to: &Referents<'_>,
) -> Result<Params, DeviceError> {
    if taken.len() != args.len() {
        let message = format!("it takes {} parameters, {} are given", taken.len(), args.len());
        return Err(argument(entry, message));
    }
    let mut out = Params::default();
    for (i, (arg, parameter)) in args.iter().zip(taken).enumerate() {
        let value = value(arg, to)?;
        let (bytes, align) = (value.bytes.len(), value.align);
        if bytes != parameter.bytes as usize || align < parameter.align {
            let Parameter { bytes: needs, align: at } = parameter;
            let message =
                format!("parameter {i} has {needs} bytes aligned to {at}, {arg:?} has {bytes} aligned to {align}");
            return Err(argument(entry, message));
        }
        out.push(&value.bytes);
    }
    Ok(out)
}

/// The bytes of an argument.
fn value(arg: &Arg, to: &Referents<'_>) -> Result<ByValue, DeviceError> {
    let missing = |name: &str, i: usize| argument(name, format!("number {i} is not there"));
    let plain = |bytes: &[u8]| ByValue { bytes: bytes.to_vec(), align: bytes.len() as u32 };
    let buffer = |i: usize| to.buffers.get(i).copied().ok_or_else(|| missing("buffer", i));
    Ok(match arg {
        Arg::Buffer(i, offset) => plain(&(buffer(*i)? + offset).to_le_bytes()),
        Arg::Workspace(offset) => plain(&(to.workspace.ok_or_else(|| missing("workspace", 0))? + offset).to_le_bytes()),
        Arg::Scalar(i) => {
            let x = *to.scalars.get(*i).ok_or_else(|| missing("scalar", *i))?;
            match to.dtype {
                Some(DType::I8 | DType::I32) => plain(&(x as i32).to_le_bytes()),
                Some(DType::F64 | DType::C64) => plain(&x.to_le_bytes()),
                // Kernels on 16-bit types take their scalars in binary32.
                _ => plain(&(x as f32).to_le_bytes()),
            }
        }
        Arg::TensorMap(map) => {
            let address = buffer(map.buffer)?;
            map.check(to.lengths.get(map.buffer).map_or(0, |bytes| *bytes as u64))?;
            (to.encode)(map, address + map.offset)?
        }
        constant => constant.by_value()?.ok_or_else(|| argument("argument", format!("{constant:?} has no bytes")))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_compared_with_the_parameters() {
        let encode = |_: &TensorMap, at: u64| Ok(ByValue { bytes: vec![at as u8; 128], align: 64 });
        let to = Referents {
            buffers: &[4096],
            lengths: &[1024],
            workspace: None,
            scalars: &[1.5],
            dtype: Some(DType::F32),
            encode: &encode,
        };
        let plain = |bytes: u32| Parameter { bytes, align: bytes };
        let taken = [8, 4, 4, 8].map(plain);
        let args = [Arg::Buffer(0, 64), Arg::U32(7), Arg::Scalar(0), Arg::U64(9)];
        let params = parameters("k", &taken, &args, &to).unwrap();
        let expected: [&[u8]; 4] =
            [&4160u64.to_le_bytes(), &7u32.to_le_bytes(), &1.5f32.to_le_bytes(), &9u64.to_le_bytes()];
        expected.iter().enumerate().for_each(|(i, bytes)| assert_eq!(&params.bytes(i)[..bytes.len()], *bytes));
        let message = |taken: &[Parameter], args: &[Arg]| parameters("k", taken, args, &to).err().unwrap().to_string();
        assert!(message(&taken[..2], &args).contains("takes 2 parameters, 4 are given"));
        assert!(message(&[plain(8)], &[Arg::U32(1)]).contains("parameter 0 has 8 bytes"));
        assert!(message(&[plain(8)], &[Arg::Buffer(1, 0)]).contains("number 1 is not there"));
        assert!(message(&[plain(8)], &[Arg::Workspace(0)]).contains("workspace"));
        let double = Referents { dtype: Some(DType::F64), ..to };
        let params = parameters("k", &[plain(8)], &[Arg::Scalar(0)], &double).unwrap();
        assert_eq!(params.bytes(0)[..8], 1.5f64.to_le_bytes());
        let structure = |align| [Arg::Struct { bytes: vec![7; 70], align }];
        let params = parameters("k", &[Parameter { bytes: 70, align: 16 }], &structure(16), &double).unwrap();
        assert_eq!(params.bytes(0)[..70], [7; 70]);
        assert!(parameters("k", &[Parameter { bytes: 70, align: 16 }], &structure(8), &double).is_err());
        let map = TensorMap::new(0, DType::F32, vec![16, 16], vec![64], vec![16, 16]);
        let taken = [Parameter { bytes: 128, align: 64 }];
        let params =
            parameters("k", &taken, &[Arg::TensorMap(TensorMap { offset: 0, ..map.clone() })], &double).unwrap();
        assert_eq!(params.bytes(0)[..128], [0; 128]);
        let beyond = parameters("k", &taken, &[Arg::TensorMap(TensorMap { offset: 16, ..map })], &double);
        assert!(beyond.err().unwrap().to_string().contains("tensor map"));
    }
}
