//! Every check of the computation and kernel suites can fail: one deliberate fault each.

use crate::assert_breaks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tilewright_core::buffer::{BufferSpec, Buffers, Expected, Filling, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::kernel::Kernel;
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, ScalarClass, ScalarSpec};
use tilewright_core::space::{BoundSpace, Config, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_testkit::toy::{Scale, ScaleInput, ScaleKernel, ScalePlan, host_device};
use tilewright_testkit::{Effort, computation, kernel};

/// A number that differs from call to call.
fn tick() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Fields,
    FieldTwice,
    AcceptsUnknown,
    Clears,
    FewFeatures,
    NanFeature,
    FeatureTwice,
    Work,
    WorkloadVaries,
    WorkloadFixed,
    Specs,
    Buffers,
    Scalars,
    Unpoisoned,
    ShortReference,
    NothingChecked,
    NegativeBound,
    DrawFails,
    DrawVaries,
    DrawTooLarge,
    DrawForgets,
}

struct BrokenScale(Wrong);

impl BrokenScale {
    fn is(&self, wrong: Wrong) -> bool {
        self.0 == wrong
    }
}

impl Computation for BrokenScale {
    type Input = ScaleInput;

    fn id(&self) -> ComputationId {
        Scale.id()
    }

    fn parse(&self, fields: &Config) -> Result<ScaleInput, InputError> {
        let known = |(name, _): &&(String, _)| !self.is(Wrong::AcceptsUnknown) || name != "no_such_word";
        let mut kept = Config(fields.0.iter().filter(known).cloned().collect());
        if self.is(Wrong::FieldTwice) {
            kept.0.dedup();
        }
        Scale.parse(&kept)
    }

    fn fields(&self, input: &ScaleInput) -> Config {
        let mut fields = Scale.fields(input);
        match self.0 {
            Wrong::Fields => fields.0.truncate(1),
            Wrong::FieldTwice => fields.0.insert(0, fields.0[0].clone()),
            _ => {}
        }
        fields
    }

    fn work(&self, input: &ScaleInput) -> Work {
        let flops = if self.is(Wrong::Work) { f64::NAN } else { 0.0 };
        Work { flops: Scale.work(input).flops + flops, ..Scale.work(input) }
    }

    fn workload(&self, input: &ScaleInput, filling: Filling, seed: u64) -> Workload {
        let seed = match self.0 {
            Wrong::WorkloadVaries => tick(),
            Wrong::WorkloadFixed => 1,
            _ => seed,
        };
        let mut work = Scale.workload(input, filling, seed);
        match self.0 {
            Wrong::Specs => work.specs[0].len += 1,
            Wrong::Unpoisoned if input.n > 0 => work.buffers[1].set_f64(0, 1.0),
            _ => {}
        }
        work
    }

    fn buffers(&self, input: &ScaleInput) -> Vec<BufferSpec> {
        let mut buffers = Scale.buffers(input);
        if self.is(Wrong::Buffers) {
            buffers[0].name = "z";
        }
        buffers
    }

    fn scalars(&self, input: &ScaleInput) -> Vec<ScalarSpec> {
        match self.0 {
            Wrong::Scalars => vec![ScalarSpec { name: "a", class: ScalarClass::Exactly(3.0) }],
            _ => Scale.scalars(input),
        }
    }

    fn reference(&self, input: &ScaleInput, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        let mut expected = Scale.reference(input, before, scalars)?;
        match self.0 {
            Wrong::ShortReference => drop(expected.buffers[0].bounds.pop()),
            Wrong::NothingChecked => expected.buffers.clear(),
            Wrong::NegativeBound => expected.buffers[0].bounds.iter_mut().for_each(|b| *b = -1.0),
            _ => {}
        }
        Ok(expected)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let mut names = Scale.feature_names();
        if self.is(Wrong::FeatureTwice) {
            names[1] = names[0].clone();
        }
        names
    }

