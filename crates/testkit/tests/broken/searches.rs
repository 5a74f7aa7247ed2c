//! Every check of the search and sampler suites can fail: one deliberate fault each.

use crate::assert_breaks;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilewright_core::measurement::Outcome;
use tilewright_core::search::{Ranked, Search};
use tilewright_core::space::{BoundSpace, Point};
use tilewright_testkit::toy::Sequential;
use tilewright_testkit::{Conformity, Draw, legal_points, sampler, search};

fn tick() -> usize {
    static TICKS: AtomicUsize = AtomicUsize::new(0);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    AsksIllegal,
    AsksOutside,
    AsksAgain,
    AsksTooMany,
    AsksAtZero,
    Varies,
    ComesBack,
    AsksNothing,
    BestIsFirst,
    BestForgets,
    BestInvents,
    BestUnsorted,
    CountsFailures,
    IgnoresWarmStart,
}

struct BrokenSearch {
    inner: Sequential,
    last: Vec<Point>,
    asked: bool,
    ended: bool,
    invented: Option<Point>,
    fault: Fault,
}

impl Search for BrokenSearch {
    fn ask(&mut self, n: usize) -> Vec<Point> {
        let mut points = match self.fault {
            Fault::AsksAtZero => self.inner.ask(n.max(1)),
            Fault::AsksTooMany if n > 0 => self.inner.ask(n + 1),
            Fault::AsksNothing => Vec::new(),
            _ => self.inner.ask(n),
        };
        match self.fault {
            Fault::AsksIllegal => points.iter_mut().for_each(|p| p.0[0] = 4 - p.0[0]),
            Fault::AsksOutside => points.iter_mut().for_each(|p| p.0[0] = 99),
            Fault::AsksAgain if n > 0 && points.is_empty() => points.clone_from(&self.last),
            Fault::Varies if points.len() > 2 => {
                let len = points.len();
                points.rotate_left(tick() % len);
            }
            Fault::ComesBack if n > 0 && points.is_empty() && self.asked => {
                if self.ended {
                    points.clone_from(&self.last);
                }
                self.ended = true;
            }
            _ => {}
        }
        if !points.is_empty() {
            self.last.clone_from(&points);
            self.asked = true;
        }
        points
    }

    fn tell(&mut self, seen: &[(Point, Outcome)]) {
        self.invented = seen.first().map(|(p, _)| p.clone());
        match self.fault {
            Fault::IgnoresWarmStart if !self.asked => {}
            Fault::CountsFailures => {
                let counted = seen.iter().map(|(p, o)| {
                    let m = o.clone().unwrap_or(tilewright_core::measurement::Measurement::recorded(1e-9));
                    (p.clone(), Ok(m))
                });
                self.inner.tell(&counted.collect::<Vec<_>>());
            }
            _ => self.inner.tell(seen),
        }
    }

    fn best(&self) -> Ranked {
        let mut best = self.inner.best();
        match self.fault {
            Fault::BestIsFirst => best.points.reverse(),
            Fault::BestForgets => best.points.truncate(0),
            Fault::BestInvents => best.points.extend(self.invented.clone().map(|p| (p, 9.0))),
            Fault::BestUnsorted if best.points.len() > 2 => best.points.swap(1, 2),
            _ => {}
        }
        best
    }
}

fn search_with(fault: Fault) -> Conformity {
    search(&|problem, _| {
        let inner = Sequential::new(problem.space());
        Box::new(BrokenSearch { inner, last: Vec::new(), asked: false, ended: false, invented: None, fault })
    })
}

#[test]
fn every_fault_of_a_search_is_seen() {
    assert_eq!(search_with(Fault::None), Ok(()));
    for (fault, check) in [
        (Fault::AsksIllegal, "asks-legal-points"),
        (Fault::AsksOutside, "asks-legal-points"),
        (Fault::AsksAgain, "asks-unseen-points"),
        (Fault::AsksTooMany, "asks-no-more-than-wanted"),
        (Fault::AsksAtZero, "asks-no-more-than-wanted"),
        (Fault::Varies, "search-repeats"),
        (Fault::ComesBack, "stays-finished"),
        (Fault::AsksNothing, "asks-something"),
        (Fault::BestIsFirst, "best-is-the-least-told"),
        (Fault::BestForgets, "best-is-the-least-told"),
        (Fault::BestInvents, "best-was-told"),
        (Fault::BestUnsorted, "best-is-sorted"),
        (Fault::CountsFailures, "best-is-the-least-told"),
        (Fault::IgnoresWarmStart, "best-is-the-least-told"),
    ] {
        assert_breaks(search_with(fault), check);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Slip {
    Illegal,
    FromNothing,
    OnlyOne,
    GivesUp,
    Varies,
    IgnoresSeed,
    Narrow,
}

fn sampler_with(slip: Slip) -> Conformity {
    sampler(&move |space: &BoundSpace, seed: u64| -> Draw<'_> {
        let seed = match slip {
            Slip::Varies => tick() as u64,
            Slip::IgnoresSeed => 0,
            _ => seed,
        };
        let mut points = legal_points(space, 600, seed);
        match slip {
            Slip::Illegal => points.iter_mut().for_each(|p| p.0[0] = 4),
            Slip::FromNothing => points.push(Point(vec![0; 5])),
            Slip::OnlyOne => points.truncate(1),
            Slip::GivesUp if points.len() > 3 => points.truncate(100),
            Slip::Narrow if points.len() > 3 => points.retain(|p| p[4] == 0),
            _ => {}
        }
        let endless = if points.len() < 4 || slip == Slip::Narrow { 1000 } else { 1 };
        let mut draws = std::iter::repeat_n(points, endless).flatten();
        Box::new(move || draws.next())
    })
}

#[test]
fn every_fault_of_a_sampler_is_seen() {
    for (slip, check) in [
        (Slip::Illegal, "draws-legal-points"),
        (Slip::FromNothing, "empty-space-ends"),
        (Slip::OnlyOne, "small-spaces-are-covered"),
        (Slip::GivesUp, "draws-enough"),
        (Slip::Varies, "sampler-repeats"),
        (Slip::IgnoresSeed, "sampler-follows-seed"),
        (Slip::Narrow, "values-are-covered"),
    ] {
        assert_breaks(sampler_with(slip), check);
    }
}
