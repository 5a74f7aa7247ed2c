//! What was measured so far, one line of JSON an input. Stays here until the campaign engine of the bench suite serves several local
//! devices.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tilewright_runtime::paired::polish;

/// Times are those of the state of the host that this share of the rounds was in, or a better one.
const GOOD_STATE: f64 = 0.25;

/// What came of one variant on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// The device's name.
    pub(crate) device: String,
    /// The variant.
    pub(crate) variant: String,
    /// `ok`, `illegal` or `failed`.
    pub(crate) status: String,
    /// Why there is no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Seconds a run in each round, up to the last in which it was visited.
    pub(crate) seconds: Vec<f64>,
}

impl Trial {
    /// The fastest visit.
    pub(crate) fn fastest(&self) -> Option<f64> {
        self.seconds.iter().copied().min_by(f64::total_cmp)
    }

    /// Number of visits.
    pub(crate) fn visits(&self) -> usize {
        self.seconds.len()
    }
}

/// Which rounds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// All of them.
    All,
    /// The first, the third, ...
    Even,
    /// The second, the fourth, ...
    Odd,
}

/// Everything about one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// The generator with its arguments.
    pub(crate) input: String,
    /// The generator.
    pub(crate) family: String,
    /// Features by name.
    pub(crate) features: Vec<(String, f64)>,
    /// Seconds that computing them took.
    pub(crate) features_s: f64,
    /// One for each device and variant.
    pub(crate) trials: Vec<Trial>,
    /// OperationMix by kind for each variant, where it applies.
    pub(crate) work: Vec<(String, [f64; 6])>,
}

impl Measured {
    /// The time of every trial in seconds, each compared with the others of its device in the same rounds: how many times slower it
    /// is than they are, in the middle over the rounds, whatever state the host was in. None where there was no visit.
    pub(crate) fn times(&self, rounds: Rounds) -> Vec<Option<f64>> {
        times(&self.trials.iter().collect::<Vec<_>>(), rounds)
    }

    /// The share of the performance that exhaustive search is unsure of: what is lost, on average over the devices, when the
    /// fastest of one half of the rounds is judged by the other half. Large where something else ran on the host.
    pub(crate) fn doubt(&self) -> f64 {
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
            all.map(|(k, s)| counts(k).then_some(*s)).collect::<Vec<_>>()
        };
        let settled = polish(&own.iter().map(visits).collect::<Vec<_>>(), GOOD_STATE);
        own.iter().zip(settled).for_each(|(&i, time)| out[i] = time);
    }
    out
}

/// A log on disk. A line that was being written when the process died is dropped and measured again.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    lines: Vec<Measured>,
    known: HashSet<String>,
}

/// A log that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// What the system reports.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The report.
        error: io::Error,
    },
    /// A line that is no measurement, and not the last one.
    #[error("{}, line {line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

impl Log {
    /// Opens a log or begins it.
    ///
    /// # Errors
    /// What the system reports; a line in the middle that does not parse.
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        let io = |error| LogError::Io { path: path.into(), error };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io(error)),
        };
        // Only what ends in a line break was written whole.
        let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let mut lines: Vec<Measured> = Vec::new();
        for (i, line) in text[..whole].split(|&b| b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
            let parsed = serde_json::from_slice(line);
            lines.push(parsed.map_err(|e| LogError::Line {
                path: path.into(),
                line: i + 1,
                message: e.to_string(),
            })?);
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(io)?;
        file.set_len(whole as u64).map_err(io)?;
        let known = lines.iter().map(|l| l.input.clone()).collect();
        Ok(Self { path: path.into(), file, lines, known })
    }

    /// Whether an input was measured.
    pub(crate) fn has(&self, input: &str) -> bool {
        self.known.contains(input)
    }

    /// Everything so far.
    pub(crate) fn lines(&self) -> &[Measured] {
        &self.lines
    }

    /// Drops inputs, so that they are measured again.
    ///
    /// # Errors
    /// What the system reports; the log is whole before and after.
    pub(crate) fn forget(&mut self, which: impl Fn(&Measured) -> bool) -> Result<usize, LogError> {
        let io = |error: io::Error| LogError::Io { path: self.path.clone(), error };
        let before = self.lines.len();
        self.lines.retain(|line| !which(line));
        let mut text = Vec::new();
        for line in &self.lines {
            serde_json::to_writer(&mut text, line).map_err(|e| io(e.into()))?;
            text.push(b'\n');
        }
        let new = self.path.with_extension("log.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path)).map_err(io)?;
        self.file = OpenOptions::new().append(true).open(&self.path).map_err(io)?;
        self.known = self.lines.iter().map(|l| l.input.clone()).collect();
        Ok(before - self.lines.len())
    }

    /// Appends an input.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn push(&mut self, measured: Measured) -> Result<(), LogError> {
        let io = |error: io::Error| LogError::Io { path: self.path.clone(), error };
        let mut line = serde_json::to_vec(&measured).map_err(|e| io(e.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.flush()).map_err(io)?;
        self.known.insert(measured.input.clone());
        self.lines.push(measured);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(variant: &str, seconds: &[f64]) -> Trial {
        Trial {
            device: "d".into(),
            variant: variant.into(),
            status: "ok".into(),
            reason: None,
            seconds: seconds.to_vec(),
        }
    }

    fn measured(input: &str, trials: Vec<Trial>) -> Measured {
        let (features, work) = (Vec::new(), Vec::new());
        Measured { input: input.into(), family: "f".into(), features, features_s: 0.0, trials, work }
    }

    #[test]
    fn a_campaign_goes_on_where_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("transpose.log");
        let mut log = Log::open(&path).expect("a new log");
        let first = measured("dense(3,70)", vec![trial("c2r", &[1e-6, 2e-6]), trial("r2c", &[])]);
        log.push(first.clone()).expect("is written");
        log.push(measured("dense(70,80)", Vec::new())).expect("is written");
        drop(log);
        // The second line was being written when the process died.
        let text = fs::read(&path).expect("the log");
        fs::write(&path, &text[..text.len() - 10]).expect("is cut");
        let mut log = Log::open(&path).expect("a cut log");
        assert!(log.has("dense(3,70)") && !log.has("dense(70,80)"));
        assert_eq!(log.lines(), std::slice::from_ref(&first));
        assert_eq!(log.forget(|line| line.input == "dense(3,70)").expect("is written"), 1);
        assert!(!log.has("dense(3,70)"));
        log.push(first.clone()).expect("is written");
        drop(log);
        assert_eq!(Log::open(&path).expect("the log").lines(), std::slice::from_ref(&first));
        fs::write(&path, [b"no measurement\n".as_slice(), &text].concat()).expect("is spoilt");
        assert!(matches!(Log::open(&path), Err(LogError::Line { line: 1, .. })));
    }

    #[test]
    fn halves_that_disagree_are_doubted() {
        let trial = |variant, even: f64, odd: f64| trial(variant, &[even, odd].repeat(5));
        let agrees = measured("i", vec![trial("a", 1.0, 1.5), trial("b", 2.0, 3.0)]);
        assert!(agrees.doubt() < 1e-9, "{}", agrees.doubt());
        // Each half prefers another variant, twice as fast there.
        let disagrees = measured("i", vec![trial("a", 1.0, 2.0), trial("b", 2.0, 1.0)]);
        assert!((disagrees.doubt() - 0.5).abs() < 1e-9, "{}", disagrees.doubt());
    }
}
