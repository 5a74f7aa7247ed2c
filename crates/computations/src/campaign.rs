//! Measuring every variant on every input on every device, resumably.

mod log;

pub use log::{Log, LogError};

use crate::computation::{Computation, InputFeature, Named, Ready, Variant, Work};
use crate::device::Device;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How an input is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Each variant is visited this often on each device, all of them in turn.
    pub rounds: usize,
    /// After a third of the rounds an input gets no more once it took this long.
    pub most: Duration,
    /// A visit repeats short runs until they take this long together.
    pub least: Duration,
    /// How many times slower than the fastest variant of its device another one is clearly behind.
    pub close: f64,
}

impl Default for Protocol {
    fn default() -> Self {
        Self { rounds: 12, most: Duration::from_millis(350), least: Duration::from_micros(700), close: 1.3 }
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
    /// Seconds a run, one number a visit.
    pub seconds: Vec<f64>,
}

impl Trial {
    /// The fastest visit.
    pub fn fastest(&self) -> Option<f64> {
        self.seconds.iter().copied().min_by(f64::total_cmp)
    }

    /// The middle visit.
    pub fn median(&self) -> Option<f64> {
        middle(self.seconds.clone())
    }
}

fn middle(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
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
        let mut best: HashMap<String, f64> = HashMap::new();
        for visit in visits.iter() {
            let entry = best.entry(visit.trial.device.clone()).or_insert(f64::INFINITY);
            *entry = visit.trial.fastest().map_or(*entry, |s| s.min(*entry));
        }
        let count = visits.len();
        for i in 0..count {
            let visit = &mut visits[if round % 2 == 0 { i } else { count - 1 - i }];
            let behind = visit.trial.fastest().is_some_and(|s| s > protocol.close * best[&visit.trial.device]);
            if visit.trial.status != "ok" || (behind && round >= 3 && round % 7 != 0) {
                continue;
            }
            let (one, device) = (&mut ready[visit.ready], visit.device);
            visit.trial.seconds.extend(device.enter(|| time(one, device, protocol)));
        }
    }
}

/// A run this long is not made a second time: where its data were before makes no difference.
const LONG: Duration = Duration::from_millis(1);

/// Most runs of a visit with a reset before each.
const MOST_RESETS: u128 = 8;

/// Seconds of one run after a first one, so that its data are where a second call finds them: the mean of consecutive runs, or
/// the middle one of runs with resets between.
fn time<O>(ready: &mut Ready<'_, O>, device: &Device, protocol: &Protocol) -> Option<f64> {
    let first = runs(ready, device, 1)?;
    if first >= LONG {
        return Some(first.as_secs_f64());
    }
    let repeats = protocol.least.as_nanos() / first.as_nanos().max(1) + 1;
    if ready.again() {
        return Some(runs(ready, device, u32::try_from(repeats).unwrap_or(1))?.as_secs_f64());
    }
    let all = (0..repeats.clamp(1, MOST_RESETS)).map(|_| runs(ready, device, 1)).collect::<Option<Vec<Duration>>>()?;
    middle(all.into_iter().map(|d| d.as_secs_f64()).collect())
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
