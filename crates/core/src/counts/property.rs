//! What is counted, by name.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A property of a kernel that takes time in proportion to its number: section 2 of Stevens and Kloeckner's
/// "A Unified, Hardware-Fitted, Cross-GPU Performance Model", and a few beyond it.
///
/// Its name is what [`fmt::Display`] writes, [`FromStr`] reads and serde stores:
///
/// | name | counts |
/// |---|---|
/// | `fma.f32` | threads that execute the operation, see [`Op`] |
/// | `fma.f32/warps` | warps that are issued it, whatever its guard says |
/// | `fma.f32/off` | threads that come to it and whose guard does not hold |
/// | `load.global.32@1` | warp accesses by stride, see [`Step`] |
/// | `load.shared.128/passes` | passes of warp accesses over the banks of shared memory |
/// | `overlap.global.32@1` | the lesser of the loads and the stores of that width and step |
/// | `groups` | blocks of threads |
/// | `launches` | launches of kernels |
/// | `constant` | 1 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// Threads that execute an operation. A memory access is one for each thread; a copy to shared memory too.
    Threads(Op),
    /// Warps that come to it with at least one thread, whatever its guard says.
    Warps(Op),
    /// Threads that come to it and whose guard does not hold.
    Off(Op),
    /// Warp accesses with at least one executing thread, by their step from thread to thread.
    Accesses(Op, Step),
    /// Passes over the banks of shared memory.
    Passes(Op),
    /// The lesser of the warp accesses to global memory that load and those that store, of that many bits and that step.
    Overlap(u32, Step),
    /// Blocks of threads.
    Groups,
    /// Launches of kernels.
    Launches,
    /// Always 1.
    Constant,
}

/// An operation: the class of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Floating-point arithmetic.
    Float(FloatOp, Precision),
    /// Integer arithmetic, shifts, logic and bit fields.
    Integer,
    /// Comparisons and operations on predicates.
    Compare,
    /// Conversions.
    Convert,
    /// Moves, selections, byte permutations, addresses between spaces, parameters.
    Move,
    /// Load with that many bits per thread.
    Load(Space, u32),
    /// Store with that many bits per thread.
    Store(Space, u32),
    /// Atomic operation with that many bits per thread.
    Atomic(Space, u32),
    /// Asynchronous copy from global to shared memory with that many bits per thread.
    AsyncCopy(u32),
    /// Load of that many 8 x 8 matrices by a warp.
    MatrixLoad(u32),
    /// Store of that many 8 x 8 matrices by a warp.
    MatrixStore(u32),
    /// Matrix multiply-accumulate, with multiplications per warp. tf32 counts as single.
    Tensor(Precision, u32),
    /// Barrier of a block.
    Barrier,
    /// Exchange within a warp.
    Exchange,
    /// Branch: its threads are those that take it.
    Branch,
    /// End of a thread.
    Exit,
    /// Fences and waits.
    Order,
}

named! {
    /// A floating-point operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FloatOp {
        /// Addition, subtraction.
        Add = "add",
        /// Multiplication.
        Mul = "mul",
        /// Fused multiply-add.
        Fma = "fma",
        /// Division, reciprocal.
        Div = "div",
        /// Roots, powers of two (exponentiation), logarithms, sines.
        Special = "special",
        /// Minimum, maximum, sign.
        Minor = "minor",
    }
}

named! {
    /// A precision.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Precision {
        /// One number of 16 bits.
        Half = "f16",
        /// Two numbers of 16 bits.
        Half2 = "f16x2",
        /// binary32.
        Single = "f32",
        /// binary64.
        Double = "f64",
        /// Integers of 8 bits.
        Byte = "i8",
    }
}

named! {
    /// A state space, by its name in PTX.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Space {
        /// Device memory.
        Global = "global",
        /// The block's memory, which the paper calls local.
        Shared = "shared",
        /// Memory of a thread.
        Local = "local",
        /// Read-only memory of the module.
        Const = "const",
        /// Arguments of the launch.
        Param = "param",
        /// An address that says itself which space it is in.
        Generic = "generic",
    }
}

