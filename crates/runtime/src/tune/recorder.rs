//! The logs of a campaign, and how much of the campaign is done.

use super::settings::{Observer, Progress, TuneSettings};
use super::unstored::Unstored;
use crate::bystanders::Bystanders;
use crate::error::RuntimeError;
use crate::log::{CampaignLog, Opened, Record, Sample};
use crate::store::StoreError;
use std::time::{Duration, Instant};
use tilewright_core::device::DeviceSpec;

/// The logs are synced at least this often.
const SYNC_EVERY: Duration = Duration::from_secs(2);

/// Room for what a last record may take.
const SPARE: u64 = 1 << 20;

/// The log of a kernel, and everything in it.
pub struct Logged {
    /// The log, ready to append.
    pub log: CampaignLog,
    /// What was measured, in order.
    pub samples: Vec<Sample>,
    /// How many of the samples were there before.
    pub resumed: usize,
}

impl Logged {
    /// Writes to the log. Where its place is at fault and the campaign goes on, nothing more is written to it.
    pub(super) fn write(
        &mut self,
        unstored: &mut Unstored,
        write: impl FnOnce(&mut CampaignLog) -> Result<(), StoreError>,
    ) -> Result<(), RuntimeError> {
        let written = write(&mut self.log);
        if unstored.judge(written)?.is_none() {
            self.log.close();
        }
        Ok(())
    }

    /// Measurements that did not fail.
    pub(super) fn ok(&self) -> u64 {
        self.samples.iter().filter(|s| s.outcome.is_ok()).count() as u64
    }
}

/// What was measured of all kernels, and when.
pub(super) struct Recorder<'c> {
    pub(super) logs: Vec<Logged>,
    settings: &'c TuneSettings,
    observer: &'c mut dyn Observer,
    /// Seconds used up by earlier parts of this campaign.
    spent_before: f64,
    began: Instant,
    synced: Instant,
    /// Measurements in the logs.
    ok: u64,
    /// What others do on this machine meanwhile.
    pub(super) bystanders: Bystanders,
    pub(super) unstored: Unstored,
}

impl<'c> Recorder<'c> {
    /// Takes up logs; what they hold of campaigns that did not end belongs to this one.
    pub(super) fn new(
        opened: Vec<Opened>,
        device: &DeviceSpec,
        (settings, unstored): (&'c TuneSettings, Unstored),
        observer: &'c mut dyn Observer,
    ) -> Self {
        let (began, synced) = (Instant::now(), Instant::now());
        let spent_before = opened.iter().flat_map(|o| &o.samples[o.finished..]).map(|s| s.spent_s).sum();
        let logged = |Opened { log, samples, .. }| Logged { log, resumed: samples.len(), samples };
        let logs: Vec<Logged> = opened.into_iter().map(logged).collect();
        let ok = logs.iter().map(Logged::ok).sum();
        let bystanders = Bystanders::of(device);
        Self { logs, settings, observer, spent_before, began, synced, ok, bystanders, unstored }
    }

    pub(super) fn sync(&mut self) -> Result<(), RuntimeError> {
        self.synced = Instant::now();
        self.logs.iter_mut().try_for_each(|kept| kept.write(&mut self.unstored, CampaignLog::sync))
    }

    /// Seconds of the budget that are used up.
    pub(super) fn spent_s(&self) -> f64 {
        self.spent_before + self.began.elapsed().as_secs_f64()
    }

    /// Whether measuring is to end.
    pub(super) fn is_over(&self) -> bool {
        self.spent_s() >= self.settings.budget.as_secs_f64()
            || self.settings.samples.is_some_and(|n| self.ok >= n)
            || self.logs.iter().any(|kept| kept.log.length() + SPARE > self.settings.log_bytes)
            || self.observer.stop()
    }

    /// Share of the campaign that is done.
    pub(super) fn done(&self) -> f64 {
        let budget_s = self.settings.budget.as_secs_f64();
        let by_time = if budget_s > 0.0 { self.spent_s() / budget_s } else { 1.0 };
        let by_count = self.settings.samples.map_or(0.0, |n| self.ok as f64 / n.max(1) as f64);
        by_time.max(by_count).min(1.0)
    }

    /// The last draw of this campaign's seed if some kernel has configurations of it left, else the one behind it. What other
    /// devices left of earlier draws is left for good: those inputs have fewer configurations.
    pub(super) fn next_draw(&self) -> u64 {
        let ours = |kept: &'_ Logged| {
            let seed = self.settings.seed;
            kept.samples.iter().filter(move |s| s.seed == seed).map(|s| s.draw).collect::<Vec<_>>()
        };
        let draws: Vec<Vec<u64>> = self.logs.iter().map(ours).collect();
        let Some(last) = draws.iter().flatten().copied().max() else { return 0 };
        let count = |draws: &Vec<u64>| draws.iter().filter(|draw| **draw == last).count();
        let complete = draws.iter().all(|of| count(of) >= self.settings.configs_per_input as usize);
        last.wrapping_add(u64::from(complete))
    }

    /// Keeps a sample of a kernel; `best` is the least cost so far for its input.
    pub(super) fn record(&mut self, kernel: usize, sample: Sample, best: Option<f64>) -> Result<(), RuntimeError> {
        let kept = &mut self.logs[kernel];
        let record = Record::Sample(sample.clone());
        kept.write(&mut self.unstored, |log| log.append(&record))?;
        self.ok += u64::from(sample.outcome.is_ok());
        kept.samples.push(sample);
        if self.synced.elapsed() >= SYNC_EVERY {
            self.sync()?;
        }
        self.report(kernel, best);
        Ok(())
    }

    fn report(&mut self, kernel: usize, best: Option<f64>) {
        let Some(last) = self.logs[kernel].samples.last() else { return };
        let progress = Progress {
            samples: self.ok,
            failed: self.logs.iter().map(|kept| kept.samples.len() as u64).sum::<u64>() - self.ok,
            spent_s: self.spent_s(),
            done: self.done(),
            input: &last.input,
            best,
            outcome: &last.outcome,
        };
        self.observer.sample(&progress);
    }
}
