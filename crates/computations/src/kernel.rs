//! A variant as core's kernel: the one place between what this crate describes and what the contract asks for.

use crate::described::Described;
use crate::description::{Description, Failure, Routine, Variant};
use crate::device::Device;
use crate::source::Source;
use std::sync::Arc;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Point, RuleGroup, SpaceError, Symbols, Values};

/// The kernel of a variant, `COMPUTATION.VARIANT.1`.
pub struct VariantKernel<D: Description> {
    of: Arc<Described<D>>,
    variant: Variant<D::Data>,
    space: ParamSpace,
    id: KernelId,
}

/// A legal configuration on one device for one input.
pub struct VariantPlan {
    device: DeviceSpec,
    source: Source,
    values: Vec<i64>,
}

impl<D: Description> VariantKernel<D> {
    /// A kernel for each variant, all on the same data, the one that applies to everything first.
    ///
    /// # Errors
    /// A rule of a variant that does not parse, a parameter without values.
    pub fn all(of: &Arc<Described<D>>) -> Result<Vec<Self>, SpaceError> {
        D::variants().into_iter().map(|variant| Self::new(of.clone(), variant)).collect()
    }

    fn new(of: Arc<Described<D>>, variant: Variant<D::Data>) -> Result<Self, SpaceError> {
        let space = ParamSpace::builder().params(variant.params.iter().cloned());
        let rule = |space: tilewright_core::space::SpaceBuilder, (name, text, why): &(&str, &str, &str)| {
            space.rule(name, RuleGroup::Implementation, text, why)
        };
        let space = variant.rules.iter().fold(space, rule).build()?;
        let id = KernelId::from(format!("{}.{}.1", D::NAME, variant.name));
        Ok(Self { of, variant, space, id })
    }

    /// The variant's own name.
    pub fn name(&self) -> &'static str {
        self.variant.name
    }

    /// The parameters of a point in their order.
    fn values(&self, at: &Values<'_>) -> impl Iterator<Item = i64> {
        at.space().values(at.point()).map(|v| v.as_int().unwrap_or(0))
    }
}

/// The kernels of a computation without their types.
///
/// # Errors
/// As [`VariantKernel::all`].
pub fn erased<D: Description>() -> Result<Vec<Box<dyn AnyKernel>>, SpaceError> {
    let all = VariantKernel::all(&Arc::new(Described::<D>::default()))?;
    Ok(all.into_iter().map(|kernel| Box::new(Erased::new(kernel)) as Box<dyn AnyKernel>).collect())
}

impl<D: Description> Kernel for VariantKernel<D> {
    type Of = Described<D>;
    type Plan = VariantPlan;

    fn id(&self) -> KernelId {
        self.id.clone()
    }

    fn computation(&self) -> &Described<D> {
        &self.of
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn symbols(&self, device: &DeviceSpec, input: &Source) -> Symbols {
        let facts = self.of.facts(input);
        facts.symbols.iter().fold(device.symbols(), |all, (name, value)| all.with(name, *value))
    }

    fn plan(&self, device: &DeviceSpec, input: &Source, at: &Legal<'_>) -> VariantPlan {
        VariantPlan { device: device.clone(), source: input.clone(), values: self.values(at).collect() }
    }

    fn generate(&self, plan: &VariantPlan) -> Program {
        let made = self.of.data(&plan.source).map_err(|e| DeviceError::Argument { name: e.field, message: e.message });
        let made = made.and_then(|data| {
            let device = Device::of(&plan.device)
                .map_err(|e| DeviceError::Unsupported { device: plan.device.id.clone(), feature: e.to_string() })?;
            let routine = (self.variant.prepare)(&data, &plan.values);
            Ok(Ready { routine, device, specs: D::specs(&data) })
        });
        Program::host(Arc::new(VariantCode(made)), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        self.space.params().iter().map(|p| Feature::size(&p.name)).collect()
    }

    fn features(&self, _: &DeviceSpec, _: &Source, at: &Values<'_>, out: &mut Vec<f32>) {
        out.extend(self.values(at).map(|v| v as f32));
    }

    fn default_point(&self, _: &DeviceSpec, _: &Source, space: &BoundSpace) -> Option<Point> {
        let defaults = self.variant.defaults.iter();
        let index = |(p, v): (&Param, &i64)| p.index_of(&Value::Int(*v));
        let own = self.space.params().iter().zip(defaults).map(index).collect::<Option<Vec<u16>>>().map(Point);
        let own = own.filter(|p| space.is_legal(p));
        own.or_else(|| space.first_legal())
    }
}

struct Ready {
    routine: Routine,
    device: Device,
    specs: Vec<BufferSpec>,
}

/// A prepared variant, or why there is none: data that vanished between plan and program.
struct VariantCode(Result<Ready, DeviceError>);

impl HostCode for VariantCode {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let Ready { routine, device, specs } = self.0.as_ref().map_err(Clone::clone)?;
        let fits = specs.len() == args.buffers.len()
            && specs.iter().zip(&*args.buffers).all(|(s, b)| s.dtype == b.dtype() && s.len == b.len());
        let Some((output, inputs)) = args.buffers.split_last_mut().filter(|_| fits) else {
            let message = format!("{:?} where {specs:?} are needed", args.buffers);
            return Err(DeviceError::Argument { name: "buffers".into(), message });
        };
        routine(device, inputs, output).map_err(|e: Failure| DeviceError::NoResult(e.to_string()))
    }
}
