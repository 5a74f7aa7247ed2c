//! What other processes do on this machine while something is timed.
//!
//! A time that is taken while somebody else needs the same cores is too long, and nothing in it says so. The system counts what all
//! cores did, what a hypervisor took away, and what this process did: the difference is the others'. A core that is throttled makes
//! times too long without any other process; how fast it runs is measured at every look.

mod clock;

use std::time::{Duration, Instant};
use tilewright_core::device::{DeviceKind, DeviceSpec};

/// Shorter windows than this are too coarse: the system counts in hundredths of a second.
const SHORTEST: Duration = Duration::from_millis(500);

/// Cores' worth of others' work that does not disturb: what any system does beside.
const USUAL: f64 = 0.15;

/// A core this far below the fastest that was seen is throttled: turbo steps are smaller.
const THROTTLED: f64 = 0.85;

/// Looks at the machine now and then.
#[derive(Debug)]
pub struct Bystanders {
    /// Cores of the machine.
    cores: f64,
    /// Cores that are timed on.
    used: f64,
    last: Option<(Counted, Instant)>,
    /// The fastest core that was seen, in steps a second.
    fastest: f64,
    seen: Disturbance,
}

/// Ticks of the system's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    /// Of all cores that were busy, whoever they worked for; those that a hypervisor took away among them.
    busy: u64,
    /// Of this process.
    own: u64,
}

/// How much of the time others disturbed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Disturbance {
    /// Seconds that were looked at.
    pub seconds: f64,
    /// Seconds in which others worked on cores that were timed on.
    pub disturbed_s: f64,
    /// Cores that others kept busy, the most of any window.
    pub most_cores: f64,
    /// Seconds in which the core was throttled.
    pub throttled_s: f64,
    /// The slowest that the core was found, as a share of its fastest.
    pub slowest_clock: f64,
}

impl Default for Disturbance {
    fn default() -> Self {
        Self { seconds: 0.0, disturbed_s: 0.0, most_cores: 0.0, throttled_s: 0.0, slowest_clock: 1.0 }
    }
}

impl Disturbance {
    /// Whether times are to be doubted: a tenth of them may be wrong.
    pub fn is_serious(&self) -> bool {
        self.is_much(self.disturbed_s) || self.is_much(self.throttled_s)
    }

    fn is_much(&self, seconds: f64) -> bool {
        seconds > 0.1 * self.seconds
    }

    /// The same as a sentence for people.
    pub fn sentence(&self) -> String {
        let percent = |seconds: f64| 100.0 * seconds / self.seconds.max(f64::MIN_POSITIVE);
        let mut what = Vec::new();
        if self.is_much(self.disturbed_s) {
            let share = percent(self.disturbed_s);
            what.push(format!(
                "other work kept up to {:.1} cores busy during {share:.0}% of the measuring",
                self.most_cores
            ));
        }
        if self.is_much(self.throttled_s) {
            let (share, clock) = (percent(self.throttled_s), 100.0 * self.slowest_clock);
            what.push(format!("the clock was down to {clock:.0}% of its highest during {share:.0}% of the measuring"));
        }
        format!("{}: times are too long, and choices may be wrong", what.join(", and "))
    }
}

