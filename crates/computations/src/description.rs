//! What a computation of this crate says about itself: data with a name, variants that prepare them, a reference.

use crate::device::Device;
use crate::source::{Fault, Generator};
use std::sync::Arc;
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role, View, Workload};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::space::Param;

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
    /// A solver's own count of the residual ended small, and the residual is not.
    #[error("rounding errors grew: relative residual {residual:.2e}, at most {wanted:.0e} is a solution")]
    Drifted {
        /// What is there.
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
    /// A search from what is no vertex.
    #[error("source {vertex} is no vertex of the graph")]
    NoVertex {
        /// What was given.
        vertex: u32,
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

/// A variant made ready for one input: formats are converted, memory is there. Calling it is what is timed, with the buffers of
/// [`Description::specs`], the last one apart, whose lengths were checked; it fails where the variant comes to no result on this input.
///
/// What stands in the data of the input (a matrix, a graph) was converted from them and is not read from the buffers again; what
/// changes from call to call (vectors, keys, pixels) is read from the buffers.
pub type Routine = Box<dyn Fn(&Device, &[View<'_>], &mut View<'_>) -> Result<(), Failure> + Send + Sync>;

/// Makes a variant ready, with the values of its parameters in their order.
pub type Prepare<D> = fn(&Arc<D>, &[i64]) -> Routine;

/// One implementation, which becomes a kernel of the computation.
pub struct Variant<D> {
    /// The name, unique within the computation.
    pub name: &'static str,
    /// What can be tuned.
    pub params: Vec<Param>,
    /// The value of each parameter before anything is tuned.
    pub defaults: Vec<i64>,
    /// Name, text and reason of what must hold for the symbols of the data and the parameters.
    pub rules: Vec<(&'static str, &'static str, &'static str)>,
    /// Converts the data.
    pub prepare: Prepare<D>,
}

impl<D> Variant<D> {
    /// A variant without parameters that applies to everything.
    pub fn new(name: &'static str, prepare: Prepare<D>) -> Self {
        Self { name, params: Vec::new(), defaults: Vec::new(), rules: Vec::new(), prepare }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, name: &str, values: &[i64], default: i64) -> Self {
        self.params.push(Param { name: name.into(), values: values.iter().copied().map(Value::Int).collect() });
        self.defaults.push(default);
        self
    }

    /// Adds what must hold.
    #[must_use]
    pub fn rule(mut self, name: &'static str, text: &'static str, why: &'static str) -> Self {
        self.rules.push((name, text, why));
        self
    }
}

/// One feature of the data.
pub struct DataFeature<D> {
    /// The name, of letters, digits and underscores.
    pub name: &'static str,
    /// Whether it is best left as it is, instead of being read on a multiplicative scale.
    pub flag: bool,
    /// Computes it. Looks at a sample, so that all features together cost less than the call that they choose for.
    pub of: fn(&D) -> f64,
}

/// A feature on a multiplicative scale.
pub(crate) const fn size<D>(name: &'static str, of: fn(&D) -> f64) -> DataFeature<D> {
    DataFeature { name, flag: false, of }
}

/// A feature that is best left as it is.
pub(crate) const fn flag<D>(name: &'static str, of: fn(&D) -> f64) -> DataFeature<D> {
    DataFeature { name, flag: true, of }
}

/// A computation on named data with several implementations. [`crate::described::Described`] makes core's `Computation` of it, and
/// [`crate::kernel::VariantKernel`] a `Kernel` of each variant.
pub trait Description: Send + Sync + 'static {
    /// The name on the command line.
    const NAME: &'static str;
    /// The input field that names the data.
    const FIELD: &'static str;
    /// Elements of the smallest and of the largest data that are drawn for training.
    const DRAWN: (f64, f64);
    /// About how many bytes of an element cross memory in a run, [`Description::work`] divided by the elements.
    const ELEMENT_BYTES: f64;
    /// About how many bytes of the buffers a row (a vertex) and an element take: what they will be is told before data are made.
    const BUFFERS: (f64, f64);
    /// What the name stands for; by default, data without elements, which stand in for a file that vanished since it was named.
    type Data: Default + Send + Sync + 'static;
    /// What makes data from numbers.
    const GENERATORS: &'static [Generator<Self::Data>];
    /// Inputs that nobody trains on and that must be right nevertheless, as `key=value,key=value`.
    const AWKWARD: &'static [&'static str];
    /// The features of Nitro's Figure 3.
    const FEATURES: &'static [DataFeature<Self::Data>];

    /// Reads a file. The default reads none.
    ///
    /// # Errors
    /// Where the file is at fault, or nothing where this computation has no files.
    fn read(file: &[u8]) -> Option<Result<Self::Data, Fault>> {
        let _ = file;
        None
    }

    /// What rules may name besides parameters and facts of the device.
    fn symbols(data: &Self::Data) -> Vec<(&'static str, i64)> {
        let _ = data;
        Vec::new()
    }

    /// What any implementation must do.
    fn work(data: &Self::Data) -> Work;

    /// The buffers, the one that is written last.
    fn specs(data: &Self::Data) -> Vec<BufferSpec>;

    /// Fills the buffers, which hold zeros and in the last one what nobody may read. The seed chooses what is not in the data:
    /// vectors, sources; where the data are all there is, it changes them and 0 leaves them as they are.
    fn fill(data: &Self::Data, filling: Filling, seed: u64, buffers: &mut [Buffer]);

    /// What the last buffer must hold afterwards, with bounds.
    fn reference(data: &Self::Data, before: &Buffers) -> ExpectedBuffer;

    /// All variants; the first one applies to all data.
    fn variants() -> Vec<Variant<Self::Data>>;
}

/// The buffers of a description before a run.
pub(crate) fn workload<D: Description>(data: &D::Data, filling: Filling, seed: u64) -> Workload {
    let specs = D::specs(data);
    let mut buffers: Vec<Buffer> = specs.iter().map(|s| Buffer::zeroed(s.dtype, s.len)).collect();
    if let (Some(output), Some(Role::Out)) = (buffers.last_mut(), specs.last().map(|s| s.role)) {
        // All bits set: NaN for floating point, -1 for integers.
        output.bytes_mut().fill(0xff);
    }
    D::fill(data, filling, seed, &mut buffers);
    Workload { specs, buffers, scalars: Vec::new() }
}

pub(crate) fn spec(name: &'static str, dtype: DType, len: usize, role: Role) -> BufferSpec {
    BufferSpec { name, dtype, len, role }
}

/// A buffer that must hold exactly this.
pub(crate) fn exactly(index: usize, values: Vec<f64>) -> ExpectedBuffer {
    ExpectedBuffer { index, bounds: vec![0.0; values.len()], values }
}
