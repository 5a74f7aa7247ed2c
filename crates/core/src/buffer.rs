//! Memory of a workload: element buffers, how they are filled, and what they must hold afterwards.

mod compare;
mod view;

pub use crate::element::Element;
pub use compare::{Comparison, Part, changed};
pub use view::{View, views};

use crate::device::GridPart;
use crate::dtype::DType;
use crate::element::{self, Complex, ElementError};
use crate::program::DeviceError;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// A cache line, the alignment of every buffer.
#[repr(C, align(64))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Line([u8; 64]);

/// A typed, 64-byte aligned buffer in host memory.
#[derive(Clone)]
pub struct Buffer {
    dtype: DType,
    len: usize,
    lines: Vec<Line>,
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} x {})", self.len, self.dtype)
    }
}

impl Buffer {
    /// A buffer of zeros.
    ///
    /// # Panics
    /// If its size in bytes overflows; inputs are checked against memory before buffers are made.
    pub fn zeroed(dtype: DType, len: usize) -> Self {
        let bytes = len.checked_mul(dtype.size()).expect("buffer size overflows");
        Self { dtype, len, lines: vec![Line([0; 64]); bytes.div_ceil(64)] }
    }

    /// A buffer of zeros, or an error where there is no memory for it.
    ///
    /// # Errors
    /// The size overflows, or the system refuses it.
    pub fn try_zeroed(dtype: DType, len: usize) -> Result<Self, DeviceError> {
        let bytes = len.saturating_mul(dtype.size());
        let refused = |_| DeviceError::OutOfMemory { need: bytes as u64, have: None };
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(64)).map_err(refused)?;
        lines.resize(bytes.div_ceil(64), Line([0; 64]));
        Ok(Self { dtype, len, lines })
    }

    /// A copy, or an error where there is no memory for it.
    ///
    /// # Errors
    /// As [`Buffer::try_zeroed`].
    pub fn try_clone(&self) -> Result<Self, DeviceError> {
        let mut copy = Self::try_zeroed(self.dtype, self.len)?;
        copy.lines.copy_from_slice(&self.lines);
        Ok(copy)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the elements.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len * self.dtype.size()]
    }

    /// The bytes of the elements, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.len * self.dtype.size();
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..bytes]
    }

    /// The elements, as a type of the same size (f16 and bf16 as `u16`).
    ///
    /// # Panics
    /// If `T` has another size than the element type.
    pub fn as_slice<T: Pod>(&self) -> &[T] {
        assert_eq!(size_of::<T>(), self.dtype.size(), "view of {} with another size", self.dtype);
        bytemuck::cast_slice(self.bytes())
    }

    /// The elements, to write. See [`Buffer::as_slice`].
    ///
    /// # Panics
    /// If `T` has another size than the element type.
    pub fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        assert_eq!(size_of::<T>(), self.dtype.size(), "view of {} with another size", self.dtype);
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// An element: real and imaginary part, the latter zero for real types. None where there is no such element.
    pub fn get(&self, i: usize) -> Option<Complex> {
        element::get(self.dtype, self.bytes(), i)
    }

    /// Stores a number, rounded to the nearest that the type has. Integers saturate, and NaN is their zero; the imaginary part of
    /// a real type is dropped.
    ///
    /// # Errors
    /// [`ElementError::Beyond`] where there is no such element.
    pub fn set(&mut self, i: usize, value: Complex) -> Result<(), ElementError> {
        element::set(self.dtype, self.bytes_mut(), i, value)
    }

    /// The real part of an element.
    ///
    /// # Panics
    /// If there is no such element, as a slice does.
    pub fn get_f64(&self, i: usize) -> f64 {
        self.get(i).unwrap_or_else(|| no_element(i, self.len)).0
    }

    /// Stores a real number. See [`Buffer::set`].
    ///
    /// # Panics
    /// If there is no such element, as a slice does.
    pub fn set_f64(&mut self, i: usize, x: f64) {
        self.set(i, (x, 0.0)).unwrap_or_else(|e| panic!("{e}"));
    }

    /// Number of components: two for each complex number.
    pub fn components(&self) -> usize {
        if self.dtype.is_complex() { 2 * self.len } else { self.len }
    }

    /// A component; of complex numbers the real parts are at even places, the imaginary ones behind them.
    ///
    /// # Panics
    /// If there is no such component, as a slice does.
    pub fn component(&self, i: usize) -> f64 {
        if !self.dtype.is_complex() {
            return self.get_f64(i);
        }
        let (re, im) = self.get(i / 2).unwrap_or_else(|| no_element(i / 2, self.len));
        if i.is_multiple_of(2) { re } else { im }
    }
}

#[cold]
fn no_element<T>(i: usize, len: usize) -> T {
    panic!("element {i} of {len}")
}

