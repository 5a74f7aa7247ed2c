//! Generated programs, kept so that interleaved rounds do not generate them again.

use std::collections::VecDeque;
use tilewright_core::id::KernelId;
use tilewright_core::problem::{MeasureError, Problem};
use tilewright_core::program::Program;
use tilewright_core::space::{Config, Point};

/// The latest programs.
#[derive(Clone)]
pub(crate) struct Programs {
    most: usize,
    kept: VecDeque<(Point, KernelId, Config, Program)>,
}

impl Programs {
    /// Keeps at most so many.
    pub(crate) fn keeping(most: usize) -> Self {
        Self { most, kept: VecDeque::new() }
    }

    /// Forgets those of other inputs. A host program may hold all the data of its input in a format of its own.
    pub(crate) fn keep_only(&mut self, input: &Config) {
        self.kept.retain(|(_, _, of, _)| of == input);
    }

    /// The program of a point; a failure if it is none of the space, or not legal.
    pub(crate) fn get(&mut self, problem: &dyn Problem, at: &Point) -> Result<Program, MeasureError> {
        let (kernel, input) = (problem.kernel(), problem.input());
        if let Some((.., program)) = self.kept.iter().find(|(p, k, i, _)| p == at && *k == kernel && *i == input) {
            return Ok(program.clone());
        }
        let program = problem.program(&problem.space().check(at)?);
        if self.kept.len() >= self.most {
            self.kept.pop_front();
        }
        self.kept.push_back((at.clone(), kernel, input, program.clone()));
        Ok(program)
    }
}
