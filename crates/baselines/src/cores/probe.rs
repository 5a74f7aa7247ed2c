//! One library file under one setting, opened and timed in a process of its own.

use crate::call::{BatchCall, Checked};
use crate::kernel::Routine;
use crate::libraries::{self, Opened};
use crate::small::SmallRoutine;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_ops::gemm::{Batch, GemmInput, Layout, ScalarClass};

/// Before the answer, so that it is found among what libraries print.
const MARK: &str = "tilewright-baseline-probe ";

/// How long products of one shape and type are repeated, and how often at least.
const TIMED: Duration = Duration::from_millis(25);
const LEAST_REPETITIONS: usize = 3;

/// Products that are timed: one that is bound by arithmetic, one whose short side shows what packing costs.
const LARGE: [[usize; 3]; 2] = [[320, 320, 320], [1536, 16, 384]];
/// Of a library for small products, so many at once.
const SMALL: [[usize; 3]; 2] = [[16, 16, 16], [32, 24, 48]];
const SMALL_COUNT: u32 = 64;

/// How a process that answers [`answer`] is started, and how long one is waited for.
#[derive(Clone, Debug)]
pub struct ProbeCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// How long one file under one setting may take.
    pub patience: Duration,
}

impl ProbeCommand {
    /// With the usual patience.
    pub fn new(program: PathBuf, args: Vec<String>) -> Self {
        Self { program, args, patience: Duration::from_secs(10) }
    }
}

/// What a probe is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) library: String,
    pub(crate) file: PathBuf,
}

/// What a file did under a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// What the library says of itself.
    pub version: String,
    /// The core that it says it runs.
    pub core: Option<String>,
    /// Geometric mean over the probe's products of 10^9 operations a second, one thread, binary32.
    pub f32_gflops: f64,
    /// The same in binary64.
    pub f64_gflops: f64,
    /// Names of the library's cores by their numbers, where its variable takes numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbered: Vec<String>,
}

impl Rates {
    /// What files and settings are compared by.
    pub fn score(&self) -> f64 {
        (self.f32_gflops * self.f64_gflops).sqrt()
    }
}

/// Why a file has no rates under a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The file cannot be used, whatever the setting.
    Refused(String),
    /// The probe's process crashed, or was ended by the library.
    Died(String),
    /// It did not end within so many seconds, and was ended.
    Silent(u64),
    /// The library took another core than it was told: this one.
    NotHonoured(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Died(how) => write!(f, "the probe died: {how}"),
            Self::Silent(seconds) => write!(f, "no answer within {seconds} s"),
            Self::NotHonoured(core) => write!(f, "it runs {core} all the same"),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Rates(Rates),
    Refused(String),
}

/// The probe's side: reads what is asked for, opens that library and no other, times it, and writes the answer.
///
/// # Errors
/// What was read is no request, or the answer cannot be written.
pub fn answer(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    let reply = match libraries::open(&request.library, &request.file) {
        Ok(opened) => timed(&opened).map_or_else(|e| Reply::Refused(e.to_string()), Reply::Rates),
        Err(error) => Reply::Refused(error.to_string()),
    };
    // A line of its own, whatever the library left on this one.
    writeln!(output, "\n{MARK}{}", serde_json::to_string(&reply)?)?;
    output.flush()
}

fn timed(opened: &Opened) -> Result<Rates, InputError> {
    let (identity, numbered, (f32_gflops, f64_gflops)) = match opened {
        Opened::Blas(routine, numbered) => (&routine.identity, numbered.clone(), rates_of(routine)?),
        Opened::Small(routine) => (&routine.identity, Vec::new(), rates_of_small(routine)?),
    };
    Ok(Rates { version: identity.version.clone(), core: identity.core.clone(), f32_gflops, f64_gflops, numbered })
}

fn rates_of(routine: &Routine) -> Result<(f64, f64), InputError> {
    let single = mean_rate(&LARGE, 1, DType::F32, 1f32, |_, _| {
        Ok(|batch: &mut BatchCall<'_, f32>| {
            (routine.sgemm)(&mut batch.whole, 1);
            Ok(())
        })
    })?;
    let double = mean_rate(&LARGE, 1, DType::F64, 1f64, |_, _| {
        Ok(|batch: &mut BatchCall<'_, f64>| {
            (routine.dgemm)(&mut batch.whole, 1);
            Ok(())
        })
    })?;
    Ok((single, double))
}

fn rates_of_small(routine: &SmallRoutine) -> Result<(f64, f64), InputError> {
    let maker = routine.maker;
    let single = mean_rate(&SMALL, SMALL_COUNT, DType::F32, 1f32, |input, checked| maker.single(input, checked))?;
    let double = mean_rate(&SMALL, SMALL_COUNT, DType::F64, 1f64, |input, checked| maker.double(input, checked))?;
    Ok((single, double))
}

