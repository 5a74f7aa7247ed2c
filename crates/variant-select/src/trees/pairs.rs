//! Which parameters cut which sizes of the input, found from times where names do not tell.
//!
//! Small trees are fitted on what is known without cuts, and foretell cases that they were not fitted on. What they leave is explained
//! by the pieces that a cut makes, or the blocks of a grid that two cuts make, as far as these tell anything of cases unseen.

use super::bins::Binned;
use super::boost;
use super::derive::Derived;
use super::grow::Shape;
use super::tiles::{Cut, Tiles, fullness};
use crate::evaluate::spread;
use crate::shapes::at;
use rayon::prelude::*;
use std::collections::BTreeSet;
use tilewright_core::choice::ChoiceSet;

/// Most sizes and parameters that are paired.
const MOST_SIZES: usize = 10;
const MOST_PARAMETERS: usize = 8;
/// Most trials that are looked at.
const MOST_TRIALS: usize = 30_000;
/// Times that the trees are fitted: each time one cut or two may be found.
const ROUNDS: usize = 3;
/// Parts that the cases are dealt to, whole groups at a time: each is foretold by the others.
const FOLDS: usize = 8;
/// What must be explained of what the trees leave, and by how many standard errors over the cases.
const LEAST_GAIN: f64 = 0.01;
const LEAST_SURE: f64 = 4.0;
/// The trees.
const TREES: usize = 40;
const SHAPE: Shape = Shape { leaves: 16, depth: 6, rate: 0.2, least_curvature: 5.0, l2: 1.0 };
const BINS: usize = 64;

/// What is tried: the pieces of one cut, or the grid of two.
#[derive(Clone, Debug, PartialEq)]
struct Unit(Vec<usize>);

/// The cuts that times tell among all pairs of these sizes and parameters.
pub(super) fn search(data: &ChoiceSet, sizes: &[usize], parameters: &[usize]) -> Vec<Cut> {
    let sizes = sizes.iter().copied().filter(|&i| whole(data.cases().iter().map(|c| at(&c.features, i))));
    let sizes: Vec<usize> = sizes.take(MOST_SIZES).collect();
    let trials = || data.cases().iter().flat_map(|c| &c.trials);
    let lengths = parameters.iter().filter(|&&p| whole(trials().map(|t| at(&t.candidate.features, p))));
    let tried: Vec<Cut> = lengths
        .take(MOST_PARAMETERS)
        .flat_map(|&parameter| sizes.iter().map(move |&input| Cut { input, parameter }))
        .collect();
    let mean = trials().count() / data.len().max(1);
    let some = data.subset(&spread(data.len(), MOST_TRIALS / mean.max(1)));
    let mut found: Vec<Cut> = Vec::new();
    if tried.is_empty() {
        return found;
    }
    let pieces = Pieces::of(&some, &tried);
    for _ in 0..ROUNDS {
        let rest = pieces.unexplained(&some, &found);
        let open = units(&tried, &found);
        let Some(best) = pieces.best(&open, &rest) else { break };
        found.extend(best.0.iter().map(|&i| tried[i]).filter(|cut| !found.contains(cut)).collect::<Vec<_>>());
    }
    found
}

/// Whether the numbers that are present are whole, positive, and at least two.
fn whole(values: impl Iterator<Item = f32>) -> bool {
    let mut present = values.filter(|v| !v.is_nan());
    let Some(first) = present.next() else { return false };
    let counts = |v: f32| v >= 1.0 && v.fract() == 0.0;
    let mut varies = false;
    counts(first) && present.all(|v| (counts(v), varies |= v != first).0) && varies
}

/// Every cut, and every two of different sizes by different parameters, that hold something new.
fn units(tried: &[Cut], found: &[Cut]) -> Vec<Unit> {
    let new = |i: &usize| !found.contains(&tried[*i]);
    let apart = |a: &Cut, b: &Cut| a.input != b.input && a.parameter != b.parameter;
    let two = (0..tried.len()).flat_map(|i| (0..i).map(move |j| [j, i]));
    let two = two.filter(|[i, j]| apart(&tried[*i], &tried[*j]) && (new(i) || new(j)));
    (0..tried.len()).filter(new).map(|i| Unit(vec![i])).chain(two.map(|ij| Unit(ij.to_vec()))).collect()
}

/// Pieces of every trial that ran, by every cut.
struct Pieces {
    /// For every cut, the logs of its pieces to base 2 and how full they are; NaN where there is none.
    of: Vec<Vec<(f32, f32)>>,
    /// The case of every trial, and the fold of every case.
    cases: Vec<usize>,
    folds: Vec<usize>,
    /// Relative costs, less their mean over the case.
    costs: Vec<f32>,
}

