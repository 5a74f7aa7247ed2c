//! Uniform sampling without rejection: legal points are counted, and drawn by number.

use crate::{Acceptance, Draw, DrawError, Sampler};
use rand::{Rng, RngCore};
use tilewright_core::space::{BoundSpace, Point, Shard};

/// Parts that a space is counted in: a draw walks one part, on average half of it.
const PARTS: usize = 4_096;

/// Every legal point with equal probability, at the first attempt: what accepted samples of [`crate::Uniform`] are,
/// where those would take too long.
///
/// The first draw from a space counts its legal points, which costs a walk over it (tens of milliseconds for a million
/// legal points); a change of the space costs another. For spaces that can be walked.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    seen: Acceptance,
    index: Option<Index>,
}

impl Exact {
    /// A sampler that has counted nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Sampler for Exact {
    fn draw(&mut self, space: &BoundSpace, rng: &mut dyn RngCore) -> Result<Draw, DrawError> {
        let index = match self.index.take() {
            Some(index) if index.space.is_clone_of(space) => index,
            _ => Index::new(space),
        };
        let index = self.index.insert(index);
        let legal = index.ends.last().copied().unwrap_or(0);
        if legal == 0 {
            let rule = space.census().rejected_by.into_iter().max_by_key(|(_, count)| *count).map(|(rule, _)| rule);
            return Err(DrawError::Exhausted { attempts: 0, cartesian: space.cartesian(), rule });
        }
        let point = index.point(rng.random_range(0..legal));
        self.seen.count(None);
        Ok(Draw { point, attempts: 1 })
    }

    fn acceptance(&self) -> &Acceptance {
        &self.seen
    }
}

/// How many legal points of a space come before the end of each part.
#[derive(Clone, Debug)]
struct Index {
    space: BoundSpace,
    parts: Vec<Shard>,
    ends: Vec<u64>,
}

impl Index {
    fn new(space: &BoundSpace) -> Self {
        space.remember();
        let parts = space.shards(PARTS);
        let mut end = 0;
        let mut count = |part| {
            end += space.count_legal_in(part);
            end
        };
        let ends = parts.iter().map(&mut count).collect();
        Self { space: space.clone(), parts, ends }
    }

    /// The legal point of a number in walking order.
    fn point(&self, number: u64) -> Point {
        let part = self.ends.partition_point(|&end| end <= number);
        let mut left = number - if part == 0 { 0 } else { self.ends[part - 1] };
        let mut found = Vec::new();
        self.space.for_each_legal_in(&self.parts[part], &mut |indices| {
            if left == 0 {
                found.extend_from_slice(indices);
                return false;
            }
            left -= 1;
            true
        });
        Point(found)
    }
}
