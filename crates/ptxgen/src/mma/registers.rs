//! Registers of a thread: what the code needs, what the assembler is predicted to use, and what it is allowed.
//!
//! The need follows the structure of the code: accumulators; the fragments of the step that is computed and of the one that is
//! loaded; what loads hold until it is put in shared memory; addresses of fragments and of copies, which the permutation of
//! pieces makes several of; and a constant for coordinates, pointers and the loop. The constants were fitted to what ptxas 13
//! uses for random legal configurations. As for `gemm.simt`, the assembler is told a limit a little above.

use super::blueprint::Blueprint;
use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// Adds the need of registers, what the hardware gives, and the rule.
pub(super) fn rules(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("words", "sum_bytes // 4")
        .define("fragments", "(m_w + n_w) * depth * element // (4 * warp)")
        .define("overlap", "2 if u > depth else 1")
        .define("held", "0 if load == 'async' else loads_a * ((vec_a * element + 3) // 4) + loads_b * ((vec_b * element + 3) // 4)")
        .define("edges", "edges_a + edges_b")
        .define("places", "(min(u // depth, 4) if transpose_a else min(m_w // 16, 4)) + (min(n_w // 16, 4) if transpose_b else min(u // depth, 4))")
        .define("addresses", "places + edges // 2 + (loads_a + loads_b) // 4")
        .define("registers_needed", "accumulators * words + fragments * overlap + held + addresses + 32")
        // The hardware gives registers to warps in units of 8 per thread.
        .define("register_limit", "min(registers_per_thread, registers_per_block // threads // 8 * 8)")
        .rule(
            "registers",
            RuleGroup::Hardware,
            "registers_needed <= register_limit",
            "what does not fit is spilled to memory",
        )
}

/// Registers that the assembler is predicted to use for code that needs so many.
pub(super) fn predicted(needed: u32) -> u32 {
    needed.max(32)
}

impl Blueprint {
    /// Registers that the assembler is predicted to use.
    pub fn registers(&self) -> u32 {
        predicted(self.registers_needed)
    }

    /// Registers that the assembler may use.
    pub fn registers_allowed(&self) -> u32 {
        self.comfortable().min(self.register_limit)
    }

    /// Whether the limit of the hardware leaves less than is comfortable: only then a few registers may be spilled.
    pub fn may_spill(&self) -> bool {
        self.comfortable() > self.register_limit
    }

    fn comfortable(&self) -> u32 {
        (self.registers() * 5 / 4).next_multiple_of(8)
    }
}
