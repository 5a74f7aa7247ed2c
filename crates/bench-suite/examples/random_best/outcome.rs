//! What became of one measurement.

use tilewright_core::measurement::{Outcome, Timing};
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::Point;

/// The outcome of a point; an error only where the device is gone.
pub(crate) fn outcome(
    measure: &mut dyn Measure,
    problem: &dyn Problem,
    point: &Point,
    policy: &Timing,
) -> Result<Outcome, DeviceError> {
    match measure.measure(problem, point, policy) {
        Ok(measurement) => Ok(Ok(measurement)),
        Err(MeasureError::Failed(failure)) => Ok(Err(failure)),
        Err(MeasureError::Device(error)) => Err(error),
    }
}
