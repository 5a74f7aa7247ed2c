//! Few configurations of many, such that each input has a good one.

use super::{NOTHING, Regrets};

/// Exchanges of a chosen configuration for another one are tried in so many passes.
const PASSES: usize = 4;

/// At most so many columns with the least sum over the rows of what the best of them loses: greedily, then improved by exchanges, as
/// medoids are.
pub(super) fn portfolio(all: &Regrets, rows: &[usize], most: usize) -> Vec<usize> {
    let columns = all.first().map_or(0, Vec::len);
    let loss = |chosen: &[usize]| {
        let best = |&row: &usize| chosen.iter().filter_map(|&at| all[row][at]).fold(NOTHING, f64::min);
        rows.iter().map(best).sum::<f64>()
    };
    let (mut chosen, mut least) = (Vec::new(), f64::INFINITY);
    while chosen.len() < most {
        let with = |at: usize| loss(&[&chosen[..], &[at]].concat());
        let others = (0..columns).filter(|at| !chosen.contains(at)).map(|at| (with(at), at));
        let Some((lost, at)) = others.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))) else { break };
        if lost >= least {
            break;
        }
        (least, chosen) = (lost, [&chosen[..], &[at]].concat());
    }
    for _ in 0..PASSES {
        let before = least;
        for place in 0..chosen.len() {
            for other in (0..columns).filter(|at| !chosen.contains(at)).collect::<Vec<_>>() {
                let kept = std::mem::replace(&mut chosen[place], other);
                let lost = loss(&chosen);
                if lost < least {
                    least = lost;
                } else {
                    chosen[place] = kept;
                }
            }
        }
        if least >= before {
            break;
        }
    }
    chosen
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
