//! What closures are given.

use crate::callable::Element;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, Role};
use tilewright_core::expr::Val;
use tilewright_core::program::{DeviceError, HostArgs, ScalarSpec};
use tilewright_core::space::Values;

/// The code of one configuration.
pub(super) type Call = dyn Fn(&mut Args<'_>) -> Result<(), DeviceError> + Send + Sync;

/// A configuration, the input and the device that it is legal for, by name.
pub struct At<'a>(pub(super) &'a Values<'a>);

impl At<'_> {
    /// The value of a parameter, an input, a defined name or a fact of the device.
    ///
    /// # Panics
    /// There is no such name, or its value is no size: the description of the kernel is at fault.
    pub fn size(&self, name: &str) -> usize {
        self.0.int(name).unwrap_or_else(|| panic!("{name:?} is no size of this kernel"))
    }

    /// The value of a parameter that is a word.
    ///
    /// # Panics
    /// There is no such parameter, or its value is no word: the description of the kernel is at fault.
    pub fn word(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Val::Str(word)) => word,
            _ => panic!("{name:?} is no parameter of this kernel with words as values"),
        }
    }
}

/// The buffers and scalars of one call.
pub struct Args<'a> {
    specs: &'a [BufferSpec],
    buffers: Vec<Option<&'a mut Buffer>>,
    scalars: (&'a [ScalarSpec], &'a [f64]),
}

impl<'a> Args<'a> {
    pub(super) fn new(specs: &'a [BufferSpec], scalars: &'a [ScalarSpec], args: &'a mut HostArgs<'_>) -> Self {
        Self { specs, buffers: args.buffers.iter_mut().map(Some).collect(), scalars: (scalars, args.scalars) }
    }

    /// A buffer to read, as long as it was described. Each buffer is handed out once.
    ///
    /// # Errors
    /// No such buffer, one that is handed out already, of another type, or too short.
    pub fn input<T: Element>(&mut self, name: &str) -> Result<&'a [T], DeviceError> {
        let (buffer, len) = self.take::<T>(name)?;
        let buffer: &'a Buffer = buffer;
        Ok(&buffer.as_slice()[..len])
    }

    /// A buffer to write, as long as it was described. Each buffer is handed out once.
    ///
    /// # Errors
    /// As [`Args::input`], and a buffer that was described as one that is only read.
    pub fn output<T: Element>(&mut self, name: &str) -> Result<&'a mut [T], DeviceError> {
        if self.specs.iter().any(|s| s.name == name && s.role == Role::In) {
            return Err(refused(name, "it is only read".into()));
        }
        let (buffer, len) = self.take::<T>(name)?;
        Ok(&mut buffer.as_mut_slice()[..len])
    }

    /// A scalar.
    ///
    /// # Errors
    /// No such scalar.
    pub fn scalar(&self, name: &str) -> Result<f64, DeviceError> {
        let (specs, values) = self.scalars;
        let found = specs.iter().zip(values).find(|(spec, _)| spec.name == name);
        found.map(|(_, value)| *value).ok_or_else(|| refused(name, "there is no such scalar".into()))
    }

    fn take<T: Element>(&mut self, name: &str) -> Result<(&'a mut Buffer, usize), DeviceError> {
        let at = self.specs.iter().position(|s| s.name == name);
        let at = at.ok_or_else(|| refused(name, "there is no such buffer".into()))?;
        let buffer = self.buffers.get_mut(at).and_then(Option::take);
        let buffer = buffer.ok_or_else(|| refused(name, "it is not there, or handed out already".into()))?;
        let len = self.specs[at].len;
        if buffer.dtype() != T::DTYPE {
            return Err(refused(name, format!("its elements are {}, not {}", buffer.dtype(), T::DTYPE)));
        }
        if buffer.len() < len {
            return Err(refused(name, format!("{} elements are given, {len} are needed", buffer.len())));
        }
        Ok((buffer, len))
    }
}

fn refused(name: &str, message: String) -> DeviceError {
    DeviceError::Argument { name: name.to_owned(), message }
}

/// An input and its data before a call.
pub struct Before<'a> {
    pub(super) sizes: Vec<(&'a str, usize)>,
    pub(super) specs: &'a [BufferSpec],
    pub(super) buffers: &'a Buffers,
    pub(super) scalars: (&'a [ScalarSpec], &'a [f64]),
}

impl Before<'_> {
    /// An input.
    ///
    /// # Panics
    /// There is none of this name: the description of the kernel is at fault.
    pub fn size(&self, name: &str) -> usize {
        let found = self.sizes.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| panic!("{name:?} is no input of this kernel"), |(_, size)| *size)
    }

    /// The values of a buffer.
    ///
    /// # Panics
    /// There is none of this name: the description of the kernel is at fault.
    pub fn values(&self, name: &str) -> Vec<f64> {
        let found = self.specs.iter().zip(self.buffers).find(|(spec, _)| spec.name == name);
        let (_, buffer) = found.unwrap_or_else(|| panic!("{name:?} is no buffer of this kernel"));
        (0..buffer.len()).map(|i| buffer.get_f64(i)).collect()
    }

    /// A scalar.
    ///
    /// # Panics
    /// There is none of this name: the description of the kernel is at fault.
    pub fn scalar(&self, name: &str) -> f64 {
        let (specs, values) = self.scalars;
        let found = specs.iter().zip(values).find(|(spec, _)| spec.name == name);
        found.map_or_else(|| panic!("{name:?} is no scalar of this kernel"), |(_, value)| *value)
    }
}
