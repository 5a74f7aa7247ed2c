//! The kernels' winners against each other.

use super::{Deciding, ENOUGH};
use crate::contest::{ContestSettings, JUDGED_AFTER, Runs, rounds};
use crate::error::RuntimeError;
use crate::paired::Band;
use crate::plan::answer::Planned;
use crate::plan::ties::{KERNEL_TIE_ORDER, told};
use crate::plan::variants::VariantPlanner;
use tilewright_core::decision::{Tie, Tied};
use tilewright_core::id::KernelId;
use tilewright_core::objective::Objective;

/// A kernel's place among those that count as equal, see [`KERNEL_TIE_ORDER`].
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_not_remembered: bool,
    rank: usize,
    is_not_default: bool,
    name: KernelId,
}

impl Place {
    /// What puts it ahead of the next one, as part of a sentence.
    fn why(&self, next: &Self) -> &'static str {
        match self {
            _ if self.is_not_remembered != next.is_not_remembered => "its kernel is that of the remembered answer",
            _ if self.rank != next.rank => "the selector ranks its kernel first",
            _ if self.is_not_default != next.is_not_default => "its kernel is the default",
            _ => "its kernel's name comes first",
        }
    }
}

impl Deciding<'_, '_> {
    /// Times the winners against each other, and brings them into the order of that.
    pub(super) fn contest(&mut self) -> Result<(), RuntimeError> {
        if self.found.len() < 2 {
            return Ok(());
        }
        let Some(runs) = self.timed()? else { return Ok(()) };
        let costs: Vec<f64> = runs.iter().map(|runs| runs.median().unwrap_or(f64::INFINITY)).collect();
        let settings = &self.planner.settings;
        let (is_time, paired) = (settings.objective == Objective::default(), &settings.paired);
        let band = Band::of(&runs.iter().map(Runs::costs).collect::<Vec<_>>());
        let within = band.within(paired.tie_band, paired.tie_most);
        for ((_, planned), cost) in self.found.iter_mut().zip(&costs) {
            planned.measured_s = Some(*cost).filter(|c| c.is_finite() && is_time);
        }
        let mut members: Vec<(usize, f64)> = band.members(within);
        members.sort_by_cached_key(|(i, _)| self.place(self.found[*i].0));
        let mut behind: Vec<usize> = (0..costs.len()).filter(|i| members.iter().all(|(at, _)| at != i)).collect();
        behind.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
        self.tie = self.tied(&members, within);
        let mut all: Vec<_> = std::mem::take(&mut self.found).into_iter().map(Some).collect();
        self.found = members.iter().map(|(i, _)| *i).chain(behind).filter_map(|i| all[i].take()).collect();
        let time = |(_, p): &(usize, Planned)| {
            let seconds = p.measured_s.map_or("no time".to_owned(), |s| format!("{s:.3e} s"));
            format!("{} {seconds}", p.kernel)
        };
        let times: Vec<String> = self.found.iter().map(time).collect();
        self.reasons.push(format!("the winners were timed against each other: {}", times.join(", ")));
        self.reasons.extend(self.tie.as_ref().and_then(|tie| told(tie, "kernels")));
        Ok(())
    }

    /// What each showed in rounds; None where nothing can be timed.
    fn timed(&mut self) -> Result<Option<Vec<Runs>>, RuntimeError> {
        let VariantPlanner { measure: Some(measure), settings, entrants, .. } = &mut *self.planner else {
            return Ok(None);
        };
        if measure.ahead() > 1 {
            for (at, planned) in &self.found {
                measure.expect(entrants[*at].problem, std::slice::from_ref(&planned.point));
            }
        }
        // Blocks of calls, as `run` and `bench` time: right behind another kernel a single call pays for waking threads and for cold
        // caches, and may be a hundred times slower than the next.
        let how = ContestSettings {
            objective: settings.objective.clone(),
            min_rounds: JUDGED_AFTER,
            enough: ENOUGH,
            drop_beyond: 2.0 * settings.paired.drop_beyond,
            ..ContestSettings::on(measure.spec(), settings.seed)
        };
        let timed: Vec<_> = self.found.iter().map(|(at, planned)| (entrants[*at].problem, &planned.point)).collect();
        let runs = rounds(&mut **measure, &timed, &how, &|_| None);
        measure.abandon();
        Ok(Some(runs?))
    }

    fn place(&self, at: usize) -> Place {
        let name = self.id(at);
        let ranked = self.selection.as_ref().map_or(&[][..], |said| &said.ranked);
        let rank = ranked.iter().position(|id| *id == name).unwrap_or(ranked.len());
        Place { is_not_remembered: self.remembered != Some(at), rank, is_not_default: at != 0, name }
    }

    fn tied(&self, members: &[(usize, f64)], within: f64) -> Option<Tie> {
        let place = |i: usize| self.place(self.found[i].0);
        let why = members.get(1).map_or("", |(next, _)| place(members[0].0).why(&place(*next))).to_owned();
        let told = |(i, relative): &(usize, f64)| {
            let planned = &self.found[*i].1;
            let (kernel, config) = (planned.kernel.clone(), planned.config.clone());
            Tied { kernel, config, measured_s: planned.measured_s, relative: *relative }
        };
        let members: Vec<Tied> = members.iter().map(told).collect();
        (!members.is_empty()).then(|| Tie { members, within, order: KERNEL_TIE_ORDER.into(), why })
    }
}