impl Bystanders {
    /// Looks on while `used` cores are timed on.
    pub fn new(used: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cores: cores as f64,
            used: used.min(cores) as f64,
            last: None,
            fastest: 0.0,
            seen: Disturbance::default(),
        }
    }

    /// Looks on while a device of this host is timed; on another device nobody of this host's disturbs.
    pub fn of(device: &DeviceSpec) -> Self {
        let threads = device.fact("threads").filter(|_| device.kind == DeviceKind::Cpu);
        Self::new(threads.and_then(|t| usize::try_from(t).ok()).unwrap_or(0))
    }

    /// Looks, where the last look is long enough ago: whether others disturbed since. None where it is too early to say, or the
    /// system does not tell.
    pub fn look(&mut self) -> Option<bool> {
        let now = Instant::now();
        if self.last.is_some_and(|(_, at)| now - at < SHORTEST) {
            return None;
        }
        let counted = count()?;
        // Only where this host is what is timed.
        let speed = if self.used > 0.0 { clock::speed() } else { 0.0 };
        self.fastest = self.fastest.max(speed);
        let (before, at) = self.last.replace((counted, now))?;
        let seconds = (now - at).as_secs_f64();
        self.throttle(speed, seconds);
        Some(self.add(before, counted, seconds))
    }

    fn throttle(&mut self, speed: f64, seconds: f64) {
        if self.fastest > 0.0 {
            let share = speed / self.fastest;
            self.seen.slowest_clock = self.seen.slowest_clock.min(share);
            self.seen.throttled_s += if share < THROTTLED { seconds } else { 0.0 };
        }
    }

    fn add(&mut self, before: Counted, after: Counted, seconds: f64) -> bool {
        let ticks = after.busy.saturating_sub(before.busy).saturating_sub(after.own.saturating_sub(before.own));
        let others = ticks as f64 / TICKS_PER_SECOND / seconds;
        // Where cores are left over, others may have them.
        let disturbed = others > self.cores - self.used + USUAL;
        self.seen.seconds += seconds;
        if disturbed {
            self.seen.disturbed_s += seconds;
            self.seen.most_cores = self.seen.most_cores.max(others);
        }
        disturbed
    }

    /// What was seen so far.
    pub fn seen(&self) -> Disturbance {
        self.seen
    }
}

/// What Linux promises to user space, whatever the kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// None where the system does not tell.
fn count() -> Option<Counted> {
    let all = std::fs::read_to_string("/proc/stat").ok()?;
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    Some(Counted { busy: busy(&all)?, own: own_ticks(&own)? })
}

/// The first line: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen.
fn busy(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu")?;
    let ticks: Vec<u64> = fields.split_whitespace().map_while(|f| f.parse().ok()).collect();
    let of = |i: usize| ticks.get(i).copied().unwrap_or(0);
    (ticks.len() >= 4).then(|| of(0) + of(1) + of(2) + of(5) + of(6) + of(7))
}

/// User and system time of the process and of its children, behind a name that may hold anything.
fn own_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = fields.split_whitespace().skip(11).take(4).map_while(|f| f.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_from_the_systems_lines() {
        assert_eq!(busy("cpu  100 2 30 4000 500 6 7 8 0 0\ncpu0 1 1 1 1\n"), Some(153));
        assert_eq!(busy("intr 5"), None);
        let own = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 11 22 33 44 20 0 3 0 5 6 7";
        assert_eq!(own_ticks(own), Some(110));
        assert_eq!(own_ticks("7"), None);
    }

    #[test]
    fn others_disturb_where_no_core_is_left_for_them() {
        let counted = |busy, own| Counted { busy, own };
        let watch = |used| Bystanders { cores: 2.0, used, last: None, fastest: 4e8, seen: Disturbance::default() };
        // Two seconds in which others kept one core busy.
        let mut both = watch(2.0);
        assert!(both.add(counted(0, 0), counted(400, 200), 2.0));
        assert!(both.seen().is_serious() && both.seen().sentence().contains("1.0 cores"), "{:?}", both.seen());
        assert!(!watch(1.0).add(counted(0, 0), counted(400, 200), 2.0), "the other core was free");
        assert!(!watch(2.0).add(counted(0, 0), counted(410, 390), 2.0), "what any system does");
        let mut slow = watch(2.0);
        assert!(!slow.add(counted(0, 0), counted(400, 400), 2.0) && !slow.seen().is_serious());
        slow.throttle(3.9e8, 2.0);
        assert!(!slow.seen().is_serious(), "turbo goes up and down");
        slow.throttle(2.4e8, 1.0);
        let sentence = slow.seen().sentence();
        assert!(slow.seen().is_serious() && sentence.contains("60% of its highest during 50%"), "{sentence}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_system_tells() {
        let before = count().unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(120) {
            std::hint::spin_loop();
        }
        let after = count().unwrap();
        assert!(after.own >= before.own + 5 && after.busy >= before.busy, "{before:?} {after:?}");
    }
}
