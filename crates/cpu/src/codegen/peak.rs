//! The routines that measure how fast a core multiplies and adds, and how fast it reads: nothing but independent chains of
//! multiply-adds, and nothing but loads. The compiler is not asked for either: it once compiled sixteen lanes to sixteen calls, and without
//! its optimisations a sum of words takes longer than any level of memory does.

use super::emitter::{Emitter, mem};
use super::vector::Vector;
use iced_x86::{IcedError, Register};

/// Registers that hold the factors.
const FACTORS: usize = 2;

/// A routine that takes the number of turns, at least 1, in RDI; and the floating-point operations of a turn.
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

/// Bytes that a turn of [`reads`] loads: a multiple of every vector, and so many that the loop itself costs nothing beside them.
pub(crate) const READ: usize = 1024;

/// A routine that takes the number of turns, at least 1, in RDI, and in RSI the address of as many times [`READ`] bytes: it loads each
/// once, in order.
///
/// # Errors
/// The assembler's.
pub(crate) fn reads(vector: Vector) -> Result<Vec<u8>, IcedError> {
    let mut e = Emitter::new(vector)?;
    let mut turn = e.label();
    e.bind(&mut turn);
    for (i, at) in (0..READ).step_by(vector.width.bytes()).enumerate() {
        e.load(vector.reg(i % vector.width.registers()), mem(Register::RSI, at as i64));
    }
    e.add_imm(Register::RSI, READ as i32);
    e.dec(Register::RDI);
    e.jump_if_not_zero(turn);
    e.ret();
    e.finish()
}
