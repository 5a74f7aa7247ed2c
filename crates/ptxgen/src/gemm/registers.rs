//! Registers: what a configuration needs, and what the assembler is predicted to use.

use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// Adds the rule.
pub(super) fn rules(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("words", "element // 4")
        .define("accumulators", "m_s * n_s * k_s * words")
        .define("held", "0 if load == 'async' else (max(contiguous_a * other_a // threads, vec_a) + max(contiguous_b * other_b // threads, vec_b)) * words")
        .define("registers_needed", "accumulators + (m_s + n_s) * words + held + 24")
        .define("register_limit", "min(registers_per_thread, registers_per_block // threads // 8 * 8)")
        .rule("registers", RuleGroup::Hardware, "registers_needed <= register_limit", "what does not fit is spilled to memory")
}
