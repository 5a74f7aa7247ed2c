//! How fast this core runs now, by a chain of operations that no core can shorten.

use std::hint::black_box;
use std::time::Instant;

/// Three dependent pairs of a shift and an exclusive or a step (Marsaglia's xorshift): about 6 cycles, some 50 us in all.
const STEPS: u32 = 25_000;

/// The shortest of so many: whatever interrupts a chain only makes it longer.
const CHAINS: usize = 3;

/// Steps a second.
pub(super) fn speed() -> f64 {
    let chain = |_| {
        let begun = Instant::now();
        let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
        for _ in 0..STEPS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        black_box(x);
        begun.elapsed().as_secs_f64()
    };
    f64::from(STEPS) / (0..CHAINS).map(chain).fold(f64::INFINITY, f64::min).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_makes_between_ten_million_and_ten_billion_steps_a_second() {
        let speed = speed();
        assert!((1e7..1e10).contains(&speed), "{speed}");
    }
}
