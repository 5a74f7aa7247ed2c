//! What closures are given.

use tilewright_core::buffer::{BufferSpec, Buffers, Element, Role, View};
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
    buffers: Vec<Option<Lent<'a>>>,
    scalars: (&'a [ScalarSpec], &'a [f64]),
}

/// The bytes of a buffer.
enum Lent<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

impl<'a> Args<'a> {
    pub(super) fn new(specs: &'a [BufferSpec], scalars: &'a [ScalarSpec], args: &'a mut HostArgs<'_, '_>) -> Self {
        let lent = |(spec, view): (&BufferSpec, &'a mut View<'_>)| {
            let bytes = spec.len * spec.dtype.size();
            let fits = view.dtype() == spec.dtype && view.bytes().len() >= bytes;
            match spec.role {
                _ if !fits => None,
                Role::In => Some(Lent::Read(&view.bytes()[..bytes])),
                Role::Out | Role::InOut => view.bytes_mut().map(|all| Lent::Write(&mut all[..bytes])),
            }
        };
        let buffers = specs.iter().zip(args.buffers.iter_mut()).map(lent).collect();
        Self { specs, buffers, scalars: (scalars, args.scalars) }
    }

    /// A buffer to read, as long as it was described. Each buffer is handed out once.
    ///
    /// # Errors
    /// No such buffer, one that is handed out already, or of another type.
    pub fn input<T: Element>(&mut self, name: &str) -> Result<&'a [T], DeviceError> {
        match self.take::<T>(name)? {
            Lent::Read(bytes) => cast(name, bytemuck::try_cast_slice(bytes)),
            Lent::Write(bytes) => cast(name, bytemuck::try_cast_slice(bytes)),
        }
    }

    /// A buffer to write, as long as it was described. Each buffer is handed out once.
    ///
    /// # Errors
    /// As [`Args::input`], and a buffer that was described as one that is only read.
    pub fn output<T: Element>(&mut self, name: &str) -> Result<&'a mut [T], DeviceError> {
        match self.take::<T>(name)? {
            Lent::Write(bytes) => cast(name, bytemuck::try_cast_slice_mut(bytes)),
            Lent::Read(_) => Err(refused(name, "it is only read".into())),
        }
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

    fn take<T: Element>(&mut self, name: &str) -> Result<Lent<'a>, DeviceError> {
        let at = self.specs.iter().position(|s| s.name == name);
        let at = at.ok_or_else(|| refused(name, "there is no such buffer".into()))?;
        let dtype = self.specs[at].dtype;
        if dtype != T::DTYPE {
            return Err(refused(name, format!("its elements are {dtype}, not {}", T::DTYPE)));
        }
        let lent = self.buffers.get_mut(at).and_then(Option::take);
        lent.ok_or_else(|| refused(name, "it does not fit, or is handed out already".into()))
    }
}

/// Bytes of a view are aligned as its elements are, so that this is a formality.
fn cast<S>(name: &str, cast: Result<S, bytemuck::PodCastError>) -> Result<S, DeviceError> {
    cast.map_err(|e| refused(name, e.to_string()))
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
