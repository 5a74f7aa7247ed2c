//! Costs of candidates from visits in rounds.
//!
//! A host is faster at one time than at another, by half at times, for seconds. The fastest or the middle visit of each candidate
//! compares states of the host as much as candidates. Within a round all candidates meet about the same state: the logarithm of a
//! cost is the candidate's own plus the round's, and medians find both, whatever single visits were interrupted (Tukey's median
//! polish).

/// From costs by rounds, candidate by candidate: the cost of each in the state that this share of the rounds was in or a better
/// one (0.5: the middle one). None where there was no visit.
pub fn polish(visits: &[Vec<Option<f64>>], share: f64) -> Vec<Option<f64>> {
    let logs: Vec<Vec<Option<f64>>> = visits.iter().map(|v| v.iter().map(|s| s.map(f64::ln)).collect()).collect();
    let rounds = visits.iter().map(Vec::len).max().unwrap_or(0);
    let mut own: Vec<Option<f64>> = logs.iter().map(|l| quantile(l.iter().flatten().copied(), 0.5)).collect();
    let mut of_round = vec![None; rounds];
    for _ in 0..STEPS {
        for (k, state) in of_round.iter_mut().enumerate() {
            let off = logs.iter().zip(&own).filter_map(|(l, own)| Some(l.get(k).copied()?? - (*own)?));
            *state = quantile(off, 0.5);
        }
        for (log, own) in logs.iter().zip(&mut own) {
            let left = log.iter().zip(&of_round).filter_map(|(l, state)| Some((*l)? - (*state)?));
            *own = quantile(left, 0.5);
        }
    }
    let state = quantile(of_round.iter().flatten().copied(), share).unwrap_or(0.0);
    own.into_iter().map(|own| own.map(|log| (log + state).exp())).collect()
}

/// More change nothing that matters.
const STEPS: usize = 8;

/// The mean of the two middle ones where there are two: a choice between them would favour one side.
fn quantile(numbers: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    let at = all.len().checked_sub(1)? as f64 * share;
    let (low, high) = (all.get(at.floor() as usize)?, all.get(at.ceil() as usize)?);
    Some(low.midpoint(*high))
}

#[cfg(test)]
mod tests {
    use super::polish;

    #[test]
    fn candidates_are_compared_within_rounds() {
        // The host is slow by half in the first half. The second candidate is a tenth slower, and mostly visited while the host is fast.
        let state = |k: usize| if k < 10 { 1.5 } else { 1.0 };
        let first: Vec<Option<f64>> = (0..20).map(|k| (k < 13).then(|| 2.0 * state(k))).collect();
        let second: Vec<Option<f64>> = (0..20).map(|k| (k >= 7).then(|| 2.2 * state(k))).collect();
        let mut third: Vec<Option<f64>> = (0..20).map(|k| Some(3.0 * state(k))).collect();
        third[4] = Some(1e3);
        let times = polish(&[first, second, third, vec![None; 20]], 0.25);
        let close = |i: usize, time: f64| times[i].is_some_and(|t| (t / time - 1.0).abs() < 2e-3);
        assert!(close(0, 2.0) && close(1, 2.2) && close(2, 3.0) && times[3].is_none(), "{times:?}");
        assert!(polish(&[], 0.5).is_empty());
    }
}
