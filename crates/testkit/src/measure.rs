//! Conformance of a [`Measure`].

use crate::points::{any_points, legal_points};
use crate::violation::{Conformity, Violation, ensure};
use std::time::Duration;
use tilewright_core::measurement::{FailureKind, Measurement, Timing};
use tilewright_core::problem::{Measure, MeasureError, Problem};
use tilewright_core::space::Point;

const SUITE: &str = "measure";

/// Holds a measuring device to its contract on a problem with at least one illegal and one legal point that runs.
///
/// Checked: times are positive and finite, repeats within the policy; an illegal point and indices outside the space
/// give a typed failure; a run beyond the cut-off is cut off; after every failure the device still measures.
///
/// # Errors
/// The first broken promise.
pub fn measure(device: &mut dyn Measure, problem: &dyn Problem) -> Conformity {
    let spec = device.spec().clone();
    let policy = Timing { max_repeats: 5, max_time: Duration::from_millis(20), ..Timing::default() };
    let good = good_point(device, problem, &policy)?;
    illegal(device, problem, &policy)?;
    still_measures(device, problem, &good, &policy, "an illegal point")?;
    outside(device, problem, &good, &policy)?;
    still_measures(device, problem, &good, &policy, "indices outside the space")?;
    cut_off(device, problem, &good, &policy)?;
    still_measures(device, problem, &good, &policy, "a cut-off")?;
    ensure!(**device.spec() == *spec, "spec-is-stable", "the device's facts changed while it measured");
    Ok(())
}

/// The first of a few legal points that has a measurement; failures among them must be of a configuration.
fn good_point(device: &mut dyn Measure, problem: &dyn Problem, policy: &Timing) -> Result<Point, Violation> {
    let mut failures = Vec::new();
    for point in legal_points(problem.space(), 16, 1) {
        match device.measure(problem, &point, policy) {
            Ok(m) => {
                plausible(&m, policy)?;
                return Ok(point);
            }
            Err(MeasureError::Failed(failure)) => failures.push(failure),
            Err(MeasureError::Device(e)) => {
                return Err(Violation { suite: SUITE, check: "legal-points-run", message: e.to_string() });
            }
        }
    }
    let message = format!("none of the legal points tried has a measurement: {failures:?}");
    Err(Violation { suite: SUITE, check: "legal-points-run", message })
}

fn plausible(m: &Measurement, policy: &Timing) -> Conformity {
    ensure!(m.time_s.is_finite() && m.time_s > 0.0, "times-are-positive", "{} s", m.time_s);
    ensure!(m.metric(Measurement::TIME) == Some(m.time_s), "times-are-positive", "the metric differs from the field");
    ensure!(
        (1..=policy.max_repeats).contains(&m.repeats),
        "repeats-follow-policy",
        "{} repeats, the policy allows {}",
        m.repeats,
        policy.max_repeats
    );
    ensure!(
        m.relative_error >= 0.0 && m.relative_error.is_finite(),
        "error-is-stated",
        "relative error {}",
        m.relative_error
    );
    Ok(())
}

fn still_measures(
    device: &mut dyn Measure,
    problem: &dyn Problem,
    good: &Point,
    policy: &Timing,
    after: &str,
) -> Conformity {
    let again = device.measure(problem, good, policy);
    ensure!(again.is_ok(), "failures-are-survived", "after {after}: {again:?}");
    again.map_or(Ok(()), |m| plausible(&m, policy))
}

fn illegal(device: &mut dyn Measure, problem: &dyn Problem, policy: &Timing) -> Conformity {
    let space = problem.space();
    let Some(point) = any_points(space, 10_000, 3).into_iter().find(|p| !space.is_legal(p)) else {
        return Ok(());
    };
    let result = device.measure(problem, &point, policy);
    let kind = match &result {
        Err(MeasureError::Failed(failure)) => Some(failure.kind),
        _ => None,
    };
    ensure!(
        kind == Some(FailureKind::Illegal),
        "illegal-points-fail",
        "{} gives {result:?}, not a failure of kind Illegal",
        space.config(&point)
    );
    Ok(())
}

fn outside(device: &mut dyn Measure, problem: &dyn Problem, good: &Point, policy: &Timing) -> Conformity {
    let mut beyond = good.clone();
    beyond.0[0] = u16::MAX;
    let mut short = good.clone();
    short.0.pop();
    for point in [beyond, short] {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| device.measure(problem, &point, policy)));
        ensure!(
            matches!(result, Ok(Err(MeasureError::Failed(_)))),
            "outside-points-fail",
            "indices {point:?} give {result:?}, not a failed configuration"
        );
    }
    Ok(())
}

fn cut_off(device: &mut dyn Measure, problem: &dyn Problem, good: &Point, policy: &Timing) -> Conformity {
    let at_once = Timing { cut_off: Some(Duration::from_nanos(1)), ..policy.clone() };
    let result = device.measure(problem, good, &at_once);
    ensure!(
        matches!(&result, Err(MeasureError::Failed(f)) if f.kind == FailureKind::CutOff),
        "cut-off-is-kept",
        "with a cut-off of 1 ns: {result:?}"
    );
    let never = Timing { cut_off: Some(Duration::from_secs(3600)), ..policy.clone() };
    let result = device.measure(problem, good, &never);
    ensure!(result.is_ok(), "cut-off-is-kept", "with a cut-off of an hour: {result:?}");
    Ok(())
}
