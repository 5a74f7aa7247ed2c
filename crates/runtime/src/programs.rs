//! Generated programs, kept so that interleaved rounds do not generate them again.

use rayon::prelude::*;
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

    /// Forgets those of an input. A host program may hold all the data of its input in a format of its own.
    pub(crate) fn forget(&mut self, input: &Config) {
        self.kept.retain(|(_, _, of, _)| of != input);
    }

    /// The programs of those points that are legal; what is not known yet is generated on all cores of the host.
    pub(crate) fn get_all(&mut self, problem: &dyn Problem, points: &[Point]) -> Vec<Program> {
        let (kernel, input) = (problem.kernel(), problem.input());
        let known = |at: &Point| self.kept.iter().find(|(p, k, i, _)| p == at && *k == kernel && *i == input);
        let missing: Vec<&Point> = points.iter().filter(|at| known(at).is_none()).collect();
        let generate = |at: &Point| Some((at.clone(), problem.program(&problem.space().check(at).ok()?)));
        let made: Vec<(Point, Program)> = missing.into_par_iter().filter_map(generate).collect();
        for (at, program) in made {
            self.keep(at, (kernel.clone(), input.clone()), program);
        }
        points.iter().filter_map(|at| self.get(problem, at).ok()).collect()
    }

    fn keep(&mut self, at: Point, (kernel, input): (KernelId, Config), program: Program) {
        if self.kept.len() >= self.most {
            self.kept.pop_front();
        }
        self.kept.push_back((at, kernel, input, program));
    }

    /// The program of a point; a failure if it is none of the space, or not legal.
    pub(crate) fn get(&mut self, problem: &dyn Problem, at: &Point) -> Result<Program, MeasureError> {
        let (kernel, input) = (problem.kernel(), problem.input());
        if let Some((.., program)) = self.kept.iter().find(|(p, k, i, _)| p == at && *k == kernel && *i == input) {
            return Ok(program.clone());
        }
        let program = problem.program(&problem.space().check(at)?);
        self.keep(at.clone(), (kernel, input), program.clone());
        Ok(program)
    }
}
