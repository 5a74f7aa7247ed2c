//! A kernel whose trip counts stand in its data: the product of a ragged matrix with a vector.
//!
//! Rows are taken in slices, one for each block. A slice has a length of its own: its rows have their elements in the first so
//! many columns. Only rows that are asked for are computed. To count it, the counter needs to be told how long slices are and how
//! many of their rows are asked for ([`crate::count::Launch::statistics`]).

use crate::count::Launch;
use crate::ir::{Axis, Builder, Compare, Form, Index, Inst, Module, Operand, Space, Special, Type};
use crate::print::print;
use crate::target::Target;
use tilewright_core::program::{self, Arg, Code, Program};

/// The name of the kernel.
pub const NAME: &str = "ragged";

/// Rows of a slice.
pub const ROWS: u32 = 64;

/// Buffers in the order of arguments: elements of binary32, columns of all rows one after the other; the vector; a number of columns
/// above zero for each slice; a number above zero for each row that is asked for; the result.
pub const BUFFERS: [&str; 5] = ["a", "x", "columns", "wanted", "y"];

/// The kernel.
pub fn module(target: Target) -> Module {
    let mut b = Builder::new();
    let [a, x, columns, wanted, y] = BUFFERS.map(|name| b.buffer(name, 16));
    let step = b.param("step", Type::U64, 4 * ROWS);
    let (tid, slice) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let row = b.scale_add(Some(slice), ROWS, tid);
    let at = b.mad_wide(slice, 4u32, columns);
    let length = b.load(Space::Global, Type::U32, 1, at, 0);
    let at = b.mad_wide(row, 4u32, wanted);
    let flag = b.load(Space::Global, Type::U32, 1, at, 0);
    let (from, to) = (b.mad_wide(row, 4u32, a), b.mad_wide(row, 4u32, y));
    let sum = b.mov(Type::F32, Operand::Float(0.0));
    let (left, right) = (b.walking(Type::U64, from, step), b.walking(Type::U64, x, 4u32));
    b.repeat("columns", length[0], |b, _| {
        let element = b.load(Space::Global, Type::F32, 1, left, 0);
        let factor = b.load(Space::Global, Type::F32, 1, right, 0);
        b.push(Inst::Fma { ty: Type::F32, dst: sum, a: element[0].into(), b: factor[0].into(), c: sum.into() });
        b.advance(Type::U64, left, step);
        b.advance(Type::U64, right, 4u32);
    });
    b.block("wanted", |b| {
        let set = b.compare(Compare::Gt, flag[0], 0u32, None);
        b.when(set, Form::Branch, |b| b.store(Space::Global, Type::F32, &[sum], to, 0));
    });
    Module { target, entry: b.finish(NAME, ROWS) }
}

/// How it is launched, in the number of slices.
pub fn launch() -> Launch {
    let slices = Index::param("slices");
    let step = ("step".to_owned(), slices.times(&i64::from(4 * ROWS).into()));
    Launch { params: [step].into(), ..Launch::new([slices, 1.into(), 1.into()]) }
}

/// The kernel for so many slices.
pub fn program(target: Target, slices: u32) -> Program {
    let code = Code::Ptx { text: print(&module(target)), entry: NAME.to_owned() };
    let buffers = (0..BUFFERS.len()).map(|i| Arg::Buffer(i, 0));
    let args = buffers.chain([Arg::U64(u64::from(4 * ROWS) * u64::from(slices))]).collect();
    Program::launch(program::Launch::new(code, [slices, 1, 1], [ROWS, 1, 1], args))
}
