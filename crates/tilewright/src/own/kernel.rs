//! A described kernel as an ordinary one.

use super::args::{Args, At, Call};
use super::{MakeCode, OwnComputation, Sizes};
use crate::request::Request;
use std::sync::Arc;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, ScalarSpec};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Point, Symbols, Values};

/// A kernel that a [`KernelBuilder`](super::KernelBuilder) described. It is a [`Kernel`] like any other; copies share its closures.
#[derive(Clone)]
pub struct OwnKernel(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) computation: OwnComputation,
    pub(super) space: ParamSpace,
    pub(super) start: Option<Point>,
    pub(super) code: Box<MakeCode>,
}

impl OwnKernel {
    /// A request with one field of an input; others by [`Request::with`].
    pub fn with(&self, field: &str, value: impl Into<Value>) -> Request {
        self.any_input().with(field, value)
    }

    /// A request without fields: to tune for all inputs.
    pub fn any_input(&self) -> Request {
        Request::own(self.erased())
    }

    /// The kernel without its type, for everything that takes such.
    pub fn erased(&self) -> Arc<dyn AnyKernel> {
        Arc::new(Erased::new(self.clone()))
    }
}

/// The code of one configuration, with what it was described to take.
struct Code {
    call: Box<Call>,
    specs: Vec<BufferSpec>,
    scalars: Vec<ScalarSpec>,
}

impl HostCode for Code {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        (self.call)(&mut Args::new(&self.specs, &self.scalars, args))
    }
}

/// The code of a legal configuration.
pub struct OwnPlan(Arc<Code>);

impl Kernel for OwnKernel {
    type Of = OwnComputation;
    type Plan = OwnPlan;

    fn id(&self) -> KernelId {
        tilewright_core::computation::Computation::id(&self.0.computation).as_str().to_owned().into()
    }

    fn computation(&self) -> &OwnComputation {
        &self.0.computation
    }

    fn space(&self) -> &ParamSpace {
        &self.0.space
    }

    fn symbols(&self, device: &DeviceSpec, input: &Sizes) -> Symbols {
        let mut symbols = device.symbols();
        for (name, size) in self.0.computation.named(input) {
            symbols.set(name, Value::Int(size as i64));
        }
        symbols
    }

    fn plan(&self, _: &DeviceSpec, input: &Sizes, at: &Legal<'_>) -> OwnPlan {
        let call = (self.0.code)(&At(at));
        let (specs, scalars) = (self.0.computation.specs(input), self.0.computation.scalars.clone());
        OwnPlan(Arc::new(Code { call, specs, scalars }))
    }

    fn generate(&self, plan: &OwnPlan) -> Program {
        Program::host(plan.0.clone(), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let feature = |p: &Param| if is_scale(p) { Feature::size(&p.name) } else { Feature::flag(&p.name) };
        self.0.space.params().iter().map(feature).collect()
    }

    fn features(&self, _: &DeviceSpec, _: &Sizes, at: &Values<'_>, out: &mut Vec<f32>) {
        for (param, &index) in self.0.space.params().iter().zip(at.point()) {
            let number = param.values[usize::from(index)].as_f64().map(|x| x as f32);
            out.push(number.unwrap_or_else(|| f32::from(index)));
        }
    }

    fn default_point(&self, _: &DeviceSpec, _: &Sizes, space: &BoundSpace) -> Option<Point> {
        self.0.start.clone().filter(|start| space.is_legal(start)).or_else(|| space.first_legal())
    }
}

/// Whether all values of a parameter are positive numbers.
fn is_scale(param: &Param) -> bool {
    param.values.iter().all(|v| v.as_f64().is_some_and(|x| x > 0.0))
}
