//! A kernel as the machine runs it: resolved registers, constants in registers, branch targets as indices.

use crate::counts::Class;
use crate::lanes::{LaneFn, Slots};
use crate::lines::{LineId, Lines};
use crate::machine::{ExchangeFn, Special};
use crate::text::Place;
use crate::types::{Space, Ty};

/// The predicate that always holds; the guard of instructions without one.
pub(crate) const ALWAYS: u16 = 0;

/// A loadable kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: u32,
    pub(crate) code: Vec<Inst>,
    /// One per instruction of `code`.
    pub(crate) notes: Vec<Note>,
    /// One per instruction of `code`.
    pub(crate) flows: Vec<Flow>,
    /// Registers that may be read before anything is written to them.
    pub(crate) without_value: Vec<Reg>,
    /// Lines of the source that instructions come from.
    pub(crate) lines: Lines,
    pub(crate) constants: Vec<(u16, Wide, Constant)>,
    pub(crate) specials: Vec<(u16, Wide, Special)>,
    /// Registers of each kind.
    pub(crate) words: usize,
    pub(crate) doubles: usize,
    pub(crate) predicates: usize,
    /// Static shared memory in bytes; dynamic memory follows it.
    pub(crate) shared_bytes: u32,
    /// Alignment of dynamic shared memory; zero where there is none.
    pub(crate) dynamic_align: u32,
    /// Bytes of a thread's local memory.
    pub(crate) local_bytes: u32,
    /// From `.maxntid`: threads of a block, at most.
    pub(crate) max_threads: Option<u64>,
    /// From `.reqntid`.
    pub(crate) required_block: Option<[u64; 3]>,
    /// Shared memory is watched in cells of this many bytes: the narrowest access of the kernel, at most 4.
    pub(crate) cell_bytes: u32,
    /// The same of global memory.
    pub(crate) global_cell_bytes: u32,
    /// Written for hardware before sm_70, whose warps run in lock-step.
    pub(crate) in_step: bool,
    /// Written for hardware before sm_80, whose tensor cores add up less exactly.
    pub(crate) before_ampere: bool,
    /// It orders accesses between blocks by fences, or by operations that are ones.
    pub(crate) has_fences: bool,
}

/// Whether a register has 64 bits.
pub(crate) type Wide = bool;

/// A kernel parameter in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// A value that a register holds before the first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Bits(u64),
    /// Address of a module variable plus an offset.
    Variable(usize, i64),
    /// Address of dynamic shared memory plus an offset.
    DynamicShared(i64),
}

/// An instruction.
#[derive(Debug)]
pub(crate) struct Inst {
    /// Predicate that guards it.
    pub(crate) guard: u16,
    /// All ones where the guard is negated.
    pub(crate) flip: u32,
    pub(crate) run: Run,
}

/// A register: its kind, by what holds it, and its number among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg(u8, u16);

impl Reg {
    pub(crate) fn new(ty: Ty, slot: u16) -> Self {
        match ty {
            Ty::Pred => Self(2, slot),
            _ => Self::wide(slot, ty.bytes() == 8),
        }
    }

    pub(crate) fn wide(slot: u16, wide: Wide) -> Self {
        Self(u8::from(wide), slot)
    }

    pub(crate) fn predicate(slot: u16) -> Self {
        Self(2, slot)
    }

    pub(crate) fn of_data(data: Data) -> Self {
        Self::wide(data.slot, data.bytes == 8)
    }

    /// 0 for up to 32 bits, 1 for 64, 2 for predicates.
    pub(crate) fn kind(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn slot(self) -> usize {
        usize::from(self.1)
    }
}

/// Which registers an instruction reads and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) to: Vec<Reg>,
    pub(crate) from: Vec<Reg>,
    /// Addresses and the like: read, and wrong without a value.
    pub(crate) must_have: Vec<Reg>,
    /// The predicate that chooses between the first two sources.
    pub(crate) select: Option<u16>,
    /// Every lane's result depends on all lanes.
    pub(crate) is_wide: bool,
}

/// What the reports say about an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) place: Place,
    pub(crate) opcode: String,
    /// Its line among those of the kernel.
    pub(crate) line: Option<LineId>,
    /// `None` for the second and later steps of one PTX instruction.
    pub(crate) class: Option<Class>,
}

/// What an instruction does.
#[derive(Debug)]
pub(crate) enum Run {
    Lanes(LaneFn, Slots),
    /// By the guard; paths meet again at `join`.
    Branch {
        target: u32,
        join: u32,
    },
    /// Indexed by a register; an index beyond the table goes to its last entry.
    Table {
        index: u16,
        targets: Box<[u32]>,
        join: u32,
    },
    Load(Box<Access>),
    Store(Box<Access>),
    Atomic(Box<Atomic>),
    Matrix(Box<Matrix>),
    Multiply(Box<Multiply>),
    Exchange(Box<Exchange>),
    Barrier(Box<Barrier>),
    Copy(Box<Copy>),
    Commit,
    /// Waits until at most that many groups are under way; `None` waits for all copies.
    Wait(Option<u32>),
    /// Reads the number of warp instructions so far, times `step`.
    Clock {
        to: u16,
        wide: Wide,
        step: u64,
    },
    /// What was done before it is to be seen by others.
    Fence(Scope),
    /// Waits for the launches that this one overlaps with.
    GridWait,
    /// Prefetches and the like: nothing to do in order.
    Skip,
    Exit,
    Trap,
    /// An assertion has failed.
    Assert,
}

