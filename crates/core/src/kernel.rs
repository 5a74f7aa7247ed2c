//! One tunable implementation of a computation.

use crate::buffer::Filling;
use crate::computation::{Computation, InputError};
use crate::counts::Counts;
use crate::device::DeviceSpec;
use crate::feature::Feature;
use crate::id::KernelId;
use crate::operations::Operations;
use crate::program::Program;
use crate::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};

/// The input type of a kernel's computation.
pub type InputOf<K> = <<K as Kernel>::Of as Computation>::Input;

/// A tunable kernel: parameter space, legality, code generation, features.
///
/// The rules of [`Kernel::space`], with the names of [`Kernel::symbols`], are the whole of legality: [`Kernel::plan`] has a
/// plan for every point that they accept, and sees no other. What rules define by name, code reads from the point instead of
/// computing it again. The conformance suite of `testkit` holds implementations to that.
pub trait Kernel: Send + Sync + 'static {
    /// What it computes.
    type Of: Computation;
    /// A legal configuration with everything that follows from it; made by [`Kernel::plan`] only.
    type Plan;

    /// The name, changed when the meaning of a parameter changes.
    fn id(&self) -> KernelId;

    /// The computation.
    fn computation(&self) -> &Self::Of;

    /// Parameters and rules.
    fn space(&self) -> &ParamSpace;

    /// Refuses inputs that no configuration computes: element types, say, that the kernel has no code for.
    ///
    /// # Errors
    /// The field, and what the kernel takes.
    fn accepts(&self, input: &InputOf<Self>) -> Result<(), InputError> {
        let _ = input;
        Ok(())
    }

    /// The kinds of data for which the reference foretells results: all by default. A kernel that sums in another way than by terms
    /// (Winograd's, Strassen's) keeps the bounds of real data only; it is never given others.
    fn fillings(&self) -> &'static [Filling] {
        &[Filling::Real, Filling::Exact, Filling::Special]
    }

    /// The names that rules use beside the parameters: facts of the device, sizes of the input.
    fn symbols(&self, device: &DeviceSpec, input: &InputOf<Self>) -> Symbols;

    /// How names of [`Kernel::symbols`] that are no fields of the input follow from those: pairs of a name and an expression in the
    /// language of rules. Of several for a name, the first counts that has a value; one that mentions fields that an input does not
    /// have, or that has no value for it, says nothing of it. Exports write legality as code with them; a rule over a name that
    /// neither is a field nor stands here cannot be exported.
    fn derivations(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Derives everything that generation needs. Cannot fail: the point is legal, in this kernel's space bound to the symbols of
    /// this device and input.
    fn plan(&self, device: &DeviceSpec, input: &InputOf<Self>, at: &Legal<'_>) -> Self::Plan;

    /// Generates code. Cannot fail: a plan is legal.
    fn generate(&self, plan: &Self::Plan) -> Program;

    /// How often the program does what takes time, as expressions in the input's fields. They hold for every input for which
    /// the plan's configuration gives the same code; where they have no sizes ([`Counts::sizes`]), for the plan's input alone.
    /// `None` where nothing counts this kernel.
    fn counts(&self, plan: &Self::Plan) -> Option<Counts> {
        let _ = plan;
        None
    }

    /// How often the program does what takes time, for one input on one device. The default evaluates [`Kernel::counts`];
    /// a kernel that is counted by other means, or that knows what overlaps what, says so here. `None` where nothing counts it.
    fn operations(&self, device: &DeviceSpec, input: &InputOf<Self>, plan: &Self::Plan) -> Option<Operations> {
        let _ = device;
        let fields = self.computation().fields(input);
        Operations::of(&self.counts(plan)?, |size| fields.get(size)?.as_int())
    }

    /// Names and kinds of the features of a configuration (those of the input come first in a row, from the
    /// computation).
    fn feature_names(&self) -> Vec<Feature>;

    /// Features of a configuration, one number per name. Takes the values of a point and not the plan: a search computes
    /// millions of these, of points that it knows to be legal, and generates none of them.
    fn features(&self, device: &DeviceSpec, input: &InputOf<Self>, at: &Values<'_>, out: &mut Vec<f32>);

    /// How well the default suits an input beside the defaults of the computation's other kernels: where nothing else is known of them,
    /// the one that says most comes first, and of those that say the same the one that is named first. A kernel that is made for
    /// some inputs says more than 0 of those. Where nothing is timed, it leads what a selector learned if a campaign found that worth it,
    /// and in any case where it says 2 or more, since others cost several times as much, or where the selector did not learn on it.
    fn suits(&self, device: &DeviceSpec, input: &InputOf<Self>) -> f64 {
        let _ = (device, input);
        0.0
    }

    /// A point that is legal for every input that has a legal one, and decent: what runs before anything is tuned. The space is
    /// the kernel's own, bound to this device and input.
    fn default_point(&self, device: &DeviceSpec, input: &InputOf<Self>, space: &BoundSpace) -> Option<Point>;
}
