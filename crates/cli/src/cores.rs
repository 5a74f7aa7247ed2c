//! Libraries at their best: before a command compares with them, the fastest file and core of each is found and its variable set.

use crate::args::{Cli, Command};
use crate::failure::{Failure, Kind};
use crate::output::note;
use crate::wiring::home;
use std::io::{stdin, stdout};
use tilewright_baselines::cores::{self, CORES_VARIABLE, ProbeCommand};

/// The hidden command that opens one library.
pub(crate) const PROBE: &str = "baseline-probe";

/// Chooses, where the command calls libraries of the host. Before other threads run: variables are set.
pub(crate) fn choose(cli: &Cli) {
    if !calls_libraries(&cli.command) {
        return;
    }
    // Without our own program there are no probes, and libraries are left as they are.
    let Ok(program) = std::env::current_exe() else { return };
    let kept = home().ok().map(|home| home.path().join("cores.json"));
    let command = ProbeCommand::new(program, vec![PROBE.to_owned()]);
    let chosen = cores::choose(&command, kept.as_deref(), |library| {
        note(format_args!(
            "trying the cores of {library}, once for this machine ({CORES_VARIABLE}=as-found leaves it as it is)"
        ));
    });
    let Some(chosen) = chosen else { return };
    chosen.notes.iter().for_each(|said| note(format_args!("warning: {said}")));
    if cli.verbose > 0 {
        chosen.tried.iter().flat_map(|tried| tried.lines()).for_each(|line| note(format_args!("tried {line}")));
    }
}

/// Whether a command may call libraries of the host. Those of CUDA devices have no cores to choose among.
fn calls_libraries(command: &Command) -> bool {
    let (device, is_asked) = match command {
        Command::Run(args) => (&args.device.device, args.baselines != "none" || is_library(&args.kernel)),
        Command::Bench(args) => (&args.device.device, args.baselines != "none" || is_library(&args.kernel)),
        Command::Tune(args) => {
            let compares = args.with_libraries || !args.no_table;
            (&args.device.device, compares || is_library(&args.kernel))
        }
        Command::Plan(args) => (&args.device.device, args.with_libraries || is_library(&args.kernel)),
        Command::Doctor(_) => return true,
        Command::Campaign(args) => return args.device == "cpu",
        _ => return false,
    };
    is_asked && device.as_ref().is_none_or(|device| device == "cpu")
}

/// Whether a kernel is named that may be a library's: `gemm.mkl`, and neither `gemm` nor `gemm.cpu-small`.
fn is_library(kernel: &str) -> bool {
    kernel.split_once('.').is_some_and(|(_, name)| name != "json" && !name.starts_with("cpu"))
}

/// The probe's process.
pub(crate) fn probe() -> Result<(), Failure> {
    cores::answer(stdin().lock(), stdout().lock()).map_err(|e| Failure::new(Kind::Usage, "request", e))
}
