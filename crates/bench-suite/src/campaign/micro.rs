//! Rates of the device by micro kernels.

use super::stages::Progress;
use super::state::{MicroResult, State};
use super::{Campaign, CampaignError, Deadline};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::measurement::Timing;
use tilewright_core::objective::Objective;
use tilewright_core::problem::MeasureError;
use tilewright_core::program::DeviceError;
use tilewright_core::text::counted;
use tilewright_ptxgen::ir::Type;
use tilewright_ptxgen::micro::{self, Micro, Traffic};
use tilewright_ptxgen::target::Target;

/// Blocks for each multiprocessor.
const BLOCKS_PER_SM: u32 = 8;

/// Times a cached buffer is passed over.
const PASSES: u64 = 16;

/// Facts and peak rates.
pub(super) fn doctor(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let Some((target, blocks)) = gpu(campaign)? else {
        return Ok(Progress { done: true, note: "no GPU: no micro kernels".into() });
    };
    let bytes = buffer_bytes(campaign);
    let iterations = (bytes >> 17).clamp(4, 8192) as u32;
    let half_cache = campaign.spec().fact("l2_bytes").map_or(bytes / 8, |b| b.unsigned_abs() / 2).min(bytes);
    let mut micros = vec![
        micro::empty(target),
        micro::fma(target, Type::F32, blocks, iterations),
        micro::fma(target, Type::F64, blocks, iterations),
        micro::shared(target, blocks, iterations),
    ];
    for traffic in [Traffic::Read, Traffic::Write, Traffic::Copy] {
        micros.push(micro::memory(target, traffic, blocks, bytes / 2, 1));
    }
    let mut cached = micro::memory(target, Traffic::Read, blocks, half_cache / 2, PASSES as u32);
    cached.name = "l2_read".into();
    micros.push(cached);
    let of = micros.len() as u64;
    let names =
        ["launch", "fma_f32", "fma_f64", "shared_read", "memory_read", "memory_write", "memory_copy", "l2_read"];
    let (done, failures) = measure(campaign, state, &micros, deadline)?;
    for (name, key) in
        [("fma_f32", "peak_flops_f32"), ("fma_f64", "peak_flops_f64"), ("memory_copy", "memory_bytes_per_s")]
    {
        if let Some(found) = state.micro.iter().find(|m| m.name == name && m.unit.ends_with("/s")) {
            state.device.measured.insert(key.into(), found.value);
        }
    }
    if let Some(first) = failures.first().cloned() {
        return Err(CampaignError::Unsound {
            stage: "doctor",
            failed: failures.len() as u64,
            of,
            what: "kernel",
            first,
        });
    }
    let found = names.iter().filter_map(|n| state.micro.iter().find(|m| m.name == *n));
    let found: Vec<String> = found.map(|m| format!("{} {:.3e} {}", m.name, m.value, m.unit)).collect();
    Ok(Progress { done, note: found.join("; ") })
}

/// Bandwidth by the size of what is read.
pub(super) fn run(
    campaign: &Campaign<'_>,
    state: &mut State,
    deadline: Deadline<'_>,
) -> Result<Progress, CampaignError> {
    let Some((target, blocks)) = gpu(campaign)? else {
        return Ok(Progress { done: true, note: "no GPU: no micro kernels".into() });
    };
    let most = buffer_bytes(campaign) / 2;
    let sizes = std::iter::successors(Some(most), |b| Some(b / 2)).take_while(|b| *b >= 1 << 16).collect::<Vec<_>>();
    let micros = sizes.iter().rev().map(|&bytes| {
        // As much work for each size.
        let passes = (most / bytes).clamp(1, 256) as u32;
        let few = u32::try_from(bytes >> 14).unwrap_or(u32::MAX).clamp(1, blocks);
        let mut micro = micro::memory(target, Traffic::Read, few, bytes, passes);
        micro.name = format!("read_{bytes}_bytes");
        micro
    });
    let (done, failures) = measure(campaign, state, &micros.collect::<Vec<_>>(), deadline)?;
    let note = format!("{} {}", counted(sizes.len(), "size"), failures.join("; "));
    Ok(Progress { done, note: note.trim().to_owned() })
}

/// Bytes of a buffer: as many as the scale has, and no more than a quarter of the memory.
fn buffer_bytes(campaign: &Campaign<'_>) -> u64 {
    let memory = campaign.spec().fact("memory_bytes").map_or(u64::MAX, i64::unsigned_abs);
    campaign.settings.scale.micro_bytes.min(memory / 4).max(1 << 17)
}

/// The target and how many blocks fill the device; none where PTX does not run.
///
/// # Errors
/// A CUDA device of a compute capability that no code can be made for.
pub(super) fn gpu(campaign: &Campaign<'_>) -> Result<Option<(Target, u32)>, CampaignError> {
    let spec = campaign.spec();
    let Some(target) = spec.fact("sm").and_then(Target::of_sm) else {
        return match spec.kind {
            DeviceKind::Cuda => Err(unknown_target(&spec).into()),
            _ => Ok(None),
        };
    };
    let multiprocessors = spec.fact("multiprocessors").and_then(|m| u32::try_from(m).ok()).unwrap_or(1);
    let blocks = multiprocessors * BLOCKS_PER_SM;
    // An emulator has no multiprocessors to fill.
    Ok(Some((target, if spec.kind == DeviceKind::Cuda { blocks } else { 4 })))
}

fn unknown_target(spec: &DeviceSpec) -> DeviceError {
    let found = spec.fact("sm").map_or_else(|| "an unknown target".to_owned(), |sm| format!("sm_{sm}"));
    let known = Target::all().map(|target| target.to_string()).collect::<Vec<_>>().join(", ");
    let feature = format!("a target that code is made for: it is {found}, known are {known}");
    DeviceError::Unsupported { device: spec.id.clone(), feature }
}

/// Whether all are measured, and what failed.
fn measure(
    campaign: &Campaign<'_>,
    state: &mut State,
    micros: &[Micro],
    deadline: Deadline<'_>,
) -> Result<(bool, Vec<String>), CampaignError> {
    let mut failures = Vec::new();
    let usual = Timing { min_repeats: 5, max_repeats: 20, ..Timing::default() };
    let policy = campaign.settings.scale.timing(usual);
    for micro in micros {
        if state.micro.iter().any(|m| m.name == micro.name) {
            continue;
        }
        if deadline.over() {
            return Ok((false, failures));
        }
        let mut device = campaign.device();
        let specs = micro.buffers.clone();
        let data = Data::Noise { specs, scalars: Vec::new(), seed: campaign.settings.seed };
        let timed = device.upload(&data).map_err(Into::into).and_then(|()| device.time(&micro.program, &policy));
        match timed {
            Ok(measurement) => {
                let Some(cost) = campaign.objective.cost(&measurement) else { continue };
                state.micro.push(result(micro, cost, campaign.objective == Objective::default()));
            }
            Err(MeasureError::Failed(failure)) => failures.push(format!("{}: {failure}", micro.name)),
            Err(MeasureError::Device(error)) => return Err(error.into()),
        }
        state.write()?;
    }
    Ok((true, failures))
}

fn result(micro: &Micro, cost: f64, timed: bool) -> MicroResult {
    let unit = if timed { "s" } else { "emulated cost" };
    let name = micro.name.clone();
    match micro.unit {
        "launch" => MicroResult { name, unit: unit.into(), value: cost },
        of => MicroResult { name, unit: format!("{of}/{unit}"), value: micro.amount / cost },
    }
}