/// The buffers of a workload, in the order of its specification.
pub type Buffers = Vec<Buffer>;

/// What a program does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read only.
    In,
    /// Written only; what stood there before must not matter.
    Out,
    /// Read and written.
    InOut,
}

/// The kind of data that a workload is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filling {
    /// Uniform reals in [-1, 1): what accuracy and speed are judged on.
    Real,
    /// Integers whose results are exact in the element type, small ones but in integer types: one lost or doubled term shows.
    Exact,
    /// Reals with a few NaN and infinities: they must propagate.
    Special,
}

/// A buffer of a workload, before it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// The name in reports: `a`, `b`, `c`.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Number of elements.
    pub len: usize,
    /// What programs do with it.
    pub role: Role,
}

impl BufferSpec {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        (self.len as u64).saturating_mul(self.dtype.size() as u64)
    }
}

/// Data to run on: buffers with their contents, and scalars.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What the buffers are.
    pub specs: Vec<BufferSpec>,
    /// The contents before a run. Output-only buffers are poisoned with NaN.
    pub buffers: Buffers,
    /// Scalars by position; their names are the computation's.
    pub scalars: Vec<f64>,
}

/// What one buffer must hold after a run.
#[derive(Clone, Debug)]
pub struct ExpectedBuffer {
    /// Which buffer.
    pub index: usize,
    /// The value of every component (see [`Buffer::component`]) in higher precision. NaN means that a NaN must stand there.
    pub values: Vec<f64>,
    /// The largest absolute error of every component; zero where it must be exact (untouched elements among them).
    pub bounds: Vec<f32>,
}

/// What a part of a program's blocks left of data.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The buffers after the run.
    pub after: &'a [Buffer],
    /// The parts of the grid that ran.
    pub parts: &'a [GridPart],
}

/// What a run must produce.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The buffers that are checked.
    pub buffers: Vec<ExpectedBuffer>,
}

/// An element that is further from its reference than its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Which buffer.
    pub buffer: usize,
    /// Which component.
    pub index: usize,
    /// The reference.
    pub expected: f64,
    /// What stood there.
    pub found: f64,
    /// The bound.
    pub bound: f64,
}

/// How a result compares with its reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Elements beyond their bound.
    pub wrong: u64,
    /// The first of them.
    pub first: Option<Mismatch>,
    /// Largest absolute error, relative to the largest finite reference of its buffer.
    pub max_rel_error: f64,
    /// Largest error as a fraction of its bound, over elements with a bound above zero.
    pub worst_of_bound: f64,
    /// Elements that differ from the reference of these data by more than their bound, and are right for data within the rounding of
    /// these ([`Computation::nudged`](crate::computation::Computation::nudged)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub within_rounding: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Verdict {
    /// Whether every element is within its bound.
    pub fn is_right(&self) -> bool {
        self.wrong == 0
    }
}

impl Expected {
    /// Also takes what lies between this reference and another of the same shape, with the bounds of both.
    ///
    /// # Panics
    /// If the other has other buffers.
    pub fn widen(&mut self, other: &Self) {
        for (one, other) in self.buffers.iter_mut().zip(&other.buffers) {
            assert_eq!((one.index, one.values.len()), (other.index, other.values.len()), "another reference");
            let both = one.values.iter_mut().zip(&mut one.bounds).zip(other.values.iter().zip(&other.bounds));
            for ((value, bound), (v, b)) in both {
                (*value, *bound) = compare::hull((*value, *bound), (*v, *b));
            }
        }
    }

    /// Compares the buffers after a run.
    ///
    /// # Panics
    /// If a buffer is missing or has another length than its reference: both come from one workload.
    pub fn compare(&self, after: &[Buffer]) -> Verdict {
        let mut comparison = Comparison::default();
        for ExpectedBuffer { index, values, bounds } in &self.buffers {
            assert_eq!(after[*index].components(), values.len(), "length of buffer {index}");
            comparison.add(&after[*index], &Part { buffer: *index, first: 0, values, bounds });
        }
        comparison.verdict()
    }

    /// Compares what a run changed, where only a part of it ran: an element with the bits that it had before says nothing.
    ///
    /// # Panics
    /// As [`Expected::compare`].
    pub fn compare_written(&self, before: &[Buffer], after: &[Buffer]) -> Verdict {
        let mut comparison = Comparison::default();
        for ExpectedBuffer { index, values, bounds } in &self.buffers {
            let (before, after) = (&before[*index], &after[*index]);
            assert_eq!(after.components(), values.len(), "length of buffer {index}");
            for range in changed(before, after) {
                let first = range.start;
                let part = Part { buffer: *index, first, values: &values[range.clone()], bounds: &bounds[range] };
                comparison.add(after, &part);
            }
        }
        comparison.verdict()
    }
}
