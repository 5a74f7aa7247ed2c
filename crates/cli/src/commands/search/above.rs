//! By how much the first strategy is above the others, paired by seed.

use super::{Asked, fraction};
use crate::output::aligned;
use serde::Serialize;
use tilewright_bench_suite::statistics::Interval;
use tilewright_search::drive::Trace;

/// A paired difference in fraction of the optimum. Seeds are what is drawn anew, so it speaks of this space only.
#[derive(Serialize)]
pub(super) struct Above {
    /// The other strategy.
    what: String,
    /// After how many evaluations.
    budget: u64,
    #[serde(flatten)]
    by: Interval,
}

/// The first of the strategies against each other one, at each budget.
pub(super) fn above(asked: &Asked, optimum_s: f64, tried: &[(Vec<Trace>, f64)]) -> Vec<Above> {
    let mut named = asked.strategies.iter().map(|(name, _)| name).zip(tried.iter().map(|(traces, _)| traces));
    let Some((_, first)) = named.next() else { return Vec::new() };
    let difference = |others: &[Trace], budget: u64| {
        let at = |trace: &Trace| fraction(optimum_s, trace.best_after(budget));
        Interval::of(&first.iter().zip(others).map(|(one, other)| at(one) - at(other)).collect::<Vec<f64>>())
    };
    let each = |(name, others): (&String, &Vec<Trace>)| {
        let at = |&budget: &u64| Some(Above { what: name.clone(), budget, by: difference(others, budget)? });
        asked.looked_at().iter().filter_map(at).collect::<Vec<_>>()
    };
    named.flat_map(each).collect()
}

/// A row a strategy, where there are seeds enough for an interval.
pub(super) fn text(first: &str, all: &[Above]) -> String {
    if all.iter().all(|above| above.by.count < 2) {
        return String::new();
    }
    let mut table: Vec<Vec<String>> = vec![vec![String::new()]];
    for above in all {
        if table.last().is_none_or(|row| row[0] != above.what) {
            table.push(vec![above.what.clone()]);
        }
        if table.len() == 2 {
            table[0].push(above.budget.to_string());
        }
        table.last_mut().into_iter().for_each(|row| row.push(above.by.to_string()));
    }
    format!("\n{first} above the others, paired by seed, with 95%\n{}", aligned(&table))
}
