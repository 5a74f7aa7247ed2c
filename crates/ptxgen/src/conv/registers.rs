//! Registers of a thread: what the code needs, and what it is allowed.
//!
//! The need follows the structure of the code as that of the GEMM does, and adds what is gathered by: for each of a thread's
//! positions an offset, a row and a column, and the entries of the table that loads wait for.

use super::blueprint::Blueprint;
use crate::gemm::registers::LIMIT;
use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// Adds the need of registers, what the hardware gives, and the rule.
pub(super) fn rules(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("words", "sum_bytes // 4")
        // Two operands of 16 bits share a register until they are multiplied.
        .define("held_f", "loads_f * ((vec_f * element + 3) // 4)")
        .define("held_g", "loads_g * ((vec_g * element + 3) // 4)")
        .define("held", "0 if load == 'async' else held_f + held_g")
        .define("overlap", "min(max(2, c_s - 1), u // c_l)")
        .define("gathering", "(3 if columns_checked else 2) * edges_g + min(4 * (loads_g // edges_g), 16)")
        .define("addresses", "2 * edges_f + gathering + (loads_f + loads_g) // 4")
        .define("sets", "(c_s + 4 if sum_bytes == 4 else 2 * c_s) if c_s > 1 else 0")
        .define(
            "registers_needed",
            "accumulators * words + held + (k_s + places_s) * words * overlap + addresses + sets + 26",
        )
        .define("register_limit", LIMIT)
        .rule(
            "registers",
            RuleGroup::Hardware,
            "registers_needed <= register_limit",
            "what does not fit is spilled to memory",
        )
}

impl Blueprint {
    /// Registers that the assembler may use: a quarter above the need, which is an estimate.
    pub fn registers_allowed(&self) -> u32 {
        self.comfortable().min(self.register_limit)
    }

    /// Whether the limit of the hardware leaves less than is comfortable: only then a few registers may be spilled.
    pub fn may_spill(&self) -> bool {
        self.comfortable() > self.register_limit
    }

    fn comfortable(&self) -> u32 {
        (self.registers_needed * 5 / 4).next_multiple_of(8)
    }
}
