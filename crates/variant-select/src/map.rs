//! Which variant is fastest where, and which is chosen: the numbers behind maps as in Figures 5 and 6 of Vuduc et al.

use crate::shapes::sizes;
use std::collections::BTreeMap;
use tilewright_core::choice::{Case, ChoiceSet, SelectError};
use tilewright_core::metrics::ChoiceScores;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

/// Two features of the input to draw over: the first two sizes, unless they are named.
///
/// # Errors
/// A name that is no feature of the input, or fewer than two sizes.
pub fn axes(data: &ChoiceSet, names: Option<(&str, &str)>) -> Result<(usize, usize), SelectError> {
    let input = &data.schema().input;
    let find = |name: &str| {
        input.iter().position(|f| f.name == name).ok_or_else(|| SelectError::UnknownFeature {
            field: "axes",
            name: name.to_owned(),
            known: input.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(" "),
        })
    };
    if let Some((x, y)) = names {
        return Ok((find(x)?, find(y)?));
    }
    let sizes = sizes(data.schema());
    match sizes[..] {
        [x, y, ..] => Ok((x, y)),
        _ => Err(SelectError::TooFew { what: "sizes of the input", found: sizes.len(), needed: 2 }),
    }
}

/// One map: a variant for each case.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantMap {
    /// What it shows.
    pub title: String,
    /// By case; none where nothing ran.
    pub variants: Vec<Option<String>>,
}

impl VariantMap {
    /// The fastest variants.
    pub fn fastest(data: &ChoiceSet) -> Self {
        let fastest = |case: &Case| {
            let ran = case.trials.iter().filter_map(|t| Some((t.cost?, &t.candidate.variant)));
            ran.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, v)| v.clone())
        };
        Self { title: "fastest".into(), variants: data.cases().iter().map(fastest).collect() }
    }

    /// The first choices of a selector, with the share of them that missed the fastest.
    pub fn chosen(name: &str, selector: &dyn Selector, data: &ChoiceSet) -> Self {
        let missed = ChoiceScores::of(selector, data).map_or(0.0, |s| s.delta_miss);
        let mut order = VariantOrder::new();
        let chosen = |case: &Case| {
            let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
            selector.rank(&case.features, &candidates, &mut order);
            case.best().and(order.first()).map(|&i| candidates[i].variant.clone())
        };
        let variants = data.cases().iter().map(chosen).collect();
        Self { title: format!("chosen by {name}: {:.1}% missed", 100.0 * missed), variants }
    }

    /// All variants of several maps: those that stand most often in the first map come first, then by the others.
    pub fn legend(maps: &[Self]) -> Vec<String> {
        let mut counts: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
        for (i, map) in maps.iter().enumerate() {
            for variant in map.variants.iter().flatten() {
                let (first, others) = counts.entry(variant).or_default();
                *(if i == 0 { first } else { others }) += 1;
            }
        }
        let mut order: Vec<(&String, (usize, usize))> = counts.into_iter().collect();
        order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        order.into_iter().map(|(variant, _)| variant.clone()).collect()
    }
}
