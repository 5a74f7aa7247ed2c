//! What stands in where nothing of a tree is legal.

use super::names::{Bound, Drawn};
use super::{Candidate, ExportError, Exporting, judged};
use crate::error::Error;
use crate::planning::problem;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use std::time::Instant;
use tilewright_core::problem::Measure;
use tilewright_core::space::{Config, Point};
use tilewright_export::{Artefact, Choice, Fitted};
use tilewright_runtime::RuntimeError;

/// Configurations that are taken in for inputs where nothing of the tree is legal, at most.
const MOST: usize = 16;

/// Inputs that are drawn beside those that are bound, to find where an artefact advises nothing: that follows from conditions over fields, in
/// some microseconds. Of 337 bound inputs alone, those that none of them stands for were up to 1.1% of others.
const FURTHER: usize = 4096;

/// Of those where nothing is advised, so many are bound at most.
const MOST_BOUND: usize = 64;

/// What a tree is grown from, and what is known to compute wrong.
pub(super) struct Grown<'a> {
    pub(super) training: &'a [Config],
    pub(super) candidates: &'a [Candidate],
    pub(super) wrong: &'a [Point],
    pub(super) fitted: &'a Fitted,
}

impl Exporting<'_> {
    /// The artefact of a tree, with what stands in for it elsewhere; and how many inputs have nothing even so, of how many that were seen.
    pub(super) fn assembled(
        &self,
        measure: &mut dyn Measure,
        drawn: &Drawn,
        grown: &Grown<'_>,
    ) -> Result<(Artefact, (usize, usize)), Error> {
        let (artefact, uncovered) = self.covered(measure, (drawn, &[]), grown)?;
        let further = self.unadvised(&artefact)?;
        if further.is_empty() {
            return Ok((artefact, (uncovered, drawn.len())));
        }
        let (artefact, uncovered) = self.covered(measure, (drawn, &further), grown)?;
        Ok((artefact, (uncovered, drawn.len() + further.len())))
    }

    /// The artefact that stands in for the bound inputs, checked like the rest; and how many of them have nothing even so.
    fn covered(
        &self,
        measure: &mut dyn Measure,
        (drawn, further): (&Drawn, &[Bound]),
        grown: &Grown<'_>,
    ) -> Result<(Artefact, usize), Error> {
        let known = (grown.candidates, grown.wrong);
        let (found, uncovered) = drawn.covering(self, further, known, &grown.fitted.chosen, MOST);
        let mut right: Vec<Choice> = Vec::new();
        for candidate in found {
            let complaint = match drawn.smallest(further, &candidate.point) {
                Some(input) => {
                    let problem = problem(&**self.kernel, self.device, input)?;
                    judged::complaint(measure, &*problem, &candidate.point)?
                }
                // Nothing is computed wherever it is legal.
                None => None,
            };
            match complaint {
                None => right.push(candidate.choice),
                Some(complaint) => tracing::error!(config = %candidate.choice.config, %complaint, "wrong result"),
            }
        }
        let parts = self.parts(drawn.domain().clone(), grown.training.to_vec(), grown.candidates, right);
        let artefact = parts.assemble(grown.fitted).map_err(ExportError::from)?;
        Ok((artefact, uncovered))
    }

    /// Further inputs of the domain for which the artefact has nothing that guidelines advise, bound.
    fn unadvised(&self, artefact: &Artefact) -> Result<Vec<Bound>, Error> {
        let (clock, most) = (Instant::now(), self.time_to_draw());
        // Other inputs than those that the tree was grown on.
        let mut rng = ChaCha8Rng::seed_from_u64(self.settings.seed.wrapping_add(1));
        let (mut known, mut out) = (HashSet::new(), Vec::new());
        for _ in 0..FURTHER {
            if clock.elapsed() > most || out.len() == MOST_BOUND {
                break;
            }
            let (limits, mut uniform) = (&self.settings.limits, || rng.random());
            let input = self.kernel.draw(self.fixed, limits, &mut uniform).map_err(RuntimeError::from)?;
            // Outside the domain it says nothing, nor is it asked.
            let is_unadvised = artefact.ranked(&input).is_ok_and(|ranked| ranked.is_empty());
            if is_unadvised && known.insert(input.to_string()) {
                // What the kernel refuses needs no advice.
                out.extend(problem(&**self.kernel, self.device, &input).ok().map(|problem| Bound::of(&*problem)));
            }
        }
        tracing::debug!(found = out.len(), "inputs without advice");
        Ok(out)
    }
}
