//! The routine that measures how fast a core multiplies and adds: nothing but independent chains of multiply-adds.

use super::emitter::Emitter;
use super::vector::Vector;
use iced_x86::{IcedError, Register};

/// Registers that hold the factors.
const FACTORS: usize = 2;

/// A routine that takes the number of turns, at least 1, in RDI; and the floating-point operations of a turn. The compiler is not
/// asked: it once left sixteen lanes to sixteen calls.
///
/// # Errors
/// The assembler's.
pub(crate) fn multiply_adds(vector: Vector) -> Result<(Vec<u8>, f64), IcedError> {
    let mut e = Emitter::new(vector)?;
    let chains = vector.width.registers() - FACTORS;
    // Zeros: numbers that grow would end as infinities, and tiny ones cost more.
    (0..chains + FACTORS).for_each(|i| e.zero(vector.reg(i)));
    let mut turn = e.label();
    e.bind(&mut turn);
    let (a, b) = (vector.reg(chains), vector.reg(chains + 1));
    (0..chains).for_each(|i| e.op3(vector.fma(), vector.reg(i), a, b));
    e.dec(Register::RDI);
    e.jump_if_not_zero(turn);
    e.ret();
    Ok((e.finish()?, (2 * chains * vector.lanes()) as f64))
}