    fn features(&self, input: &ScaleInput, out: &mut Vec<f32>) {
        match self.0 {
            Wrong::Clears => out.clear(),
            Wrong::NanFeature => return out.extend([f32::NAN; 2]),
            _ => {}
        }
        Scale.features(input, out);
        if self.is(Wrong::FewFeatures) {
            out.pop();
        }
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<ScaleInput, InputError> {
        let nothing = Config::default();
        match self.0 {
            Wrong::DrawFails => Err(InputError::new("n", "no draw")),
            Wrong::DrawVaries => Ok(ScaleInput { n: tick() as usize, dtype: DType::F32 }),
            Wrong::DrawTooLarge => Ok(ScaleInput { n: 1 << 24, dtype: DType::F32 }),
            Wrong::DrawForgets => Scale.draw(&nothing, limits, uniform),
            _ => Scale.draw(fixed, limits, uniform),
        }
    }
}

#[test]
fn every_fault_of_a_computation_is_seen() {
    let inputs = [ScaleInput { n: 100, dtype: DType::F64 }];
    for (wrong, check) in [
        (Wrong::Fields, "fields-read-back"),
        (Wrong::FieldTwice, "fields-read-back"),
        (Wrong::AcceptsUnknown, "unknown-word-refused"),
        (Wrong::Clears, "features-append"),
        (Wrong::FewFeatures, "features-match-names"),
        (Wrong::NanFeature, "features-are-finite"),
        (Wrong::FeatureTwice, "features-match-names"),
        (Wrong::Work, "work-is-finite"),
        (Wrong::WorkloadVaries, "workload-repeats"),
        (Wrong::WorkloadFixed, "workload-follows-seed"),
        (Wrong::Specs, "workload-matches-specs"),
        (Wrong::Buffers, "workload-matches-buffers"),
        (Wrong::Scalars, "workload-fits-scalars"),
        (Wrong::Unpoisoned, "outputs-are-poisoned"),
        (Wrong::ShortReference, "reference-covers-buffers"),
        (Wrong::NothingChecked, "reference-covers-buffers"),
        (Wrong::NegativeBound, "reference-covers-buffers"),
        (Wrong::DrawFails, "draw-succeeds"),
        (Wrong::DrawVaries, "draw-repeats"),
        (Wrong::DrawTooLarge, "draw-keeps-limits"),
        (Wrong::DrawForgets, "draw-keeps-fixed-fields"),
    ] {
        assert_breaks(computation(&BrokenScale(wrong), &inputs), check);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// There is no plan for a legal configuration.
    PlansTooLittle,
    /// A derived name has no value at a legal point.
    NameWithoutValue,
    /// A rule names what nobody gives.
    MissingSymbol,
    FewFeatures,
    FeatureTwice,
    ClearsRow,
    NanFeature,
    IllegalDefault,
    NoDefault,
    VaryingCode,
    WrongResult,
    ForgetsTheEnd,
    WritesInput,
    VaryingResult,
    FailsToRun,
    NoDerivation,
    WrongDerivation,
}

struct BrokenKernel {
    inner: ScaleKernel,
    space: ParamSpace,
    fault: Fault,
}

impl BrokenKernel {
    fn new(fault: Fault) -> Self {
        let inner = ScaleKernel::new();
        let undefined = if fault == Fault::NameWithoutValue { "chunks // (width - 2)" } else { "chunks // width" };
        let space = ParamSpace::builder().params(inner.space().params().to_vec()).define("undefined", undefined);
        let rules = inner.space().rules().iter();
        let space = rules.fold(space, |s, rule| s.rule(&rule.name, rule.group, &rule.expr.to_string(), &rule.why));
        Self { inner, space: space.build().unwrap(), fault }
    }
}

/// Code with a fault around the right code.
struct BrokenCode {
    inner: Program,
    fault: Fault,
    made: u64,
}

impl HostCode for BrokenCode {
    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        if self.fault == Fault::FailsToRun {
            return Err(DeviceError::Run("broken".into()));
        }
        let tilewright_core::program::Step::Host(code) = &self.inner.steps[0] else {
            return Err(DeviceError::Run("not host code".into()));
        };
        code.run(args)?;
        let [x, y] = args.buffers else { return Ok(()) };
        let last = x.len() - 1;
        match self.fault {
            Fault::WrongResult => y.set_f64(0, y.get_f64(0) * 1.001),
            Fault::ForgetsTheEnd => y.set_f64(last, f64::NAN),
            Fault::WritesInput => x.set_f64(0, 0.5),
            // Within the error bound, and different on every run.
            Fault::VaryingResult if y.get_f64(0).is_normal() => {
                let bits = (y.get_f64(0) as f32).to_bits() ^ (tick() as u32 & 1);
                y.set_f64(0, f64::from(f32::from_bits(bits)));
            }
            _ => {}
        }
        Ok(())
    }

    fn listing(&self) -> Option<String> {
        Some(format!("code {}", self.made))
    }
}

impl Kernel for BrokenKernel {
    type Of = Scale;
    type Plan = ScalePlan;

