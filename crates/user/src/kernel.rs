//! A described kernel as an ordinary one.

use crate::arguments::{Argument, Fill, Held, Kind, What};
use crate::computation::{InputOfUser, value_of};
use crate::counting::Counted;
use crate::formula::Formula;
use crate::inputs::{Given, Input};
use crate::launches::{Grid, Launched};
use crate::reference::{Reference, Referred};
use std::path::PathBuf;
use std::sync::Arc;
use tilewright_core::buffer::{Filling, Role};
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::{Val, Value};
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::operations::Operations;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::{Code, Language, Launch, Program, Source, Step};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Point, Symbols, Values};

/// A kernel that a file describes, and the computation that it is the only kernel of. Copies share everything.
#[derive(Clone)]
pub struct UserKernel(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// The description.
    pub(crate) file: PathBuf,
    /// The kernel's name and a hash of the description and the sources: another source is another kernel.
    pub(crate) id: String,
    pub(crate) text: Text,
    pub(crate) options: Vec<String>,
    pub(crate) space: ParamSpace,
    pub(crate) start: Option<Point>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) buffers: Vec<Held>,
    pub(crate) launches: Vec<Launched>,
    pub(crate) flops: Option<Formula>,
    pub(crate) bytes: Option<Formula>,
    pub(crate) reference: Reference,
    pub(crate) referred: Referred,
    pub(crate) counted: Option<Counted>,
}

/// The source.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// None for PTX, which is no language that is compiled.
    pub(crate) language: Option<Language>,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Text {
    /// Whether it runs on the host.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self.language, Some(Language::C | Language::Cpp))
    }
}

/// A legal configuration of a described kernel, as the program that it is.
pub struct UserPlan(Program);

impl UserKernel {
    /// The kernel without its type, for everything that takes such.
    pub fn erased(&self) -> Arc<dyn AnyKernel> {
        Arc::new(Erased::new(self.clone()))
    }

    /// What it is written in; None for PTX.
    pub fn language(&self) -> Option<Language> {
        self.0.text.language
    }

    /// The file that describes it.
    pub fn file(&self) -> &std::path::Path {
        &self.0.file
    }
}

impl Inner {
    /// The steps of a configuration, by the values of inputs and parameters.
    pub(crate) fn program<'v>(
        &self,
        input: &'v Given,
        at: &dyn Fn(&str) -> Option<Val<'v>>,
        config: &[(String, Value)],
    ) -> Program {
        let value = |name: &str| self.given(input, name).or_else(|| at(name));
        let steps = self.launches.iter().map(|launched| {
            let args: Vec<Argument> = launched.args.iter().map(|&i| self.arguments[i].clone()).collect();
            Step::Launch(self.launch(&self.text, &launched.entry, launched.grid.as_ref(), &args, &value, config))
        });
        Program::new(steps.collect(), 0)
    }

    /// One launch of a source.
    pub(crate) fn launch<'v>(
        &self,
        text: &Text,
        entry: &str,
        grid: Option<&Grid>,
        args: &[Argument],
        value: &dyn Fn(&str) -> Option<Val<'v>>,
        config: &[(String, Value)],
    ) -> Launch {
        let size = |formula: &Formula| formula.size(value).ok().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let ones = [1u32; 3];
        let (blocks, threads) =
            grid.map_or((ones, ones), |g| (g.grid.each_ref().map(size), g.block.each_ref().map(size)));
        let code = match text.language {
            None => Code::Ptx { text: text.text.clone(), entry: entry.to_owned() },
            Some(language) => Code::Source(Box::new(Source {
                language,
                path: text.path.clone(),
                text: text.text.clone(),
                entry: entry.to_owned(),
                types: args.iter().map(|arg| arg.c_type(language)).collect(),
                macros: self.macros(text, config, (blocks, threads)),
                options: self.options.clone(),
            })),
        };
        let number = |formula: &Formula| value_of(formula, value);
        let mut launch = Launch::new(code, blocks, threads, args.iter().map(|arg| arg.arg(&number)).collect());
        launch.shared_bytes = grid.map_or(0, |g| size(&g.shared));
        if !text.is_host() {
            let symbol = |arg: &Argument| match arg.what {
                What::Buffer(index) if self.buffers[index].symbol => Some((arg.name.to_owned(), index)),
                _ => None,
            };
            launch.symbols = args.iter().filter_map(symbol).collect();
        }
        launch
    }

    /// The macros of a configuration, as Kernel Tuner defines them: the parameters, `kernel_tuner`, and where the source names them the sizes
    /// of the block and the grid.
    fn macros(
        &self,
        text: &Text,
        config: &[(String, Value)],
        (blocks, threads): ([u32; 3], [u32; 3]),
    ) -> Vec<(String, String)> {
        let mut out: Vec<(String, String)> =
            config.iter().map(|(name, value)| (name.clone(), as_macro(value))).collect();
        out.push(("kernel_tuner".into(), "1".into()));
        if !text.is_host() {
            for (what, sizes) in [("grid_size", blocks), ("block_size", threads)] {
                for (axis, size) in ["x", "y", "z"].iter().zip(sizes) {
                    let name = format!("{what}_{axis}");
                    // Sizes that nothing reads would make another program of every input.
                    if text.text.contains(&name) && !config.iter().any(|(known, _)| *known == name) {
                        out.push((name, size.to_string()));
                    }
                }
            }
        }
        out
    }

    /// The value of an input.
    pub(crate) fn given<'v>(&self, input: &'v Given, name: &str) -> Option<Val<'v>> {
        let at = self.inputs.iter().position(|i| i.name == name)?;
        Some(input[at].as_val())
    }

    /// The number of a word among an input's values.
    pub(crate) fn word_number(&self, at: usize, value: &Value) -> f64 {
        match &self.inputs[at].values {
            crate::inputs::Values::List(list) => list.iter().position(|v| v == value).unwrap_or(0) as f64,
            crate::inputs::Values::Range(_) => 0.0,
        }
    }
}