impl Pieces {
    fn of(data: &ChoiceSet, tried: &[Cut]) -> Self {
        let groups: Vec<u32> = data.cases().iter().map(|c| c.group).collect::<BTreeSet<_>>().into_iter().collect();
        let fold = |group: u32| groups.binary_search(&group).unwrap_or(0) % FOLDS;
        let folds = data.cases().iter().map(|c| fold(c.group)).collect();
        let mut out = Self { of: vec![Vec::new(); tried.len()], cases: Vec::new(), folds, costs: Vec::new() };
        for (at_case, case) in data.cases().iter().enumerate() {
            let Some(best) = case.best() else { continue };
            for trial in case.trials.iter().filter(|t| t.cost.is_some()) {
                for (cut, of) in tried.iter().zip(&mut out.of) {
                    let (size, length) = (at(&case.features, cut.input), at(&trial.candidate.features, cut.parameter));
                    of.push(((size / length).ceil().log2(), fullness(size, length)));
                }
                out.cases.push(at_case);
                out.costs.push(1.0 - (-trial.relative_cost(best)).exp() as f32);
            }
        }
        let mut costs = std::mem::take(&mut out.costs);
        out.centre(&mut costs);
        out.costs = costs;
        out
    }

    /// Takes from every trial's number the mean over its case: what is the same for all candidates is no matter of choice.
    fn centre(&self, numbers: &mut [f32]) {
        let mut sums = vec![(0.0f32, 0.0f32); self.folds.len()];
        for (&case, &v) in self.cases.iter().zip(&*numbers) {
            sums[case] = (sums[case].0 + v, sums[case].1 + 1.0);
        }
        self.cases.iter().zip(numbers).for_each(|(&case, v)| *v -= sums[case].0 / sums[case].1);
    }

    /// What trees leave that know of these cuts, each half of the folds foretold by the other.
    fn unexplained(&self, data: &ChoiceSet, found: &[Cut]) -> Vec<f32> {
        let derived = Derived::with_tiles(data, Tiles::of(data, found.to_vec()));
        let mut rows = Vec::new();
        for case in data.cases().iter().filter(|c| c.best().is_some()) {
            let ran = case.trials.iter().filter(|t| t.cost.is_some());
            derived.rows(&case.features, ran.map(|t| &t.candidate), &mut rows);
        }
        let binned = Binned::new(&rows, derived.width(), BINS);
        let features = binned.varying();
        let half = |row: usize| self.folds[self.cases[row]] % 2;
        let foretold_by = |taught: usize| {
            let mut foretold = vec![0.0; self.costs.len()];
            let rows: Vec<u32> = (0..self.costs.len()).filter(|&r| half(r) == taught).map(|r| r as u32).collect();
            if !rows.is_empty() && !features.is_empty() {
                let trees = boost(&binned, TREES, &SHAPE, |predicted, gradient, _| {
                    gradient.iter_mut().zip(predicted).zip(&self.costs).for_each(|((g, p), c)| *g = p - c);
                    (rows.clone(), features.clone())
                });
                trees.iter().for_each(|tree| tree.add_binned(&binned, &mut foretold));
            }
            foretold
        };
        let (by_even, by_odd) = rayon::join(|| foretold_by(0), || foretold_by(1));
        let foretold = |row: usize| if half(row) == 0 { by_odd[row] } else { by_even[row] };
        let mut rest: Vec<f32> = self.costs.iter().enumerate().map(|(row, cost)| cost - foretold(row)).collect();
        self.centre(&mut rest);
        rest
    }

