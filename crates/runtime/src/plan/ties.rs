//! The order among configurations that count as equal. It knows no times, so that every run and every rank takes the same one.

use super::pool::{Candidate, Pool};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use tilewright_core::decision::{Tie, Tied};
use tilewright_core::problem::Problem;
use tilewright_core::space::Point;

/// The order among configurations, as answers state it.
pub const TIE_ORDER: &str = "the remembered configuration, then the default, then the least predicted cost, then the least \
                             workspace, then the first in the order of the space";

/// The order among kernels, as answers state it.
pub const KERNEL_TIE_ORDER: &str =
    "the kernel of the remembered answer, then the selector's rank, then the default kernel, then the name";

/// What an order looks at, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Remembered,
    Default,
    Predicted,
    /// Code is generated to know it, so it is asked for only where nothing before it decides.
    Workspace,
    Point,
}

/// See [`TIE_ORDER`].
const STEPS: [Step; 5] = [Step::Remembered, Step::Default, Step::Predicted, Step::Workspace, Step::Point];

impl Step {
    /// Why the first of several is ahead, as part of a sentence.
    fn why(self) -> &'static str {
        match self {
            Self::Remembered => "it is the remembered one",
            Self::Default => "it is the default",
            Self::Predicted => "the model expects the least of it",
            Self::Workspace => "it needs the least workspace",
            Self::Point => "it comes first in the space",
        }
    }
}

/// Those of a pool that count as equal to the best, each with its cost by the best's, and how far behind they may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Equals {
    /// In the stated order.
    pub(super) members: Vec<(usize, f64)>,
    pub(super) within: f64,
}

/// The stated order among the candidates of a pool.
pub(super) struct Preference<'p> {
    problem: &'p dyn Problem,
    pool: &'p Pool,
    remembered: Option<&'p Point>,
    default: Option<&'p Point>,
    workspaces: RefCell<HashMap<Point, u64>>,
}

impl<'p> Preference<'p> {
    pub(super) fn new(
        problem: &'p dyn Problem,
        pool: &'p Pool,
        (remembered, default): (Option<usize>, Option<usize>),
    ) -> Self {
        let [remembered, default] = [remembered, default].map(|at| at.map(|at| &pool.get(at).point));
        Self { problem, pool, remembered, default, workspaces: RefCell::default() }
    }

    /// Brings candidates into the order as far as it is known without generating code.
    pub(super) fn sort_unseen(&self, candidates: &mut [usize]) {
        let get = |at: &usize| self.pool.get(*at);
        candidates.sort_by(|a, b| self.first_of(get(a), get(b), |step| step != Step::Workspace).0);
    }

    /// Brings those that count as equal into the order.
    pub(super) fn sort(&self, members: &mut [(usize, f64)]) {
        members.sort_by(|(a, _), (b, _)| self.order(self.pool.get(*a), self.pool.get(*b)));
    }

    /// Which of two comes first.
    pub(super) fn order(&self, a: &Candidate, b: &Candidate) -> Ordering {
        self.first_of(a, b, |_| true).0
    }

    /// Which of two comes first, and which of the steps that count says so.
    fn first_of(&self, a: &Candidate, b: &Candidate, counts: impl Fn(Step) -> bool) -> (Ordering, Step) {
        let is_not = |named: Option<&Point>, c: &Candidate| named != Some(&c.point);
        let predicted = |c: &Candidate| c.predicted_s.unwrap_or(f64::INFINITY);
        let compare = |step: &Step| match step {
            Step::Remembered => is_not(self.remembered, a).cmp(&is_not(self.remembered, b)),
            Step::Default => is_not(self.default, a).cmp(&is_not(self.default, b)),
            Step::Predicted => predicted(a).total_cmp(&predicted(b)),
            Step::Workspace => self.workspace(&a.point).cmp(&self.workspace(&b.point)),
            Step::Point => a.point.cmp(&b.point),
        };
        let steps = STEPS.into_iter().filter(|step| counts(*step));
        let mut found = steps.map(|step| (compare(&step), step));
        found.find(|(order, _)| order.is_ne()).unwrap_or((Ordering::Equal, Step::Point))
    }

    /// Bytes of workspace that a point's program needs.
    fn workspace(&self, point: &Point) -> u64 {
        if let Some(known) = self.workspaces.borrow().get(point) {
            return *known;
        }
        let legal = self.problem.space().check(point);
        let bytes = legal.map_or(u64::MAX, |legal| self.problem.program(&legal).workspace);
        self.workspaces.borrow_mut().insert(point.clone(), bytes);
        bytes
    }

    /// What a decision says of the band; None where the choice is not of it, since all that are of it were wrong.
    pub(super) fn tie(&self, equals: Equals, choice: usize) -> Option<Tie> {
        let Equals { mut members, within } = equals;
        // Whoever was ahead of the choice computed something else.
        members.drain(..members.iter().position(|(at, _)| *at == choice)?);
        let ahead = |other: usize| self.first_of(self.pool.get(choice), self.pool.get(other), |_| true).1.why();
        let why = members.get(1).map_or("", |(other, _)| ahead(*other)).to_owned();
        let told = |(at, relative): &(usize, f64)| {
            let candidate = self.pool.get(*at);
            Tied {
                kernel: self.problem.kernel(),
                config: self.problem.space().config(&candidate.point),
                measured_s: candidate.measurement().map(|m| m.time_s),
                relative: *relative,
            }
        };
        Some(Tie { members: members.iter().map(told).collect(), within, order: TIE_ORDER.into(), why })
    }
}

/// A tie for people, as part of a sentence; None where only one was as good as the best.
pub(super) fn told(tie: &Tie, what: &str) -> Option<String> {
    let (count, percent) = (tie.members.len(), 100.0 * tie.within);
    let why = &tie.why;
    (count > 1).then(|| format!("{count} {what} within {percent:.1}% of the best count as equal: {why}"))
}
