//! Requests and replies, and how programs and data travel.

use super::frame::Frame;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Role, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::{DeviceSpec, Environment};
use tilewright_core::dtype::DType;
use tilewright_core::measurement::{Failure, Measurement, Timing};
use tilewright_core::program::{DeviceError, Program};

/// What a parent asks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    Hello,
    Precompile(Vec<Program>),
    Abandon,
    Upload(WireData),
    /// The data of the last upload once more, as they were.
    UploadAgain,
    Run(Program),
    Read,
    Time(Program, Timing),
}

/// What a child answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Hello {
        spec: DeviceSpec,
        ahead: usize,
        #[serde(default)]
        environment: Environment,
    },
    Done,
    /// Contents in the attachments.
    Buffers(Vec<WireBuffer>),
    Time(Measurement),
    /// The configuration failed.
    Failed(Failure),
    /// The device reports a failure; `lost` if it, or this process, can do nothing more.
    Error {
        error: DeviceError,
        lost: bool,
    },
}

/// A buffer without its contents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WireBuffer {
    name: String,
    dtype: DType,
    len: usize,
    role: Role,
}

/// Data without their contents. Scalars travel as bits: JSON has no NaN.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireData {
    buffers: Vec<WireBuffer>,
    scalars: Vec<u64>,
    /// Of noise; contents are attached where there is none.
    seed: Option<u64>,
}

impl WireData {
    pub(super) fn new(data: &Data) -> (Self, Vec<Vec<u8>>) {
        let (seed, parts) = match data {
            Data::Given(work) => (None, work.buffers.iter().map(|b| b.bytes().to_vec()).collect()),
            Data::Noise { seed, .. } => (Some(*seed), Vec::new()),
        };
        let scalars = data.scalars().iter().map(|x| x.to_bits()).collect();
        (Self { buffers: wire_buffers(data.specs()), scalars, seed }, parts)
    }

    /// # Errors
    /// Attachments that are not those that are described.
    pub(super) fn data(self, parts: &[Vec<u8>]) -> Result<Data, String> {
        let specs: Vec<BufferSpec> = self.buffers.iter().map(WireBuffer::spec).collect();
        let scalars: Vec<f64> = self.scalars.into_iter().map(f64::from_bits).collect();
        if let Some(seed) = self.seed {
            return Ok(Data::Noise { specs, scalars, seed });
        }
        let buffers = buffers(&self.buffers, parts)?;
        Ok(Data::Given(Arc::new(Workload { specs, buffers, scalars })))
    }
}

pub(super) fn wire_buffers(specs: &[BufferSpec]) -> Vec<WireBuffer> {
    let wire = |s: &BufferSpec| WireBuffer { name: s.name.to_owned(), dtype: s.dtype, len: s.len, role: s.role };
    specs.iter().map(wire).collect()
}

/// Buffers from their descriptions and the attachments.
///
/// # Errors
/// Another number of attachments, or one of another length.
pub(super) fn buffers(described: &[WireBuffer], parts: &[Vec<u8>]) -> Result<Buffers, String> {
    if described.len() != parts.len() {
        return Err(format!("{} attachments for {} buffers", parts.len(), described.len()));
    }
    let buffer = |(d, part): (&WireBuffer, &Vec<u8>)| {
        if d.len.checked_mul(d.dtype.size()) != Some(part.len()) {
            return Err(format!("{} bytes for {} elements of buffer {:?}", part.len(), d.len, d.name));
        }
        let mut buffer = Buffer::zeroed(d.dtype, d.len);
        buffer.bytes_mut().copy_from_slice(part);
        Ok(buffer)
    };
    described.iter().zip(parts).map(buffer).collect()
}

impl WireBuffer {
    fn spec(&self) -> BufferSpec {
        BufferSpec { name: lasting(&self.name), dtype: self.dtype, len: self.len, role: self.role }
    }
}

/// A name that lives as long as the process. Computations have a handful of buffer names; each is kept once.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// A frame of a message.
///
/// # Errors
/// A number that JSON cannot hold.
pub(super) fn frame(message: &impl Serialize, parts: Vec<Vec<u8>>) -> Result<Frame, String> {
    Ok(Frame { json: serde_json::to_vec(message).map_err(|e| e.to_string())?, parts })
}
