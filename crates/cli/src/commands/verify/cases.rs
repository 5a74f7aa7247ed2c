//! Cases of `verify`, run and judged.

use crate::failure::{Failure, Kind};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tilewright_bench_suite::cases::{Case, Cases, INPUTS};
use tilewright_core::buffer::Filling;
use tilewright_core::device::Device;
use tilewright_core::expr::Value;
use tilewright_core::id::KernelId;
use tilewright_core::program::DeviceError;
use tilewright_core::space::Config;
use tilewright_emulator::{Finding, Log};
use tilewright_runtime::verify::{Verification, VerifyError};

/// Threads of the host that repeat what must not depend on them. A device's own run has one.
const OTHER_THREADS: usize = 3;

/// Where a run is repeated.
///
/// # Errors
/// The host starts no threads.
pub(super) fn elsewhere() -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(OTHER_THREADS).build();
    pool.map_err(|e| Failure::new(Kind::Other, "threads", e))
}

/// A device that checks one case at a time.
pub(super) struct Bench {
    pub(super) device: Box<dyn Device>,
    /// What the emulator found; it then runs its blocks one after the other.
    pub(super) log: Option<Log>,
    /// Whether configurations may need what the device has not: the rules of users know no assembler, and our own are to be right.
    pub(super) is_described: bool,
}

/// What came of a case.
pub(super) struct Outcome {
    pub(super) kernel: KernelId,
    pub(super) input: Config,
    pub(super) config: Config,
    pub(super) filling: Filling,
    /// What the input is an example of.
    pub(super) aspects: Vec<String>,
    pub(super) result: Result<Verification, String>,
    /// Whether it was run twice, and had to give the same bits.
    pub(super) repeated: bool,
    /// What the emulator found beside a wrong result.
    pub(super) findings: Vec<Finding>,
    /// Configurations that were drawn before this one and that the device cannot launch, with what it lacks.
    pub(super) unlaunched: Vec<(Config, String)>,
}

/// Cases that are drawn instead of one that the device cannot launch, at most: then it is the kernel that does not run there.
const OTHERS: u64 = 50;

/// What stands between the numbers of a case and of those that are drawn in its place.
const APART: u64 = 1 << 32;

/// Draws and runs a case; on threads elsewhere a second time where repeats are to give the same bits.
pub(super) fn check(
    cases: &Cases<'_>,
    number: u32,
    bench: &mut Bench,
    elsewhere: &ThreadPool,
) -> Result<Outcome, Failure> {
    let mut unlaunched = Vec::new();
    let (case, config, repeated, result) = loop {
        let turn = u64::from(number) + APART * unlaunched.len() as u64;
        let case = cases.draw(turn)?.ok_or_else(|| {
            let message = format!("no legal configuration was found for {INPUTS} drawn inputs");
            Failure::new(Kind::Nothing, "input", message)
        })?;
        let config = case.problem.space().config(&case.point);
        let repeated = is_ordered(&config);
        match run(&case, &mut *bench.device, repeated.then_some(elsewhere)) {
            Err(Unrun::Unlaunched(lacks)) if bench.is_described && (unlaunched.len() as u64) < OTHERS => {
                unlaunched.push((config, lacks));
            }
            Err(Unrun::Unlaunched(message) | Unrun::Failed(message)) => break (case, config, repeated, Err(message)),
            Ok(found) => break (case, config, repeated, Ok(found)),
        }
    };
    let reports = bench.log.as_ref().map(|log| log.take()).unwrap_or_default();
    Ok(Outcome {
        kernel: case.problem.kernel(),
        input: case.problem.input(),
        config,
        repeated,
        filling: case.filling,
        aspects: case.problem.aspects(),
        result,
        findings: reports.into_iter().flat_map(|r| r.findings).collect(),
        unlaunched,
    })
}

/// Whether the grid splits the reduction and adds the parts in order, which is a promise of bitwise equal repeats.
fn is_ordered(config: &Config) -> bool {
    let is_sliced = config.get("k_g").and_then(Value::as_int) > Some(1);
    match config.get("split").and_then(Value::as_str) {
        Some("ordered" | "ticket") => is_sliced,
        split => split == Some("stream"),
    }
}

/// Why a case has no result.
enum Unrun {
    /// The device has not what its configuration needs.
    Unlaunched(String),
    Failed(String),
}

impl From<VerifyError> for Unrun {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Device(DeviceError::Unsupported { feature, .. }) => Self::Unlaunched(feature),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Compares a case with the reference; and with another run in `again`, if given, bit by bit.
fn run(case: &Case, device: &mut dyn Device, again: Option<&ThreadPool>) -> Result<Verification, Unrun> {
    let found = case.check(device)?;
    if let Some(pool) = again {
        let repeat = pool.install(|| case.check(device))?;
        let others = found.after.iter().zip(&repeat.after).position(|(one, other)| one.bytes() != other.bytes());
        if let Some(at) = others {
            let message = format!("a repeat left other bits in buffer {at}: slices are not added in order");
            return Err(Unrun::Failed(message));
        }
    }
    // Outcomes are kept until the end, and what a run left in large buffers is not for keeping.
    Ok(Verification { after: Vec::new(), ..found })
}
