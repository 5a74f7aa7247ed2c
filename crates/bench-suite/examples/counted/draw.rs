//! The cases: random legal configurations of the kernels for GPUs, which take turns as in `tilewright verify`.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tilewright::kernels::Kernels;
use tilewright_bench_suite::cases::{Case, Cases};
use tilewright_core::computation::InputLimits;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind, DeviceSpec};
use tilewright_core::program::Program;
use tilewright_core::space::Config;

/// Inputs stay small: a profiler runs every launch several times, and the emulator runs every lane.
const LIMITS: InputLimits = InputLimits { max_flops: 4e6, max_bytes: 4e6 };

/// The computations whose kernels are counted.
const COMPUTATIONS: [&str; 2] = ["gemm", "conv"];

/// A case that can be run.
pub(crate) struct Drawn(Case);

/// So many cases. The same facts and the same seed give the same ones.
///
/// # Errors
/// No kernel has a legal case.
pub(crate) fn cases(spec: &Arc<DeviceSpec>, count: usize, seed: u64) -> Result<Vec<Drawn>, Box<dyn Error>> {
    let all = Kernels::default();
    let mut kernels = Vec::new();
    for computation in COMPUTATIONS {
        kernels.extend(all.variants(computation, DeviceKind::Emulator)?);
    }
    let of = |kernel| Cases { kernel, spec: spec.clone(), fixed: Config::default(), limits: LIMITS, seed };
    let turns: Vec<Cases<'_>> = kernels.iter().map(|kernel| of(&***kernel)).collect();
    let (mut out, mut number, mut barren) = (Vec::new(), 0, 0);
    while out.len() < count {
        let (turn, at) = (number / turns.len() as u64, (number % turns.len() as u64) as usize);
        number += 1;
        // A kernel without a legal case, or that refuses all inputs, leaves its turn to the next.
        let why = match turns[at].draw(turn) {
            Ok(Some(case)) => {
                out.push(Drawn(case));
                barren = 0;
                continue;
            }
            Ok(None) => "no input has a legal configuration".to_owned(),
            Err(error) => error.to_string(),
        };
        barren += 1;
        if barren > turns.len() {
            return Err(format!("no kernel has a legal case: {why}").into());
        }
    }
    Ok(out)
}

impl Drawn {
    /// Sends the data to a device and runs the program on them, once.
    ///
    /// # Errors
    /// What the device reports.
    pub(crate) fn run(&self, device: &mut dyn Device) -> Result<Program, Box<dyn Error>> {
        let Case { problem, point, filling, seed } = &self.0;
        let program = problem.program(&problem.space().check(point)?);
        device.upload(&Data::Given(Arc::new(problem.workload(*filling, *seed))))?;
        device.run(&program)?;
        Ok(program)
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> String {
        self.0.problem.kernel().to_string()
    }

    /// The input.
    pub(crate) fn input(&self) -> String {
        self.0.problem.input().to_string()
    }

    /// The configuration.
    pub(crate) fn config(&self) -> String {
        self.0.problem.space().config(&self.0.point).to_string()
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} with {}", self.kernel(), self.input(), self.config())
    }
}
