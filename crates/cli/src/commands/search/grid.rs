//! Stopping over a grid of tolerances: figures 3 and 4 of Vuduc et al. for any recording.

use super::replayed;
use super::space::Recording;
use crate::failure::{Failure, Kind};
use crate::output::aligned;
use serde::Serialize;
use tilewright_search::drive::{Budget, Trace, repeat};
use tilewright_search::stop::Tolerance;
use tilewright_search::{Setup, Strategy};

const EPSILONS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2];
const ALPHAS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];

/// What a rule does at one pair of tolerances. The paper shows mean plus standard deviation.
#[derive(Serialize)]
pub(super) struct Cell {
    epsilon: f64,
    alpha: f64,
    /// Share of the space that was evaluated, mean and standard deviation over repeats.
    stopped_at_fraction: f64,
    stopped_at_deviation: f64,
    /// How far the best found is below the optimum's performance, mean and standard deviation.
    proximity: f64,
    proximity_deviation: f64,
    miss_rate: f64,
}

pub(super) fn grid(
    recording: &Recording,
    strategy: Strategy,
    setup: &Setup<'_>,
    repeats: u32,
    seed: u64,
) -> Result<Vec<Cell>, Failure> {
    if !strategy.stops() {
        return Err(Failure::new(Kind::Usage, "grid", format!("{strategy} does not stop by itself")));
    }
    let pairs = EPSILONS.iter().flat_map(|e| ALPHAS.iter().map(move |a| (*e, *a)));
    let cell = |(epsilon, alpha): (f64, f64)| {
        let setup = Setup { tolerance: Tolerance { epsilon, alpha }, ..setup.clone() };
        let traces =
            repeat(seed, repeats.into(), |seed| replayed(recording, strategy, &setup, (&Budget::NONE, 1), seed));
        let traces = traces.into_iter().collect::<Result<Vec<Trace>, _>>()?;
        let size = recording.about.points as f64;
        let below = |c: Option<f64>| 1.0 - c.map_or(0.0, |c| recording.about.optimum_s / c);
        let stopped = moments(traces.iter().map(|t| t.evaluations as f64 / size));
        let proximity = moments(traces.iter().map(|t| below(t.best())));
        let missed = traces.iter().filter(|t| below(t.best()) > epsilon).count();
        Ok(Cell {
            epsilon,
            alpha,
            stopped_at_fraction: stopped.0,
            stopped_at_deviation: stopped.1,
            proximity: proximity.0,
            proximity_deviation: proximity.1,
            miss_rate: missed as f64 / traces.len() as f64,
        })
    };
    pairs.map(cell).collect()
}

/// Mean and standard deviation.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    (mean, (values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt())
}

pub(super) fn text(cells: &[Cell]) -> String {
    let titled = |title: &str, of: &dyn Fn(&Cell) -> f64| {
        let mut table = vec![vec!["epsilon".to_owned()]];
        table[0].extend(ALPHAS.map(|a| format!("alpha {a}")));
        for row in cells.chunks(ALPHAS.len()) {
            let mut line = vec![row[0].epsilon.to_string()];
            line.extend(row.iter().map(|c| format!("{:.3}", of(c))));
            table.push(line);
        }
        format!("{title}\n{}\n", aligned(&table))
    };
    let mut out =
        titled("stopping time, mean plus standard deviation", &|c| c.stopped_at_fraction + c.stopped_at_deviation);
    out += &titled("distance from the optimum, mean plus standard deviation", &|c| c.proximity + c.proximity_deviation);
    out += &titled("share of searches that missed", &|c| c.miss_rate);
    out
}
