//! Products of 16-bit floating point and of 8-bit integers by the tile registers of AMX.
//!
//! A tile holds 16 rows of 64 bytes. Of the two sides of a product, one is *woven*: groups of neighbours along the reduction (pairs of
//! 16-bit numbers, fours of integers) side by side for 16 rows or columns of C. Of the other, a tile has 64 bytes along the reduction for
//! each of 16 columns or rows. Where A is woven, a tile of sums has columns of C as its rows, and C is written as it lies; where B is, sums
//! are turned on their way. What lies along the reduction is cheap to read in rows, and what lies across it to weave.
//!
//! | file | what |
//! |---|---|
//! | `space` | parameters, rules, what models see, the default |
//! | `tile` | generated code of blocks of tiles |
//! | `pack` | operands as tiles read them |
//! | `wide` | the same by AVX-512, and sums turned |
//! | `driver` | what follows from an input and a configuration, and the loops |
//! | `finish` | sums that are not C as they are |
//! | `kernel` | the tunable kernel |
//! | `proofs` | tests in the interpreter |

mod driver;
mod finish;
mod kernel;
mod pack;
#[cfg(test)]
mod proofs;
mod space;
mod tile;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use kernel::{AmxPlan, CpuAmx};

use tilewright_core::dtype::DType;

/// Rows of a tile, and the 32-bit numbers of each.
const SIDE: usize = 16;

/// Bytes of a row of a tile, and of a tile.
const ROW: usize = 64;
const TILE: usize = SIDE * ROW;

/// Most tiles of a block along a side.
const MOST: usize = 3;

/// What operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operands {
    Bf16,
    I8,
}

impl Operands {
    /// Those of a type that the kernel accepts.
    fn of(dtype: DType) -> Self {
        if dtype == DType::I8 { Self::I8 } else { Self::Bf16 }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    /// Neighbours along the reduction that are multiplied by one instruction for one sum, in 32 bits.
    const fn group(self) -> usize {
        4 / self.bytes()
    }

    /// Steps of the reduction of a tile.
    const fn steps(self) -> usize {
        ROW / self.bytes()
    }
}
