//! A network with some of its raw columns fixed, ready to score rows of the others.

use ndarray::Axis;
use tilewright_core::problem::Problem;
use tilewright_core::space::Points;

use crate::encoding::{Column, Encoding};
use crate::network::{Dense, Network};
use crate::packed::{PackedNetwork, PanelSource};

/// Rows a thread takes at a time: enough work to hide the hand-over, little enough to balance two threads.
const TASK_ROWS: usize = 1536;

/// Mean and deviation of the target, to turn the network's output back into a natural log of seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetScale {
    pub(crate) mean: f32,
    pub(crate) deviation: f32,
}

/// A free column, and the network input that takes its missing-cell indicator.
#[derive(Debug, Clone)]
struct FreeColumn {
    column: Column,
    indicator: Option<usize>,
}

/// A network over the free columns: what the fixed ones contribute to the first layer is in its bias already, and the scale of the
/// target in the last one.
#[derive(Debug, Clone)]
pub(crate) struct BoundNetwork {
    free: Vec<FreeColumn>,
    network: PackedNetwork,
}

/// Networks over the same columns, whose word is the mean of theirs.
#[derive(Debug, Clone)]
pub(crate) struct BoundEnsemble(Vec<BoundNetwork>);

impl BoundEnsemble {
    /// Of at least one.
    pub(crate) fn new(members: Vec<BoundNetwork>) -> Self {
        debug_assert!(!members.is_empty());
        Self(members)
    }

    /// Floating-point operations of one row.
    pub(crate) fn flops_per_row(&self) -> u64 {
        self.0.iter().map(BoundNetwork::flops_per_row).sum()
    }

    /// See [`BoundNetwork::score_rows`].
    pub(crate) fn score_rows(&self, rows: &[f32], out: &mut [f32]) {
        self.mean(out, |member, out| member.score_rows(rows, out));
    }

    /// See [`BoundNetwork::score_points`].
    pub(crate) fn score_points(&self, problem: &dyn Problem, points: Points<'_>, out: &mut [f32]) {
        self.mean(out, |member, out| member.score_points(problem, points, out));
    }

    /// What each of them says of points.
    pub(crate) fn each(&self, problem: &dyn Problem, points: Points<'_>) -> Vec<Vec<f32>> {
        let one = |member: &BoundNetwork| {
            let mut out = vec![0.0; points.len()];
            member.score_points(problem, points, &mut out);
            out
        };
        self.0.iter().map(one).collect()
    }

    fn mean(&self, out: &mut [f32], score: impl Fn(&BoundNetwork, &mut [f32])) {
        let Some((first, others)) = self.0.split_first() else { return };
        score(first, out);
        if others.is_empty() {
            return;
        }
        let mut other = vec![0.0; out.len()];
        for member in others {
            score(member, &mut other);
            out.iter_mut().zip(&other).for_each(|(sum, value)| *sum += value);
        }
        let share = 1.0 / self.0.len() as f32;
        out.iter_mut().for_each(|sum| *sum *= share);
    }
}

/// A network with some of its raw columns fixed, and the encoding of the others: what the fixed ones contribute to the first layer
/// is in its bias. `fixed` has one entry for each column of the encoding.
pub(crate) fn fixing(network: &Network, encoding: &Encoding, fixed: &[Option<f32>]) -> (Network, Encoding) {
    debug_assert_eq!(fixed.len(), encoding.columns.len());
    let first = &network.layers[0];
    let mut bias = first.bias.clone();
    let (mut columns, mut kept, mut kept_indicators) = (Vec::new(), Vec::new(), Vec::new());
    let mut indicator = encoding.columns.len();
    for (index, (column, fixed)) in encoding.columns.iter().zip(fixed).enumerate() {
        let mut add = |input: usize, value: f32| {
            bias.iter_mut().zip(first.weights.row(input)).for_each(|(sum, &weight)| *sum += value * weight);
        };
        match fixed {
            Some(value) => {
                let mut encoded = [*value];
                column.encode(&mut encoded);
                add(index, encoded[0]);
                if column.missing && !value.is_finite() {
                    add(indicator, 1.0);
                }
            }
            None => {
                kept.push(index);
                columns.push(column.clone());
                kept_indicators.extend(column.missing.then_some(indicator));
            }
        }
        indicator += usize::from(column.missing);
    }
    kept.extend(kept_indicators);
    let first = Dense { weights: first.weights.select(Axis(0), &kept), bias };
    let layers = std::iter::once(first).chain(network.layers[1..].iter().cloned()).collect();
    (Network { layers }, Encoding { columns })
}

