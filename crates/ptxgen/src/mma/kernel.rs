//! GEMM by matrix instructions as a tunable kernel.

use super::blueprint::Blueprint;
use super::space::Description;
use super::variants::Multiplied;
use super::{default, features, variants};
use crate::gemm::{GemmPlan, facts};
use crate::target::Target;
use tilewright_core::computation::InputError;
use tilewright_core::counts::Counts;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::program::Program;
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Bias, Gemm, GemmInput};

/// Rows, columns and steps of a product from which fragments are full.
const FILLED: usize = 16;

/// A legal (device, input, configuration) with everything derived from it.
pub type MmaPlan = GemmPlan<Blueprint>;

/// The kernel `gemm.mma`.
#[derive(Debug, Default)]
pub struct MmaGemm(());

impl MmaGemm {
    /// The kernel with its space.
    pub fn new() -> Self {
        Self(())
    }

    fn plan_of(device: &DeviceSpec, input: &GemmInput, at: &Values<'_>) -> Option<MmaPlan> {
        let names = &Description::get().names;
        let blueprint = Blueprint::new(Target::of(device), input, names, at)?;
        Some(GemmPlan::of(blueprint, input, at.ints(names.grid)?))
    }
}

impl Kernel for MmaGemm {
    type Of = Gemm;
    type Plan = MmaPlan;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.mma.1")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &Description::get().space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        variants::accepts(input)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        let mut symbols = input.symbols(device).with("result_bytes", input.types.output.size());
        facts::epilogue(&mut symbols, input);
        let multiplied = Multiplied::of(input);
        symbols.set("products", multiplied.products().len());
        symbols.set("rounds", multiplied != Multiplied::Whole);
        symbols.with("row_bias", input.epilogue.bias == Bias::Row)
    }

    fn derivations(&self) -> Vec<(&'static str, String)> {
        let bytes = |field: &str| format!("8 if {field} == 'f64' else 2 if {field} in ['f16', 'bf16'] else 4");
        let mut out = GemmInput::derivations();
        // Results are of the operands' type unless a field says otherwise.
        out.extend(["out", "dtype"].map(|field| ("result_bytes", bytes(field))));
        out.extend(facts::epilogue_derivations());
        out.extend(["bias == 'row'", "False"].map(|text| ("row_bias", text.to_owned())));
        out.extend(["3 if accuracy == '3xtf32' else 1", "1"].map(|text| ("products", text.to_owned())));
        out.extend(["accuracy != 'full'", "False"].map(|text| ("rounds", text.to_owned())));
        out
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> MmaPlan {
        // The names are the kernel's own, and the conformance suite reads them all at legal points.
        Self::plan_of(device, input, at)
            .unwrap_or_else(|| unreachable!("{at:?} is no point of gemm.mma, or not legal there"))
    }

    fn generate(&self, plan: &MmaPlan) -> Program {
        plan.program([0; 3])
    }

    fn counts(&self, plan: &MmaPlan) -> Option<Counts> {
        plan.count().ok()
    }

    fn feature_names(&self) -> Vec<Feature> {
        features::names()
    }

    fn features(&self, _: &DeviceSpec, input: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        let sizes = [input.m as u32, input.n as u32];
        features::features(sizes, input.batch.count, &Description::get().names, at, out);
    }

    /// Where the device has the instruction in hardware, for products that fill its fragments.
    fn suits(&self, device: &DeviceSpec, input: &GemmInput) -> f64 {
        let in_hardware = match input.dtype() {
            DType::F64 => matches!(device.fact("sm"), Some(80 | 90 | 100)),
            _ => device.fact("sm") >= Some(80),
        };
        let fills = input.m.min(input.n) >= FILLED && input.k >= FILLED;
        f64::from(u8::from(in_hardware && fills))
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        default::default_point(space)
    }
}