named! {
    /// The distance from thread to thread, which is from lane to lane, in units of the access.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Stride {
        /// All threads at one address, or a single one.
        Uniform = "0",
        /// One.
        Unit = "1",
        /// Two.
        Two = "2",
        /// Three.
        Three = "3",
        /// Four.
        Four = "4",
        /// More, or no whole number.
        More = ">4",
    }
}

impl Stride {
    /// The class of a step in bytes for accesses of `bytes`.
    pub fn of(step: i64, bytes: u64) -> Self {
        let step = step.unsigned_abs();
        match (step.checked_rem(bytes), step.checked_div(bytes)) {
            (Some(0), Some(steps @ 0..=4)) => Self::ALL[steps as usize],
            _ => Self::More,
        }
    }

    /// In how many steps the share of its gaps that others use is told: 0 where there are none.
    pub fn steps(self) -> u8 {
        match self {
            Self::Uniform | Self::Unit => 0,
            Self::Two => 2,
            Self::Three => 3,
            Self::Four | Self::More => 4,
        }
    }
}

/// The amortised stride fraction: a stride with the share of memory in its gaps that other accesses use.
///
/// Written `0`, `1`, `2`, `3`, `4`, `>4`; with a share `1/2`, `2/2`, `1/3` ... `4/4`, and `1/>4` ... `4/>4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    /// The stride.
    pub stride: Stride,
    /// The data utilisation ratio of the array in as many steps as the stride has (four beyond four), rounded up: from
    /// 1 to 4. 0 where it does not matter (strides 0 and 1), or is not asked (shared memory).
    pub used: u8,
}

/// A text that names no property.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no property, such as `fma.f32`, `load.global.32@1` or `groups`")]
pub struct UnknownProperty(pub String);

const PLAIN: [(Op, &str); 9] = [
    (Op::Integer, "integer"),
    (Op::Compare, "compare"),
    (Op::Convert, "convert"),
    (Op::Move, "move"),
    (Op::Barrier, "barrier"),
    (Op::Exchange, "exchange"),
    (Op::Branch, "branch"),
    (Op::Exit, "exit"),
    (Op::Order, "order"),
];
impl Op {
    /// Whether it reads or writes memory.
    pub fn moves_memory(self) -> bool {
        use Op::{AsyncCopy, Atomic, Load, MatrixLoad, MatrixStore, Store};
        matches!(self, Load(..) | Store(..) | Atomic(..) | AsyncCopy(_) | MatrixLoad(_) | MatrixStore(_))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(op, p) => write!(f, "{op}.{p}"),
            Self::Load(space, bits) => write!(f, "load.{space}.{bits}"),
            Self::Store(space, bits) => write!(f, "store.{space}.{bits}"),
            Self::Atomic(space, bits) => write!(f, "atomic.{space}.{bits}"),
            Self::AsyncCopy(bits) => write!(f, "async_copy.{bits}"),
            Self::MatrixLoad(count) => write!(f, "matrix_load.{count}"),
            Self::MatrixStore(count) => write!(f, "matrix_store.{count}"),
            Self::Tensor(p, products) => write!(f, "tensor.{p}.{products}"),
            plain => f.write_str(PLAIN.iter().find(|(op, _)| op == plain).map_or("", |(_, name)| name)),
        }
    }
}

