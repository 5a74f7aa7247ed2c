//! Few configurations of many, such that each input has a good one.

use super::{NOTHING, Regrets};

/// Exchanges of a chosen configuration for another one are tried in so many passes.
const PASSES: usize = 2;

/// What saves no more than this over all rows, as a logarithm, is not worth a configuration.
const LEAST: f64 = 1e-6;

/// At most so many columns with the least sum over the rows of what the best of them loses: greedily, then improved by exchanges, as
/// medoids are.
pub(super) fn portfolio(all: &Regrets, rows: &[usize], most: usize) -> Vec<usize> {
    let columns = all.first().map_or(0, Vec::len);
    let of = |row: usize, at: usize| all[row][at].unwrap_or(NOTHING).min(NOTHING);
    let (mut chosen, mut held): (Vec<usize>, Vec<f64>) = (Vec::new(), vec![NOTHING; rows.len()]);
    while chosen.len() < most {
        let saved = |at: usize| rows.iter().zip(&held).map(|(&row, held)| (held - of(row, at)).max(0.0)).sum::<f64>();
        let others = (0..columns).filter(|at| !chosen.contains(at)).map(|at| (saved(at), at));
        let best = others.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        // The first one is taken even where it is no better than nothing.
        let Some((_, at)) = best.filter(|(saved, _)| *saved > LEAST || chosen.is_empty()) else { break };
        rows.iter().zip(&mut held).for_each(|(&row, held)| *held = held.min(of(row, at)));
        chosen.push(at);
    }
    exchange(&of, rows, columns, &mut chosen);
    chosen
}

/// Replaces chosen columns by others as long as that loses less.
fn exchange(of: &dyn Fn(usize, usize) -> f64, rows: &[usize], columns: usize, chosen: &mut [usize]) {
    for _ in 0..PASSES {
        let mut is_better = false;
        for place in 0..chosen.len() {
            // What the others lose without this one is the same for all that could stand in its place.
            let without = |&row: &usize| {
                let others = chosen.iter().enumerate().filter(|(at, _)| *at != place);
                others.map(|(_, &at)| of(row, at)).fold(NOTHING, f64::min)
            };
            let kept: Vec<f64> = rows.iter().map(without).collect();
            let lost = |at: usize| rows.iter().zip(&kept).map(|(&row, kept)| kept.min(of(row, at))).sum::<f64>();
            let own = lost(chosen[place]);
            let others = (0..columns).filter(|at| !chosen.contains(at)).map(|at| (lost(at), at));
            let best = others.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            if let Some((_, at)) = best.filter(|(lost, _)| *lost < own - LEAST) {
                (chosen[place], is_better) = (at, true);
            }
        }
        if !is_better {
            break;
        }
    }
}

/// Few candidates such that each input for which one is legal has a legal one: greedily, the one that helps most inputs first. Takes,
/// for each input, whether each candidate is legal. The candidates, and how many inputs stay without.
pub fn cover(legal: &[Vec<bool>], most: usize) -> (Vec<usize>, usize) {
    let mut left: Vec<&Vec<bool>> = legal.iter().collect();
    let mut out = Vec::new();
    let candidates = legal.first().map_or(0, Vec::len);
    while out.len() < most {
        let helped = |at: usize| left.iter().filter(|row| row[at]).count();
        let best = (0..candidates).map(|at| (helped(at), at)).max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let Some((1.., at)) = best else { break };
        left.retain(|row| !row[at]);
        out.push(at);
    }
    (out, left.len())
}