impl BoundNetwork {
    /// Fixes every column for which `fixed` holds a value; `fixed` has one entry for each column of the encoding.
    pub(crate) fn new(network: &Network, encoding: &Encoding, target: TargetScale, fixed: &[Option<f32>]) -> Self {
        let (mut network, encoding) = fixing(network, encoding, fixed);
        if let Some(last) = network.layers.last_mut() {
            last.weights *= target.deviation;
            last.bias.mapv_inplace(|bias| target.mean + target.deviation * bias);
        }
        let mut indicator = encoding.columns.len();
        let free = encoding.columns.into_iter().map(|column| {
            let own = column.missing.then_some(indicator);
            indicator += usize::from(column.missing);
            FreeColumn { column, indicator: own }
        });
        Self { free: free.collect(), network: PackedNetwork::new(network.views()) }
    }

    /// Free columns of a row.
    pub(crate) fn width(&self) -> usize {
        self.free.len()
    }

    /// Floating-point operations of one row.
    pub(crate) fn flops_per_row(&self) -> u64 {
        self.network.flops_per_row()
    }

    /// Predicted natural log of seconds of `out.len()` rows `[row][free column]`.
    pub(crate) fn score_rows(&self, rows: &[f32], out: &mut [f32]) {
        debug_assert_eq!(rows.len(), out.len() * self.width());
        self.network.forward_all(TASK_ROWS, || RawRows { rows, free: &self.free }, out);
    }

    /// The same of legal points of a problem, whose config features are the free columns.
    pub(crate) fn score_points(&self, problem: &dyn Problem, points: Points<'_>, out: &mut [f32]) {
        debug_assert_eq!(points.len(), out.len());
        let source = || PointRows { problem, points, free: &self.free, rows: Vec::new() };
        self.network.forward_all(TASK_ROWS, source, out);
    }
}

/// Raw rows `[row][free column]`, encoded panel by panel while they are in the first-level cache.
struct RawRows<'a> {
    rows: &'a [f32],
    free: &'a [FreeColumn],
}

impl PanelSource for RawRows<'_> {
    #[inline(always)]
    fn fill(&mut self, first: usize, rows: usize, width: usize, panel: &mut [f32]) {
        let columns = self.free.len();
        encode(self.free, &self.rows[first * columns..(first + rows) * columns], rows, width, panel);
    }
}

/// Points whose rows are computed for one panel at a time, into memory that all panels of a task share.
struct PointRows<'a> {
    problem: &'a dyn Problem,
    points: Points<'a>,
    free: &'a [FreeColumn],
    rows: Vec<f32>,
}

impl PanelSource for PointRows<'_> {
    #[inline(always)]
    fn fill(&mut self, first: usize, rows: usize, width: usize, panel: &mut [f32]) {
        self.rows.clear();
        self.points.part(first, rows).iter().for_each(|point| self.problem.config_features(point, &mut self.rows));
        encode(self.free, &self.rows, rows, width, panel);
    }
}

