//! Measuring every variant on every input on every device, resumably.

mod log;
mod settle;

pub use log::{Log, LogError};

use crate::computation::{Computation, InputFeature, Named, Ready, Variant, Work};
use crate::device::Device;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How an input is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Each variant is visited this often on each device, all of them in turn.
    pub rounds: usize,
    /// After a third of the rounds an input gets no more once it took this long.
    pub most: Duration,
    /// A visit repeats short runs until they took this long. Many short visits meet all the states of a host, long ones mix them.
    pub least: Duration,
    /// How many times slower than the fastest variant of its device another one is clearly behind.
    pub close: f64,
}

impl Default for Protocol {
    fn default() -> Self {
        Self { rounds: 32, most: Duration::from_millis(450), least: Duration::from_micros(150), close: 1.3 }
    }
}

/// What came of one variant on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// [`Device::name`].
    pub device: String,
    /// The variant.
    pub variant: String,
    /// `ok`, `illegal` or `failed`.
    pub status: String,
    /// Why there is no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds a run in each round; none where it was not visited.
    pub seconds: Vec<Option<f64>>,
}

impl Trial {
    /// The fastest visit.
    pub fn fastest(&self) -> Option<f64> {
        self.seconds.iter().flatten().copied().min_by(f64::total_cmp)
    }

    /// Number of visits.
    pub fn visits(&self) -> usize {
        self.seconds.iter().flatten().count()
    }
}

/// Which rounds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// All of them.
    All,
    /// The first, the third, ...
    Even,
    /// The second, the fourth, ...
    Odd,
}

/// Everything about one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// [`Computation::NAME`].
    pub computation: String,
    /// The generator with its arguments.
    pub input: String,
    /// The generator.
    pub family: String,
    /// Features by name.
    pub features: Vec<(String, f64)>,
    /// What computing each took in seconds, the best of three.
    pub features_s: Vec<f64>,
    /// One for each device and variant.
    pub trials: Vec<Trial>,
    /// Operations by kind for each variant, where it applies.
    pub work: Vec<(String, [f64; 6])>,
}

impl Measured {
    /// The time of every trial in seconds, each compared with the others of its device in the same rounds: how many times slower it
    /// is than they are, in the middle over the rounds, whatever state the host was in. None where there was no visit.
    pub fn times(&self, rounds: Rounds) -> Vec<Option<f64>> {
        times(&self.trials.iter().collect::<Vec<_>>(), rounds)
    }

    /// The share of the performance that exhaustive search is unsure of: what is lost, on average over the devices, when the
    /// fastest of one half of the rounds is judged by the other half. Large where something else ran on the host.
    pub fn doubt(&self) -> f64 {
        let halves = [Rounds::Even, Rounds::Odd].map(|rounds| self.times(rounds));
        let devices: BTreeSet<&String> = self.trials.iter().map(|t| &t.device).collect();
        let of_device = |device: &&String| {
            let own = (0..self.trials.len()).filter(|&i| &&self.trials[i].device == device);
            let both: Vec<[f64; 2]> = own.filter_map(|i| Some([halves[0][i]?, halves[1][i]?])).collect();
            let least = |half: usize| both.iter().min_by(|a, b| a[half].total_cmp(&b[half]));
            Some(1.0 - f64::midpoint(least(1)?[1] / least(0)?[1], least(0)?[0] / least(1)?[0]))
        };
        let all: Vec<f64> = devices.iter().filter_map(of_device).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }
}

