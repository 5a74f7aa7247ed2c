//! One input: every variant on every device, verified first, then timed in interleaved rounds.

use super::Fault;
use super::log::{Measured, Trial};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_computations::described::Described;
use tilewright_computations::description::{Description, OperationMix};
use tilewright_computations::device::Device;
use tilewright_computations::kernel::VariantKernel;
use tilewright_computations::source::Source;
use tilewright_core::computation::Computation;
use tilewright_core::measurement::Timing;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Bound, Measure, MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::Point;
use tilewright_runtime::Live;
use tilewright_runtime::paired::{PairedSettings, compare};
use tilewright_runtime::verify::{Verifier, VerifyError, VerifySettings};
use tilewright_testkit::toy;

/// A device gets no more rounds once an input took this long.
const MOST: Duration = Duration::from_millis(60);
/// A visit repeats short runs until they took this long. Many short visits meet all the states of a host, long ones mix them.
const VISIT: Duration = Duration::from_micros(150);
/// How many times slower than the fastest variant another one is clearly behind.
const CLOSE: f64 = 1.3;

type Candidate<D> = (Bound<VariantKernel<D>>, Point, usize);

/// Measures all variants of an input on all devices, at their default points.
pub(crate) fn measure<D: Description>(
    of: &Arc<Described<D>>,
    kernels: &[Arc<VariantKernel<D>>],
    source: &Source,
    devices: &[Device],
    rounds: u32,
) -> Result<Measured, Fault> {
    let mut trials = Vec::new();
    for device in devices {
        trials.extend(on(device, kernels, source, rounds)?);
    }
    let mut values = Vec::new();
    of.features(source, &mut values);
    let names = of.feature_names().into_iter().map(|f| f.name);
    let applies = |k: &&Arc<VariantKernel<D>>| trials.iter().any(|t| t.variant == k.name() && t.status != "illegal");
    let work = kernels.iter().filter(applies).map(|k| Ok((k.name().to_owned(), kinds(k.operation_mix(source)?))));
    let work = work.collect::<Result<_, Fault>>()?;
    let fields = of.words(source);
    Ok(Measured {
        family: fields.get(D::FIELD).map_or(String::new(), ToString::to_string),
        input: fields.to_string(),
        features: names.zip(values.into_iter().map(f64::from)).collect(),
        features_s: of.features_seconds(source).unwrap_or(0.0),
        trials,
        work,
    })
}

fn kinds(w: OperationMix) -> [f64; 6] {
    [w.sp_flops, w.dp_flops, w.atomics, w.streamed, w.cached, w.other]
}

fn on<D: Description>(
    device: &Device,
    kernels: &[Arc<VariantKernel<D>>],
    source: &Source,
    rounds: u32,
) -> Result<Vec<Trial>, Fault> {
    let spec = Arc::new(device.spec(&toy::device()));
    let mut host = toy::host_device_with(spec.clone());
    let mut verifier = Verifier::new(VerifySettings::default());
    let (mut trials, mut candidates): (Vec<Trial>, Vec<Candidate<D>>) = (Vec::new(), Vec::new());
    for kernel in kernels {
        let problem = Bound::new(kernel.clone(), spec.clone(), source.clone())?;
        let mut trial = Trial {
            device: device.name(),
            variant: kernel.name().into(),
            status: "ok".into(),
            reason: None,
            seconds: Vec::new(),
        };
        match problem.default_point() {
            None => (trial.status, trial.reason) = ("illegal".into(), Some("a rule does not hold".into())),
            Some(point) => match verifier.check(&mut host, &problem, &point) {
                Ok(found) if found.is_right() => candidates.push((problem, point, trials.len())),
                Ok(found) => return Err(found.complaint().unwrap_or_default().into()),
                Err(VerifyError::Device(DeviceError::NoResult(why))) => {
                    (trial.status, trial.reason) = ("failed".into(), Some(why));
                }
                Err(error) => return Err(error.into()),
            },
        }
        trials.push(trial);
    }
    let mut clocked = Live::new(host);
    let timing =
        Timing { min_repeats: 3, max_repeats: 1000, relative_error: 0.0, max_time: VISIT, ..Timing::default() };
    let mut one = |i: usize| match clocked.measure(&candidates[i].0, &candidates[i].1, &timing) {
        Ok(measurement) => Ok(Ok(measurement)),
        Err(MeasureError::Failed(failure)) => Ok(Err(failure)),
        Err(MeasureError::Device(error)) => Err(error),
    };
    let settings = PairedSettings { rounds, drop_beyond: CLOSE - 1.0, max_time: MOST, ..PairedSettings::default() };
    for found in compare(candidates.len(), &Objective::default(), &settings, &Instant::now(), &mut one)? {
        trials[candidates[found.index].2].seconds = found.costs;
    }
    Ok(trials)
}
