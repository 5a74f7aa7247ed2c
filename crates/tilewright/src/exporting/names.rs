//! Drawn inputs, and what a kernel's rules see of them.

use super::{Candidate, ExportError, Exporting};
use crate::error::Error;
use crate::planning::problem;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use std::time::Instant;
use tilewright_core::problem::Problem;
use tilewright_core::space::{BoundSpace, Config, Point};
use tilewright_export::{Choice, Domain, Names, Seen, cover};
use tilewright_runtime::RuntimeError;

/// Inputs that are drawn to see what inputs are, beside those that are timed; so many awkward ones besides.
const DRAWN: usize = 256;
const AWKWARD: usize = 128;

/// Drawn inputs, bound.
pub(crate) struct Drawn {
    domain: Domain,
    names: Names,
    /// Different inputs of the domain, as they were drawn.
    inputs: Vec<Config>,
    /// What was bound of inputs, awkward ones too.
    bound: Vec<Bound>,
}

/// What is kept of a bound input; its data may be large.
pub(super) struct Bound {
    pub(super) input: Config,
    pub(super) space: BoundSpace,
    default: Option<Point>,
    work: f64,
}

impl Bound {
    pub(super) fn of(problem: &dyn Problem) -> Self {
        let work = problem.work().flops + problem.work().bytes;
        let (space, default) = (problem.space().clone(), problem.default_point());
        Self { input: problem.input(), space, default, work }
    }

    /// Whether it has a legal configuration at all.
    pub(super) fn has_default(&self) -> bool {
        self.default.is_some()
    }
}

impl Exporting<'_> {
    /// Draws inputs that the kernel takes, and finds out how its rules see them.
    pub(super) fn drawn(&self) -> Result<Drawn, Error> {
        let (mut inputs, mut seen, mut bound) = (Vec::new(), Vec::new(), Vec::new());
        let count = (self.settings.inputs + self.settings.held_out).max(1);
        let mut rng = ChaCha8Rng::seed_from_u64(self.settings.seed);
        let (clock, most) = (Instant::now(), self.time_to_draw());
        let (mut known, mut refused) = (HashSet::new(), None);
        for at in 0..count + DRAWN + AWKWARD {
            // What is timed is needed, however long it takes.
            if clock.elapsed() > most && inputs.len() >= count {
                break;
            }
            let (limits, mut uniform) = (&self.settings.limits, || rng.random());
            let is_awkward = at >= count + DRAWN;
            let drawn = match is_awkward {
                true => self.kernel.draw_awkward(self.fixed, limits, &mut uniform),
                false => self.kernel.draw(self.fixed, limits, &mut uniform),
            };
            let input = drawn.map_err(RuntimeError::from)?;
            match problem(&**self.kernel, self.device, &input) {
                Ok(problem) => {
                    let is_new = known.insert(input.to_string());
                    if is_new && !is_awkward {
                        inputs.push(problem.input());
                    }
                    if is_new {
                        seen.push((problem.input(), problem.space().symbols().clone()));
                        bound.push(Bound::of(&*problem));
                    }
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        if let (true, Some(error)) = (inputs.is_empty(), refused) {
            return Err(error);
        }
        Drawn::new(self, inputs, (seen, bound))
    }
}

impl Drawn {
    fn new(of: &Exporting<'_>, inputs: Vec<Config>, (seen, mut bound): (Vec<Seen>, Vec<Bound>)) -> Result<Self, Error> {
        let domain = Domain::of(&inputs).map_err(ExportError::from)?;
        let names = Names::find(&**of.kernel, of.device, &domain, &seen);
        bound.retain(|one| domain.numbers(&one.input).is_ok());
        let inputs = domain.within(&inputs).into_iter().cloned().collect();
        Ok(Self { bound, names, inputs, domain })
    }

    pub(super) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Different inputs of the domain.
    pub(super) fn inputs(&self) -> &[Config] {
        &self.inputs
    }

    /// How many inputs were seen.
    pub(super) fn len(&self) -> usize {
        self.bound.len()
    }

    /// A configuration with its conditions; none where they are no code.
    pub(super) fn candidate(&self, of: &Exporting<'_>, point: Point) -> Option<Candidate> {
        let space = of.kernel.space();
        let value = |(param, &at): (&tilewright_core::space::Param, &u16)| {
            Some((param.name.clone(), param.values.get(usize::from(at))?.clone()))
        };
        let config = Config(space.params().iter().zip(point.iter()).filter_map(value).collect());
        let conditions = self.names.conditions(space, &config, &self.domain)?;
        Some(Candidate { choice: Choice { config, conditions }, point })
    }

    /// Why no configuration can be exported.
    pub(super) fn inexpressible(&self, of: &Exporting<'_>) -> ExportError {
        let words = self.domain.fields.iter().filter(|field| !field.is_integer());
        let example: Vec<String> =
            words.filter_map(|field| Some(format!("{}={}", field.name, field.words.first()?))).collect();
        let example = if example.is_empty() { "a size".to_owned() } else { example.join(" ") };
        ExportError::Rules { kernel: of.kernel.id().to_string(), unknown: self.names.unknown.clone(), example }
    }

    /// The drawn input with the least work that a point is legal for, of further ones too.
    pub(super) fn smallest<'a>(&'a self, further: &'a [Bound], point: &Point) -> Option<&'a Config> {
        let legal = self.bound.iter().chain(further).filter(|one| one.work > 0.0 && one.space.is_legal(point));
        legal.min_by(|a, b| a.work.total_cmp(&b.work)).map(|one| &one.input)
    }

    /// Candidates, and defaults, for drawn inputs and further ones that none of the chosen ones is legal for; and how many of these have none
    /// even so.
    pub(super) fn covering(
        &self,
        of: &Exporting<'_>,
        further: &[Bound],
        (candidates, wrong): (&[Candidate], &[Point]),
        chosen: &[usize],
        most: usize,
    ) -> (Vec<Candidate>, usize) {
        let is_served = |space: &BoundSpace| chosen.iter().any(|&at| space.is_legal(&candidates[at].point));
        let all = self.bound.iter().chain(further);
        let unserved: Vec<&Bound> = all.filter(|one| one.has_default() && !is_served(&one.space)).collect();
        let mut points: Vec<Point> = candidates.iter().map(|candidate| candidate.point.clone()).collect();
        points.extend(unserved.iter().filter_map(|one| one.default.clone()));
        let mut known: HashSet<Point> = wrong.iter().cloned().collect();
        points.retain(|point| known.insert(point.clone()));
        let able: Vec<Candidate> = points.into_iter().filter_map(|point| self.candidate(of, point)).collect();
        let legal = |one: &&Bound| able.iter().map(|able| one.space.is_legal(&able.point)).collect();
        let rows: Vec<Vec<bool>> = unserved.iter().map(legal).collect();
        let (taken, left) = cover(&rows, most);
        let mut able: Vec<Option<Candidate>> = able.into_iter().map(Some).collect();
        (taken.into_iter().filter_map(|at| able[at].take()).collect(), left)
    }
}
