//! What follows from parameters that cut an input into tiles: found by name (`block_m` cuts `m`), else from times.

use super::pairs;
use crate::shapes::sizes;
use std::collections::HashMap;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::feature::FeatureKind;

/// A parameter that cuts a size of the input into pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    pub(super) input: usize,
    pub(super) parameter: usize,
}

/// Derived from all cuts:
///
/// - for each, the number of pieces and how full they are;
/// - for every two cut sizes, the pieces of both (blocks of a grid);
/// - for each cut size, the volume of all cut sizes over its piece: what is read again for every piece;
/// - how full all pieces are together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tiles {
    cuts: Vec<Cut>,
    /// For each cut size, its largest cut: what blocks are cut by, where threads cut again.
    outer: Vec<Cut>,
}

/// More cuts than this are another thing than tiles.
const MOST_CUTS: usize = 8;

impl Tiles {
    /// By name, and where no name pairs a parameter with a size, by [search](pairs).
    pub(super) fn fit(data: &ChoiceSet) -> Self {
        let (named, parameters) = Self::by_name(data);
        if named.cuts.is_empty() {
            Self::of(data, pairs::search(data, &sizes(data.schema()), &parameters))
        } else {
            named
        }
    }

    /// Of the parameters that have a size of the input in their names, and the other parameters.
    pub(super) fn by_name(data: &ChoiceSet) -> (Self, Vec<usize>) {
        let schema = data.schema();
        let sizes = sizes(schema);
        let (mut cuts, mut others) = (Vec::new(), Vec::new());
        for parameter in parameters(data) {
            let name = schema.config[parameter].name.to_lowercase();
            let named = |&&i: &&usize| words(&name).any(|w| w == schema.input[i].name.to_lowercase());
            match sizes.iter().find(named) {
                Some(&input) => cuts.push(Cut { input, parameter }),
                None => others.push(parameter),
            }
        }
        (Self::of(data, cuts), others)
    }

    /// What follows from given cuts.
    pub(super) fn of(data: &ChoiceSet, mut cuts: Vec<Cut>) -> Self {
        cuts.truncate(MOST_CUTS);
        let largest = |c: &Cut| {
            let values = data.cases().iter().flat_map(|c| &c.trials).map(|t| t.candidate.features[c.parameter]);
            values.filter(|v| v.is_finite()).fold(0.0, f32::max)
        };
        let mut outer: Vec<(Cut, f32)> = Vec::new();
        for cut in &cuts {
            match outer.iter_mut().find(|(o, _)| o.input == cut.input) {
                Some(known) if largest(cut) > known.1 => *known = (*cut, largest(cut)),
                Some(_) => {}
                None => outer.push((*cut, largest(cut))),
            }
        }
        Self { cuts, outer: outer.into_iter().map(|(c, _)| c).collect() }
    }

    /// The sizes of the input that are cut.
    pub(super) fn inputs(&self) -> Vec<usize> {
        self.outer.iter().map(|c| c.input).collect()
    }

    /// Numbers that are the same for all candidates but for a factor, to be compared among them: they come first.
    pub(super) fn compared(&self) -> usize {
        let n = self.outer.len();
        if n < 2 { 0 } else { n * (n - 1) / 2 + n }
    }

    pub(super) fn width(&self) -> usize {
        self.compared() + 2 * self.cuts.len() + usize::from(self.outer.len() > 1)
    }

    /// Appends the numbers of a candidate; NaN where it has no such parameter.
    pub(super) fn write(&self, input: &[f32], own: &[f32], out: &mut Vec<f32>) {
        let at = |features: &[f32], i: usize| features.get(i).copied().unwrap_or(f32::NAN);
        let pieces = |c: &Cut| (at(input, c.input) / at(own, c.parameter)).ceil();
        let full = |c: &Cut| fullness(at(input, c.input), at(own, c.parameter));
        if self.outer.len() > 1 {
            for (k, a) in self.outer.iter().enumerate() {
                let first = pieces(a);
                out.extend(self.outer[k + 1..].iter().map(|b| first * pieces(b)));
            }
            let volume: f32 = self.outer.iter().map(|c| at(input, c.input)).product();
            out.extend(self.outer.iter().map(|c| volume / at(own, c.parameter)));
            out.push(self.outer.iter().map(full).product());
        }
        for cut in &self.cuts {
            out.extend([pieces(cut), full(cut)]);
        }
    }
}

/// How full the pieces of a length are that a size is cut into.
pub(super) fn fullness(size: f32, length: f32) -> f32 {
    size / ((size / length).ceil() * length)
}

/// Features of candidates that are parameters: positive, and the same wherever the candidate is offered.
fn parameters(data: &ChoiceSet) -> Vec<usize> {
    let schema = data.schema();
    let mut of: HashMap<&str, &[f32]> = HashMap::new();
    let mut fits: Vec<bool> = schema.config.iter().map(|f| f.kind == FeatureKind::Size).collect();
    for trial in data.cases().iter().flat_map(|c| &c.trials) {
        let own = trial.candidate.features.as_slice();
        let known = of.entry(trial.candidate.variant.as_str()).or_insert(own);
        for ((fits, a), b) in fits.iter_mut().zip(*known).zip(own) {
            *fits &= (a == b && *a > 0.0) || (a.is_nan() && b.is_nan());
        }
    }
    (0..fits.len()).filter(|&i| fits[i]).collect()
}

/// The parts of a name: `block_m` is `block` and `m`, as is `blockM` in lower case never.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::choice::{Case, Trial};
    use tilewright_core::feature::{Feature, FeatureSchema};
    use tilewright_core::selector::Candidate;

    #[test]
    fn parameters_are_paired_with_the_sizes_that_they_cut() {
        let input = ["m", "n"].map(Feature::size).to_vec();
        let config = ["block_m", "N_BLK", "stages", "m_per_block"].map(Feature::size).to_vec();
        let mut data = ChoiceSet::new(FeatureSchema { input, config });
        for size in [100.0f32, 130.0] {
            let trial = |name: &str, tile: f32| Trial {
                candidate: Candidate { variant: name.into(), features: vec![tile, 32.0, 3.0, size / tile] },
                cost: Some(1.0),
            };
            let trials = vec![trial("small", 16.0), trial("large", 64.0)];
            data.push(Case { features: vec![size, 64.0], trials, group: 0 }).unwrap();
        }
        let tiles = Tiles::fit(&data);
        // What changes with the input is derived already, and no parameter.
        assert_eq!(tiles.cuts, [Cut { input: 0, parameter: 0 }, Cut { input: 1, parameter: 1 }]);
        let mut row = Vec::new();
        tiles.write(&[100.0, 64.0], &[64.0, 32.0, 3.0, 1.0], &mut row);
        let full = 100.0 / 128.0;
        assert_eq!(row, [4.0, 100.0, 200.0, full, 2.0, full, 2.0, 1.0]);
        assert_eq!((row.len(), tiles.compared()), (tiles.width(), 3));
        row.clear();
        tiles.write(&[100.0, 64.0], &[f32::NAN; 4], &mut row);
        assert!(row.iter().all(|v| v.is_nan()));
    }
}
