//! Progress on standard error: a bar on a terminal, a line now and then elsewhere.

use crate::output::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Where no terminal shows a bar, a line this often.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// How often a bar of work without a known end moves.
const TICK: Duration = Duration::from_millis(120);

/// Progress of one long piece of work.
pub(crate) struct Bar {
    bar: ProgressBar,
    what: &'static str,
    plain: Option<Mutex<Instant>>,
}

impl Bar {
    /// Progress towards a known count.
    pub(crate) fn counting(what: &'static str, total: u64) -> Self {
        Self::new(what, total, "{prefix:>9} [{bar:32}] {pos}/{len}  {per_sec}  {eta} left  {msg}")
    }

    /// Progress of a budget of time, counted in milliseconds.
    pub(crate) fn timing(what: &'static str, budget: Duration) -> Self {
        let total = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        Self::new(what, total, "{prefix:>9} [{bar:32}] {percent:>3}%  {eta} left  {msg}")
    }

    /// Work without a known end: what is being done, in words.
    pub(crate) fn working(what: &'static str, doing: String) -> Self {
        let bar = Self::new(what, 0, "{prefix:>9} {spinner} {msg}, {elapsed}");
        if bar.plain.is_some() {
            note(format_args!("{what}: {doing}"));
        }
        bar.bar.set_message(doing);
        bar.bar.enable_steady_tick(TICK);
        bar
    }

    fn new(what: &'static str, total: u64, template: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_prefix(what);
        // The templates are constants of this file; the default style is a fine fallback for a mistyped one.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, what, plain: (!terminal).then(|| Mutex::new(Instant::now())) }
    }

    /// How far it is.
    pub(crate) fn set(&self, position: u64) {
        self.bar.set_position(position);
        let Some(Ok(mut last)) = self.plain.as_ref().map(Mutex::lock) else { return };
        if last.elapsed() >= PLAIN_EVERY {
            *last = Instant::now();
            let total = self.bar.length().unwrap_or(position).max(1);
            let left = self.bar.eta().as_secs();
            note(format_args!("{}: {}%, {left} s left  {}", self.what, 100 * position / total, self.bar.message()));
        }
    }

    /// How far a budget of time is spent.
    pub(crate) fn set_time(&self, elapsed: Duration) {
        self.set(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    }

    /// A short note beside the bar.
    pub(crate) fn note(&self, text: String) {
        self.bar.set_message(text);
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
