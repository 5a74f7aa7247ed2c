//! What can be wrong with a kernel.

use crate::ir::{Operand, Reg, Type};

/// A fault and its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct Fault {
    /// The way through the tree: names of blocks and loops, and the position in each body.
    pub place: String,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FaultKind {
    /// An operand that the instruction's type does not take.
    #[error("{operand:?} is not of type {expected:?}")]
    Type { operand: Operand, expected: Type },
    /// A register beyond the declared ones of its class.
    #[error("register {0} is not declared")]
    Undeclared(Reg),
    /// A register that is read before every way to here has written it.
    #[error("register {0} is read before it is written")]
    Undefined(Reg),
    /// An integer that is written more than once without a claim what it means.
    #[error("register {0} is written again without being carried")]
    Rewritten(Reg),
    /// A carried register that is not what was claimed.
    #[error("register {reg} is claimed to be {claimed}, but becomes {found}")]
    Claim { reg: Reg, claimed: String, found: String },
    /// No such parameter, or one of another type.
    #[error("parameter {0} is not there, or of another type")]
    Param(usize),
    /// A barrier that some threads of the block may not reach.
    #[error("a barrier that depends on the thread: {0}")]
    DivergentBarrier(String),
    /// An access beyond the block's shared memory.
    #[error("shared memory from byte {from} to {to} of {declared}")]
    SharedBounds { from: i64, to: i64, declared: u32 },
    /// A shared address of which nothing is known.
    #[error("shared address {0} has no bound")]
    SharedUnbounded(String),
    /// An access that is not aligned to its size.
    #[error("access of {bytes} bytes at an address known to be a multiple of {known}: {address}")]
    Misaligned { bytes: u32, known: u64, address: String },
    /// A vector or copy of a size that does not exist.
    #[error("there is no access of {count} x {bytes} bytes")]
    Width { count: usize, bytes: u32 },
    /// An instruction with too many or too few registers.
    #[error("operand list of {found} registers, {expected} expected")]
    Arity { found: usize, expected: usize },
    /// A feature that the target has not.
    #[error("{feature} needs sm_{needs}, the target is sm_{target}")]
    TooNew { feature: &'static str, needs: u32, target: u32 },
    /// Something in a predicated guard that carries no predicate.
    #[error("only instructions that are not collective can be predicated")]
    NotPredicable,
    /// A loop or guard whose written meaning is not that of its registers.
    #[error("written as {written}, but its register means {found}")]
    Meaning { written: String, found: String },
    /// More threads or shared memory than the target has.
    #[error("{what}: {need} needed, {have} available")]
    Limit { what: &'static str, need: u32, have: u32 },
}
