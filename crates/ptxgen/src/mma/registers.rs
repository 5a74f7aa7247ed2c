//! Registers of a thread: what the code needs, what the assembler is predicted to use, and what it is allowed.
//!
//! The need follows the structure of the code: accumulators; fragments, of which the assembler holds fewer than a step has,
//! unless they are read ahead of a stage; what loads hold until it is put in shared memory, or the addresses of copies; addresses of
//! fragments; in place of all these, when sums are stored, what is added to rows; and a constant for coordinates, pointers and the loop.
//! The constants were fitted to what ptxas 13 uses for random legal configurations. As for `gemm.simt`, `.maxnreg` is a little above the
//! prediction.

use super::blueprint::Blueprint;
use crate::gemm::registers::LIMIT;
use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// First compute capability for which ptxas holds few fragments of f64: at a few operations per cycle there is nothing to hide.
const SCARCE_F64: u32 = 120;

/// Adds the need of registers, what the hardware gives, and the rule.
pub(super) fn rules(space: SpaceBuilder) -> SpaceBuilder {
    // What is read ahead of a stage is all there when it begins. Long instructions of f64 leave the assembler fewer places to load for the
    // next one.
    let fragments = format!(
        "(m_w + n_w) * depth * element // (4 * warp) * (10 if is_ahead else 5 if element != 8 else 1 if sm >= {SCARCE_F64} else 8 if depth == 16 else 5) // 10"
    );
    // Addresses that the permutation of pieces makes several of.
    let places = |along_k: &str, side: &str| {
        let plain = format!("min({side} // (16 if element == 2 else 8), 4)");
        // Each of four words has its own.
        format!(
            "min(u // (4 if element == 8 else depth), 4) if {along_k} else {side} // 8 if element == 1 else {plain}"
        )
    };
    space
        .define("words", "sum_bytes // 4")
        .define("is_ahead", "load == 'async' and u > depth")
        .define("fragments", &fragments)
        // Small parts are as many registers as a step's fragments; roundings of several steps overlap.
        .define("rounding", "(m_w + n_w) // 4 + 4 if products == 3 else 6 if rounds and u > depth else 0")
        .define("loads_words", "loads_a * ((vec_a * element + 3) // 4) + loads_b * ((vec_b * element + 3) // 4)")
        .define("held", "(loads_a + loads_b) * 7 // 4 if load == 'async' else loads_words * 6 // 5")
        .define("places_a", &places("transpose_a", "m_w"))
        .define("places_b", &places("not transpose_b", "n_w"))
        .define("of_rows", "m_w // 4 * words if row_bias else 0")
        .define(
            "registers_needed",
            "accumulators * words + max(fragments + rounding + held + places_a + places_b, of_rows) + 19",
        )
        .define("register_limit", LIMIT)
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

    /// A quarter above the prediction, and a little more, which matters where there are few.
    fn comfortable(&self) -> u32 {
        (self.registers() * 5 / 4 + 8).next_multiple_of(8)
    }
}
