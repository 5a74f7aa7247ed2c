//! Products of 16-bit floating point and of 8-bit integers by the tile registers of AMX.
//!
//! A tile holds 16 rows of 64 bytes. Sums are tiles of 16 columns of C, each of 16 neighbours along its rows: C is written as it lies.
//! What is multiplied is packed: of A, groups of neighbours along the reduction (pairs of 16-bit numbers, fours of integers) side by side
//! for 16 rows of C; of B, 64 bytes along the reduction for each of 16 columns.
//!
//! | file | what |
//! |---|---|
//! | `space` | parameters, rules, what models see, the default |
//! | `tile` | generated code of blocks of tiles |
//! | `pack` | operands as tiles read them |
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

pub use kernel::{AmxPlan, CpuAmx};

use tilewright_core::dtype::DType;

/// Rows of a tile, and the 32-bit numbers of each.
const SIDE: usize = 16;

/// Bytes of a row of a tile, and of a tile.
const ROW: usize = 64;
const TILE: usize = SIDE * ROW;

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
