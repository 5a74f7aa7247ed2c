//! Registers of a thread: what the code needs, what the assembler is predicted to use, and what it is allowed.
//!
//! The need follows the structure of the code: accumulators; what loads hold until it is put in shared memory, or multiplied; the fragments
//! of the step that is computed and of the one that is loaded; predicates and addresses that grow with the number of
//! loads; and a constant for coordinates, pointers and the loop. The constants were fitted to what ptxas 12.9 and 13 use
//! for random legal configurations of every target.
//!
//! Left to itself, ptxas chases occupancy: it spills a few bytes for a block more, or takes twice the need where threads are
//! few. So it is told a limit (`.maxnreg`) a little above the need, which bounds the prediction from above; `tests/ptxas.rs`
//! holds both to the assembler. A limit within a few registers of what it uses when it is free is the worst: there it
//! spills some bytes at one number and none at the numbers below and above. So a need that is found too low is mended
//! by its constants, and not by a tighter limit or a rule.

use super::blueprint::Blueprint;
use crate::ir::Type;
use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// First compute capability for which ptxas does not overlap the fragments of f64: at two operations per cycle and
/// multiprocessor there is nothing to hide.
const SCARCE_F64: u32 = 120;

/// Blocks of a multiprocessor that may be asked for.
pub(super) const OCCUPANCY: [i64; 4] = [1, 2, 3, 4];

/// Adds the need of registers, what the hardware gives, and the rules.
pub(crate) fn rules(space: SpaceBuilder) -> SpaceBuilder {
    blocks(needed(space))
}

/// What a thread needs.
fn needed(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("scarce", &format!("component == 8 and sm >= {SCARCE_F64}"))
        .define("words", "sum_bytes // 4")
        // Rows that go straight to registers are held for a whole stage.
        .define("requests_a", "m_s * (u // k_l) // vec_a if load == 'straight' else loads_a")
        // Two operands of 16 bits share a register until they are multiplied.
        .define("held_a", "requests_a * ((vec_a * element + 3) // 4)")
        .rule(
            "held_rows",
            RuleGroup::Guideline,
            "load != 'straight' or (held_a * (2 if element == 2 else 1) <= 64 and u // k_l <= 32)",
            "rows of so long a stage leave no registers for sums",
        )
        .define("held_b", "loads_b * ((vec_b * element + 3) // 4)")
        .define("held", "0 if load == 'async' else held_a + held_b")
        // Half as many instructions hide the loads of a step of pairs, so that one step more is loaded ahead.
        .define("overlap", "1 if scarce else min(max(2, k_s - 1), u // k_l) + lanes - 1")
        .define("edges", "((m_s if transpose_a else m_s // vec_a) if load == 'straight' else edges_a) + edges_b")
        .define("moved", "loads_b + (0 if load == 'straight' else loads_a)")
        // Rows along the reduction have an address each, which the assembler keeps. While rows come straight, it spreads loads over the
        // multiply-adds and holds more of the sums' and less of the columns'.
        .define("row_addresses", "3 * m_s // 4 + 2 if transpose_a else 8 - m_s * words // 2")
        .define("spread", "requests_a * (2 if element == 2 else 1) // 4 + m_s * n_s * words // 4 - n_s * words // 2 + row_addresses")
        .define("addresses", "(edges // 2 if load == 'async' else edges // 4) + moved // 8 + (spread if load == 'straight' else 0)")
        .define("sets", "(k_s + 4 if sum_bytes == 4 else 2 * k_s) if k_s > 1 else 0")
        // Pairs are multiplied as they lie in memory.
        .define("shallow", "(0 if load == 'straight' and element >= 4 else m_s * (1 - deep_a)) + n_s * (1 - deep_b)")
        .define("fragments", "shallow * words if lanes == 1 else (m_s + n_s + 1) // lanes")
        // Of what is contiguous along the reduction the next four steps are loaded while the last one is multiplied.
        .define("deep_fragments", "5 * (m_s * deep_a + n_s * deep_b)")
        // Fragments of 16 bits that wait for their set wait in half as many registers.
        .define("halved", "(m_s + n_s) // 2 + 2 if element == 2 and k_s > 1 and lanes == 1 else 0")
        // For the newest devices halves of pairs that went through registers are taken apart in registers of their own.
        .define("constant", &format!("16 if scarce else 22 + m_s * n_s // 64 * 8 if lanes > 1 and stages == 1 and sm >= {SCARCE_F64} else 22"))
        // Pairs are taken apart after the loop: column by column where sums are stored, all at once where groups add theirs, beside a
        // bias of the rows.
        .define("widened", "m_s * n_s + m_s + 39 if lanes > 1 and k_l > 1 else 0")
        // The block that sums all slices holds some columns, as much again that is loaded, and what is added to rows; for the oldest devices
        // the address and the bias of every column too.
        .define("summed", "(2 * m_s * max(n_s // (2 * lanes), 1) + m_s) * words + (20 if scarce else 36) + (2 * n_s if sm < 70 else 0) if split == 'stream' or split == 'ticket' and k_g > 1 else 0")
        // Where a block stands in the stages of all tiles.
        .define("streamed", "(0 if scarce else 32 if load == 'straight' and element == 2 and sm < 70 else 12) if split == 'stream' else 0")
        .define(
            "registers_needed",
            "max(widened, summed, accumulators * words // lanes + held + fragments * overlap + deep_fragments - halved + addresses + sets + streamed + shared_columns + constant)",
        )
}

