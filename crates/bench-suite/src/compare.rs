//! N contenders on one task, interleaved.
//!
//! All contenders work on the same buffers. Each is checked first and warmed up; then, in rounds whose order rotates, each runs a block
//! of calls long enough for the clock, led, if calls are shorter than the block, by one that is not timed. A contender's time is the median over the
//! rounds of its mean time per call, so that a disturbance of one round, or a drift of the clock, touches all or none.

use std::fmt;
use std::time::{Duration, Instant};

use crate::settle::settle;

/// What the caches hold when a call starts, under the only policy of this module.
pub const CACHE_POLICY: &str =
    "warm: every call on the same buffers, caches as the contender's own previous call left them; packing is timed";

/// One of those compared.
pub struct Contender<'a, B: ?Sized> {
    name: String,
    run: Box<Run<'a, B>>,
}

/// Does the task once on the shared buffers, or says why it cannot.
type Run<'a, B> = dyn FnMut(&mut B) -> Result<(), String> + 'a;

impl<'a, B: ?Sized> Contender<'a, B> {
    /// A contender whose `run` does the task once on the shared buffers, or says why it cannot.
    pub fn new(name: impl Into<String>, run: impl FnMut(&mut B) -> Result<(), String> + 'a) -> Self {
        Contender { name: name.into(), run: Box::new(run) }
    }

    /// Its name in the results.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<B: ?Sized> fmt::Debug for Contender<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long and how often to time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Most rounds; each contender has one block of calls in each. At least 1.
    pub rounds: usize,
    /// Fewest rounds: after these, the rounds end once every contender has been timed for `enough`.
    pub min_rounds: usize,
    /// See `min_rounds`: long calls need no more rounds than this fills.
    pub enough: Duration,
    /// A block has as many calls as fit into this, and at least one.
    pub block: Duration,
    /// Time given to warming up each contender after the checked call, at least one call.
    pub warm_up: Duration,
    /// Wait before each block until the process is idle: needed when contenders have threads of their own.
    pub settle: bool,
}

impl Policy {
    /// The usual policy: 15 rounds of 30 ms, fewer (at least 7) where calls take longer than that: with fewer, one slow second of a
    /// shared machine is the median of whoever it meets.
    pub fn for_threads(threads: usize) -> Self {
        Policy {
            rounds: 15,
            min_rounds: 7,
            enough: Duration::from_millis(400),
            block: Duration::from_millis(30),
            warm_up: Duration::from_millis(15),
            settle: threads > 1,
        }
    }
}

/// What became of a contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The contender's name.
    pub name: String,
    /// Its time, or why its result was refused.
    pub time: Result<Time, String>,
}

/// The time of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Median over the rounds, seconds.
    pub median_s: f64,
    /// Fastest round, seconds.
    pub least_s: f64,
    /// Slowest round, seconds.
    pub most_s: f64,
    /// Timed calls, all rounds together.
    pub calls: usize,
}

/// Runs the comparison. Before the first call of each contender `prepare` puts the buffers into their first state (it should
/// leave no right result in C); after it `check` judges what the contender wrote, and one that is refused is not timed.
/// The outcomes are in the order of the contenders.
pub fn compare<B: ?Sized>(
    contenders: &mut [Contender<'_, B>],
    buffers: &mut B,
    policy: &Policy,
    mut prepare: impl FnMut(&mut B),
    mut check: impl FnMut(&B) -> Result<(), String>,
) -> Vec<Outcome> {
    let mut blocks: Vec<Result<Block, String>> = Vec::with_capacity(contenders.len());
    for contender in contenders.iter_mut() {
        settle_if(policy.settle);
        prepare(buffers);
        let checked = (contender.run)(buffers).and_then(|()| check(buffers));
        blocks.push(checked.and_then(|()| warm_up(contender, buffers, policy)));
    }
    for round in 0..policy.rounds.max(1) {
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            if let Ok(block) = &mut blocks[index] {
                settle_if(policy.settle);
                if let Err(reason) = block.time(&mut contenders[index], buffers) {
                    blocks[index] = Err(reason);
                }
            }
        }
        let timed_enough = |block: &Block| block.timed() >= policy.enough;
        if round + 1 >= policy.min_rounds && blocks.iter().flatten().all(timed_enough) {
            break;
        }
    }
    let named = contenders.iter().zip(blocks);
    named.map(|(contender, block)| Outcome { name: contender.name.clone(), time: block.map(|b| b.summary()) }).collect()
}

fn settle_if(wanted: bool) {
    if wanted {
        settle();
    }
}

/// The timed calls of one contender.
struct Block {
    calls: usize,
    /// Whether each block is led by a call that is not timed.
    led: bool,
    rounds: Vec<f64>,
}

