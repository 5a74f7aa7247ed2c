//! What the instruction set leaves to the hardware: how `mma` rounds, and which warp runs when.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How `mma` adds up products of 16-bit and tf32 factors. Integers are exact and binary64 is added by fused multiply-adds
/// whatever is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MmaRounding {
    /// In binary64 from the first product to the last, rounded once: closer to the exact sum than any hardware.
    #[default]
    Exact,
    /// As the least exact of the tensor cores that have the instruction: a few products at a time are aligned to the largest
    /// exponent, cut off, added, and the sum is cut off again. The crate's documentation has the numbers.
    Truncated,
}

/// Which warp of a block runs next, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// One warp after the other, each until it waits.
    #[default]
    Lockstep,
    /// By a generator with this seed: any warp that can run, for a number of instructions that is drawn as well. The same
    /// seed gives the same bytes on any number of threads of the host.
    Random(u64),
}

/// The choices that hardware may make and the emulator makes too. As text it is what differs from the defaults, such as
/// `mma=truncated:schedule=7`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Behaviour {
    /// How `mma` rounds.
    pub mma: MmaRounding,
    /// Which warp runs when.
    pub schedule: Schedule,
}

/// A text that is no [`Behaviour`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is nothing that an emulator can be told: it knows mma=exact, mma=truncated, schedule=lockstep and schedule=SEED"
)]
pub struct UnknownBehaviour(pub String);

impl FromStr for Behaviour {
    type Err = UnknownBehaviour;

    fn from_str(text: &str) -> Result<Self, UnknownBehaviour> {
        let mut out = Self::default();
        for part in text.split(':') {
            let unknown = || UnknownBehaviour(part.to_owned());
            match part.split_once('=') {
                Some(("mma", "exact")) => out.mma = MmaRounding::Exact,
                Some(("mma", "truncated")) => out.mma = MmaRounding::Truncated,
                Some(("schedule", "lockstep")) => out.schedule = Schedule::Lockstep,
                Some(("schedule", seed)) => out.schedule = Schedule::Random(seed.parse().map_err(|_| unknown())?),
                _ => return Err(unknown()),
            }
        }
        Ok(out)
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.mma == MmaRounding::Truncated {
            parts.push("mma=truncated".to_owned());
        }
        if let Schedule::Random(seed) = self.schedule {
            parts.push(format!("schedule={seed}"));
        }
        f.write_str(&parts.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_behaviours() {
        for text in ["mma=truncated", "schedule=0", "mma=truncated:schedule=18446744073709551615"] {
            assert_eq!(text.parse::<Behaviour>().map(|b| b.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("schedule=lockstep:mma=exact".parse(), Ok(Behaviour::default()));
        assert_eq!(Behaviour::default().to_string(), "");
        for bad in ["", "mma", "mma=", "mma=fast", "schedule=-1", "schedule=x", "mma=exact:", "seed=1"] {
            let error = bad.parse::<Behaviour>().unwrap_err().to_string();
            assert!(error.contains("mma=truncated") && error.contains("schedule=SEED"), "{error}");
        }
    }
}