/// Blocks of a multiprocessor that its registers are enough for, of so many for each thread. Each of its four parts gives its own to whole
/// warps.
pub(crate) fn blocks_of(registers_per_sm: u32, registers: u32, threads: u32) -> u32 {
    let warps = registers_per_sm / 4 / (32 * registers.next_multiple_of(8)).max(1) * 4;
    warps / threads.div_ceil(32).max(1)
}

/// The most registers of a thread: the hardware gives them to warps in units of 8 per thread, and each of a multiprocessor's four parts
/// has its own, so that it counts warps by fours. A launch that asks for more is refused.
pub(crate) const LIMIT: &str =
    "min(registers_per_thread, registers_per_block // ((threads + 127) // 128 * 128) // 8 * 8)";

/// What the hardware gives a thread, and the blocks of a multiprocessor.
fn blocks(space: SpaceBuilder) -> SpaceBuilder {
    space
        .define("register_limit", LIMIT)
        .rule(
            "registers",
            RuleGroup::Hardware,
            "registers_needed <= register_limit",
            "what does not fit is spilled to memory",
        )
        // Blocks that threads and shared memory leave room for, up to the most that is asked for: of two numbers that vary much, the legal
        // set remembers one that does not.
        .define(
            "room",
            &format!(
                "min({}, threads_per_sm // threads, shared_per_sm // shared_bytes)",
                OCCUPANCY[OCCUPANCY.len() - 1]
            ),
        )
        // What so many blocks of a multiprocessor leave each thread.
        .define(
            "register_cap",
            "min(register_limit, registers_per_sm // ((threads * occupancy + 127) // 128 * 128) // 8 * 8)",
        )
        .rule(
            "room_for_blocks",
            RuleGroup::Guideline,
            "occupancy == 1 or occupancy <= room",
            "threads or shared memory leave room for fewer blocks",
        )
        .rule(
            "tight_registers",
            RuleGroup::Guideline,
            "occupancy == 1 or registers_needed <= register_cap + register_cap // 12",
            "much less than the code needs is spilled to memory",
        )
        .rule(
            "idle_limit",
            RuleGroup::Guideline,
            "occupancy == 1 or register_cap * 10 < registers_needed * 11",
            "so many blocks find their registers without a limit",
        )
}

/// Registers that the assembler is predicted to use for code that needs so many.
pub(super) fn predicted(needed: u32, scarce: bool, checked: bool, sm: u32) -> u32 {
    if scarce {
        // Where nothing overlaps there is less to be saved.
        return needed * 39 / 40;
    }
    // Without checks there are no predicates and no sizes to hold.
    let need = needed - if checked { 0 } else { 4 };
    match need {
        // 32 leave room for as many threads as a multiprocessor holds: from sm_70 on the assembler does not go lower, nor
        // just above.
        ..34 if sm >= 70 => 32,
        34..42 if sm >= 70 => 36,
        need => need * 19 / 20,
    }
}

impl Blueprint {
    /// Registers that the assembler is predicted to use.
    pub fn registers(&self) -> u32 {
        self.predicted().min(self.register_cap)
    }

    /// Where nothing limits them.
    fn predicted(&self) -> u32 {
        predicted(self.registers_needed, self.scarce, self.checked(), self.target.sm())
    }

    /// Registers that the assembler may use.
    pub fn registers_allowed(&self) -> u32 {
        self.comfortable().min(self.register_cap)
    }

    /// Whether the hardware, or the blocks that are wanted on a multiprocessor, leave less than is comfortable: only then a few registers may be spilled.
    pub fn may_spill(&self) -> bool {
        self.comfortable() > self.register_cap
    }

    /// 15% above the prediction, which is at least 9% above the need. Even for f64, whose numbers lie in pairs of registers:
    /// ptxas was seen to spill at 89 what it fits into 88, and at 119 and 121 what it fits into 118 and 122.
    fn comfortable(&self) -> u32 {
        let most = self.predicted() * 23 / 20;
        if self.arithmetic.ty == Type::F64 { most / 2 * 2 } else { most }
    }
}
