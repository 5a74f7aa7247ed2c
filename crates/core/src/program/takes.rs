//! What data a program takes, and how others are refused.

use super::DeviceError;
use crate::buffer::{BufferSpec, Role, View};
use crate::dtype::DType;
use std::fmt;

/// Which values of a scalar a program computes right with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarClass {
    /// This value alone: the code has it built in.
    Exactly(f64),
    /// Any but this one, which needs other code: a zero, say, whose operand must not be read.
    AllBut(f64),
    /// Any.
    Any,
}

impl ScalarClass {
    /// Whether a value belongs to it.
    pub fn has(&self, value: f64) -> bool {
        let (other, equal) = self.test();
        (value == other) == equal
    }

    /// What a value is compared with, and whether it must be equal. Nothing equals a NaN.
    fn test(&self) -> (f64, bool) {
        match *self {
            Self::Exactly(only) => (only, true),
            Self::AllBut(other) => (other, false),
            Self::Any => (f64::NAN, false),
        }
    }
}

impl fmt::Display for ScalarClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(only) => write!(f, "exactly {only}"),
            Self::AllBut(other) => write!(f, "any value but {other}"),
            Self::Any => f.write_str("any value"),
        }
    }
}

/// A scalar that a program takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalarSpec {
    /// The name in reports: `alpha`.
    pub name: &'static str,
    /// The values that the program was made for.
    pub class: ScalarClass,
}

/// The scalars that a program takes, prepared for a check before every call: without a branch for each.
pub(crate) struct Scalars {
    specs: Box<[ScalarSpec]>,
    tests: Box<[(f64, bool)]>,
}

impl Scalars {
    pub(crate) fn new(specs: &[ScalarSpec]) -> Self {
        Self { specs: specs.into(), tests: specs.iter().map(|s| s.class.test()).collect() }
    }

    /// Whether the program was made for these.
    #[inline]
    pub(crate) fn fit(&self, scalars: &[f64]) -> bool {
        let tests = self.tests.iter().zip(scalars);
        let same = self.tests.len() == scalars.len();
        tests.fold(same, |fit, (&(other, equal), value)| fit & ((*value == other) == equal))
    }

    /// See [`check_scalars`].
    pub(crate) fn check(&self, scalars: &[f64]) -> Result<(), DeviceError> {
        check_scalars(&self.specs, scalars)
    }
}

/// Refuses scalars that a program was not made for.
///
/// # Errors
/// [`DeviceError::Argument`] with the scalar that is missing or has another value, or `scalars` where there are too many.
pub(super) fn check_scalars(specs: &[ScalarSpec], scalars: &[f64]) -> Result<(), DeviceError> {
    let fit = specs.len() == scalars.len() && specs.iter().zip(scalars).all(|(spec, value)| spec.class.has(*value));
    if fit { Ok(()) } else { Err(unfit(specs, scalars)) }
}

fn unfit(specs: &[ScalarSpec], scalars: &[f64]) -> DeviceError {
    let refuse = |name: &str, message| DeviceError::Argument { name: name.to_owned(), message };
    let (need, have) = (specs.len(), scalars.len());
    let names = || specs.iter().map(|s| s.name).collect::<Vec<_>>().join(", ");
    if have > need {
        let needed = if need == 0 { "none is taken".to_owned() } else { format!("{need} are taken: {}", names()) };
        return refuse("scalars", format!("{have} are given, {needed}"));
    }
    let wrong = specs.iter().zip(scalars).find(|(spec, value)| !spec.class.has(**value));
    if let Some((spec, value)) = wrong {
        return refuse(spec.name, format!("{value} is given, and the plan was made for {}", spec.class));
    }
    let missing: Vec<&str> = specs[have..].iter().map(|s| s.name).collect();
    refuse(&missing.join(", "), format!("missing: {have} scalars are given, {need} are needed: {}", names()))
}

/// What a caller gives for one buffer.
#[derive(Clone, Copy)]
struct Given {
    dtype: DType,
    len: usize,
    writable: bool,
}

impl Given {
    #[inline]
    fn of(view: &View<'_>) -> Self {
        Self { dtype: view.dtype(), len: view.len(), writable: view.is_writable() }
    }

    #[inline]
    fn fits(self, spec: &BufferSpec) -> bool {
        self.dtype == spec.dtype && self.len >= spec.len && (self.writable || spec.role == Role::In)
    }
}

/// Refuses buffers that a program was not made for: they are as many, of the same types, at least as long, and those that it
/// writes are borrowed mutably.
///
/// # Errors
/// [`DeviceError::Argument`] with the buffer that does not fit, or `buffers` where another number is given.
#[inline]
pub fn check_buffers(specs: &[BufferSpec], buffers: &[View<'_>]) -> Result<(), DeviceError> {
    if buffers_fit(specs, buffers) { Ok(()) } else { Err(unfit_views(specs, buffers)) }
}

/// Apart from the check, which stands before every call.
#[cold]
fn unfit_views(specs: &[BufferSpec], buffers: &[View<'_>]) -> DeviceError {
    unfit_buffers(specs, &buffers.iter().map(Given::of).collect::<Vec<_>>())
}

/// Whether [`check_buffers`] accepts them.
#[inline]
pub(crate) fn buffers_fit(specs: &[BufferSpec], buffers: &[View<'_>]) -> bool {
    fit(specs, buffers.iter().map(Given::of))
}

/// [`check_buffers`] for data that a device holds, all of which it may write.
///
/// # Errors
/// As [`check_buffers`].
pub(super) fn check_specs(specs: &[BufferSpec], buffers: &[BufferSpec]) -> Result<(), DeviceError> {
    let given: Vec<Given> = buffers.iter().map(|b| Given { dtype: b.dtype, len: b.len, writable: true }).collect();
    if fit(specs, given.iter().copied()) { Ok(()) } else { Err(unfit_buffers(specs, &given)) }
}

#[inline]
fn fit(specs: &[BufferSpec], given: impl ExactSizeIterator<Item = Given>) -> bool {
    specs.len() == given.len() && specs.iter().zip(given).all(|(spec, given)| given.fits(spec))
}

/// Apart from the check, which stands before every call.
#[cold]
fn unfit_buffers(specs: &[BufferSpec], given: &[Given]) -> DeviceError {
    let refuse = |name: &str, message| DeviceError::Argument { name: name.to_owned(), message };
    let Some((spec, given)) = specs.iter().zip(given).find(|(spec, given)| !given.fits(spec)) else {
        let names: Vec<&str> = specs.iter().map(|s| s.name).collect();
        let message = format!("{} are given, {} are needed: {}", given.len(), specs.len(), names.join(", "));
        return refuse("buffers", message);
    };
    let needed = format!("{} of {} are needed", spec.len, spec.dtype);
    if given.dtype == spec.dtype && given.len >= spec.len {
        return refuse(spec.name, "is written, and was lent to be read only".to_owned());
    }
    refuse(spec.name, format!("{} elements of {} are given, {needed}", given.len, given.dtype))
}
