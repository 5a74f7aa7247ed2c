//! `tilewright campaign`: everything worth measuring on a device; and the hidden `tilewright worker`, the process in which a
//! device of it lives.

use crate::args::{CampaignArgs, WorkerArgs};
use crate::device::{DeviceName, isolated, local, parse};
use crate::failure::{Failure, Kind};
use crate::interrupt::{Interrupt, goes_on};
use crate::output::{Output, aligned, note};
use crate::wiring::Wiring;
use std::sync::Mutex;
use std::time::Duration;
use tilewright::known::record;
use tilewright_bench_suite::campaign::{Campaign, CampaignError, EMULATED_COST, Scale, Settings, Summary, stage_names};
use tilewright_core::device::Device;
use tilewright_core::id::ComputationId;
use tilewright_core::objective::{Direction, Objective};
use tilewright_core::text::counted;
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::trainer::MlpTrainer;
use tilewright_runtime::worker::serve;

pub(crate) fn run(args: &CampaignArgs, wiring: &Wiring, seed: u64, output: Output) -> Result<(), Failure> {
    let names = names(args)?;
    let (scale, objective) = match names[0] {
        DeviceName::Cpu => (Scale::host(), Objective::default()),
        DeviceName::Cuda(_) | DeviceName::Replay(_) => (Scale::full(), Objective::default()),
        DeviceName::Emulator(..) => {
            (Scale::rehearsal(), Objective { metric: EMULATED_COST.into(), direction: Direction::Minimize })
        }
    };
    let scale = if args.rehearsal { Scale::rehearsal() } else { scale };
    let devices = names.iter().map(isolated).collect::<Result<Vec<_>, _>>()?;
    one_model(&devices)?;
    let spec = devices[0].spec().clone();
    let kernels = wiring.kernels.competing(&args.kernel, &spec, false)?;
    expect_stages(&args.stages, &kernels[0].computation())?;
    let interrupt = Interrupt::listen();
    let campaign = Campaign {
        devices: devices.into_iter().map(Mutex::new).collect(),
        kernels: kernels.iter().map(|kernel| &**kernel).collect(),
        trainer: &MlpTrainer,
        objective,
        settings: Settings {
            budget: Duration::from_secs_f64(args.minutes * 60.0),
            out: args.out.clone(),
            seed,
            scale,
            stages: args.stages.clone(),
        },
        note: &|text| note(text),
        stop: &|| interrupt.is_asked(),
    };
    let summary = campaign.run().map_err(failed)?;
    if interrupt.is_asked() {
        note(format_args!("interrupted: {}", goes_on(false)));
    }
    // A rehearsal tries the campaign on tiny inputs: other devices have nothing to learn from it.
    if campaign.objective == Objective::default() && !args.rehearsal {
        for (kernel, paths) in campaign.kernels.iter().zip(campaign.paths()) {
            let Ok((_, samples)) = CampaignLog::read(&paths.log) else { continue };
            wiring.record(|home| record(home, &spec, &[(*kernel, &samples)], &campaign.objective));
        }
    }
    output.answer(&summary, || text(&summary))?;
    match (summary.wrong_results, &summary.unsound[..]) {
        (0, []) => Ok(()),
        (0, unsound) => {
            let message = format!("most cases of some kernels failed: {}; see campaign.json", unsound.join("; "));
            Err(Failure { detail: Some("unsound"), ..Failure::new(Kind::Device, "device", message) })
        }
        (wrong, _) => {
            Err(Failure::new(Kind::Wrong, "device", format!("{}; see campaign.json", counted(wrong, "wrong result"))))
        }
    }
}

/// The devices that were named, and whether the time is one.
fn names(args: &CampaignArgs) -> Result<Vec<DeviceName>, Failure> {
    let names = args.device.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
    let real = |name: &DeviceName| !matches!(name, DeviceName::Emulator(..));
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| real(name) && names[..*at].contains(name)) {
        return Err(Failure::new(Kind::Usage, "device", format!("{} stands there twice", twice.1)));
    }
    if !(args.minutes > 0.0 && args.minutes <= 1e6) {
        return Err(Failure::new(
            Kind::Usage,
            "minutes",
            format!("minutes is {}: it must be above 0, and at most 1000000", args.minutes),
        ));
    }
    Ok(names)
}