fn as_macro(value: &Value) -> String {
    match value {
        Value::Bool(truth) => u8::from(*truth).to_string(),
        other => other.to_string(),
    }
}

impl Kernel for UserKernel {
    type Of = Self;
    type Plan = UserPlan;

    fn id(&self) -> KernelId {
        self.0.id.clone().into()
    }

    fn computation(&self) -> &Self {
        self
    }

    fn space(&self) -> &ParamSpace {
        &self.0.space
    }

    /// Whole numbers as data beside reals: lost and doubled terms show, whatever the tolerance. Where integers come of floats, though,
    /// numbers are compared or rounded, and whole ones tie: configurations may differ there that are equally right.
    fn fillings(&self) -> &'static [Filling] {
        let is_float = |held: &Held| held.element.kind == Kind::Float;
        let mut outputs = self.0.buffers.iter().filter(|held| held.output);
        let is_random = |held: &Held| is_float(held) && matches!(held.fill, Fill::Random(_)) && held.role != Role::Out;
        let ties = !outputs.any(is_float) && self.0.buffers.iter().any(is_random);
        if ties { &[Filling::Real] } else { &[Filling::Real, Filling::Exact] }
    }

    fn symbols(&self, device: &DeviceSpec, input: &InputOfUser) -> Symbols {
        let mut symbols = device.symbols();
        for (of, value) in self.0.inputs.iter().zip(&input.0) {
            symbols.set(&of.name, value.clone());
        }
        symbols
    }

    fn plan(&self, _: &DeviceSpec, input: &InputOfUser, at: &Legal<'_>) -> UserPlan {
        let config = at.config();
        let value = |name: &str| config.get(name).map(Value::as_val);
        UserPlan(self.0.program(&input.0, &value, &config.0))
    }

    fn generate(&self, plan: &UserPlan) -> Program {
        plan.0.clone()
    }

    fn operations(&self, device: &DeviceSpec, input: &InputOfUser, plan: &UserPlan) -> Option<Operations> {
        self.count(device, input, &plan.0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let feature = |p: &Param| if is_scale(p) { Feature::size(&p.name) } else { Feature::flag(&p.name) };
        let params = self.0.space.params().iter().map(feature);
        let spread = ["launch blocks", "launch threads", "launch waves"].map(Feature::size);
        params.chain(if self.0.text.is_host() { Vec::new() } else { spread.to_vec() }).collect()
    }

    fn features(&self, device: &DeviceSpec, _: &InputOfUser, at: &Values<'_>, out: &mut Vec<f32>) {
        for (param, &index) in self.0.space.params().iter().zip(at.point()) {
            let number = param.values[usize::from(index)].as_f64().map(|x| x as f32);
            out.push(number.unwrap_or_else(|| f32::from(index)));
        }
        if self.0.text.is_host() {
            return;
        }
        let product = |what: &str| {
            ["x", "y", "z"]
                .map(|axis| at.int::<i64>(&format!("launch_{what}_{axis}")).map_or(1.0, |n| n as f32))
                .iter()
                .product::<f32>()
        };
        let (blocks, threads) = (product("blocks"), product("threads"));
        // How often the device is filled: by threads alone, since registers are known to the assembler only.
        let fact = |name: &str| device.fact(name).map_or(1.0, |n| n as f32);
        let at_once = fact("multiprocessors") * (fact("threads_per_sm") / threads.max(1.0)).floor().max(1.0);
        out.extend([blocks, threads, blocks / at_once]);
    }

    fn default_point(&self, _: &DeviceSpec, _: &InputOfUser, space: &BoundSpace) -> Option<Point> {
        self.0.start.clone().filter(|start| space.is_legal(start)).or_else(|| space.first_legal())
    }
}

/// Whether all values of a parameter are positive numbers.
fn is_scale(param: &Param) -> bool {
    param.values.iter().all(|v| v.as_f64().is_some_and(|x| x > 0.0))
}
