//! What a uniform sample without replacement shows of a space.

/// A sample of the costs of a space of known size; only its lower tail is held.
#[derive(Clone, Debug)]
pub struct Sample {
    size: usize,
    seen: usize,
    /// `-ln(1 - epsilon)`: the distance, in log cost, that is tolerated.
    width: f64,
    /// Log costs within a width of the least, ascending: as the least falls, none beyond it can come within.
    tail: Vec<f64>,
    /// How many were seen when the best was found.
    found_at: usize,
}

impl Sample {
    /// An empty sample of a space of `size` points.
    pub fn new(size: usize, epsilon: f64) -> Self {
        Self { size, seen: 0, width: -(1.0 - epsilon).ln(), tail: Vec::new(), found_at: 0 }
    }

    /// Adds the cost of a point that was not seen before; infinite for a failure.
    pub fn see(&mut self, cost: f64) {
        self.seen += 1;
        let cost = cost.ln();
        let best = self.best();
        if !cost.is_finite() || cost >= best + self.width {
            return;
        }
        let at = self.tail.partition_point(|c| *c <= cost);
        self.tail.insert(at, cost);
        if cost < best {
            self.found_at = self.seen;
            let most = cost + self.width;
            self.tail.truncate(self.tail.partition_point(|c| *c < most));
        }
    }

    /// Points of the space.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Points seen.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Share of the space that was seen.
    pub fn share(&self) -> f64 {
        self.seen as f64 / self.size.max(1) as f64
    }

    /// The least log cost; infinite if all failed.
    pub fn best(&self) -> f64 {
        self.tail.first().copied().unwrap_or(f64::INFINITY)
    }

    /// The tolerated distance in log cost.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// How many were seen when the best was found, the best included.
    pub fn found_at(&self) -> usize {
        self.found_at
    }

    /// How many are slower than the best by less than the tolerance, the best included.
    pub fn within(&self) -> usize {
        self.tail.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_follows_the_best() {
        let mut sample = Sample::new(100, 0.05);
        for cost in [10.0, 10.3, 12.0, 30.0, f64::INFINITY] {
            sample.see(cost);
        }
        assert_eq!((sample.seen(), sample.within()), (5, 2));
        assert_eq!(sample.found_at(), 1);
        sample.see(9.4);
        // 10.0 is 6.2% slower, beyond the tolerance of 5.3%.
        assert_eq!((sample.within(), sample.found_at()), (1, 6));
        sample.see(9.6);
        assert_eq!((sample.within(), sample.found_at()), (2, 6));
        sample.see(1.0);
        assert_eq!((sample.within(), sample.best()), (1, 0.0));
    }
}
