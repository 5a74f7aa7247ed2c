//! The training set: random inputs and configurations, generated and compiled ahead on the host's cores, timed one after the
//! other on every device; and the profile that is fitted on it.

use super::export::export;
use super::stages::Progress;
use super::state::State;
use super::{Campaign, CampaignError, Deadline, FILES, LARGEST_FILE};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::measurement::{Outcome, Timing};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::search::Search;
use tilewright_core::space::{Config, Point};
use tilewright_runtime::Live;
use tilewright_runtime::log::{CampaignLog, LogHeader, Opened, Record, Sample};
use tilewright_runtime::tune::{Silent, TunePaths, TuneSettings, Tuner};
use tilewright_sampler::{Chained, Settings, Uniform};
use tilewright_search::strategy::{Mixture, Survey};
use tilewright_search::{Setup, Source};

/// Share of configurations that were the best for an earlier input, and as many near those.
const CARRIED: f64 = 0.2;
/// Winners that are remembered.
const WINNERS: usize = 64;
/// Inputs that wait for each device.
const WAITING: usize = 3;
/// Inputs in a row without a legal configuration after which nothing is made any more.
const MOST_IDLE: u32 = 1000;
/// Times the best so far beyond which a configuration is cut off, and beyond which one run is enough.
const LIMITS: (f64, f64) = (10.0, 1.5);
/// Room for what a last record may take.
const SPARE: u64 = 1 << 20;
/// The log is synced at least this often.
const SYNC_EVERY: Duration = Duration::from_secs(2);

/// An input with configurations that were generated for it.
struct Round {
    draw: u64,
    problem: Box<dyn Problem>,
    points: Vec<(Point, Program)>,
}

/// What the threads share.
struct Shelf<'a> {
    campaign: &'a Campaign<'a>,
    spec: Arc<DeviceSpec>,
    deadline: Deadline,
    log: Mutex<Log>,
    next_draw: AtomicU64,
    winners: Mutex<Vec<Config>>,
    /// What ended the stage early.
    broken: Mutex<Option<CampaignError>>,
}

struct Log {
    log: CampaignLog,
    samples: u64,
    synced: Instant,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn run(campaign: &Campaign<'_>, state: &mut State, deadline: Deadline) -> Result<Progress, CampaignError> {
    let Opened { log, samples, .. } = CampaignLog::open(&campaign.settings.out.join(FILES[3]), &header(campaign))?;
    let before = samples.len() as u64;
    let next_draw = samples.iter().map(|s| s.draw + 1).max().unwrap_or(0);
    let shelf = Shelf {
        campaign,
        spec: campaign.spec(),
        deadline,
        log: Mutex::new(Log { log, samples: before, synced: Instant::now() }),
        next_draw: AtomicU64::new(next_draw),
        winners: Mutex::new(Vec::new()),
        broken: Mutex::new(None),
    };
    drop(samples);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for device in &campaign.devices {
            let (send, rounds) = sync_channel(WAITING);
            let shelf = &shelf;
            scope.spawn(move || shelf.make(&send));
            scope.spawn(move || shelf.measure(&mut **locked(device), &rounds));
        }
    });
    if let Some(error) = locked(&shelf.broken).take() {
        return Err(error);
    }
    let mut log = locked(&shelf.log);
    log.log.sync()?;
    state.samples = log.samples;
    let (new, seconds) = (log.samples - before, began.elapsed().as_secs_f64());
    let full = shelf.full(&log);
    drop(log);
    let rows = export(campaign)?;
    let note = format!(
        "{} samples, {new} of them in {seconds:.0} s ({:.1}/s); {rows} rows",
        state.samples,
        new as f64 / seconds.max(1e-3)
    );
    Ok(Progress { done: full, note })
}

fn header(campaign: &Campaign<'_>) -> LogHeader {
    let device = campaign.spec();
    LogHeader {
        kernel: campaign.kernel.id(),
        fingerprint: device.fingerprint(),
        device: device.name.clone(),
        fixed: Config::default(),
    }
}