/// Writes `rows` raw rows as a panel.
#[inline(always)]
fn encode(free: &[FreeColumn], raw: &[f32], rows: usize, width: usize, panel: &mut [f32]) {
    let columns = free.len();
    if columns == 0 {
        panel.fill(0.0);
        return;
    }
    let (values, indicators) = panel.split_at_mut(columns * width);
    for (index, (free, lanes)) in free.iter().zip(values.chunks_exact_mut(width)).enumerate() {
        lanes[rows..].fill(1.0);
        for (lane, row) in lanes.iter_mut().zip(raw.chunks_exact(columns)) {
            *lane = row[index];
        }
        if let Some(indicator) = free.indicator {
            let marks = &mut indicators[(indicator - columns) * width..][..width];
            Column::mark_missing(lanes, marks);
        }
        free.column.encode(lanes);
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayView2};
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::layout::Layout;

    const TARGET: TargetScale = TargetScale { mean: -9.0, deviation: 1.5 };

    fn rows(count: usize, columns: usize, missing: bool, rng: &mut ChaCha8Rng) -> Array2<f32> {
        Array2::from_shape_simple_fn((count, columns), || {
            if missing && rng.random_bool(0.2) { f32::NAN } else { rng.random_range(1..4096) as f32 }
        })
    }

    /// The exact value, and a bound of the rounding error that any order of summation keeps to.
    fn exact(network: &Network, encoded: ArrayView2<'_, f32>) -> Vec<f64> {
        let mean = f64::from(TARGET.mean);
        encoded.rows().into_iter().map(|row| mean + 1.5 * network.forward_f64(&row.to_vec())).collect()
    }

    fn agree(widths: &[usize], count: usize, columns: usize, fixed: usize, missing: bool, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let training = rows(50, columns, missing, &mut rng);
        let encoding = Encoding::learn(training.view(), &vec![true; columns]).unwrap();
        let layout = Layout::new(widths).unwrap();
        let network = Network::random(&layout, encoding.width(), &mut rng);
        let mut seen = rows(count, columns, missing, &mut rng);
        let shared: Vec<f32> = seen.row(0).iter().take(fixed).copied().collect();
        for mut row in seen.rows_mut() {
            shared.iter().enumerate().for_each(|(index, &value)| row[index] = value);
        }
        let fix: Vec<_> = (0..columns).map(|column| shared.get(column).copied()).collect();
        let bound = BoundNetwork::new(&network, &encoding, TARGET, &fix);
        let free: Vec<f32> = seen.rows().into_iter().flat_map(|row| row.to_vec()[fixed..].to_vec()).collect();
        let mut out = vec![f32::NAN; count];
        bound.score_rows(&free, &mut out);
        for (ours, exact) in out.iter().zip(exact(&network, encoding.encode(seen.view()).view())) {
            let error = (f64::from(*ours) - exact).abs();
            assert!(error <= 2e-5 * (1.0 + exact.abs()), "{widths:?} {count} rows: {ours} against {exact}");
        }
    }

    #[test]
    fn the_paper_s_networks_agree_with_double_precision() {
        for layout in Layout::table_2() {
            agree(layout.widths(), 203, 20, 6, false, 7);
        }
    }

    #[test]
    fn every_column_may_be_fixed_and_no_row_may_come() {
        agree(&[8, 8], 5, 6, 6, true, 1);
        agree(&[8, 8], 1, 6, 0, true, 2);
        let encoding = Encoding::learn(Array2::ones((3, 2)).view(), &[false, false]).unwrap();
        let network = Network::random(&Layout::default(), 2, &mut ChaCha8Rng::seed_from_u64(3));
        BoundNetwork::new(&network, &encoding, TARGET, &[None, None]).score_rows(&[], &mut []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_shape_agrees_with_double_precision(
            widths in prop::collection::vec(1usize..40, 1..4),
            count in 1usize..400,
            columns in 1usize..12,
            fixed_share in 0.0f64..=1.0,
            missing: bool,
            seed: u64,
        ) {
            agree(&widths, count, columns, (columns as f64 * fixed_share) as usize, missing, seed);
        }
    }
}
