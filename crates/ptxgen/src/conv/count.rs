//! Counts of the program, for the input of its plan.
//!
//! Which taps of a position lie within its image is no polynomial in the sizes of an input, so that counts are numbers here. They
//! are read off the launches themselves: what they pass, and the table that the first of them fills.

use super::job::Job;
use super::plan::{ConvPlan, Part};
use super::table::{BEYOND, NO_FILTER};
use crate::count::{Array, CountError, Counter, Launch};
use crate::ir::{Index, Module};
use std::sync::Arc;
use tilewright_core::counts::Counts;
use tilewright_core::program::Arg;

impl ConvPlan {
    /// Counts of the program. They have no sizes: they are those of this input.
    ///
    /// # Errors
    /// What the counter has no form for; templates are made so that there is none.
    pub fn count(&self) -> Result<Counts, CountError> {
        let mut counter = Counter::new();
        for part in self.parts() {
            let module = self.module_of(part);
            counter.launch(&module, &self.launch_of(part, &module))?;
        }
        Ok(counter.finish())
    }

    fn launch_of(&self, part: Part<'_>, module: &Module) -> Launch {
        let (grid, args, _) = self.given(part);
        let mut launch = Launch::new(grid.map(|n| i64::from(n).into()));
        for (param, arg) in module.entry.params.iter().zip(args) {
            let number = match arg {
                // Strides and origins are below zero where they wrap round; sizes are less than half of what fits.
                Arg::U32(x) => i64::from(x as i32),
                Arg::U64(x) => x as i64,
                _ => continue,
            };
            launch.params.insert(param.name.clone(), number.into());
        }
        if let Part::Product(job) = part {
            let number = |name: &str| launch.params.get(name).and_then(Index::constant).unwrap_or(1);
            let [first, second] = ["tiles_first", "tiles_second"].map(number);
            launch.digits[0] = vec![first, second, i64::from(grid[0]) / (first * second)];
            let slices = i64::from(self.blueprint().config.c_g);
            launch.digits[2] = vec![slices, i64::from(grid[2]) / slices];
            launch.tables.insert("table".to_owned(), table(job, self.entries(job)));
            launch.arrays.insert("gathered".to_owned(), columns(job));
        }
        launch
    }
}

/// The columns of an image that are gathered, among all. Where strides of accesses leave gaps, they leave them along columns, or
/// skip whole rows of them.
fn columns(job: &Job) -> Array {
    let mut met = vec![false; job.columns.count];
    let taps = job.digits.iter().filter(|digit| digit.step.column != 0 && digit.step.row == 0);
    let taps = taps.map(|digit| (0..digit.count as i64).map(|i| i * digit.step.column).collect::<Vec<i64>>()).next();
    for tap in taps.unwrap_or(vec![0]) {
        for position in 0..job.grid[1] as i64 {
            let column = job.origin[1] as i64 + position * job.step[1] as i64 + job.look.column + tap;
            if let Some(met) = usize::try_from(column).ok().and_then(|column| met.get_mut(column)) {
                *met = true;
            }
        }
    }
    let used = met.iter().filter(|met| **met).count() as i64;
    Array { used: used.into(), pitch: (job.columns.count as i64).into() }
}

/// What the kernel of the table writes: so many entries.
fn table(job: &Job, entries: u32) -> Arc<[u32]> {
    let beyond = [0, BEYOND, 0, NO_FILTER];
    let words = (0..entries as usize).flat_map(|step| if step < job.depth { job.entry(step) } else { beyond });
    words.collect()
}
