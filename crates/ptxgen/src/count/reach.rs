//! How often a place in the tree is reached.

use super::CountError;
use super::cases::{Cases, Of};
use super::walk::{Alike, Context, Levels, Walk};
use super::warps::{Terms, Trait};
use crate::ir::{Index, Sym};

/// How often something is reached: at levels, or in all.
pub(super) enum Reached {
    Levels(Vec<(Levels, i64)>),
    Times(i64),
}

impl Walk<'_> {
    /// The levels at which threads, or warps, get there.
    pub(super) fn reached(&mut self, at: &Context, warps: bool) -> Result<Reached, CountError> {
        if at.conditions.iter().any(|c| c.ask.is_some()) {
            let of = if warps { Of::Warps } else { Of::Threads };
            let all = self.cases(at.nest).count(&at.conditions, of)?;
            return Ok(Reached::Times(all.get(&Trait::Any).copied().unwrap_or(0)));
        }
        Ok(Reached::Levels(match warps {
            false => levels(at, &self.warps.threads(&self.lanes, &at.conditions)),
            true => {
                let mut all = self.warps.warps(&self.lanes, &at.conditions, None);
                all.remove(&Trait::Any).map(|terms| levels(at, &terms)).unwrap_or_default()
            }
        }))
    }

    /// What goes through known data, in all blocks and iterations of a nest.
    fn cases(&self, nest: usize) -> Cases<'_> {
        let blocks = self.launch.blocks().into_iter();
        let loops = self.out.nests[nest].iter().map(|(id, trips)| (Sym::Iteration(*id), trips.clone()));
        let vars = blocks.chain(loops).collect();
        Cases { entry: &self.entry.name, lanes: &self.lanes, known: &self.known, vars, nest, memory: &self.memory }
    }

    /// Warp accesses by what they are like.
    pub(super) fn accessed(&mut self, alike: &Alike) -> Result<Vec<(Trait, Reached)>, CountError> {
        let (at, pattern) = (&alike.at, &alike.pattern);
        if pattern.known.is_empty() && at.conditions.iter().all(|c| c.ask.is_none()) {
            let all = self.warps.warps(&self.lanes, &at.conditions, Some(pattern));
            return Ok(all.into_iter().map(|(what, terms)| (what, Reached::Levels(levels(at, &terms)))).collect());
        }
        if !pattern.factors.is_empty() || pattern.banks.is_some() {
            return self.no_form("banks, or strides of sizes, under a condition on known data", &Index::default());
        }
        let all = self.cases(at.nest).count(&at.conditions, Of::Accesses(pattern.values, &pattern.known))?;
        Ok(all.into_iter().map(|(what, count)| (what, Reached::Times(count))).collect())
    }
}

/// The levels of conditions at these values: `axis + value + more > 0` is `axis > -(value + more)`, and of several on one axis
/// the highest counts.
fn levels(at: &Context, terms: &Terms) -> Vec<(Levels, i64)> {
    let conditions: Vec<(usize, i64)> = at.conditions.iter().filter_map(|c| Some((c.axis?, c.more))).collect();
    let of = |values: &[i64]| {
        let mut levels = Levels::new();
        // Conditions stand in the order of their axes.
        for ((axis, more), value) in conditions.iter().zip(values) {
            let least = -(value + more);
            match levels.last_mut().filter(|(last, _)| last == axis) {
                Some((_, level)) => *level = least.max(*level),
                None => levels.push((*axis, least)),
            }
        }
        levels
    };
    terms.iter().map(|(values, count)| (of(values), *count)).collect()
}
