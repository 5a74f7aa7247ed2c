//! Ctrl-C and SIGTERM. A command that can end in order listens: the first signal asks it to, the second ends the process. Every other
//! command ends at once, with a word on what is kept.

use crate::args::{Command, DataCommand, ModelCommand, RepositoryCommand};
use crate::failure::{Failure, Kind};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// How many listen.
static LISTENING: AtomicUsize = AtomicUsize::new(0);

/// The first signal that came while somebody listened; 0 for none.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// Somebody who ends in order when asked to.
#[derive(Debug)]
pub(crate) struct Interrupt(());

impl Interrupt {
    /// Listens until it is dropped.
    pub(crate) fn listen() -> Self {
        LISTENING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Whether somebody asked for the end.
    pub(crate) fn is_asked(&self) -> bool {
        was_asked()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether somebody asked for the end while somebody listened.
pub(crate) fn was_asked() -> bool {
    ASKED.load(Ordering::SeqCst) != 0
}

/// The end of a command that was asked to end and has no answer.
pub(crate) fn ended(kept: &str) -> Failure {
    of_signal(ASKED.load(Ordering::SeqCst), kept)
}

fn of_signal(signal: i32, kept: &str) -> Failure {
    let name = if signal == SIGINT { "SIGINT" } else { "SIGTERM" };
    Failure::new(Kind::Interrupted(signal), "", format!("interrupted by {name}: {kept}"))
}

/// Their numbers are these wherever there are signals.
const SIGINT: i32 = 2;
#[cfg(unix)]
const SIGTERM: i32 = 15;

/// Watches for signals from now on. `end` says how a command ended that could not end in order.
#[cfg(unix)]
pub(crate) fn watch(command: &Command, end: impl Fn(&Failure) + Send + 'static) {
    let kept = kept(command);
    let mut signals = match signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => return crate::output::note(format_args!("signals end the process without a word: {error}")),
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let first = ASKED.load(Ordering::SeqCst) == 0;
            if first && LISTENING.load(Ordering::SeqCst) > 0 {
                ASKED.store(signal, Ordering::SeqCst);
                continue;
            }
            let failure = of_signal(signal, kept.unwrap_or_default());
            if kept.is_some() {
                end(&failure);
            }
            std::process::exit(failure.kind.exit_code().into());
        }
    });
}

/// Elsewhere signals end the process as ever.
#[cfg(not(unix))]
pub(crate) fn watch(command: &Command, _: impl Fn(&Failure) + Send + 'static) {
    let _ = kept(command);
}

/// What is said of a campaign, which its logs take up again unless they are forgotten.
pub(crate) fn goes_on(fresh: bool) -> &'static str {
    match fresh {
        true => "what was measured is kept, and the same command without --fresh goes on where this one stopped",
        false => "what was measured is kept, and the same command goes on where this one stopped",
    }
}

/// What is left of a command that is interrupted, and how to go on; none for the process of a device, which tells nobody.
fn kept(command: &Command) -> Option<&'static str> {
    const ANEW: &str = "nothing was stored; run again, it begins anew";
    Some(match command {
        Command::Tune(args) => goes_on(args.fresh),
        Command::Campaign(_) => goes_on(false),
        Command::Plan(_) => {
            "the kernels that were decided until then are remembered; the same command begins the others anew"
        }
        Command::Run(_) => "plans that were made are remembered; run again, checking and timing begin anew",
        Command::Bench(_) => "profiles and plans that were made are stored; run again, the table begins anew",
        Command::Model(ModelCommand::Fit { .. }) => {
            "neither measurements nor a model were stored; run again, it begins anew"
        }
        Command::Repository(RepositoryCommand::Import { .. }) => {
            "what was recorded until then stays, and is there twice if it is imported again"
        }
        Command::Repository(RepositoryCommand::Export { .. })
        | Command::Data(DataCommand::Import { .. } | DataCommand::Export(_)) => {
            "no file is half written; run again, it begins anew"
        }
        Command::Worker(_) => return None,
        _ => ANEW,
    })
}
