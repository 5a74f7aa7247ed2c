//! Sizes as people read them.

use std::fmt;

/// A number of bytes, written in the largest unit that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        match UNITS.iter().find(|(bits, _)| self.0 >> bits > 0) {
            Some((bits, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << bits) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn the_unit_suits_the_size() {
        let text = |bytes: u64| Bytes(bytes).to_string();
        assert_eq!((text(0), text(1023), text(1 << 10)), ("0 bytes".into(), "1023 bytes".into(), "1.0 KiB".into()));
        assert_eq!((text(3 << 19), text(5 << 29)), ("1.5 MiB".into(), "2.5 GiB".into()));
        assert_eq!(text(u64::MAX), "16777216.0 TiB");
    }
}