fn op(text: &str) -> Option<Op> {
    if let Some((plain, _)) = PLAIN.iter().find(|(_, name)| *name == text) {
        return Some(*plain);
    }
    let parts: Vec<&str> = text.split('.').collect();
    let number = |word: &str| word.parse::<u32>().ok().filter(|n| n.to_string() == word);
    match parts.as_slice() {
        ["async_copy", bits] => number(bits).map(Op::AsyncCopy),
        ["matrix_load", count] => number(count).map(Op::MatrixLoad),
        ["matrix_store", count] => number(count).map(Op::MatrixStore),
        [word, precision] => Some(Op::Float(FloatOp::by_name(word)?, Precision::by_name(precision)?)),
        ["tensor", precision, products] => Some(Op::Tensor(Precision::by_name(precision)?, number(products)?)),
        [word, space, bits] => {
            let (space, bits) = (Space::by_name(space)?, number(bits)?);
            match *word {
                "load" => Some(Op::Load(space, bits)),
                "store" => Some(Op::Store(space, bits)),
                "atomic" => Some(Op::Atomic(space, bits)),
                _ => None,
            }
        }
        _ => None,
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.used > 0 {
            write!(f, "{}/", self.used)?;
        }
        self.stride.fmt(f)
    }
}

fn step(text: &str) -> Option<Step> {
    match text.split_once('/') {
        None => Stride::by_name(text).map(|stride| Step { stride, used: 0 }),
        Some((used, stride)) => {
            let stride = Stride::by_name(stride)?;
            let used = (1..=stride.steps()).find(|n| n.to_string() == used)?;
            Some(Step { stride, used })
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(op) => op.fmt(f),
            Self::Warps(op) => write!(f, "{op}/warps"),
            Self::Off(op) => write!(f, "{op}/off"),
            Self::Accesses(op, step) => write!(f, "{op}@{step}"),
            Self::Passes(op) => write!(f, "{op}/passes"),
            Self::Overlap(bits, step) => write!(f, "overlap.global.{bits}@{step}"),
            Self::Groups => f.write_str("groups"),
            Self::Launches => f.write_str("launches"),
            Self::Constant => f.write_str("constant"),
        }
    }
}

impl FromStr for Property {
    type Err = UnknownProperty;

    fn from_str(text: &str) -> Result<Self, UnknownProperty> {
        let found = || match text {
            "groups" => Some(Self::Groups),
            "launches" => Some(Self::Launches),
            "constant" => Some(Self::Constant),
            _ => match (text.split_once('@'), text.rsplit_once('/')) {
                (Some((of, at)), _) => match of.strip_prefix("overlap.global.") {
                    Some(bits) => Some(Self::Overlap(bits.parse().ok()?, step(at)?)),
                    None => Some(Self::Accesses(op(of)?, step(at)?)),
                },
                (None, Some((of, "warps"))) => op(of).map(Self::Warps),
                (None, Some((of, "off"))) => op(of).map(Self::Off),
                (None, Some((of, "passes"))) => op(of).map(Self::Passes),
                _ => op(text).map(Self::Threads),
            },
        };
        found().ok_or_else(|| UnknownProperty(text.to_owned()))
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Property {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_the_same_property() {
        let step = |stride, used| Step { stride, used };
        let load = Op::Load(Space::Global, 128);
        let all = [
            Property::Threads(Op::Float(FloatOp::Fma, Precision::Single)),
            Property::Warps(Op::Integer),
            Property::Off(load),
            Property::Accesses(load, step(Stride::Two, 1)),
            Property::Accesses(Op::Store(Space::Shared, 32), step(Stride::More, 0)),
            Property::Accesses(Op::AsyncCopy(64), step(Stride::More, 4)),
            Property::Passes(Op::Load(Space::Shared, 64)),
            Property::Overlap(32, step(Stride::Unit, 0)),
            Property::Threads(Op::Tensor(Precision::Half, 2048)),
            Property::Groups,
            Property::Launches,
            Property::Constant,
        ];
        for property in all {
            assert_eq!(property.to_string().parse(), Ok(property));
            let json = serde_json::to_string(&property).unwrap();
            assert_eq!(serde_json::from_str::<Property>(&json).unwrap(), property);
        }
        assert_eq!(Property::Accesses(load, step(Stride::More, 3)).to_string(), "load.global.128@3/>4");
        for bad in
            ["", "fma", "fma.f31", "load.global.x", "load.global.32@5", "load.global.32@3/2", "a/b", "tensor.f16.01"]
        {
            assert_eq!(bad.parse::<Property>(), Err(UnknownProperty(bad.into())));
        }
    }
}