/// [`Measured::times`] of these trials.
fn times(trials: &[&Trial], rounds: Rounds) -> Vec<Option<f64>> {
    let counts = |k: usize| match rounds {
        Rounds::All => true,
        Rounds::Even => k.is_multiple_of(2),
        Rounds::Odd => k % 2 == 1,
    };
    let mut out = vec![None; trials.len()];
    let devices: BTreeSet<&String> = trials.iter().map(|t| &t.device).collect();
    for device in devices {
        let own: Vec<usize> = (0..out.len()).filter(|&i| &trials[i].device == device).collect();
        let visits = |&i: &usize| {
            let all = trials[i].seconds.iter().enumerate();
            all.map(|(k, s)| s.filter(|_| counts(k))).collect::<Vec<_>>()
        };
        let settled = settle::settle(&own.iter().map(visits).collect::<Vec<_>>());
        own.iter().zip(settled).for_each(|(&i, time)| out[i] = time);
    }
    out
}

/// A variant that computes something else than the reference.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{computation} {variant} on {device}, input {input}: wrong result: {what}")]
pub struct WrongResult {
    /// The computation.
    pub computation: &'static str,
    /// The variant.
    pub variant: &'static str,
    /// The device.
    pub device: String,
    /// The input.
    pub input: String,
    /// Where it is wrong.
    pub what: String,
}

struct Visit<'a> {
    device: &'a Device,
    variant: usize,
    ready: usize,
    trial: Trial,
}

/// Measures all variants of an input on all devices. The first run of each is compared with the reference.
///
/// # Errors
/// A wrong result. A variant that fails or does not apply is none: its trials say so.
pub fn measure<C: Computation>(
    named: &Named<C::Input>,
    devices: &[Device],
    protocol: &Protocol,
) -> Result<Measured, WrongResult> {
    let input = (named.make)();
    let expected = C::reference(&input);
    let variants = C::variants();
    let legal = |v: &&Variant<C::Input, C::Output>| (v.legal)(&input).is_ok();
    let work = variants.iter().filter(legal).map(|v| (v.name.to_owned(), kinds((v.work)(&input)))).collect();
    let mut ready: Vec<Ready<'_, C::Output>> = Vec::new();
    let mut visits: Vec<Visit<'_>> = Vec::new();
    for (i, variant) in variants.iter().enumerate() {
        let applies = (variant.legal)(&input);
        let at = ready.len();
        if applies.is_ok() {
            ready.push((variant.prepare)(&input));
        }
        for device in devices {
            let (status, reason) = applies.map_or_else(|why| ("illegal", Some(why.to_owned())), |()| ("ok", None));
            let trial = Trial {
                device: device.name(),
                variant: variant.name.into(),
                status: status.into(),
                reason,
                seconds: Vec::new(),
            };
            visits.push(Visit { device, variant: i, ready: at, trial });
        }
    }
    for visit in visits.iter_mut().filter(|v| v.trial.status == "ok") {
        let one = &mut ready[visit.ready];
        one.reset();
        if let Err(failure) = one.run(visit.device) {
            (visit.trial.status, visit.trial.reason) = ("failed".into(), Some(failure.to_string()));
            continue;
        }
        C::judge(&input, &expected, &one.output()).map_err(|what| WrongResult {
            computation: C::NAME,
            variant: variants[visit.variant].name,
            device: visit.device.name(),
            input: named.name.clone(),
            what,
        })?;
    }
    rounds(&mut visits, &mut ready, protocol);
    let (features, features_s) = features::<C>(&input);
    Ok(Measured {
        computation: C::NAME.into(),
        input: named.name.clone(),
        family: named.family.into(),
        features,
        features_s,
        trials: visits.into_iter().map(|v| v.trial).collect(),
        work,
    })
}

/// The metrics of Nitro's Table 3 that the numbers in [`Measured::work`] stand for, with the share of each that a metric has:
/// loads and stores are not told apart. The last number is part of the total only.
pub const METRICS: [(&str, usize, f64); 9] = [
    ("flop_count_sp", 0, 1.0),
    ("inst_fp_32", 0, 1.0),
    ("flop_count_dp", 1, 1.0),
    ("inst_fp_64", 1, 1.0),
    ("atomic_transactions", 2, 1.0),
    ("gld_transactions", 3, 0.5),
    ("gst_transactions", 3, 0.5),
    ("shared_load_transactions", 4, 0.5),
    ("shared_store_transactions", 4, 0.5),
];

