//! Kernels as trees.
//!
//! An [`Entry`] is a tree of [`Stmt`]: blocks, counted loops, guards, and instructions at the leaves. It is built once and
//! read by several readers: the verifier ([`crate::verify`]), the printer ([`crate::print`]), and whoever counts operations.
//! What they share stands in the tree and is not found again from text:
//!
//! - a [`Loop`] tells its number of trips, a [`Guard`] its condition, as [`Index`]: quasi-polynomials in the entry's parameters
//!   (sizes), thread and block indices, and iterations of the loops around. They are not written down by the template's
//!   author but followed from the instructions ([`Meanings`]), so they cannot disagree with the code;
//! - the same way tells what an address means: its alignment, its range in shared memory, its stride over threads;
//! - a register that is written more than once (a pointer that a loop advances) is *carried*: the template claims what
//!   it means at every time (`start + iteration * stride`);
//! - the instructions around a loop's body come from [`Loop::head`] and [`Loop::tail`], which every reader uses.
//!
//! Registers are virtual and typed by class. Blocks are one-dimensional; shared memory is one array per block.

mod builder;
mod index;
mod inst;
mod meaning;
mod reg;
mod tree;

pub use builder::{Builder, Iteration};
pub use index::{Atom, Index, Sym};
pub use inst::{Access, Address, Arith, Caching, Compare, CopyThrough, Function, Inst, MmaKind, Part, Space, Ties};
pub use meaning::Meanings;
pub use reg::{Axis, Class, Operand, Reg, Special, Type};
pub use tree::{Comparison, Cond, Entry, Form, Guard, Loop, Module, Param, Stmt, for_each_inst};
