//! Ctrl-C and SIGTERM: the first asks long work to end in order, the second ends the process.

use crate::output::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody asked for the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. Where the system lets nobody listen, signals end the process as ever.
    pub(crate) fn listen() -> Self {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The order matters: the second signal finds the flag set, the first sets it.
            let twice = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, asked.clone());
            if let Err(error) = twice.and_then(|_| signal_hook::flag::register(signal, asked.clone())) {
                note(format_args!("signal {signal} ends the process at once: {error}"));
            }
        }
        Self(asked)
    }

    /// Whether somebody asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
