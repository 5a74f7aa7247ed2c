//! A caller's memory, borrowed.

use super::Buffer;
use crate::dtype::DType;
use crate::element::{self, Complex, Element, ElementError};
use crate::program::DeviceError;
use bytemuck::Pod;

/// Elements that a caller lends, to be read or to be written. They are aligned as their components are, and no more.
///
/// ```
/// use tilewright_core::buffer::View;
///
/// let (x, mut y) = ([1f32, 2.0], [0f64; 3]);
/// let views = [View::from(&x[..]), View::from(&mut y[1..])];
/// assert!(!views[0].is_writable());
/// assert_eq!(views[1].len(), 2);
/// ```
#[derive(Debug)]
pub struct View<'a> {
    dtype: DType,
    len: usize,
    bytes: Bytes<'a>,
}

#[derive(Debug)]
enum Bytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

impl<'a> View<'a> {
    /// Elements to read, of any type of Rust that has their bytes: `u16` for binary16, two `f32` for a complex number.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] where the bytes are no whole number of elements, or `T` is aligned less than they are.
    pub fn reading<T: Pod>(dtype: DType, elements: &'a [T]) -> Result<Self, DeviceError> {
        let bytes = bytemuck::cast_slice(elements);
        Ok(Self { dtype, len: whole::<T>(dtype, bytes.len())?, bytes: Bytes::Read(bytes) })
    }

    /// Elements to write. See [`View::reading`].
    ///
    /// # Errors
    /// As [`View::reading`].
    pub fn writing<T: Pod>(dtype: DType, elements: &'a mut [T]) -> Result<Self, DeviceError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
        Ok(Self { dtype, len: whole::<T>(dtype, bytes.len())?, bytes: Bytes::Write(bytes) })
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it was lent to be written.
    #[inline]
    pub fn is_writable(&self) -> bool {
        matches!(self.bytes, Bytes::Write(_))
    }

    /// The bytes of the elements.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Read(bytes) => bytes,
            Bytes::Write(bytes) => bytes,
        }
    }

    /// The bytes of the elements, to write; None where they were lent to be read.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.bytes {
            Bytes::Read(_) => None,
            Bytes::Write(bytes) => Some(bytes),
        }
    }

    /// The elements, as a type of the same size (f16 and bf16 as `u16`).
    ///
    /// # Panics
    /// If `T` has another size than the element type, or is aligned more than its components.
    pub fn as_slice<T: Pod>(&self) -> &[T] {
        assert_eq!(size_of::<T>(), self.dtype.size(), "view of {} with another size", self.dtype);
        bytemuck::cast_slice(self.bytes())
    }

    /// The elements, to write. See [`View::as_slice`].
    ///
    /// # Panics
    /// As [`View::as_slice`], and if they were lent to be read: code that writes a buffer says so in its
    /// [`crate::buffer::BufferSpec`], and whoever runs it refuses others.
    pub fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        assert_eq!(size_of::<T>(), self.dtype.size(), "view of {} with another size", self.dtype);
        bytemuck::cast_slice_mut(self.bytes_mut().expect("the view is writable"))
    }

    /// An element. See [`Buffer::get`].
    pub fn get(&self, i: usize) -> Option<Complex> {
        element::get(self.dtype, self.bytes(), i)
    }

    /// Stores a number. See [`Buffer::set`].
    ///
    /// # Errors
    /// There is no such element, or the elements were lent to be read.
    pub fn set(&mut self, i: usize, value: Complex) -> Result<(), ElementError> {
        let dtype = self.dtype;
        element::set(dtype, self.bytes_mut().ok_or(ElementError::ReadOnly)?, i, value)
    }

    /// The real part of an element. See [`Buffer::get_f64`].
    ///
    /// # Panics
    /// As [`Buffer::get_f64`].
    pub fn get_f64(&self, i: usize) -> f64 {
        self.get(i).unwrap_or_else(|| super::no_element(i, self.len)).0
    }

    /// Stores a real number. See [`Buffer::set_f64`].
    ///
    /// # Panics
    /// As [`Buffer::set_f64`], and as [`View::as_mut_slice`].
    pub fn set_f64(&mut self, i: usize, x: f64) {
        self.set(i, (x, 0.0)).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The elements that so many bytes of `T` are.
fn whole<T>(dtype: DType, bytes: usize) -> Result<usize, DeviceError> {
    let refuse = |message| Err(DeviceError::Argument { name: "view".into(), message });
    if align_of::<T>() < dtype.align() {
        let (has, needs) = (align_of::<T>(), dtype.align());
        return refuse(format!("elements of {dtype} lie at multiples of {needs} bytes, those given of {has}"));
    }
    if !bytes.is_multiple_of(dtype.size()) {
        return refuse(format!("{bytes} bytes are no whole number of elements of {dtype}"));
    }
    Ok(bytes / dtype.size())
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    #[inline]
    fn from(elements: &'a [T]) -> Self {
        Self { dtype: T::DTYPE, len: elements.len(), bytes: Bytes::Read(bytemuck::cast_slice(elements)) }
    }
}

impl<'a, T: Element> From<&'a mut [T]> for View<'a> {
    #[inline]
    fn from(elements: &'a mut [T]) -> Self {
        Self { dtype: T::DTYPE, len: elements.len(), bytes: Bytes::Write(bytemuck::cast_slice_mut(elements)) }
    }
}

impl<'a> From<&'a Buffer> for View<'a> {
    #[inline]
    fn from(buffer: &'a Buffer) -> Self {
        Self { dtype: buffer.dtype(), len: buffer.len(), bytes: Bytes::Read(buffer.bytes()) }
    }
}

impl<'a> From<&'a mut Buffer> for View<'a> {
    #[inline]
    fn from(buffer: &'a mut Buffer) -> Self {
        Self { dtype: buffer.dtype(), len: buffer.len(), bytes: Bytes::Write(buffer.bytes_mut()) }
    }
}

/// Views of buffers, all of them writable.
pub fn views(buffers: &mut [Buffer]) -> Vec<View<'_>> {
    buffers.iter_mut().map(View::from).collect()
}