/// An address: a register and an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) slot: u16,
    pub(crate) wide: Wide,
    pub(crate) offset: i64,
}

/// A register that memory is read into or written from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Data {
    pub(crate) slot: u16,
    /// Bytes of the register, 2 to 8.
    pub(crate) bytes: u8,
}

/// How an access is ordered with those of other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Weak,
    Volatile,
    /// Relaxed, acquire, release: no race with others of its kind.
    Strong,
}

/// Who sees an operation of synchronisation in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Threads of the block; clusters have no more of them here.
    Block,
    #[default]
    Device,
}

/// A load or store.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) address: Address,
    /// Bytes of one element.
    pub(crate) bytes: u8,
    /// Extended with its sign.
    pub(crate) signed: bool,
    /// One per element; `None` for the sink `_`.
    pub(crate) data: Vec<Option<Data>>,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    /// A store before which a fence stands, as it were.
    pub(crate) is_release: bool,
    /// Weak, shared, one to four whole words between registers of the same width.
    pub(crate) is_simple: bool,
    /// Arguments and results of calls, in local memory: structures are passed with what nobody has written in them.
    pub(crate) is_argument: bool,
}

impl Access {
    pub(crate) fn new(space: Space, address: Address, ty: Ty, data: Vec<Option<Data>>, order: Order) -> Self {
        let (bytes, signed) = (ty.bytes() as u8, ty.is_signed());
        let mut out = Self {
            space,
            address,
            bytes,
            signed,
            data,
            order,
            scope: Scope::Device,
            is_release: false,
            is_simple: false,
            is_argument: false,
        };
        let same_width = out.data.iter().flatten().all(|d| d.bytes == bytes);
        let whole_words = matches!((bytes, out.total()), (4 | 8, 4 | 8 | 16));
        out.is_simple = space == Space::Shared && same_width && whole_words && order == Order::Weak;
        out
    }

    /// Bytes of all elements, the alignment too.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.bytes) * self.data.len() as u64
    }
}

/// What an atomic operation does with the old value and its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

impl AtomicOp {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "add" => Self::Add,
            "min" => Self::Min,
            "max" => Self::Max,
            "and" => Self::And,
            "or" => Self::Or,
            "xor" => Self::Xor,
            "exch" => Self::Exchange,
            "cas" => Self::CompareAndSwap,
            "inc" => Self::Increment,
            "dec" => Self::Decrement,
            _ => return None,
        })
    }
}

/// `atom` and `red`.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    /// Of memory and of the operands.
    pub(crate) ty: Ty,
    pub(crate) space: Space,
    pub(crate) address: Address,
    /// Where the old value goes; `None` for `red`.
    pub(crate) to: Option<u16>,
    pub(crate) operand: u16,
    /// The new value of a compare-and-swap.
    pub(crate) swap: u16,
    /// A fence stands before it, as it were.
    pub(crate) is_release: bool,
    pub(crate) scope: Scope,
}

/// `ldmatrix` and `stmatrix`.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) transposed: bool,
    pub(crate) is_store: bool,
    /// One, two or four registers.
    pub(crate) registers: Vec<u16>,
}

/// `mma.sync` of 8 or 16 rows and 8 columns.
#[derive(Clone, Debug)]
pub(crate) struct Multiply {
    /// Elements of the factors: halves, the upper 19 bits of a binary32, binary64, or bytes.
    pub(crate) factors: [Ty; 2],
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    /// Elements of the sums; halves are in pairs.
    pub(crate) sum: Ty,
    /// Integers that do not fit are clamped.
    pub(crate) saturate: bool,
    pub(crate) to: Vec<u16>,
    pub(crate) a: Vec<u16>,
    pub(crate) b: Vec<u16>,
    pub(crate) c: Vec<u16>,
}

impl Multiply {
    /// Elements of a factor in a register.
    pub(crate) fn packed(factor: Ty) -> usize {
        (4 / factor.bytes()).max(1) as usize
    }
}

/// An instruction over a warp.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Register with the member mask; `None` for the forms without one.
    pub(crate) members: Option<u16>,
    pub(crate) run: ExchangeFn,
    /// `bar.warp.sync`: orders the accesses of the lanes, which the exchanges of values do not.
    pub(crate) is_barrier: bool,
}

/// What happens at a barrier besides waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    CountTrue,
    AllTrue,
    AnyTrue,
}

/// `bar`, `barrier`.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub(crate) kind: BarrierKind,
    /// Register with the barrier's number.
    pub(crate) id: u16,
    /// Register with the number of threads; `None` for the whole block.
    pub(crate) threads: Option<u16>,
    /// Destination of a reduction and its predicate, which may be negated.
    pub(crate) to: u16,
    pub(crate) from: (u16, bool),
}

/// `cp.async`.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u8,
    /// Register with the number of bytes to read; the rest is zero.
    pub(crate) read: Option<u16>,
    /// Predicate, perhaps negated, that makes the copy write zeros only.
    pub(crate) ignore: Option<(u16, bool)>,
}
