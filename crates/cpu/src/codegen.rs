//! Machine code of the register tiles.

pub(crate) mod abi;
mod across;
mod along;
mod emitter;
pub(crate) mod tile;
pub(crate) mod vector;
