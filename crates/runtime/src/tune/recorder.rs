//! The log of a campaign, and how much of the campaign is done.

use super::settings::{Observer, Progress, TuneSettings};
use crate::error::RuntimeError;
use crate::log::{CampaignLog, Record, Sample};
use std::time::Duration;
use tilewright_core::timing::Clock;

/// The log is synced at least this often.
const SYNC_EVERY: Duration = Duration::from_secs(2);

/// What was measured, and when.
pub(super) struct Recorder<'c> {
    log: CampaignLog,
    pub(super) samples: Vec<Sample>,
    pub(super) settings: &'c TuneSettings,
    observer: &'c mut (dyn Observer + 'c),
    pub(super) clock: &'c dyn Clock,
    /// Seconds used up by earlier parts of this campaign.
    spent_before: f64,
    began: Duration,
    /// When the last sample was complete.
    mark: Duration,
    synced: Duration,
    /// Measurements in the log.
    pub(super) ok: u64,
    /// Measurements in this call, for the rate.
    new: u64,
}

impl<'c> Recorder<'c> {
    /// Takes up a log; the samples after the first `finished` belong to an interrupted campaign.
    pub(super) fn new(
        log: CampaignLog,
        samples: Vec<Sample>,
        finished: usize,
        (settings, observer): (&'c TuneSettings, &'c mut (dyn Observer + 'c)),
        clock: &'c dyn Clock,
    ) -> Self {
        let (began, mark, synced) = (clock.now(), clock.now(), clock.now());
        let ok = samples.iter().filter(|s| s.outcome.is_ok()).count() as u64;
        let spent_before = samples[finished..].iter().map(|s| s.spent_s).sum();
        Self { log, samples, settings, observer, clock, spent_before, began, mark, synced, ok, new: 0 }
    }

    /// The log and everything in it.
    pub(super) fn finish(self) -> (CampaignLog, Vec<Sample>) {
        (self.log, self.samples)
    }

    pub(super) fn sync(&mut self) -> Result<(), RuntimeError> {
        Ok(self.log.sync()?)
    }

    /// Seconds of the budget that are used up.
    pub(super) fn spent_s(&self) -> f64 {
        self.spent_before + self.clock.now().saturating_sub(self.began).as_secs_f64()
    }

    /// Whether measuring is to end.
    pub(super) fn is_over(&self) -> bool {
        self.spent_s() >= self.settings.budget.as_secs_f64()
            || self.settings.samples.is_some_and(|n| self.ok >= n)
            || self.observer.stop()
    }

    /// Share of the campaign that is done.
    pub(super) fn done(&self) -> f64 {
        let budget_s = self.settings.budget.as_secs_f64();
        let by_time = if budget_s > 0.0 { self.spent_s() / budget_s } else { 1.0 };
        let by_count = self.settings.samples.map_or(0.0, |n| self.ok as f64 / n.max(1) as f64);
        by_time.max(by_count).min(1.0)
    }

    /// The first draw of this campaign's seed that is not complete.
    pub(super) fn next_draw(&self) -> u64 {
        let ours = || self.samples.iter().filter(|s| s.seed == self.settings.seed);
        let Some(last) = ours().map(|s| s.draw).max() else { return 0 };
        let count = ours().filter(|s| s.draw == last).count();
        if count < self.settings.configs_per_input as usize { last } else { last.wrapping_add(1) }
    }

    /// Seconds since the last sample.
    pub(super) fn lap(&mut self) -> f64 {
        let now = self.clock.now();
        let spent_s = now.saturating_sub(self.mark).as_secs_f64();
        self.mark = now;
        spent_s
    }

    /// Keeps a sample; `best` is the least cost so far for its input.
    pub(super) fn record(&mut self, sample: Sample, best: Option<f64>) -> Result<(), RuntimeError> {
        self.log.append(&Record::Sample(sample.clone()))?;
        let now = self.clock.now();
        if now.saturating_sub(self.synced) >= SYNC_EVERY {
            self.log.sync()?;
            self.synced = now;
        }
        self.ok += u64::from(sample.outcome.is_ok());
        self.new += 1;
        self.samples.push(sample);
        self.report(best);
        Ok(())
    }

    fn report(&mut self, best: Option<f64>) {
        let Some(last) = self.samples.last() else { return };
        let spent_s = self.spent_s();
        let budget_s = self.settings.budget.as_secs_f64();
        let wanted = self.settings.samples;
        let here_s = spent_s - self.spent_before;
        let left = wanted.map(|n| n.saturating_sub(self.ok) as f64 * here_s / self.new.max(1) as f64);
        let progress = Progress {
            samples: self.ok,
            failed: self.samples.len() as u64 - self.ok,
            spent_s,
            remaining_s: (budget_s - spent_s).max(0.0).min(left.unwrap_or(f64::INFINITY)),
            done: self.done(),
            input: &last.input,
            best,
            outcome: &last.outcome,
        };
        self.observer.sample(&progress);
    }
}