impl Shelf<'_> {
    /// Whether there are samples enough, or no room for more.
    fn full(&self, log: &Log) -> bool {
        let length = std::fs::metadata(log.log.path()).map_or(0, |m| m.len());
        log.samples >= self.campaign.settings.scale.samples || length + SPARE > LARGEST_FILE
    }

    fn over(&self) -> bool {
        self.deadline.over() || locked(&self.broken).is_some()
    }

    fn fail(&self, error: CampaignError) {
        locked(&self.broken).get_or_insert(error);
    }

    /// Makes rounds until nobody takes them.
    fn make(&self, to: &SyncSender<Round>) {
        let source = Mutex::new(Chained::new(self.campaign.kernel.space(), Settings::default()));
        let mut idle = 0;
        while !self.over() && idle < MOST_IDLE {
            match self.round(&source) {
                Ok(round) if round.points.is_empty() => idle += 1,
                Ok(round) => {
                    idle = 0;
                    if to.send(round).is_err() {
                        return;
                    }
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Draws an input from a stream of its own, so that a resumed campaign goes on where it was.
    fn round(&self, source: &dyn Source) -> Result<Round, CampaignError> {
        let (campaign, scale) = (self.campaign, &self.campaign.settings.scale);
        let draw_number = self.next_draw.fetch_add(1, Ordering::Relaxed);
        let mut rng = ChaCha8Rng::seed_from_u64(campaign.settings.seed);
        rng.set_stream(draw_number + 1);
        let words = campaign.kernel.draw(&Config::default(), &scale.collect_limits, &mut || rng.random())?;
        let problem = campaign.kernel.problem(&self.spec, &words)?;
        let space = problem.space();
        let winners = locked(&self.winners).clone();
        let carried: Vec<Point> = winners.iter().filter_map(|w| w.to_point(space.params(), None).ok()).collect();
        let starts = Arc::new(problem.default_point().into_iter().collect());
        let setup = Setup { starts, source: Some(source), ..Setup::new(space) };
        let mixture = Mixture { neighbours: 0.0, near_carried: CARRIED, carried: CARRIED };
        let points = Survey::new(&setup, mixture, &carried, rng).ask(scale.configs_per_input);
        let program = |p: Point| Some((p.clone(), problem.program(&space.check(&p).ok()?)));
        let points = points.into_iter().filter_map(program).collect();
        Ok(Round { draw: draw_number, problem, points })
    }

    /// Measures rounds until the time is over; the next one is compiled in the meantime.
    fn measure(&self, device: &mut dyn Device, rounds: &Receiver<Round>) {
        let announced = |device: &mut dyn Device| {
            let round = rounds.recv_timeout(Duration::from_secs_f64(self.deadline.left_s().min(60.0))).ok()?;
            let programs: Vec<Program> = round.points.iter().map(|(_, program)| program.clone()).collect();
            device.precompile(&programs);
            Some(round)
        };
        let mut next = announced(device);
        let mut mark = Instant::now();
        while let Some(round) = next.take() {
            next = announced(device);
            match self.measure_round(device, round, &mut mark) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Whether to go on.
    fn measure_round(&self, device: &mut dyn Device, round: Round, mark: &mut Instant) -> Result<bool, CampaignError> {
        match device.upload(&round.problem.data(self.campaign.settings.seed)) {
            Ok(()) => {}
            // Too large for this device: another input.
            Err(DeviceError::OutOfMemory { .. }) => return Ok(!self.over()),
            Err(error) => return Err(error.into()),
        }
        let objective = &self.campaign.objective;
        let mut best: Option<(f64, Point)> = None;
        for (point, program) in &round.points {
            if self.over() {
                return Ok(false);
            }
            let timed = best.as_ref().filter(|_| *objective == Objective::default()).map(|b| b.0);
            let policy = policy(timed);
            let outcome: Outcome = match device.time(program, &policy) {
                Ok(measurement) => Ok(measurement),
                Err(MeasureError::Failed(failure)) => Err(failure),
                Err(MeasureError::Device(error)) => return Err(error.into()),
            };
            let cost = outcome.as_ref().ok().and_then(|m| objective.cost(m));
            if let Some(cost) = cost.filter(|c| best.as_ref().is_none_or(|b| *c < b.0)) {
                best = Some((cost, point.clone()));
            }
            let spent_s = mark.elapsed().as_secs_f64();
            *mark = Instant::now();
            let sample = Sample {
                draw: round.draw,
                seed: self.campaign.settings.seed,
                input: round.problem.input(),
                config: round.problem.space().config(point),
                outcome,
                cut_off_s: policy.cut_off.map(|c| c.as_secs_f64()),
                spent_s,
            };
            if !self.record(sample)? {
                return Ok(false);
            }
        }
        if let Some((_, point)) = best {
            let mut winners = locked(&self.winners);
            if winners.len() >= WINNERS {
                winners.remove(0);
            }
            winners.push(round.problem.space().config(&point));
        }
        Ok(true)
    }

    /// Whether there is need for more.
    fn record(&self, sample: Sample) -> Result<bool, CampaignError> {
        let mut log = locked(&self.log);
        log.log.append(&Record::Sample(sample))?;
        log.samples += 1;
        if log.synced.elapsed() >= SYNC_EVERY {
            log.log.sync()?;
            log.synced = Instant::now();
            (self.campaign.note)(&format!("collect: {} samples", log.samples));
        }
        Ok(!self.full(&log))
    }
}

/// Many short measurements teach a model more than few exact ones.
fn policy(best_s: Option<f64>) -> Timing {
    let limit = |times: f64| best_s.and_then(|s| Duration::try_from_secs_f64(s * times).ok());
    Timing {
        warmup: 1,
        min_repeats: 2,
        max_repeats: 6,
        relative_error: 0.03,
        max_time: Duration::from_millis(4),
        cut_off: limit(LIMITS.0),
        rough_beyond: limit(LIMITS.1),
        ..Timing::default()
    }
}

/// Fits the profile on everything in the log.
pub(super) fn fit(campaign: &Campaign<'_>, state: &mut State, _: Deadline) -> Result<Progress, CampaignError> {
    let out = &campaign.settings.out;
    let mut device = campaign.device();
    let (mut measure, mut sampler, mut silent) = (Live::new(&mut *device), Uniform::new(1), Silent);
    let mut tuner = Tuner {
        kernel: campaign.kernel,
        measure: &mut measure,
        sampler: &mut sampler,
        trainer: campaign.trainer,
        observer: &mut silent,
        // No time to measure: what is in the log is all.
        settings: TuneSettings {
            budget: Duration::ZERO,
            objective: campaign.objective.clone(),
            seed: campaign.settings.seed,
            ..TuneSettings::default()
        },
    };
    let report = tuner.run(&TunePaths { log: out.join(FILES[3]), profile: out.join(FILES[6]) });
    match report {
        Ok(report) => {
            state.samples = report.samples + report.failed;
            state.fitted = state.samples;
            let error =
                report.cv_mse.map_or(String::new(), |e| format!(", error of the logarithm {e:.4} (mean square)"));
            let note = format!("{} measurements of {} inputs{error}", report.samples, report.inputs);
            Ok(Progress { done: true, note })
        }
        Err(error @ tilewright_runtime::RuntimeError::TooFewSamples { .. }) => {
            Ok(Progress { done: false, note: error.to_string() })
        }
        Err(error) => Err(error.into()),
    }
}
