//! Emptying the caches before a run.

/// Overwrites more memory than the last-level cache holds.
pub struct Evictor {
    lines: Vec<[u64; 8]>,
    turn: u64,
}

/// How many times the last-level cache is overwritten: replacement is not strictly least-recently-used.
const TIMES_THE_CACHE: u64 = 3;

impl Evictor {
    /// An evictor for a last-level cache of this many bytes.
    pub fn new(last_level_bytes: u64) -> Self {
        let lines = usize::try_from(last_level_bytes.saturating_mul(TIMES_THE_CACHE) / 64).unwrap_or(usize::MAX / 64);
        Self { lines: vec![[0; 8]; lines.max(1)], turn: 0 }
    }

    /// Writes every line.
    pub fn evict(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        for line in &mut self.lines {
            // Depends on what was there, so that neither loop nor buffer can be optimised away.
            line[0] = line[0].wrapping_add(self.turn);
        }
        std::hint::black_box(&self.lines[0]);
    }

    /// Bytes written by a call.
    pub fn bytes(&self) -> u64 {
        self.lines.len() as u64 * 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_more_than_the_cache() {
        let mut evictor = Evictor::new(1 << 20);
        assert!(evictor.bytes() >= 2 << 20);
        evictor.evict();
        evictor.evict();
        assert!(evictor.lines.iter().all(|l| l[0] == 3));
    }
}