fn warm_up<B: ?Sized>(contender: &mut Contender<'_, B>, buffers: &mut B, policy: &Policy) -> Result<Block, String> {
    let start = Instant::now();
    let mut least = f64::INFINITY;
    loop {
        let before = Instant::now();
        (contender.run)(buffers)?;
        least = least.min(before.elapsed().as_secs_f64());
        if start.elapsed() >= policy.warm_up {
            break;
        }
    }
    // a clock that did not move says only that the call is very short
    let calls = (policy.block.as_secs_f64() / least.max(1e-8)).round().max(1.0) as usize;
    // filling the caches again is a small part of a call that takes longer than a block
    let led = least <= policy.block.as_secs_f64();
    Ok(Block { calls, led, rounds: Vec::with_capacity(policy.rounds) })
}

impl Block {
    fn time<B: ?Sized>(&mut self, contender: &mut Contender<'_, B>, buffers: &mut B) -> Result<(), String> {
        if self.led {
            // brings the caches and the workers back from whoever ran before
            (contender.run)(buffers)?;
        }
        let start = Instant::now();
        for _ in 0..self.calls {
            (contender.run)(buffers)?;
        }
        self.rounds.push(start.elapsed().as_secs_f64() / self.calls as f64);
        Ok(())
    }

    fn timed(&self) -> Duration {
        Duration::from_secs_f64(self.rounds.iter().sum::<f64>() * self.calls as f64)
    }

    fn summary(mut self) -> Time {
        self.rounds.sort_by(f64::total_cmp);
        let count = self.rounds.len();
        let median_s = (self.rounds[(count - 1) / 2] + self.rounds[count / 2]) / 2.0;
        Time { median_s, least_s: self.rounds[0], most_s: self.rounds[count - 1], calls: self.calls * count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const QUICK: Policy = Policy {
        rounds: 4,
        min_rounds: 4,
        enough: Duration::MAX,
        block: Duration::ZERO,
        warm_up: Duration::ZERO,
        settle: false,
    };

    #[test]
    fn order_rotates_and_every_contender_sees_the_same_buffers() {
        let log = RefCell::new(Vec::new());
        let mut contenders: Vec<Contender<'_, u32>> = ["a", "b", "c"]
            .map(|name| {
                let log = &log;
                Contender::new(name, move |buffer: &mut u32| {
                    *buffer += 1;
                    log.borrow_mut().push(name);
                    Ok(())
                })
            })
            .into();
        let mut buffer = 0;
        let outcomes = compare(
            &mut contenders,
            &mut buffer,
            &QUICK,
            |b| *b = 10,
            |b| {
                if *b == 11 { Ok(()) } else { Err(format!("{b}")) }
            },
        );
        assert!(outcomes.iter().all(|outcome| outcome.time.is_ok()), "{outcomes:?}");
        // the checked call and the warm-up of each, then one call in each round
        let log = log.borrow();
        assert_eq!(log[6..], ["a", "b", "c", "b", "c", "a", "c", "a", "b", "a", "b", "c"]);
        assert_eq!(outcomes[1].time.as_ref().unwrap().calls, 4);
    }

    #[test]
    fn a_wrong_contender_is_named_and_not_timed() {
        let runs = RefCell::new(0);
        let mut contenders = [
            Contender::new("right", |buffer: &mut u32| {
                *buffer = 1;
                Ok(())
            }),
            Contender::new("wrong", |buffer: &mut u32| {
                *buffer = 2;
                *runs.borrow_mut() += 1;
                Ok(())
            }),
        ];
        let check = |b: &u32| if *b == 1 { Ok(()) } else { Err(format!("got {b}")) };
        let outcomes = compare(&mut contenders, &mut 0, &QUICK, |b| *b = 0, check);
        assert!(outcomes[0].time.is_ok());
        assert_eq!(outcomes[1].time, Err("got 2".to_owned()));
        drop(contenders);
        assert_eq!(runs.into_inner(), 1);
    }

    #[test]
    fn rounds_end_when_every_contender_has_been_timed_enough() {
        let rounds = |policy: Policy| {
            let mut contenders = [Contender::new("any", |_: &mut ()| Ok(()))];
            compare(&mut contenders, &mut (), &policy, |_| (), |_| Ok(()))[0].time.as_ref().unwrap().calls
        };
        assert_eq!(rounds(Policy { min_rounds: 2, enough: Duration::ZERO, ..QUICK }), 2);
        assert_eq!(rounds(Policy { min_rounds: 2, ..QUICK }), 4);
        assert_eq!(rounds(Policy { rounds: 0, min_rounds: 0, enough: Duration::ZERO, ..QUICK }), 1);
    }

    #[test]
    fn the_median_ignores_a_disturbed_round() {
        let block = |rounds: &[f64]| Block { calls: 2, led: true, rounds: rounds.to_vec() }.summary();
        assert_eq!(block(&[3.0, 1.0, 99.0]).median_s, 3.0);
        let even = block(&[1.0, 2.0, 99.0, 4.0]);
        assert_eq!((even.median_s, even.least_s, even.most_s, even.calls), (3.0, 1.0, 99.0, 8));
    }
}