/// Samples of different models must not be mixed.
fn one_model(devices: &[Box<dyn Device>]) -> Result<(), Failure> {
    let first = devices[0].spec();
    match devices.iter().map(|d| d.spec()).find(|s| s.fingerprint() != first.fingerprint()) {
        Some(other) => {
            let message = format!("{} is a {}, {} is another model", other.id, other.name, first.id);
            Err(Failure::new(Kind::Usage, "device", message))
        }
        None => Ok(()),
    }
}

/// Refuses stages that campaigns of other computations have.
fn expect_stages(wanted: &[String], computation: &ComputationId) -> Result<(), Failure> {
    let known = stage_names(computation);
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let message = format!("a campaign of {computation} has no stage {name}: it has {}", known.join(", "));
            Err(Failure::new(Kind::Usage, "stages", message))
        }
        None => Ok(()),
    }
}

fn failed(error: CampaignError) -> Failure {
    match error {
        CampaignError::Runtime(error) => error.into(),
        CampaignError::Device(error) => error.into(),
        CampaignError::Store(error) => tilewright_runtime::RuntimeError::from(error).into(),
        error @ CampaignError::Unsound { .. } => {
            Failure { detail: Some("unsound"), ..Failure::new(Kind::Device, "device", error) }
        }
        error @ CampaignError::NothingRight { .. } => Failure::new(Kind::Wrong, "device", error),
        error @ CampaignError::OtherKind { .. } => {
            Failure { detail: Some("other-campaign"), ..Failure::new(Kind::Usage, "out", error) }
        }
        error @ CampaignError::OtherDevice { .. } => {
            Failure { detail: Some("other-device"), ..Failure::new(Kind::Store, "out", error) }
        }
        error @ (CampaignError::Other { .. } | CampaignError::Damaged { .. }) => {
            Failure::new(Kind::Store, "out", error)
        }
    }
}

fn text(summary: &Summary) -> String {
    let mut table = vec![["stage", "done", "seconds", "what it came to"].map(String::from).to_vec()];
    for s in &summary.stages {
        let done = if s.done { "yes" } else { "no" }.to_owned();
        table.push(vec![s.name.clone(), done, format!("{:.1}", s.seconds), s.note.clone()]);
    }
    let unfinished = summary.stages.iter().filter(|s| !s.done).count();
    let more = if unfinished > 0 { "unfinished stages go on with the next run on this folder\n" } else { "" };
    format!(
        "{}\n{} verified, {}, {}; measured: {}\n{more}{}\n",
        aligned(&table),
        counted(summary.verified, "case"),
        counted(summary.wrong_results, "wrong result"),
        counted(summary.samples, "sample"),
        summary.metric,
        summary.records.join("\n")
    )
}

/// A process whose parent died has another. A kernel may hang, so nothing is waited for.
#[cfg(unix)]
fn end_with_parent() {
    use std::os::unix::process::parent_id;
    let parent = parent_id();
    while parent_id() == parent {
        std::thread::sleep(Duration::from_millis(500));
    }
    std::process::abort();
}

/// Serves a device to the process that started this one, and ends with it.
pub(crate) fn worker(args: &WorkerArgs) -> Result<(), Failure> {
    let name = parse(&args.device)?;
    // Ctrl-C reaches all processes of a terminal: the one that started this decides when it ends, and this one ends with it.
    let _listening = Interrupt::listen();
    #[cfg(unix)]
    std::thread::spawn(end_with_parent);
    let served = serve(std::io::stdin(), &mut std::io::stdout(), || local(&name));
    if let Err(error) = served {
        note(error);
    }
    // Without giving the device back, as libraries would at an orderly exit: a kernel may still hang on it, and would be waited for.
    std::process::abort()
}