/// Geometric mean over shapes of the best rate, in 10^9 operations a second.
fn mean_rate<T: Copy, R>(
    shapes: &[[usize; 3]],
    count: u32,
    dtype: DType,
    one: T,
    prepare: impl Fn(&GemmInput, &Checked) -> Result<R, InputError>,
) -> Result<f64, InputError>
where
    R: FnMut(&mut BatchCall<'_, T>) -> Result<(), InputError>,
{
    let mut logs = 0.0;
    for &[m, n, k] in shapes {
        let input = GemmInput::new(m, n, k, dtype, Layout::Nn);
        // C is added to: results stay finite for as many repetitions as fit.
        let input = GemmInput { batch: Batch::tight(count, &input), beta: ScalarClass::One, ..input };
        let checked = Checked::new(&input)?;
        let mut run = prepare(&input, &checked)?;
        let [a, b, c] = input.lens();
        let (a, b, mut c) = (vec![one; a], vec![one; b], vec![one; c]);
        let have = [a.len(), b.len(), c.len()];
        let mut batch = checked.on((one, one), &a, &b, &mut c).ok_or_else(|| checked.refusal(have))?;
        let seconds = fastest(|| run(&mut batch))?;
        let operations = 2.0 * (m * n * k) as f64 * f64::from(count);
        logs += (operations / seconds / 1e9).ln();
    }
    Ok((logs / shapes.len() as f64).exp())
}

/// Seconds of the fastest of some repetitions, after one that is not counted.
fn fastest(mut run: impl FnMut() -> Result<(), InputError>) -> Result<f64, InputError> {
    run()?;
    let (begun, mut best, mut repetitions) = (Instant::now(), f64::INFINITY, 0);
    while repetitions < LEAST_REPETITIONS || begun.elapsed() < TIMED {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
        repetitions += 1;
    }
    // A clock that stood still would give a rate without end.
    Ok(best.max(1e-9))
}

/// The other side: asks a process of its own, with variables set or removed.
pub(super) fn ask(
    command: &ProbeCommand,
    request: &Request,
    variables: &[(&str, Option<&str>)],
) -> Result<Rates, Failure> {
    let mut child =
        start(command, variables).map_err(|e| Failure::Refused(format!("no process for the probe: {e}")))?;
    let asked = serde_json::to_string(request).unwrap_or_default();
    if let Some(mut to) = child.stdin.take() {
        // A process that is gone already says below how it ended.
        let _ = writeln!(to, "{asked}");
    }
    let Some(how) = wait(&mut child, command.patience) else {
        return Err(Failure::Silent(command.patience.as_secs()));
    };
    let (said, complained) = (read(child.stdout.take()), read(child.stderr.take()));
    parse(&said).unwrap_or_else(|| {
        let lines: Vec<&str> = complained.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let told = lines[lines.len().saturating_sub(LAST_LINES)..].join(" ");
        Err(Failure::Died(if told.is_empty() { how } else { format!("{how}; it said: {told}") }))
    })
}

/// Of what a dying process says, the lines that are kept.
const LAST_LINES: usize = 3;

fn start(command: &ProbeCommand, variables: &[(&str, Option<&str>)]) -> io::Result<Child> {
    let mut child = Command::new(&command.program);
    child.args(&command.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for threads in ["OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"] {
        child.env(threads, "1");
    }
    for (name, value) in variables {
        match value {
            Some(value) => child.env(name, value),
            None => child.env_remove(name),
        };
    }
    child.spawn()
}

/// How a process ended; it is ended here if it takes longer than it may, and then there is no answer.
fn wait(child: &mut Child, patience: Duration) -> Option<String> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.to_string()),
            Ok(None) if begun.elapsed() < patience => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// What a process that ended left in a pipe.
fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // A pipe holds little; a process that a library left behind may still hold its other end.
        let _ = pipe.take(MOST_SAID).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

const MOST_SAID: u64 = 1 << 20;

/// The answer among what a probe wrote; none if there is none.
fn parse(said: &str) -> Option<Result<Rates, Failure>> {
    let line = said.lines().rev().find_map(|line| line.split_once(MARK))?.1;
    let reply = serde_json::from_str::<Reply>(line).ok()?;
    Some(match reply {
        Reply::Rates(rates) if rates.score().is_finite() && rates.score() > 0.0 => Ok(rates),
        Reply::Rates(_) => Err(Failure::Refused("its rates are no numbers".to_owned())),
        Reply::Refused(why) => Err(Failure::Refused(why)),
    })
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
