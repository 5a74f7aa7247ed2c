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
use tilewright_export::{Artefact, Fitted};
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

/// Configurations that were checked, by whether their results are right.
struct Checked {
    right: HashSet<Point>,
    wrong: Vec<Point>,
}

impl Exporting<'_> {
    /// The artefact of a tree, with what stands in for it elsewhere; and how many inputs have nothing even so, of how many that were asked for.
    pub(super) fn assembled(
        &self,
        measure: &mut dyn Measure,
        drawn: &Drawn,
        grown: &Grown<'_>,
    ) -> Result<(Artefact, (usize, usize)), Error> {
        let mut checked = Checked { right: HashSet::new(), wrong: grown.wrong.to_vec() };
        let (artefact, uncovered) = self.covered(measure, (drawn, &[]), grown, &mut checked)?;
        let (further, asked) = self.unadvised(&artefact)?;
        let all = drawn.len() + asked;
        if further.is_empty() {
            return Ok((artefact, (uncovered, all)));
        }
        let (artefact, uncovered) = self.covered(measure, (drawn, &further), grown, &mut checked)?;
        Ok((artefact, (uncovered, all)))
    }

    /// The artefact that stands in for the bound inputs, checked like the rest; and how many of them have nothing even so. What computes wrong
    /// is left out, and others are looked for in its place.
    fn covered(
        &self,
        measure: &mut dyn Measure,
        (drawn, further): (&Drawn, &[Bound]),
        grown: &Grown<'_>,
        checked: &mut Checked,
    ) -> Result<(Artefact, usize), Error> {
        loop {
            let known = (grown.candidates, &*checked.wrong);
            let (found, uncovered) = drawn.covering(self, further, known, &grown.fitted.chosen, MOST);
            let before = checked.wrong.len();
            for candidate in &found {
                self.check(measure, (drawn, further), candidate, checked)?;
            }
            if checked.wrong.len() == before {
                let choices = found.into_iter().map(|candidate| candidate.choice).collect();
                let parts = self.parts(drawn.domain().clone(), grown.training.to_vec(), grown.candidates, choices);
                let artefact = parts.assemble(grown.fitted).map_err(ExportError::from)?;
                return Ok((artefact, uncovered));
            }
        }
    }

    /// Checks the results of a configuration on the smallest input that it is legal for, once.
    fn check(
        &self,
        measure: &mut dyn Measure,
        (drawn, further): (&Drawn, &[Bound]),
        candidate: &Candidate,
        checked: &mut Checked,
    ) -> Result<(), Error> {
        if checked.right.contains(&candidate.point) {
            return Ok(());
        }
        let complaint = match drawn.smallest(further, &candidate.point) {
            Some(input) => {
                let problem = problem(&**self.kernel, self.device, input)?;
                judged::complaint(measure, &*problem, &candidate.point)?
            }
            // Nothing is computed wherever it is legal.
            None => None,
        };
        if let Some(complaint) = complaint {
            tracing::error!(config = %candidate.choice.config, %complaint, "wrong result");
            checked.wrong.push(candidate.point.clone());
        } else {
            checked.right.insert(candidate.point.clone());
        }
        Ok(())
    }

    /// Further inputs of the domain that have a legal configuration and for which the artefact has none that guidelines advise, bound; and of how
    /// many different ones. What this takes of the budget is judged less.
    fn unadvised(&self, artefact: &Artefact) -> Result<(Vec<Bound>, usize), Error> {
        let (clock, most) = (Instant::now(), self.time_to_draw());
        // Other inputs than those that the tree was grown on.
        let mut rng = ChaCha8Rng::seed_from_u64(self.settings.seed.wrapping_add(1));
        let (mut asked, mut bound, mut out) = (HashSet::new(), 0, Vec::new());
        for _ in 0..FURTHER {
            if clock.elapsed() > most || bound == MOST_BOUND {
                break;
            }
            let (limits, mut uniform) = (&self.settings.limits, || rng.random());
            let input = self.kernel.draw(self.fixed, limits, &mut uniform).map_err(RuntimeError::from)?;
            // Outside the domain it says nothing, nor is it asked.
            let Ok(ranked) = artefact.ranked(&input) else { continue };
            if asked.insert(input.to_string()) && ranked.is_empty() {
                bound += 1;
                // What the kernel refuses, or has no legal configuration for, needs no advice.
                let problem = problem(&**self.kernel, self.device, &input).ok();
                out.extend(problem.map(|problem| Bound::of(&*problem)).filter(Bound::has_default));
            }
        }
        tracing::debug!(asked = asked.len(), found = out.len(), "inputs without advice");
        Ok((out, asked.len()))
    }
}