fn kinds(w: Work) -> [f64; 6] {
    [w.sp_flops, w.dp_flops, w.atomics, w.streamed, w.cached, w.other]
}

/// Every other round goes backwards, so that no variant always follows the same one. What is clearly behind on its device is
/// visited in every seventh round only: how far behind makes no difference to a choice.
fn rounds<O>(visits: &mut [Visit<'_>], ready: &mut [Ready<'_, O>], protocol: &Protocol) {
    let start = Instant::now();
    for round in 0..protocol.rounds {
        if 3 * round >= protocol.rounds && start.elapsed() > protocol.most {
            break;
        }
        let so_far = times(&visits.iter().map(|v| &v.trial).collect::<Vec<_>>(), Rounds::All);
        let mut best: HashMap<String, f64> = HashMap::new();
        for (visit, time) in visits.iter().zip(&so_far) {
            let entry = best.entry(visit.trial.device.clone()).or_insert(f64::INFINITY);
            *entry = time.map_or(*entry, |s| s.min(*entry));
        }
        let count = visits.len();
        for i in 0..count {
            let at = if round % 2 == 0 { i } else { count - 1 - i };
            let visit = &mut visits[at];
            let behind = so_far[at].is_some_and(|s| s > protocol.close * best[&visit.trial.device]);
            if visit.trial.status != "ok" || (behind && round >= 3 && round % 7 != 0) {
                visit.trial.seconds.push(None);
                continue;
            }
            let (one, device) = (&mut ready[visit.ready], visit.device);
            visit.trial.seconds.push(device.enter(|| time(one, device, protocol)));
        }
    }
}

/// A run this long is not made a second time: where its data were before makes no difference.
const LONG: Duration = Duration::from_millis(1);

/// Runs shorter than this are timed several together: the clock itself takes some hundredths of a microsecond.
const SHORT: Duration = Duration::from_micros(5);

/// Seconds of a run, the lower quartile over batches of runs: what interrupts a batch does not count, nor what the clock makes of
/// one. A first run brings the data where a second call finds them.
fn time<O>(ready: &mut Ready<'_, O>, device: &Device, protocol: &Protocol) -> Option<f64> {
    let first = runs(ready, device, 1)?;
    if first >= LONG {
        return Some(first.as_secs_f64());
    }
    let batch = if ready.again() { SHORT.as_nanos() / first.as_nanos().max(1) + 1 } else { 1 };
    let batch = u32::try_from(batch).unwrap_or(1);
    let start = Instant::now();
    let mut all = Vec::new();
    while all.is_empty() || start.elapsed() < protocol.least {
        all.push(runs(ready, device, batch)?.as_secs_f64());
    }
    all.sort_by(f64::total_cmp);
    Some(all[all.len() / 4])
}

/// The mean of consecutive runs.
fn runs<O>(ready: &mut Ready<'_, O>, device: &Device, repeats: u32) -> Option<Duration> {
    ready.reset();
    // The other threads may have gone to sleep meanwhile.
    device.spmd(|_| ());
    let start = Instant::now();
    for _ in 0..repeats {
        ready.run(device).ok()?;
    }
    Some((start.elapsed() / repeats).max(Duration::from_nanos(1)))
}

fn features<C: Computation>(input: &C::Input) -> (Vec<(String, f64)>, Vec<f64>) {
    let one = |feature: InputFeature<C::Input>| {
        let mut least = f64::INFINITY;
        let mut value = f64::NAN;
        for _ in 0..3 {
            let start = Instant::now();
            value = std::hint::black_box((feature.of)(input));
            least = least.min(start.elapsed().as_secs_f64());
        }
        ((feature.name.to_owned(), value), least)
    };
    C::features().into_iter().map(one).unzip()
}
