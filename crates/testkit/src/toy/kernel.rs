//! The tunable implementation of the toy computation, in safe Rust.

use super::computation::{Scale, ScaleInput};
use std::sync::Arc;
use tilewright_core::buffer::View;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Val;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Point, RuleGroup, Symbols, Values};

/// One value per parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScaleConfig {
    /// Elements of one step.
    pub width: usize,
    /// Steps in a row.
    pub unroll: usize,
    /// Parts that the vector is cut into.
    pub chunks: usize,
    /// Lines fetched ahead; only the cost model sees it.
    pub prefetch: usize,
    /// Whether the vector is walked from its end.
    pub backward: bool,
}

impl ScaleConfig {
    /// The parameters of a point of the kernel's space.
    pub fn of(at: &Values<'_>) -> Self {
        let size = |name| at.int(name).unwrap_or(0);
        Self {
            width: size("width"),
            unroll: size("unroll"),
            chunks: size("chunks"),
            prefetch: size("prefetch"),
            backward: at.get("order") == Some(Val::Str("backward")),
        }
    }
}

/// A legal configuration for one input.
#[derive(Clone, Debug)]
pub struct ScalePlan {
    input: ScaleInput,
    config: ScaleConfig,
}

/// The toy kernel.
#[derive(Clone, Debug)]
pub struct ScaleKernel {
    id: KernelId,
    space: ParamSpace,
    suits: f64,
}

impl Default for ScaleKernel {
    fn default() -> Self {
        Self::new()
    }
}

impl ScaleKernel {
    /// The kernel with its whole space: 3,200 points, about half of them legal for long vectors.
    pub fn new() -> Self {
        let space = ParamSpace::builder()
            .param(Param::ints("width", [1, 2, 4, 8, 16]))
            .param(Param::ints("unroll", [1, 2, 4, 8, 16]))
            .param(Param::ints("chunks", [1, 2, 3, 4, 6, 8, 12, 16]))
            .param(Param::ints("prefetch", [1, 2, 4, 8, 16, 32, 64, 128]))
            .param(Param::words("order", ["forward", "backward"]))
            .define("step", "width * unroll")
            .rule("registers", RuleGroup::Hardware, "step <= registers", "a step is held in registers")
            .rule("chunk", RuleGroup::Implementation, "chunks == 1 or n >= chunks * width", "no chunk is empty")
            .build()
            .expect("the toy space is well formed");
        Self { id: KernelId::new("scale.toy"), space, suits: 0.0 }
    }

    /// The kernel under another name: another variant of the computation.
    #[must_use]
    pub fn named(self, id: &'static str) -> Self {
        Self { id: KernelId::new(id), ..self }
    }

    /// The kernel with what its default says of how well it suits an input; 0 before.
    #[must_use]
    pub fn suiting(self, suits: f64) -> Self {
        Self { suits, ..self }
    }

    /// The kernel with one more rule.
    ///
    /// # Panics
    /// On a text that does not parse.
    #[must_use]
    pub fn restricted(self, rule: &str) -> Self {
        let space = self.space.with_rule("restricted", RuleGroup::User, rule, "asked for");
        Self { space: space.expect("a rule that parses"), ..self }
    }
}

impl Kernel for ScaleKernel {
    type Of = Scale;
    type Plan = ScalePlan;

    fn id(&self) -> KernelId {
        self.id.clone()
    }

    fn computation(&self) -> &Scale {
        &Scale
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn symbols(&self, device: &DeviceSpec, input: &ScaleInput) -> Symbols {
        device.symbols().with("n", input.n)
    }

    fn plan(&self, _: &DeviceSpec, input: &ScaleInput, at: &Legal<'_>) -> ScalePlan {
        ScalePlan { input: input.clone(), config: ScaleConfig::of(at) }
    }

    fn generate(&self, plan: &ScalePlan) -> Program {
        Program::host(Arc::new(ScaleCode { n: plan.input.n, dtype: plan.input.dtype, config: plan.config }), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let sizes = ["width", "unroll", "chunks", "prefetch"].into_iter().map(Feature::size);
        sizes.chain([Feature::flag("backward")]).collect()
    }

    fn features(&self, _: &DeviceSpec, _: &ScaleInput, at: &Values<'_>, out: &mut Vec<f32>) {
        let config = ScaleConfig::of(at);
        out.extend([config.width, config.unroll, config.chunks, config.prefetch].map(|v| v as f32));
        out.push(f32::from(u8::from(config.backward)));
    }

    fn suits(&self, _: &DeviceSpec, _: &ScaleInput) -> f64 {
        self.suits
    }

    fn default_point(&self, _: &DeviceSpec, _: &ScaleInput, space: &BoundSpace) -> Option<Point> {
        // The plainest: every parameter's first value.
        let plain = Point(vec![0; space.params().len()]);
        if space.is_legal(&plain) { Some(plain) } else { space.first_legal() }
    }
}

/// The callable that a plan generates.
#[derive(Clone, Debug)]
pub struct ScaleCode {
    n: usize,
    dtype: DType,
    config: ScaleConfig,
}

impl HostCode for ScaleCode {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let fault = |name: &str, message: String| Err(DeviceError::Argument { name: name.to_owned(), message });
        let [x, y] = args.buffers else {
            return fault("buffers", format!("2 expected, {} found", args.buffers.len()));
        };
        let [a] = *args.scalars else {
            return fault("scalars", format!("1 expected, {} found", args.scalars.len()));
        };
        for (name, buffer) in [("x", &*x), ("y", &*y)] {
            if buffer.len() < self.n || buffer.dtype() != self.dtype {
                return fault(name, format!("{} x {} expected, {buffer:?} found", self.n, self.dtype));
            }
        }
        self.scale(a, x, y);
        Ok(())
    }

    fn listing(&self) -> Option<String> {
        let c = &self.config;
        let order = if c.backward { "backward" } else { "forward" };
        Some(format!("scale {} x {}: {} chunks of {} x {}, {order}", self.n, self.dtype, c.chunks, c.unroll, c.width))
    }
}

impl ScaleCode {
    fn scale(&self, a: f64, x: &View<'_>, y: &mut View<'_>) {
        for part in self.parts() {
            match self.dtype {
                DType::F32 => {
                    let from = &x.as_slice::<f32>()[part.clone()];
                    let to = &mut y.as_mut_slice::<f32>()[part];
                    to.iter_mut().zip(from).for_each(|(y, x)| *y = a as f32 * x);
                }
                _ => {
                    let from = &x.as_slice::<f64>()[part.clone()];
                    let to = &mut y.as_mut_slice::<f64>()[part];
                    to.iter_mut().zip(from).for_each(|(y, x)| *y = a * x);
                }
            }
        }
    }

    /// The steps in the order that the configuration asks for; together they cover `0..n` once.
    fn parts(&self) -> Vec<std::ops::Range<usize>> {
        let step = self.config.width * self.config.unroll;
        let bounds: Vec<usize> = (0..=self.config.chunks).map(|c| self.n * c / self.config.chunks).collect();
        let steps = |w: &[usize]| {
            let (start, end) = (w[0], w[1]);
            (start..end).step_by(step).map(move |at| at..end.min(at + step))
        };
        let mut parts: Vec<_> = bounds.windows(2).flat_map(steps).collect();
        if self.config.backward {
            parts.reverse();
        }
        parts
    }
}
