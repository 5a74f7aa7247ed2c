//! Kernels: domain, arrays, statements.

pub use crate::array::{Array, Order, Place};

use crate::affine::Affine;
use crate::error::LoopError;
use crate::size::Size;
use std::ops::{Add, Div, Mul, Sub};
use tilewright_core::buffer::Role;
use tilewright_core::dtype::DType;

/// A dimension of the grid and of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Neighbouring lanes differ in it.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

/// What runs a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// Each thread, one iteration after the other.
    Sequential,
    /// Each thread, written out.
    Unrolled,
    /// Each thread, written out, with accesses to neighbouring elements joined.
    Vector,
    /// The groups of the grid.
    Group(Axis),
    /// The threads of a group.
    Thread(Axis),
}

/// A loop of the domain: its index runs from 0 to below the extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The index.
    pub index: &'static str,
    /// How many iterations.
    pub extent: Size,
    /// What runs them.
    pub mapping: Mapping,
}

/// An element of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Which array.
    pub array: &'static str,
    /// One index a dimension.
    pub at: Vec<Affine>,
}

/// An operation of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unary {
    /// Square root.
    Sqrt,
    /// One over the square root.
    Rsqrt,
    /// Power of e. f32 only.
    Exp,
}

/// An operation of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// Loop indices as a float.
    Index(Affine),
    /// An element.
    Load(Access),
    /// A local.
    Local(&'static str),
    /// One operand.
    Unary(Unary, Box<Expr>),
    /// Two operands.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a * b + c`, rounded once.
    Fma(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl From<f64> for Expr {
    fn from(x: f64) -> Self {
        Self::Number(x)
    }
}

/// An element.
pub fn load<A: Into<Affine>>(array: &'static str, at: impl IntoIterator<Item = A>) -> Expr {
    Expr::Load(Access { array, at: at.into_iter().map(Into::into).collect() })
}

/// A local.
pub fn local(name: &'static str) -> Expr {
    Expr::Local(name)
}

impl Expr {
    /// `self * b + c`, rounded once.
    #[must_use]
    pub fn fma(self, b: impl Into<Self>, c: impl Into<Self>) -> Self {
        Self::Fma(Box::new(self), Box::new(b.into()), Box::new(c.into()))
    }

    /// An operation of one operand.
    #[must_use]
    pub fn unary(self, op: Unary) -> Self {
        Self::Unary(op, Box::new(self))
    }

    /// Calls `f` on every node, operands first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Self)) {
        match self {
            Self::Number(_) | Self::Index(_) | Self::Load(_) | Self::Local(_) => {}
            Self::Unary(_, a) => a.visit(f),
            Self::Binary(_, a, b) => [a, b].into_iter().for_each(|e| e.visit(f)),
            Self::Fma(a, b, c) => [a, b, c].into_iter().for_each(|e| e.visit(f)),
        }
        f(self);
    }

    /// [`Expr::visit`] to change what is visited.
    pub fn visit_mut(&mut self, f: &mut impl FnMut(&mut Self)) {
        match self {
            Self::Number(_) | Self::Index(_) | Self::Load(_) | Self::Local(_) => {}
            Self::Unary(_, a) => a.visit_mut(f),
            Self::Binary(_, a, b) => [a, b].into_iter().for_each(|e| e.visit_mut(f)),
            Self::Fma(a, b, c) => [a, b, c].into_iter().for_each(|e| e.visit_mut(f)),
        }
        f(self);
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident),*) => {$(
        impl<T: Into<Expr>> $trait<T> for Expr {
            type Output = Self;
            fn $method(self, other: T) -> Self {
                Self::Binary(Binary::$trait, Box::new(self), Box::new(other.into()))
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

/// A statement. The tree is the order in which a thread runs it.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// The body for every value of a loop's index.
    For {
        /// The loop's index.
        index: &'static str,
        /// What is repeated.
        body: Vec<Stmt>,
    },
    /// A new local of the thread.
    Let {
        /// Its name.
        name: &'static str,
        /// Its type.
        dtype: DType,
        /// Its first value.
        value: Expr,
    },
    /// Another value for a local.
    Set {
        /// Its name.
        name: &'static str,
        /// The value.
        value: Expr,
    },
    /// An element is written.
    Store {
        /// Which.
        to: Access,
        /// The value.
        value: Expr,
        /// Added to what stands there, at once; sums of several threads come in any order.
        atomic: bool,
    },
    /// The threads of a group copy a tile of an array into shared memory together.
    Fetch {
        /// A shared array.
        tile: &'static str,
        /// What is copied from.
        from: &'static str,
        /// The first element; the same for all threads of a group.
        origin: Vec<Affine>,
        /// Elements of each dimension that are copied.
        extents: Vec<i64>,
    },
    /// All threads of a group wait for each other.
    Barrier,
}

/// The body for every value of a loop's index.
pub fn each(index: &'static str, body: impl IntoIterator<Item = Stmt>) -> Stmt {
    Stmt::For { index, body: body.into_iter().collect() }
}

/// A new local.
pub fn declare(name: &'static str, dtype: DType, value: impl Into<Expr>) -> Stmt {
    Stmt::Let { name, dtype, value: value.into() }
}

/// Another value for a local.
pub fn set(name: &'static str, value: impl Into<Expr>) -> Stmt {
    Stmt::Set { name, value: value.into() }
}

/// An element is written.
pub fn store<A: Into<Affine>>(array: &'static str, at: impl IntoIterator<Item = A>, value: impl Into<Expr>) -> Stmt {
    let to = Access { array, at: at.into_iter().map(Into::into).collect() };
    Stmt::Store { to, value: value.into(), atomic: false }
}

/// A value is added to an element at once.
pub fn add_to<A: Into<Affine>>(array: &'static str, at: impl IntoIterator<Item = A>, value: impl Into<Expr>) -> Stmt {
    let to = Access { array, at: at.into_iter().map(Into::into).collect() };
    Stmt::Store { to, value: value.into(), atomic: true }
}

/// Calls `f` on every statement of a body, outer ones first.
pub fn visit<'a>(body: &'a [Stmt], f: &mut impl FnMut(&'a Stmt)) {
    for stmt in body {
        f(stmt);
        if let Stmt::For { body, .. } = stmt {
            visit(body, f);
        }
    }
}

/// [`visit()`] to change what is visited.
pub fn visit_mut(body: &mut [Stmt], f: &mut impl FnMut(&mut Stmt)) {
    for stmt in body {
        f(stmt);
        if let Stmt::For { body, .. } = stmt {
            visit_mut(body, f);
        }
    }
}

impl Stmt {
    /// The value that a statement computes.
    pub fn value(&self) -> Option<&Expr> {
        match self {
            Self::Let { value, .. } | Self::Set { value, .. } | Self::Store { value, .. } => Some(value),
            Self::For { .. } | Self::Fetch { .. } | Self::Barrier => None,
        }
    }

    /// [`Stmt::value`] to change it.
    pub fn value_mut(&mut self) -> Option<&mut Expr> {
        match self {
            Self::Let { value, .. } | Self::Set { value, .. } | Self::Store { value, .. } => Some(value),
            Self::For { .. } | Self::Fetch { .. } | Self::Barrier => None,
        }
    }

    /// Calls `f` on every element that is read or written, and whether it is written.
    pub fn accesses<'a>(&'a self, f: &mut impl FnMut(&'a Access, bool)) {
        if let Some(value) = self.value() {
            value.visit(&mut |e| {
                if let Expr::Load(access) = e {
                    f(access, false);
                }
            });
        }
        if let Self::Store { to, .. } = self {
            f(to, true);
        }
    }

    /// Calls `f` on every index expression of this statement alone.
    pub fn indices_mut(&mut self, f: &mut impl FnMut(&mut Affine)) {
        if let Some(value) = self.value_mut() {
            value.visit_mut(&mut |e| match e {
                Expr::Index(at) => f(at),
                Expr::Load(access) => access.at.iter_mut().for_each(&mut *f),
                _ => {}
            });
        }
        match self {
            Self::Store { to, .. } => to.at.iter_mut().for_each(f),
            Self::Fetch { origin, .. } => origin.iter_mut().for_each(f),
            _ => {}
        }
    }
}

/// A kernel: a domain of loops, arrays, and statements. Transformations make another one of it that computes the same.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopKernel {
    /// Its name, also of the generated entry.
    pub name: String,
    /// The domain.
    pub loops: Vec<Loop>,
    /// The arrays; those in device memory in the order of buffers.
    pub arrays: Vec<Array>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// Sizes that are promised to be multiples of a power of two, checked when sizes are given.
    pub multiples: Vec<(&'static str, u32)>,
}

impl LoopKernel {
    /// A kernel with nothing in it.
    pub fn new(name: impl Into<String>) -> Self {
        let (loops, arrays, body, multiples) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name: name.into(), loops, arrays, body, multiples }
    }

    /// Adds a loop to the domain.
    #[must_use]
    pub fn domain(mut self, index: &'static str, extent: impl Into<Size>) -> Self {
        self.loops.push(Loop { index, extent: extent.into(), mapping: Mapping::Sequential });
        self
    }

    /// Adds an array.
    #[must_use]
    pub fn array(mut self, array: Array) -> Self {
        self.arrays.push(array);
        self
    }

    /// Adds a statement.
    #[must_use]
    pub fn stmt(mut self, stmt: Stmt) -> Self {
        self.body.push(stmt);
        self
    }

    /// Promises that a size is a multiple of a power of two: what joined accesses need to be aligned.
    #[must_use]
    pub fn multiple(mut self, size: &'static str, of: u32) -> Self {
        self.multiples.push((size, of));
        self
    }

    /// The names of its sizes, sorted.
    pub fn sizes(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let of_loops = self.loops.iter().map(|l| &l.extent);
        for size in of_loops.chain(self.arrays.iter().flat_map(|a| &a.shape)) {
            size.visit(&mut |name| names.push(name));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// A loop by its index.
    ///
    /// # Errors
    /// There is none.
    pub fn find_loop(&self, index: &str) -> Result<&Loop, LoopError> {
        self.loops.iter().find(|l| l.index == index).ok_or_else(|| self.unknown("loop", index))
    }

    /// An array by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn find_array(&self, name: &str) -> Result<&Array, LoopError> {
        self.arrays.iter().find(|a| a.name == name).ok_or_else(|| self.unknown("array", name))
    }

    pub(crate) fn unknown(&self, what: &'static str, name: &str) -> LoopError {
        LoopError::Unknown { kernel: self.name.clone(), what, name: name.to_owned() }
    }

    /// The arrays in device memory with their roles.
    pub fn globals(&self) -> impl Iterator<Item = (&Array, Role)> {
        self.arrays.iter().filter_map(|a| match a.place {
            Place::Global(role) => Some((a, role)),
            Place::Shared => None,
        })
    }

    /// The arrays in the memory of groups.
    pub fn shared(&self) -> impl Iterator<Item = &Array> {
        self.arrays.iter().filter(|a| a.place == Place::Shared)
    }
}
