//! Splits of rows that keep groups together.

use std::collections::BTreeMap;

use rand::Rng;
use rand::seq::SliceRandom;

use crate::settings::SplitBy;

/// Fewest groups that are split by group; with fewer, one group is too large a share of the data.
const LEAST_GROUPS: usize = 10;

/// Deals rows into `folds` parts of about equal size, whole groups at a time, in random order.
///
/// Every row is in exactly one part; parts may be empty when there are fewer units than parts.
pub(crate) fn deal(groups: &[u32], by: SplitBy, folds: usize, rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let mut units = units(groups, by);
    units.shuffle(rng);
    let mut parts = vec![Vec::new(); folds];
    for unit in units {
        let smallest = parts.iter_mut().min_by_key(|part| part.len()).expect("there is at least one part");
        smallest.extend(unit);
    }
    parts
}

/// Sets about `share` of the rows aside, whole groups at a time; returns (kept, set aside), both sorted.
pub(crate) fn set_aside(groups: &[u32], by: SplitBy, share: f64, rng: &mut impl Rng) -> (Vec<usize>, Vec<usize>) {
    let mut units = units(groups, by);
    units.shuffle(rng);
    let wanted = (groups.len() as f64 * share).round() as usize;
    let mut aside = Vec::new();
    let mut kept = Vec::new();
    for unit in units {
        let part = if aside.len() < wanted { &mut aside } else { &mut kept };
        part.extend(unit);
    }
    kept.sort_unstable();
    aside.sort_unstable();
    (kept, aside)
}

/// What may not be divided: groups, or single rows.
fn units(groups: &[u32], by: SplitBy) -> Vec<Vec<usize>> {
    if by == SplitBy::Group {
        let mut rows_of = BTreeMap::<u32, Vec<usize>>::new();
        for (row, &group) in groups.iter().enumerate() {
            rows_of.entry(group).or_default().push(row);
        }
        if rows_of.len() >= LEAST_GROUPS {
            return rows_of.into_values().collect();
        }
    }
    (0..groups.len()).map(|row| vec![row]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    proptest! {
        #[test]
        fn parts_cover_every_row_once_and_keep_groups_whole(
            groups in prop::collection::vec(0u32..30, 0..300), folds in 1usize..8, seed: u64,
        ) {
            let distinct = groups.iter().collect::<std::collections::BTreeSet<_>>().len();
            let parts = deal(&groups, SplitBy::Group, folds, &mut ChaCha8Rng::seed_from_u64(seed));
            let mut part_of = vec![usize::MAX; groups.len()];
            for (part, rows) in parts.iter().enumerate() {
                for &row in rows {
                    prop_assert_eq!(part_of[row], usize::MAX);
                    part_of[row] = part;
                }
            }
            prop_assert!(part_of.iter().all(|&part| part < folds));
            if distinct >= LEAST_GROUPS {
                for (row, group) in groups.iter().enumerate() {
                    let first = groups.iter().position(|other| other == group).unwrap();
                    prop_assert_eq!(part_of[row], part_of[first]);
                }
            }
        }

        #[test]
        fn the_share_set_aside_is_kept(rows in 1usize..500, share in 0.05f64..0.5, seed: u64) {
            let groups = vec![0; rows];
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (kept, aside) = set_aside(&groups, SplitBy::Group, share, &mut rng);
            prop_assert_eq!(kept.len() + aside.len(), rows);
            prop_assert_eq!(aside.len(), (rows as f64 * share).round() as usize);
        }
    }
}
