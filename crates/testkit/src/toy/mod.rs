//! A computation small enough to understand at a glance, with a tunable kernel, an analytic device and a known optimum.
//!
//! `y = a * x` over `n` elements. Its time is a formula ([`cost_s`]) whose minimum over the legal points is known in
//! closed form for every input ([`target`]), so that searches, models and whole tuning runs can be judged without a clock.
//!
//! ```
//! use tilewright_core::problem::Problem;
//! use tilewright_testkit::toy;
//!
//! let problem = toy::problem(10_000);
//! let (best, seconds) = toy::optimum(&problem).unwrap();
//! let mut least = f64::INFINITY;
//! problem.space().for_each_legal(|point| {
//!     least = least.min(toy::cost_s(&problem, point));
//!     true
//! });
//! assert_eq!(least, seconds);
//! assert_eq!(toy::cost_s(&problem, &best), seconds);
//! ```

mod computation;
mod cost;
mod device;
mod guise;
mod kernel;
mod model;
mod search;

pub use computation::{Scale, ScaleInput};
pub use cost::{cost_s, optimum, target};
pub use device::{AnalyticMeasure, device, device_with, host_device, host_device_with};
pub use guise::Guise;
pub use kernel::{ScaleCode, ScaleConfig, ScaleKernel, ScalePlan};
pub use model::{Formula, LogLinear, LogLinearFit, NoRows, training_set};
pub use search::Sequential;

use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::problem::Bound;

/// The toy kernel on the toy device for `n` elements of f32.
pub fn problem(n: usize) -> Bound<ScaleKernel> {
    bound(ScaleKernel::new(), n)
}

/// The same with a space of exactly `points` legal points.
///
/// # Panics
/// For more than three points.
pub fn tiny_problem(points: usize) -> Bound<ScaleKernel> {
    let one = "width == 1 and chunks == 1 and prefetch == 1 and order == 'forward'";
    let rule = match points {
        0 => "width > 16".to_owned(),
        1 => format!("{one} and unroll == 1"),
        2 => format!("{one} and unroll <= 2"),
        3 => format!("{one} and unroll <= 4"),
        _ => panic!("a tiny space has at most 3 points, not {points}"),
    };
    bound(ScaleKernel::new().restricted(&rule), 1000)
}

/// The same with a space of a few hundred legal points.
pub fn small_problem() -> Bound<ScaleKernel> {
    bound(ScaleKernel::new().restricted("prefetch <= 4 and order == 'forward'"), 200)
}

fn bound(kernel: ScaleKernel, n: usize) -> Bound<ScaleKernel> {
    Bound::new(Arc::new(kernel), device(), ScaleInput { n, dtype: DType::F32 })
        .expect("the toy device has every symbol that the toy rules name")
}