    fn id(&self) -> KernelId {
        KernelId::new("scale.broken")
    }

    fn computation(&self) -> &Scale {
        &Scale
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn symbols(&self, device: &DeviceSpec, input: &ScaleInput) -> Symbols {
        if self.fault == Fault::MissingSymbol { device.symbols() } else { self.inner.symbols(device, input) }
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        let text = match self.fault {
            Fault::NoDerivation => "n +",
            Fault::WrongDerivation => "n + 1",
            // Says nothing, and then what is so.
            _ => "1 // 0",
        };
        vec![("n", text.to_owned()), ("n", "n".to_owned())]
    }

    fn plan(&self, device: &DeviceSpec, input: &ScaleInput, at: &Legal<'_>) -> ScalePlan {
        assert!(self.fault != Fault::PlansTooLittle || at.int("width") != Some(4), "made to panic");
        self.inner.plan(device, input, at)
    }

    fn generate(&self, plan: &ScalePlan) -> Program {
        let made = if self.fault == Fault::VaryingCode { tick() } else { 0 };
        Program::host(Arc::new(BrokenCode { inner: self.inner.generate(plan), fault: self.fault, made }), 0)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let mut names = self.inner.feature_names();
        if self.fault == Fault::FeatureTwice {
            names[0] = names[1].clone();
        }
        names
    }

    fn features(&self, device: &DeviceSpec, input: &ScaleInput, at: &Values<'_>, out: &mut Vec<f32>) {
        if self.fault == Fault::ClearsRow {
            out.iter_mut().for_each(|x| *x = 0.0);
        }
        self.inner.features(device, input, at, out);
        match self.fault {
            Fault::FewFeatures => drop(out.pop()),
            Fault::NanFeature => *out.last_mut().unwrap() = f32::NAN,
            _ => {}
        }
    }

    fn default_point(&self, device: &DeviceSpec, input: &ScaleInput, space: &BoundSpace) -> Option<Point> {
        match self.fault {
            Fault::IllegalDefault => Some(Point(vec![4, 4, 0, 0, 0])),
            Fault::NoDefault => None,
            _ => self.inner.default_point(device, input, space),
        }
    }
}

#[test]
fn every_fault_of_a_kernel_is_seen() {
    let inputs = [ScaleInput { n: 100, dtype: DType::F32 }];
    let effort = Effort { probes: 500, runs: 4, ..Effort::default() };
    for (fault, check) in [
        (Fault::PlansTooLittle, "plan-matches-rules"),
        (Fault::NameWithoutValue, "names-have-values"),
        (Fault::MissingSymbol, "symbols-cover-rules"),
        (Fault::NoDerivation, "derivations-are-expressions"),
        (Fault::WrongDerivation, "derivations-hold"),
        (Fault::FewFeatures, "features-match-schema"),
        (Fault::FeatureTwice, "features-match-schema"),
        (Fault::ClearsRow, "features-append"),
        (Fault::NanFeature, "features-are-finite"),
        (Fault::IllegalDefault, "default-point-is-legal"),
        (Fault::NoDefault, "default-point-is-legal"),
        (Fault::VaryingCode, "generation-repeats"),
        (Fault::WrongResult, "result-is-right"),
        (Fault::ForgetsTheEnd, "result-is-right"),
        (Fault::WritesInput, "inputs-stay"),
        (Fault::VaryingResult, "result-repeats"),
        (Fault::FailsToRun, "program-runs"),
    ] {
        let broken = Arc::new(BrokenKernel::new(fault));
        assert_breaks(kernel(&broken, &mut host_device(), &inputs, &effort), check);
    }
}