    /// The unit that explains most of the rest in unseen cases; none where none does for certain.
    fn best<'a>(&self, units: &'a [Unit], rest: &[f32]) -> Option<&'a Unit> {
        let whole: f64 = rest.iter().map(|&r| f64::from(r * r)).sum();
        let gain = |unit: &Unit| {
            let gains = self.gains(unit, rest);
            let (sum, n) = (gains.iter().sum::<f64>(), gains.len() as f64);
            let error = (gains.iter().map(|g| (g - sum / n).powi(2)).sum::<f64>() * n / (n - 1.0)).sqrt();
            if sum > LEAST_GAIN * whole && sum > LEAST_SURE * error { sum } else { 0.0 }
        };
        let gains: Vec<f64> = units.par_iter().map(gain).collect();
        let most = (0..units.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]))?;
        (gains[most] > 0.0).then(|| &units[most])
    }

    /// By how much the squares of the rest of each case become less by the means of the other folds, cell by cell of the unit.
    fn gains(&self, unit: &Unit, rest: &[f32]) -> Vec<f64> {
        let cells: Vec<Option<usize>> = (0..rest.len()).map(|row| self.cell(unit, row)).collect();
        let mut sums = vec![[(0.0f64, 0.0f64); FOLDS]; CELLS];
        for ((cell, &r), &case) in cells.iter().zip(rest).zip(&self.cases) {
            let Some(cell) = *cell else { continue };
            let own = &mut sums[cell][self.folds[case]];
            *own = (own.0 + f64::from(r), own.1 + 1.0);
        }
        // Few trials say little.
        let means: Vec<[f64; FOLDS]> = sums
            .iter()
            .map(|folds| {
                let all = folds.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
                folds.map(|own| (all.0 - own.0) / (all.1 - own.1 + FEW))
            })
            .collect();
        let mut gains = vec![0.0; self.folds.len()];
        for ((cell, &r), &case) in cells.iter().zip(rest).zip(&self.cases) {
            let Some(cell) = *cell else { continue };
            let mean = means[cell][self.folds[case]];
            gains[case] += 2.0 * mean * f64::from(r) - mean * mean;
        }
        gains
    }

    /// Which cell a trial is in: by pieces and how full they are, or by the blocks of a grid.
    fn cell(&self, unit: &Unit, row: usize) -> Option<usize> {
        let known = |x: f32, most: usize| x.is_finite().then(|| (x.max(0.0) as usize).min(most - 1));
        match unit.0[..] {
            [cut] => {
                let (pieces, full) = self.of[cut][row];
                Some(8 * known(2.0 * pieces, CELLS / 8)? + known(8.0 * full, 8)?)
            }
            [a, b] => known(4.0 * (self.of[a][row].0 + self.of[b][row].0), CELLS),
            _ => None,
        }
    }
}

/// Cells that a unit sorts trials into, and the weight of a mean of nothing in each.
const CELLS: usize = 128;
const FEW: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tilewright_core::choice::{Case, Trial};
    use tilewright_core::feature::{Feature, FeatureSchema};
    use tilewright_core::selector::Candidate;

    /// Tiles of which the first cuts `y` and the second cuts `x`, a third parameter that cuts nothing, and a library without any.
    fn cases(cut: bool) -> ChoiceSet {
        let input = ["x", "y", "z"].map(Feature::size).to_vec();
        let config = ["p", "q", "depth"].map(Feature::size).to_vec();
        let mut data = ChoiceSet::new(FeatureSchema { input, config });
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for case in 0..400u32 {
            let features: Vec<f32> = (0..3).map(|_| (8.0 * rng.random_range(0.0f32..5.0).exp()).round()).collect();
            let full = |x: f32, tile: f32| if cut { f64::from(fullness(x, tile)) } else { 1.0 };
            let mut trials: Vec<Trial> = (0..18u32)
                .map(|c| {
                    let own = vec![(16 << (c % 3)) as f32, (16 << (c / 3 % 3)) as f32, (2 + c / 9) as f32];
                    let per_tile = 1.0 + 8.0 / f64::from(own[0] * own[1]).sqrt() + rng.random_range(0.0..0.02);
                    let cost = per_tile / full(features[1], own[0]) / full(features[0], own[1]);
                    Trial { candidate: Candidate { variant: format!("c{c}"), features: own }, cost: Some(cost) }
                })
                .collect();
            trials.push(Trial {
                candidate: Candidate { variant: "library".into(), features: vec![f32::NAN; 3] },
                cost: Some(1.5),
            });
            data.push(Case { features, trials, group: case }).unwrap();
        }
        data
    }

    #[test]
    fn what_a_parameter_cuts_is_found_without_names() {
        let mut found = search(&cases(true), &[0, 1, 2], &[0, 1, 2]);
        found.sort_by_key(|c| c.parameter);
        assert_eq!(found, [Cut { input: 1, parameter: 0 }, Cut { input: 0, parameter: 1 }]);
    }

    #[test]
    fn nothing_is_found_where_nothing_is_cut() {
        assert_eq!(search(&cases(false), &[0, 1, 2], &[0, 1, 2]), []);
        let one = cases(true).subset(&[0]);
        assert_eq!(search(&one, &[0, 1, 2], &[0, 1, 2]), []);
        let none = ChoiceSet::new(cases(true).schema().clone());
        assert_eq!(search(&none, &[0, 1, 2], &[0, 1, 2]), []);
    }
}
