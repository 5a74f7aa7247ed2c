//! The tree: loops, guards and straight code.

use super::index::{Index, Sym};
use super::inst::{Arith, Compare, Inst};
use super::reg::{Class, Operand, Reg, Type};
use crate::print::{SHARED_ALIGN, TICKETS};
use crate::target::Target;
use std::collections::BTreeMap;

/// A comparison of what two operands mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Left side.
    pub left: Index,
    /// How they compare.
    pub cmp: Compare,
    /// Right side.
    pub right: Index,
}

/// A conjunction of comparisons: what a predicate means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cond(pub Vec<Comparison>);

impl Cond {
    /// Whether all threads of a block agree on it.
    pub fn is_uniform(&self) -> bool {
        self.0.iter().all(|c| c.left.is_uniform() && c.right.is_uniform())
    }

    /// Both hold.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self([self.0.as_slice(), &other.0].concat())
    }
}

/// How a guard is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Every instruction carries the predicate: all threads issue them, those that are off do nothing.
    Predicate,
    /// A branch around the body.
    Branch,
}

/// Code that only some threads run.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// What the predicate means.
    pub when: Cond,
    /// The predicate.
    pub pred: Reg,
    /// How it is printed.
    pub form: Form,
    /// What is guarded.
    pub body: Vec<Stmt>,
}

/// A counted loop whose body runs at least once.
///
/// It is printed as `counter = trips`, then the body, `counter -= 1`, `again = counter != 0` and a branch back; see
/// [`Loop::head`] and [`Loop::tail`], which printer and counter share.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Number of the loop: `Sym::Iteration` of it counts completed iterations.
    pub id: u32,
    /// The name in labels and places.
    pub name: &'static str,
    /// How often the body runs, at least once.
    pub trips: Index,
    /// Holds the number of trips before the loop.
    pub count: Operand,
    /// Iterations left, the current one included.
    pub counter: Reg,
    /// Whether to go round again.
    pub again: Reg,
    /// What is repeated.
    pub body: Vec<Stmt>,
}

impl Loop {
    /// What runs once before the body.
    pub fn head(&self) -> [Inst; 1] {
        [Inst::Mov { ty: Type::U32, dst: self.counter, src: self.count }]
    }

    /// What runs after the body in every iteration, before the branch on `again`.
    pub fn tail(&self) -> [Inst; 2] {
        let (counter, one) = (self.counter.into(), Operand::Int(1));
        [
            Inst::Arith { op: Arith::Sub, ty: Type::U32, dst: self.counter, a: counter, b: one },
            Inst::Setp { cmp: Compare::Ne, ty: Type::U32, dst: self.again, a: counter, b: Operand::Int(0), and: None },
        ]
    }
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// An instruction.
    Inst(Inst),
    /// Code under a name, for people and for places in reports.
    Block {
        /// The name, printed as a comment.
        name: &'static str,
        /// The code.
        body: Vec<Stmt>,
    },
    /// Repetition.
    Loop(Loop),
    /// Code for some threads.
    Guard(Guard),
}

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The value is a multiple of this power of two: alignment of pointers, divisibility of sizes. A promise of the caller.
    pub multiple_of: u32,
}

/// An entry: a kernel in the sense of PTX.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Threads of a block, one-dimensional.
    pub threads: u32,
    /// The most registers that the assembler may use for a thread; `None` leaves it to the number of threads.
    pub max_registers: Option<u32>,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Whether shared memory is given at launch: needed above 48 KiB.
    pub dynamic_shared: bool,
    /// 32-bit counters that the module declares as a global variable, zero before the first launch.
    pub tickets: u32,
    /// The body.
    pub body: Vec<Stmt>,
    /// What registers mean that are written more than once; all others tell by their definition.
    pub carried: BTreeMap<Reg, Index>,
    /// Number of registers by class, in the order of [`Class::ALL`].
    pub registers: [u32; Class::ALL.len()],
}

impl Entry {
    /// Low bits of a symbol that are always zero.
    pub fn trailing_zeros(&self, sym: &Sym) -> u32 {
        match sym {
            Sym::Param(name) if **name == *TICKETS => 2,
            Sym::Param(name) => {
                let param = self.params.iter().find(|p| *p.name == **name);
                param.map_or(0, |p| p.multiple_of.trailing_zeros().min(31))
            }
            Sym::Shared => SHARED_ALIGN.trailing_zeros(),
            Sym::Turn { step, .. } => step.trailing_zeros().min(31),
            Sym::Tid | Sym::Ctaid(_) | Sym::Nctaid(_) | Sym::Digit(..) | Sym::Iteration(_) | Sym::Opaque(_) => 0,
        }
    }
}

/// A module of one entry for one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// What it is printed for.
    pub target: Target,
    /// The entry.
    pub entry: Entry,
}

/// Calls `f` on every instruction of a body, those of loops' heads and tails included, in the order of printing.
pub fn for_each_inst(body: &[Stmt], f: &mut impl FnMut(&Inst)) {
    for stmt in body {
        match stmt {
            Stmt::Inst(inst) => f(inst),
            Stmt::Block { body, .. } | Stmt::Guard(Guard { body, .. }) => for_each_inst(body, f),
            Stmt::Loop(l) => {
                l.head().iter().for_each(&mut *f);
                for_each_inst(&l.body, f);
                l.tail().iter().for_each(&mut *f);
            }
        }
    }
}
