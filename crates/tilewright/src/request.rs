//! What is asked for: a kernel, and an input of it.

use crate::error::Error;
use crate::kernels::Kernels;
use std::sync::Arc;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;

/// A kernel, by name or one's own, and fields of an input: all that describe one, to plan for it; those that every input has in
/// common, to tune.
#[derive(Clone)]
pub struct Request {
    wanted: Wanted,
    fields: Config,
}

#[derive(Clone)]
enum Wanted {
    Named(String),
    Own(Arc<dyn AnyKernel>),
}

/// `C = alpha A B + beta C` of `m x n` and length `k`, column-major as in BLAS, of f32, without transposition, with an alpha of 1 and
/// a beta of 0. Other fields by [`Request::with`]: `dtype`, `layout` (`nn nt tn tt`), `lda ldb ldc`, `alpha` and `beta` (0, 1, or
/// `other` for a call with any other value).
pub fn gemm(m: usize, n: usize, k: usize) -> Request {
    Request::of("gemm").with("m", m).with("n", n).with("k", k)
}

impl Request {
    /// A kernel of Tilewright's by the name of its computation, as on the command line, or by its own.
    pub fn of(name: &str) -> Self {
        Self { wanted: Wanted::Named(name.to_owned()), fields: Config::default() }
    }

    /// A kernel that Tilewright does not bring.
    pub fn own(kernel: Arc<dyn AnyKernel>) -> Self {
        Self { wanted: Wanted::Own(kernel), fields: Config::default() }
    }

    /// A field of the input, in the place of another one of its name.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fields.0.retain(|(known, _)| known != field);
        self.fields.0.push((field.to_owned(), value.into()));
        self
    }

    /// The fields.
    pub fn fields(&self) -> &Config {
        &self.fields
    }

    /// The kernels that compete on a device.
    pub(crate) fn kernels(
        &self,
        kernels: &Kernels,
        device: &DeviceSpec,
        with_libraries: bool,
    ) -> Result<Vec<Arc<dyn AnyKernel>>, Error> {
        match &self.wanted {
            Wanted::Named(name) => kernels.competing(name, device, with_libraries),
            Wanted::Own(kernel) => Ok(vec![kernel.clone()]),
        }
    }
}
