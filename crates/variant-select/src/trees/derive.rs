//! Rows that trees see: the features of a case and a candidate, and what general rules derive from them.

use super::tiles::Tiles;
use crate::shapes::{Shapes, at, finite};
use std::collections::BTreeSet;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::feature::FeatureKind;
use tilewright_core::selector::Candidate;

/// Most pairs of input sizes whose ratios become features: beyond, the pairs of the first sizes.
const MOST_PAIRS: usize = 45;

/// What is derived, fixed when a model is fitted.
///
/// - Ratios of pairs of sizes of the input; for a model of failures, and where candidates have no sizes, products too: memory
///   runs out by the product, and nothing else is said of work and storage.
/// - For every size of the input that tiles cut, the largest power of two that divides it: alignment.
/// - What follows from [tiles](Tiles).
/// - For every size of a candidate that is not a whole number, a count that is rounded up when it runs (waves of blocks on
///   multiprocessors): how full the last one is, `x / ceil(x)`.
/// - For every size of a candidate, its ratio to the smallest among the candidates of the case: what is large for
///   one input is small for another, and a choice is among candidates.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    shapes: Shapes,
    candidates: usize,
    aligned: Vec<usize>,
    tiles: Tiles,
    rounded: Vec<usize>,
    compared: Vec<usize>,
    names: Vec<String>,
}

/// Most variants that are told apart by name, where candidates have no features.
const MOST_NAMES: usize = 64;

/// The variants that are told apart by a flag each: those of candidates without features, which nothing else tells apart.
fn names(data: &ChoiceSet) -> Vec<String> {
    if !data.schema().config.is_empty() {
        return Vec::new();
    }
    let all: BTreeSet<&str> =
        data.cases().iter().flat_map(|c| &c.trials).map(|t| t.candidate.variant.as_str()).collect();
    all.into_iter().take(MOST_NAMES).map(str::to_owned).collect()
}

impl Derived {
    pub(crate) fn fit(data: &ChoiceSet) -> Self {
        Self::with_tiles(data, Tiles::fit(data))
    }

    /// As [`Derived::fit`], of given tiles.
    pub(super) fn with_tiles(data: &ChoiceSet, tiles: Tiles) -> Self {
        let schema = data.schema();
        let trials = || data.cases().iter().flat_map(|c| &c.trials);
        let size = |&i: &usize| schema.config[i].kind == FeatureKind::Size;
        let compared: Vec<usize> = (0..schema.config.len()).filter(size).collect();
        let fractional = |&&i: &&usize| {
            trials().map(|t| t.candidate.features[i]).any(|v| v.is_finite() && v > 1.0 && v.fract() != 0.0)
        };
        let rounded = compared.iter().filter(fractional).copied().collect();
        // Sizes of candidates say what they cost; without them it is for the input's to say.
        let products = compared.is_empty();
        Self {
            shapes: Shapes::new(schema, MOST_PAIRS, products),
            candidates: schema.config.len(),
            aligned: tiles.inputs(),
            tiles,
            rounded,
            compared,
            names: names(data),
        }
    }

    /// For a model of failures, which come from products of sizes and not from what else is offered.
    pub(crate) fn of_failures(data: &ChoiceSet) -> Self {
        // Cuts that only times tell say nothing of failures.
        let mut derived = Self::with_tiles(data, Tiles::by_name(data).0);
        derived.shapes.products = true;
        derived.compared.clear();
        derived
    }

    /// Numbers of the input's share of a row, which come first.
    pub(crate) fn share(&self) -> usize {
        self.shapes.width() + self.aligned.len()
    }

    /// Numbers in a row.
    pub(crate) fn width(&self) -> usize {
        let own = self.candidates + self.rounded.len() + self.compared.len() + self.names.len();
        self.share() + own + self.tiles.width() + self.compared_tiles()
    }

    fn compared_tiles(&self) -> usize {
        if self.shapes.products { 0 } else { self.tiles.compared() }
    }

    fn write_own(&self, candidate: &Candidate, out: &mut Vec<f32>) {
        let own = &candidate.features;
        out.extend((0..self.candidates).map(|i| at(own, i)));
        out.extend(self.rounded.iter().map(|&i| finite(at(own, i) / at(own, i).ceil())));
        out.extend(self.names.iter().map(|n| f32::from(u8::from(*n == candidate.variant))));
    }

    /// Appends one row a candidate. Anything that is not finite becomes NaN, which trees take as missing.
    pub(crate) fn rows<'a>(
        &self,
        input: &[f32],
        candidates: impl Iterator<Item = &'a Candidate> + Clone,
        out: &mut Vec<f32>,
    ) {
        let first = out.len();
        let (width, share) = (self.width(), self.share());
        for (k, candidate) in candidates.clone().enumerate() {
            if k == 0 {
                self.shapes.write(input, out);
                out.extend(self.aligned.iter().map(|&i| alignment(at(input, i))));
            } else {
                // The input's share is the same in every row of the case.
                out.extend_from_within(first..first + share);
            }
            self.write_own(candidate, out);
            self.tiles.write(input, &candidate.features, out);
            // What is compared is not known before the last candidate.
            out.resize(first + (k + 1) * width, f32::NAN);
        }
        if self.shapes.products {
            return;
        }
        let rows = &mut out[first..];
        let tiles = share + self.candidates + self.rounded.len() + self.names.len();
        let own = self.compared.iter().map(|&i| share + i);
        let columns = own.chain(tiles..tiles + self.tiles.compared());
        let target = tiles + self.tiles.width();
        for (place, column) in columns.enumerate() {
            let least = rows.iter().skip(column).step_by(width).copied().fold(f32::NAN, f32::min);
            for row in rows.chunks_exact_mut(width) {
                row[target + place] = finite(row[column] / least);
            }
        }
    }

    /// One number of the row of a candidate, where nothing is compared.
    pub(crate) fn value(&self, column: usize, input: &[f32], candidate: &Candidate) -> f32 {
        let shapes = self.shapes.width();
        if column < shapes {
            return self.shapes.value(column, input);
        }
        if let Some(&i) = self.aligned.get(column - shapes) {
            return alignment(at(input, i));
        }
        let own = column - self.share();
        if own < self.candidates {
            return at(&candidate.features, own);
        }
        // What is left is rare, and not worth a case each.
        let mut row = Vec::new();
        self.row(input, candidate, &mut row);
        row.get(column).copied().unwrap_or(f32::NAN)
    }

    /// Appends the row of one candidate, where nothing is compared.
    pub(crate) fn row(&self, input: &[f32], candidate: &Candidate, out: &mut Vec<f32>) {
        self.rows(input, std::iter::once(candidate), out);
    }
}

/// The largest power of two up to 256 that divides a whole number.
fn alignment(x: f32) -> f32 {
    let whole = x.is_finite() && (1.0..16_777_216.0).contains(&x) && x.fract() == 0.0;
    if whole { f32::from(1u16 << (x as u32).trailing_zeros().min(8)) } else { f32::NAN }
}
