//! Emptying the caches before a run.

use crate::device::DeviceSpec;

/// Overwrites more memory than the last-level cache holds.
pub struct Evictor {
    lines: Vec<[u64; 8]>,
    turn: u64,
}

/// How many times the last-level cache is overwritten: replacement is not strictly least-recently-used.
const TIMES_THE_CACHE: u64 = 3;

/// Assumed size of the last-level cache where the device does not say.
const ASSUMED_CACHE_BYTES: u64 = 64 << 20;

impl Evictor {
    /// An evictor for a last-level cache of this many bytes.
    pub fn new(last_level_bytes: u64) -> Self {
        let lines = usize::try_from(last_level_bytes.saturating_mul(TIMES_THE_CACHE) / 64).unwrap_or(usize::MAX / 64);
        Self { lines: vec![[0; 8]; lines.max(1)], turn: 0 }
    }

    /// An evictor for the largest cache that a device's facts name.
    pub fn of(spec: &DeviceSpec) -> Self {
        Self::new(last_level_bytes(spec))
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

fn last_level_bytes(spec: &DeviceSpec) -> u64 {
    let of_cache = |name: &str| name.starts_with('l') && name.ends_with("_bytes");
    let sizes = spec.facts.iter().filter(|(name, _)| of_cache(name)).map(|(_, bytes)| *bytes);
    sizes.max().and_then(|b| u64::try_from(b).ok()).filter(|b| *b > 0).unwrap_or(ASSUMED_CACHE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKind;
    use std::collections::BTreeMap;

    #[test]
    fn the_size_of_the_cache_comes_from_the_device() {
        let mut spec = DeviceSpec {
            id: "toy".into(),
            name: "toy".into(),
            kind: DeviceKind::Cpu,
            driver: "1".into(),
            facts: [("l1d_bytes", 1 << 15), ("l3_bytes", 1 << 20), ("cores", 8)].map(|(n, v)| (n.into(), v)).into(),
            measured: BTreeMap::new(),
        };
        assert_eq!(last_level_bytes(&spec), 1 << 20);
        spec.facts.clear();
        assert_eq!(last_level_bytes(&spec), ASSUMED_CACHE_BYTES);
    }

    #[test]
    fn writes_more_than_the_cache() {
        let mut evictor = Evictor::new(1 << 20);
        assert!(evictor.bytes() >= 2 << 20);
        evictor.evict();
        evictor.evict();
        assert!(evictor.lines.iter().all(|l| l[0] == 3));
    }
}
