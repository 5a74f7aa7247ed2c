//! A kernel of one's own from closures: parameters, rules, code and a check.

mod args;
mod computation;
mod kernel;

pub use args::{Args, At, Before};
pub use computation::{OwnComputation, Sizes};
pub use kernel::OwnKernel;

use args::Call;
use computation::{Length, Size};
use kernel::Inner;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tilewright_core::buffer::{BufferSpec, Element, Role};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::program::{DeviceError, ScalarClass, ScalarSpec};
use tilewright_core::space::{Config, Param, ParamSpace, Point, RuleGroup, SpaceBuilder};

/// What is wrong with the description of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {kernel}: {field}: {message}")]
pub struct BuildError {
    /// The kernel.
    pub kernel: String,
    /// The input, parameter, rule, buffer or step that is at fault.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// Makes the code of a legal configuration.
type MakeCode = dyn Fn(&At<'_>) -> Box<Call> + Send + Sync;
/// The right values of every written buffer, in order.
type Reference = dyn Fn(&Before<'_>) -> Vec<Vec<f64>> + Send + Sync;

/// Describes a kernel that runs on the host: input fields, parameters and rules, buffers, code and a reference. Faults are
/// reported by [`KernelBuilder::build`].
pub struct KernelBuilder {
    name: String,
    sizes: Vec<Size>,
    space: SpaceBuilder,
    params: Vec<Param>,
    buffers: Vec<(&'static str, DType, Role, String)>,
    scalars: Vec<ScalarSpec>,
    flops: String,
    tolerance: Option<f64>,
    start: Option<String>,
    code: Option<Box<MakeCode>>,
    reference: Option<Box<Reference>>,
}

impl KernelBuilder {
    /// A kernel of this name, which stored measurements are found by: change it when the meaning of a parameter changes.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            sizes: Vec::new(),
            space: ParamSpace::builder(),
            params: Vec::new(),
            buffers: Vec::new(),
            scalars: Vec::new(),
            flops: "0".to_owned(),
            tolerance: None,
            start: None,
            code: None,
            reference: None,
        }
    }

    /// A size that the caller gives, and the range that campaigns draw it from, on a logarithmic scale.
    #[must_use]
    pub fn input(mut self, name: &str, range: RangeInclusive<u64>) -> Self {
        self.sizes.push(Size { name: name.to_owned(), range });
        self
    }

    /// A tuning parameter and its values: integers or words.
    #[must_use]
    pub fn param<V: Into<Value>>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        self.params.push(Param { name: name.to_owned(), values: values.into_iter().map(Into::into).collect() });
        self
    }

    /// A name for an expression over parameters, inputs, facts of the device and the names before it; rules and code read it.
    #[must_use]
    pub fn define(mut self, name: &str, text: &str) -> Self {
        self.space = self.space.define(name, text);
        self
    }

    /// What must hold: an expression over the names that [`KernelBuilder::define`] takes, and those that it defined.
    #[must_use]
    pub fn rule(mut self, text: &str) -> Self {
        self.space = self.space.rule(text, RuleGroup::User, text, "");
        self
    }

    /// A buffer that is only read; its length is an expression over the inputs.
    #[must_use]
    pub fn reads<T: Element>(self, name: &'static str, len: &str) -> Self {
        self.buffer(name, T::DTYPE, Role::In, len)
    }

    /// A buffer that is only written, all of it.
    #[must_use]
    pub fn writes<T: Element>(self, name: &'static str, len: &str) -> Self {
        self.buffer(name, T::DTYPE, Role::Out, len)
    }

    /// A buffer that is read and written.
    #[must_use]
    pub fn updates<T: Element>(self, name: &'static str, len: &str) -> Self {
        self.buffer(name, T::DTYPE, Role::InOut, len)
    }

    fn buffer(mut self, name: &'static str, dtype: DType, role: Role, len: &str) -> Self {
        self.buffers.push((name, dtype, role, len.to_owned()));
        self
    }

    /// A number that the caller gives with each call.
    #[must_use]
    pub fn scalar(mut self, name: &'static str) -> Self {
        self.scalars.push(ScalarSpec { name, class: ScalarClass::Any });
        self
    }

    /// Floating-point operations of a call, an expression over the inputs; without it, only bytes are reported.
    #[must_use]
    pub fn flops(mut self, text: &str) -> Self {
        text.clone_into(&mut self.flops);
        self
    }

    /// The largest error of an element as a share of the largest number among results and data: 1e-5 of f32 and 1e-13 of f64
    /// unless given. Integers must be exact.
    #[must_use]
    pub fn tolerance(mut self, relative: f64) -> Self {
        self.tolerance = Some(relative);
        self
    }

    /// The configuration that runs before anything is tuned, as `name=value,name=value`, where it is legal; the first legal one
    /// unless given.
    #[must_use]
    pub fn start(mut self, config: &str) -> Self {
        self.start = Some(config.to_owned());
        self
    }

    /// Makes the code of one configuration and input: what can be done once is done outside of the closure that it returns.
    #[must_use]
    pub fn code<F, C>(mut self, code: F) -> Self
    where
        F: Fn(&At<'_>) -> C + Send + Sync + 'static,
        C: Fn(&mut Args<'_>) -> Result<(), DeviceError> + Send + Sync + 'static,
    {
        self.code = Some(Box::new(move |at| Box::new(code(at))));
        self
    }

    /// The right values of every written buffer, in the order of their description, in double precision.
    #[must_use]
    pub fn reference<F>(mut self, reference: F) -> Self
    where
        F: Fn(&Before<'_>) -> Vec<Vec<f64>> + Send + Sync + 'static,
    {
        self.reference = Some(Box::new(reference));
        self
    }

    /// The finished kernel.
    ///
    /// # Errors
    /// The first fault: a name twice, an expression that does not parse or names something unknown, a range without sizes, no
    /// code or no reference.
    pub fn build(self) -> Result<OwnKernel, BuildError> {
        self.check_names()?;
        let kernel = self.name;
        let fault =
            |field: &str, message: String| BuildError { kernel: kernel.clone(), field: field.to_owned(), message };
        let names: Vec<&str> = self.sizes.iter().map(|s| s.name.as_str()).collect();
        let length = |field: &str, text: &str| Length::new(text, &names).map_err(|message| fault(field, message));
        let flops = length("flops", &self.flops)?;
        let mut buffers = Vec::new();
        for (name, dtype, role, len) in self.buffers {
            buffers.push((BufferSpec { name, dtype, role, len: 0 }, length(name, &len)?));
        }
        let unfilled = |spec: &&BufferSpec| matches!(spec.dtype, DType::C32 | DType::C64);
        if let Some(spec) = buffers.iter().map(|(spec, _)| spec).find(unfilled) {
            return Err(fault(spec.name, format!("elements of {} have no data to be checked on", spec.dtype)));
        }
        if buffers.iter().all(|(spec, _)| spec.role == Role::In) {
            return Err(fault("buffers", "none of them is written".into()));
        }
        let space = self.space.params(self.params).build().map_err(|e| fault("space", e.to_string()))?;
        let start = match &self.start {
            Some(text) => Some(start(text, &space).map_err(|message| fault("start", message))?),
            None => None,
        };
        let reference =
            self.reference.ok_or_else(|| fault("reference", "missing: nothing says what is right".into()))?;
        let code = self.code.ok_or_else(|| fault("code", "missing".into()))?;
        let (name, sizes, scalars, tolerance) = (kernel, self.sizes, self.scalars, self.tolerance);
        let computation = OwnComputation { name, sizes, buffers, scalars, flops, tolerance, reference };
        Ok(OwnKernel(Arc::new(Inner { computation, space, start, code })))
    }

    /// Refuses names that mean two things, and sizes without a range.
    fn check_names(&self) -> Result<(), BuildError> {
        let fault =
            |field: &str, message| Err(BuildError { kernel: self.name.clone(), field: field.to_owned(), message });
        if self.name.is_empty() || self.name.contains(|c: char| c.is_whitespace() || c == '=') {
            return fault("name", "a word without spaces and equals signs".into());
        }
        let taken = self.sizes.iter().map(|s| s.name.as_str()).chain(self.params.iter().map(|p| p.name.as_str()));
        let taken: Vec<&str> =
            taken.chain(self.buffers.iter().map(|b| b.0)).chain(self.scalars.iter().map(|s| s.name)).collect();
        if let Some((_, twice)) = taken.iter().enumerate().find(|(i, name)| taken[..*i].contains(name)) {
            return fault(twice, "the name stands there twice".into());
        }
        if let Some(empty) = self.sizes.iter().find(|s| s.range.is_empty() || *s.range.end() > computation::MOST) {
            let message = format!("{:?} is no range of sizes up to {}", empty.range, computation::MOST);
            return fault(&empty.name, message);
        }
        Ok(())
    }
}

fn start(text: &str, space: &ParamSpace) -> Result<Point, String> {
    let config = Config::parse(text).map_err(|e| e.to_string())?;
    let first = vec![0; space.params().len()];
    config.to_point(space.params(), Some(&first)).map_err(|e| e.to_string())
}
