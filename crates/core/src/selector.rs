//! Choosing among variants of a computation.

/// One variant that may be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which variant.
    pub variant: String,
    /// Features of the variant for this input, if it has any.
    pub features: Vec<f32>,
}

/// Indices of candidates, the best first.
pub type VariantOrder = Vec<usize>;

/// Ranks variants for an input on a device.
pub trait Selector: Send + Sync {
    /// Writes the order of `candidates` to `out`, the best first, from features of the input and of the device.
    fn rank(&self, input_and_device: &[f32], candidates: &[Candidate], out: &mut VariantOrder);

    /// Writes the natural log of what each candidate is expected to cost, relative to the others of the same call, to `out`; NaN of a
    /// candidate of which nothing is known. False, and nothing is written, where a method only ranks.
    fn relative_costs(&self, _input_and_device: &[f32], _candidates: &[Candidate], _out: &mut Vec<f32>) -> bool {
        false
    }

    /// The share of the best performance that the first choice is expected to lose; none where nothing is known of that.
    fn expected_loss(&self, _input_and_device: &[f32], _candidates: &[Candidate]) -> Option<f64> {
        None
    }
}
