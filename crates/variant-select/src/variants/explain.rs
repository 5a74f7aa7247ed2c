//! Why a variant runs, and what choosing it costs.

use serde::Serialize;

/// A choice with what it was chosen from and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What runs.
    pub chosen: String,
    /// Every legal variant, the best first.
    pub order: Vec<String>,
    /// Variants that are illegal for the input, with the constraint that does not hold.
    pub illegal: Vec<(String, String)>,
    /// The features that the choice needed; empty where it needed none.
    pub features: Vec<(String, f32)>,
    /// Seconds that computing them took.
    pub features_s: f64,
    /// Seconds that the selector took.
    pub selection_s: f64,
    /// A sentence for people.
    pub reason: String,
}

/// What computing a feature has cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeatureCost {
    /// Its name.
    pub feature: String,
    /// How often it was computed.
    pub calls: u64,
    /// Seconds, all calls together.
    pub seconds: f64,
}
