//! A predictor, a search strategy and a selector that Tilewright does not know, used by its planner: on a GEMM of the host, and on a
//! product of a sparse matrix, whose kernels the selector ranks.

use std::collections::BTreeMap;
use std::time::Duration;
use tilewright::core::measurement::Outcome;
use tilewright::core::predictor::{BindError, Predictor, Scorer};
use tilewright::core::problem::Problem;
use tilewright::core::search::{Ranked, Search};
use tilewright::core::selector::{Candidate, Selector, VariantOrder};
use tilewright::core::space::{BoundSpace, Point, Points};
use tilewright::search::Choice;
use tilewright::{Error, Request, Tuner, gemm};

/// Expects most of the largest tiles in registers.
struct RuleOfThumb;

/// The rule with its space.
struct Tiles<'a>(&'a BoundSpace);

impl Predictor for RuleOfThumb {
    fn kind(&self) -> &str {
        "rule-of-thumb"
    }

    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        Ok(Box::new(Tiles(problem.space())))
    }
}

impl Scorer for Tiles<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        for (point, cost) in points.iter().zip(out) {
            let size = |name| self.0.at(point).and_then(|at| at.int::<u16>(name)).map_or(1.0, f32::from);
            *cost = -(size("m_s") * size("n_s")).ln();
        }
    }
}

/// Walks from the first start to the best of all configurations that differ in one parameter, until there is no better one.
struct Walk<'a> {
    space: &'a BoundSpace,
    /// What is still to be asked.
    next: Vec<Point>,
    seen: BTreeMap<Point, f64>,
    at: Option<Point>,
}

impl Walk<'_> {
    fn around(&self, at: &Point) -> Vec<Point> {
        let mut out = Vec::new();
        for (i, param) in self.space.params().iter().enumerate() {
            for value in (0..param.values.len() as u16).filter(|v| *v != at[i]) {
                let mut point = at.clone();
                point.0[i] = value;
                if self.space.is_legal(&point) && !self.seen.contains_key(&point) {
                    out.push(point);
                }
            }
        }
        out
    }
}

impl Search for Walk<'_> {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        if self.next.is_empty() {
            let best = self.best().points.first().map(|(point, _)| point.clone());
            if best.is_some() && best != self.at {
                self.next = self.around(best.as_ref().expect("it was just seen"));
                self.at = best;
            }
        }
        self.next.split_off(self.next.len().saturating_sub(n))
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        for (point, outcome) in seen {
            let cost = outcome.as_ref().map_or(f64::INFINITY, |m| m.time_s);
            self.seen.insert(point.clone(), cost);
            self.next.retain(|p| p != point);
        }
    }

    fn best(&self) -> Ranked {
        let mut points: Vec<(Point, f64)> = self.seen.clone().into_iter().filter(|(_, cost)| cost.is_finite()).collect();
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ranked { considered: points.len() as u64, points }
    }
}

/// Prefers kernels that store diagonals, as who has banded matrices would.
struct DiagonalsFirst;

impl Selector for DiagonalsFirst {
    fn rank(&self, _: &[f32], candidates: &[Candidate], out: &mut VariantOrder) {
        *out = (0..candidates.len()).collect();
        out.sort_by_key(|&at| !candidates[at].variant.contains(".dia"));
    }
}

fn by_own_selector() -> Result<(), Error> {
    let mut tuner = Tuner::on("cpu")?.threads(1)?.selector(DiagonalsFirst).budget(Duration::from_secs(1));
    let banded = Request::of("spmv").with("matrix", "banded").with("rows", 3000).with("half", 3);
    let product = tuner.plan(&banded)?;
    let planned = product.planned();
    println!("{}: {}", planned.kernel, planned.reason);
    let ranked = planned.decision.selection.as_ref().map(|selection| selection.ranked[0].to_string());
    assert_eq!(ranked.as_deref(), Some("spmv.dia.1"));
    assert!(planned.verified);
    Ok(())
}

fn main() -> Result<(), Error> {
    let walk = Choice::own("walk", |setup, _| {
        let next = setup.starts.first().cloned().into_iter().collect();
        Box::new(Walk { space: setup.space, next, seen: BTreeMap::new(), at: None })
    });
    let mut tuner = Tuner::on("cpu")?.threads(1)?.predictor(RuleOfThumb).strategy(walk);
    tuner = tuner.budget(Duration::from_secs(2));
    let product = tuner.plan(&gemm(200, 60, 300))?;
    let planned = product.planned();
    println!("{}: {}", planned.config, planned.reason);
    let searched = planned.searched.as_ref().map(|s| s.strategy.as_str());
    assert_eq!((planned.decision.model.as_deref(), searched), (Some("rule-of-thumb"), Some("walk")));
    assert!(planned.verified);
    by_own_selector()
}
