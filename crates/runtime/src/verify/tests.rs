use super::*;
use tilewright_core::buffer::Buffers;
use tilewright_core::device::{DeviceSpec, HostDevice};
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::Program;
use tilewright_testkit::toy;

/// Spoils what it reads back.
struct Spoiling<F> {
    inner: HostDevice<std::time::Instant>,
    spoil: F,
}

impl<F: Fn(&mut Buffers) + Send> Device for Spoiling<F> {
    fn spec(&self) -> &Arc<DeviceSpec> {
        self.inner.spec()
    }

    fn upload(&mut self, data: &Data) -> Result<(), DeviceError> {
        self.inner.upload(data)
    }

    fn run(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.inner.run(program)
    }

    fn read(&mut self) -> Result<Buffers, DeviceError> {
        let mut out = self.inner.read()?;
        (self.spoil)(&mut out);
        Ok(out)
    }

    fn time(&mut self, program: &Program, timing: &Timing) -> Result<Measurement, MeasureError> {
        self.inner.time(program, timing)
    }
}

fn check(spoil: impl Fn(&mut Buffers) + Send) -> Verification {
    let problem = toy::problem(100);
    let point = problem.default_point().unwrap();
    let mut device = Spoiling { inner: toy::host_device(), spoil };
    let fillings = vec![Filling::Exact, Filling::Real, Filling::Special];
    let mut verifier = Verifier::new(VerifySettings { fillings, seed: 1 });
    verifier.check(&mut device, &problem, &point).unwrap()
}

#[test]
fn a_right_result_is_right_on_every_kind_of_data() {
    let found = check(|_| {});
    assert!(found.is_right() && found.checks.len() == 3, "{found:?}");
    assert!(found.complaint().is_none());
    assert!(found.max_rel_error() < 1e-6);
}

#[test]
fn one_wrong_element_is_noticed() {
    let found = check(|b| {
        let right = b[1].get_f64(7);
        b[1].set_f64(7, right + 1.0);
    });
    assert_eq!(found.checks.len(), 1, "it stops at the first wrong result");
    let complaint = found.complaint().unwrap();
    assert!(complaint.contains("element 7 of buffer 1"), "{complaint}");
}

#[test]
fn an_element_that_is_not_written_is_noticed() {
    assert!(!check(|b| b[1].set_f64(99, f64::NAN)).is_right());
}

#[test]
fn an_overwritten_input_is_noticed() {
    let found = check(|b| b[0].set_f64(0, 0.5));
    assert_eq!(found.checks[0].overwritten, Some("x"));
    assert!(found.complaint().unwrap().contains("\"x\" was overwritten"));
}

#[test]
fn an_illegal_point_is_an_error() {
    let problem = toy::tiny_problem(1);
    let legal = problem.default_point().unwrap();
    let mut illegal = legal.0.clone();
    illegal[0] += 1;
    let mut verifier = Verifier::new(VerifySettings::default());
    let found = verifier.check(&mut toy::host_device(), &problem, &illegal);
    assert!(matches!(found, Err(VerifyError::Illegal(_))));
}
