//! Runs a program on a workload and judges what it left behind.

use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Role, Verdict, Workload};
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::problem::Problem;
use tilewright_core::program::{DeviceError, Program};

/// What a run left behind.
pub(crate) struct Outcome {
    pub(crate) after: Buffers,
    pub(crate) verdict: Verdict,
    /// Name of the first read-only buffer that was written.
    pub(crate) written_input: Option<&'static str>,
}

/// Runs once on fresh memory.
pub(crate) fn run(
    device: &mut dyn Device,
    problem: &dyn Problem,
    program: &Program,
    workload: &Arc<Workload>,
) -> Result<Outcome, DeviceError> {
    let expected = problem.reference(&workload.buffers, &workload.scalars)?;
    device.upload(&Data::Given(workload.clone()))?;
    device.run(program)?;
    let after = device.read()?;
    let verdict = expected.compare(&after);
    Ok(Outcome { written_input: written_input(workload, &after), after, verdict })
}

fn written_input(workload: &Workload, after: &Buffers) -> Option<&'static str> {
    let pairs = workload.specs.iter().zip(workload.buffers.iter().zip(after));
    pairs.filter(|(spec, _)| spec.role == Role::In).find(|(_, (b, a))| b.bytes() != a.bytes()).map(|(s, _)| s.name)
}

/// Whether two sets of buffers hold the same bytes.
pub(crate) fn same_bytes(a: &Buffers, b: &Buffers) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.dtype() == b.dtype() && a.bytes() == b.bytes())
}
