//! Instruction sets that one binary runs with: the same Rust function compiled for each, chosen at run time.

use std::fmt;
use tilewright_core::device::DeviceSpec;

/// What a loop may be vectorised with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Level {
    Sse2,
    Avx,
    Avx2,
    Avx512,
}

const ALL: [Level; 4] = [Level::Sse2, Level::Avx, Level::Avx2, Level::Avx512];

/// An instruction set that this host has: a value exists only where it was detected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(Level);

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Isa {
    /// What the binary was compiled for: SSE2 on x86-64.
    pub const BASE: Self = Self(Level::Sse2);

    /// All that this host has, the narrowest first.
    pub fn detected() -> Vec<Self> {
        ALL.into_iter().filter(|&level| has(level)).map(Self).collect()
    }

    /// The fact of a device that says which instruction set it uses: 0 for the narrowest, then in their order.
    pub const FACT: &'static str = "isa";

    /// The value of [`Isa::FACT`].
    pub fn fact(self) -> i64 {
        self.0 as i64
    }

    /// What the facts of a device say, as far as this host has it.
    pub fn of(spec: &DeviceSpec) -> Self {
        let by_width = || match spec.fact("vec_max") {
            Some(64..) => Level::Avx512 as i64,
            Some(32..) => Level::Avx2 as i64,
            _ => Level::Sse2 as i64,
        };
        let most = spec.fact(Self::FACT).unwrap_or_else(by_width);
        Self::detected().into_iter().rfind(|isa| isa.fact() <= most).unwrap_or(Self::BASE)
    }

    /// `sse2`, `avx`, `avx2` (with FMA and BMI) or `avx512` (with BW, CD, DQ and VL).
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Sse2 => "sse2",
            Level::Avx => "avx",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Runs `op` compiled for this instruction set. Only what is inlined into it is: see `on_isa`.
    #[inline(always)]
    pub fn run<R>(self, op: impl FnOnce() -> R) -> R {
        // SAFETY: a level other than the base exists only where `detected` found every feature that its function enables.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            match self.0 {
                Level::Sse2 => base(op),
                Level::Avx => avx(op),
                Level::Avx2 => avx2(op),
                Level::Avx512 => avx512(op),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            op()
        }
    }
}

/// Runs an expression of `#[inline(always)]` functions compiled for an instruction set.
macro_rules! on_isa {
    ($isa:expr, $body:expr) => {
        $isa.run(
            #[inline(always)]
            || $body,
        )
    };
}
pub(crate) use on_isa;

#[cfg(target_arch = "x86_64")]
fn has(level: Level) -> bool {
    use std::arch::is_x86_feature_detected as has;
    match level {
        Level::Sse2 => true,
        Level::Avx => has!("avx"),
        Level::Avx2 => has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt"),
        Level::Avx512 => {
            let wide = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
            self::has(Level::Avx2) && wide
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has(level: Level) -> bool {
    level == Level::Sse2
}

/// A function of its own, as the others are. Inlined into a thread's loop, products with SELL-P were 2.6 times slower, probably since the
/// compiler cannot tell that arguments there are not each other's memory.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn base<R>(op: impl FnOnce() -> R) -> R {
    op()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
fn avx<R>(op: impl FnOnce() -> R) -> R {
    op()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
fn avx2<R>(op: impl FnOnce() -> R) -> R {
    op()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
fn avx512<R>(op: impl FnOnce() -> R) -> R {
    op()
}
