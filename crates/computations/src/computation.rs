//! What the six computations have in common: variants, features, inputs, a reference.

use crate::device::Device;
use tilewright_variant_select::variants::{CodeVariants, VariantError, VariantSet};

/// Why a variant gave no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A solver used up its iterations.
    #[error("no convergence after {iterations} iterations: relative residual {residual:.2e}, asked for {wanted:.0e}")]
    NotConverged {
        /// Iterations that were made.
        iterations: usize,
        /// What was reached.
        residual: f64,
        /// What was asked for.
        wanted: f64,
    },
    /// A solver met a division by nothing, or numbers beyond the finite ones.
    #[error("breakdown in iteration {iteration}: {what}")]
    Breakdown {
        /// From 0.
        iteration: usize,
        /// Which quantity.
        what: &'static str,
    },
    /// A preconditioner that does not exist for the matrix.
    #[error("no preconditioner: {what} at row {row}")]
    NoPreconditioner {
        /// Which row, from 0.
        row: usize,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// A variant made ready for one input: formats are converted, memory is there.
pub trait Prepared<O>: Send {
    /// Puts the data back that a run overwrites. Not timed.
    fn reset(&mut self) {}

    /// Whether [`Prepared::run`] may follow itself without a reset.
    fn again(&self) -> bool {
        true
    }

    /// What is timed.
    ///
    /// # Errors
    /// The variant does not come to a result on this input.
    fn run(&mut self, device: &Device) -> Result<(), Failure>;

    /// The result of the last run.
    fn output(&self) -> O;
}

/// A boxed [`Prepared`] that borrows its input.
pub type Ready<'a, O> = Box<dyn Prepared<O> + 'a>;

/// One implementation.
pub struct Variant<I, O> {
    /// The name, unique within the computation.
    pub name: &'static str,
    /// Whether it applies to an input, and what it needs where it does not.
    pub legal: fn(&I) -> Result<(), &'static str>,
    /// Converts the input.
    pub prepare: for<'a> fn(&'a I) -> Ready<'a, O>,
    /// What a run executes, by kind.
    pub work: fn(&I) -> Work,
}

/// Operations of a run by kind, counted from the algorithm and the input: what a profiler would report as fractions.
/// Each scalar operation counts as one, whatever it is vectorised to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Single-precision arithmetic.
    pub sp_flops: f64,
    /// Double-precision arithmetic.
    pub dp_flops: f64,
    /// Atomic read-modify-writes.
    pub atomics: f64,
    /// Loads and stores of data that stream through the caches.
    pub streamed: f64,
    /// Loads and stores that find their line in a near cache: tables, tiles, accumulators.
    pub cached: f64,
    /// Everything else: integer arithmetic, comparisons, branches.
    pub other: f64,
}

/// One feature of an input.
pub struct InputFeature<I> {
    /// The name, of letters, digits and underscores.
    pub name: &'static str,
    /// Whether it is best left as it is, instead of being read on a multiplicative scale.
    pub flag: bool,
    /// Computes it.
    pub of: fn(&I) -> f64,
}

/// An input that can be made again and again.
pub struct Named<I> {
    /// The generator with its arguments and seed.
    pub name: String,
    /// The generator.
    pub family: &'static str,
    /// Makes it.
    pub make: Box<dyn Fn() -> I + Send + Sync>,
}

impl<I> Named<I> {
    /// An input by its generator.
    pub fn new(family: &'static str, arguments: &str, make: impl Fn() -> I + Send + Sync + 'static) -> Self {
        Self { name: format!("{family}({arguments})"), family, make: Box::new(make) }
    }
}

/// A computation with several implementations.
pub trait Computation: 'static {
    /// The name of its dataset.
    const NAME: &'static str;
    /// What it is computed from.
    type Input: Send + Sync + 'static;
    /// What comes out.
    type Output: 'static;

    /// All variants; the first one is legal for every input, unless each may fail.
    fn variants() -> Vec<Variant<Self::Input, Self::Output>>;
    /// The features of the paper's Figure 3.
    fn features() -> Vec<InputFeature<Self::Input>>;
    /// The result by the plainest code there is.
    fn reference(input: &Self::Input) -> Self::Output;
    /// Whether a result is right, within rounding.
    ///
    /// # Errors
    /// Says where it is not.
    fn judge(input: &Self::Input, expected: &Self::Output, found: &Self::Output) -> Result<(), String>;
    /// The inputs of a campaign.
    fn inputs() -> Vec<Named<Self::Input>>;
}

/// What a variant of [`code_variants`] returns.
pub type Answer<C> = Result<<C as Computation>::Output, Failure>;

/// A computation on a device as code variants: features are computed when a choice needs them, their cost is counted, and
/// the first variant runs until something is tuned.
///
/// # Errors
/// None for the computations of this crate: their names are unique and their first variants have no constraints.
pub fn code_variants<C: Computation>(device: &Device) -> Result<VariantSet<C::Input, Answer<C>>, VariantError> {
    let mut set = CodeVariants::new(C::NAME);
    for feature in C::features() {
        let add = if feature.flag { CodeVariants::flag } else { CodeVariants::feature };
        set = add(set, feature.name, feature.of);
    }
    for (i, variant) in C::variants().into_iter().enumerate() {
        let device = device.clone();
        set = set.variant(variant.name, move |input| {
            let mut ready = (variant.prepare)(input);
            ready.run(&device).map(|()| ready.output())
        });
        set = if i == 0 {
            set.default_variant(variant.name)
        } else {
            let legal = variant.legal;
            set.constraint(variant.name, "does not apply to this input", move |input| legal(input).is_ok())
        };
    }
    set.build()
}
