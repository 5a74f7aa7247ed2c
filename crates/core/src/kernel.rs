//! One tunable implementation of a computation.

use crate::computation::Computation;
use crate::counts::Counts;
use crate::device::DeviceSpec;
use crate::feature::Feature;
use crate::id::KernelId;
use crate::program::Program;
use crate::space::{Illegal, ParamSpace, Point, Symbols};
use std::fmt::Debug;

/// The input type of a kernel's computation.
pub type InputOf<K> = <<K as Kernel>::Of as Computation>::Input;

/// A tunable kernel: parameter space, legality, code generation, features.
///
/// The rules of [`Kernel::space`], with the names of [`Kernel::symbols`], are the whole of legality: [`Kernel::plan`]
/// accepts exactly the points that they accept. The conformance suite of `testkit` holds implementations to that.
pub trait Kernel: Send + Sync + 'static {
    /// What it computes.
    type Of: Computation;
    /// One value per parameter, typed.
    type Config: Clone + Debug;
    /// Proof of legality with everything derived from it; made by [`Kernel::plan`] only.
    type Plan;

    /// The name, changed when the meaning of a parameter changes.
    fn id(&self) -> KernelId;

    /// The computation.
    fn computation(&self) -> &Self::Of;

    /// Parameters and rules.
    fn space(&self) -> &ParamSpace;

    /// The names that rules use beside the parameters: facts of the device, sizes of the input.
    fn symbols(&self, device: &DeviceSpec, input: &InputOf<Self>) -> Symbols;

    /// The typed configuration of a point of this space.
    fn decode(&self, point: &[u16]) -> Self::Config;

    /// Checks legality and derives everything that generation needs.
    ///
    /// # Errors
    /// The rule that does not hold, with its numbers.
    fn plan(&self, device: &DeviceSpec, input: &InputOf<Self>, config: &Self::Config) -> Result<Self::Plan, Illegal>;

    /// Generates code. Cannot fail: a plan is legal.
    fn generate(&self, plan: &Self::Plan) -> Program;

    /// How often the program does what takes time, as expressions in the input's words. They hold for every input for which
    /// the plan's configuration gives the same code. `None` where nothing counts this kernel.
    fn counts(&self, plan: &Self::Plan) -> Option<Counts> {
        let _ = plan;
        None
    }

    /// Names and kinds of the features of a configuration (those of the input come first in a row, from the
    /// computation).
    fn feature_names(&self) -> Vec<Feature>;

    /// How many of the last of these are hints, another model's word and not the kernel's own. See [`crate::hint`].
    fn hints(&self) -> usize {
        0
    }

    /// Features of a legal configuration, one number per name. Takes the configuration and not the plan: a search
    /// computes millions of these and generates none of them.
    fn features(&self, device: &DeviceSpec, input: &InputOf<Self>, config: &Self::Config, out: &mut Vec<f32>);

    /// A point that is legal for every input that has a legal one, and decent: what runs before anything is tuned.
    fn default_point(&self, device: &DeviceSpec, input: &InputOf<Self>) -> Option<Point>;
}
