//! The indirection table: for every step of the reduction where it gathers, the tap's row and column, and its element of the
//! filters, 16 bytes together. Offsets are in elements and wrap round.
//!
//! Steps beyond the last have a row that lies beyond every image, and no element of the filters.

use crate::ir::{Arith, Axis, Builder, Compare, Form, Module, Operand, Reg, Space, Special, Type};
use crate::target::Target;

/// Bytes of an entry.
pub(crate) const ENTRY: u32 = 16;
/// Where in an entry the element of the filters stands.
pub(crate) const FILTER: u32 = 12;
/// The row of a step that there is not. Rows are compared as unsigned numbers: with it, and with [`NOWHERE`] besides, any row
/// of a position lies beyond every image, of which none has more than 2^30 rows.
pub(crate) const BEYOND: u32 = 1 << 31;
/// The row of a position that there is not.
pub(crate) const NOWHERE: u32 = 1 << 30;
/// Elements of the filters are below this number; the element of a step that there is not is this.
pub(crate) const NO_FILTER: u32 = 1 << 31;

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;

/// Names of what an entry holds.
const WORDS: [&str; 4] = ["gathered", "row", "column", "filter"];

/// The module of the kernel that fills the table.
pub(crate) fn module(target: Target) -> Module {
    let mut b = Builder::new();
    let table = b.buffer("table", ENTRY);
    let [all, steps] = ["entries", "steps"].map(|name| b.param(name, Type::U32, 1));
    let counts = [0, 1].map(|i| b.param(&format!("count_{i}"), Type::U32, 1));
    let first = WORDS.map(|name| b.param(name, Type::U32, 1));
    let digits = [0, 1, 2].map(|i| WORDS.map(|name| b.param(&format!("{name}_{i}"), Type::U32, 1)));
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let at = b.scale_add(Some(block), THREADS, tid);
    let inside = b.compare(Compare::Lt, at, all, None);
    b.when(inside, Form::Branch, |b| {
        let mut values = Vec::new();
        let mut rest = at;
        for count in counts {
            values.push(b.arith(Arith::Rem, Type::U32, rest, count));
            rest = b.arith(Arith::Div, Type::U32, rest, count);
        }
        values.push(rest);
        let exists = b.compare(Compare::Lt, at, steps, None);
        let word = |b: &mut Builder, i: usize| {
            let mut sum = first[i];
            for (value, digit) in values.iter().zip(&digits) {
                let product = b.arith(Arith::Mul, Type::U32, *value, digit[i]);
                sum = b.add(Type::U32, sum, product);
            }
            let otherwise: Operand = [0, BEYOND, 0, NO_FILTER][i].into();
            b.select(Type::U32, exists, sum, otherwise)
        };
        let words: Vec<Reg> = (0..WORDS.len()).map(|i| word(b, i)).collect();
        let to = b.mad_wide(at, ENTRY, table);
        b.store(Space::Global, Type::U32, &words, to, 0);
    });
    Module { target, entry: b.finish("conv_table", THREADS) }
}
