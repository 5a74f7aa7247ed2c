//! Kernels that measure a device: peak rates of arithmetic, memory and shared memory, and the cost of a launch.
//!
//! Each does one thing as often as it can, and little else. The amount of work is known, so a time gives a rate.

use crate::ir::{Arith, Axis, Builder, Inst, Module, Operand, Reg, Space, Special, Type};
use crate::print::print;
use crate::target::Target;
use tilewright_core::buffer::{BufferSpec, Role};
use tilewright_core::dtype::DType;
use tilewright_core::program::{self, Arg, Code, Program};

/// Threads of a block.
const THREADS: u32 = 256;
/// Independent chains of fused multiply-adds of a thread: more than latency times throughput of any target asks for.
const CHAINS: usize = 16;
/// Fused multiply-adds of a chain in one iteration.
const DEPTH: usize = 8;
/// Vectors of 16 bytes that a thread moves in one iteration.
const VECTORS: u32 = 4;
/// Loads of 16 bytes from shared memory between two barriers.
const SHARED_LOADS: u32 = 16;

/// What is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Loads only.
    Read,
    /// Stores only.
    Write,
    /// A load for each store.
    Copy,
}

/// A kernel with what it does.
#[derive(Clone, Debug)]
pub struct Micro {
    /// What is measured: `fma_f32`, `memory_copy`, ...
    pub name: String,
    /// Amount of one run: floating-point operations or bytes; 1 for a launch.
    pub amount: f64,
    /// `flop`, `byte` or `launch`.
    pub unit: &'static str,
    /// The code.
    pub module: Module,
    /// What is launched.
    pub program: Program,
    /// What it works on.
    pub buffers: Vec<BufferSpec>,
}

fn buffer(name: &'static str, bytes: u64) -> BufferSpec {
    BufferSpec { name, dtype: DType::F32, len: (bytes / 4) as usize, role: Role::InOut }
}

fn micro(
    (name, amount, unit): (String, f64, &'static str),
    module: Module,
    blocks: u32,
    buffers: Vec<BufferSpec>,
    args: Vec<Arg>,
) -> Micro {
    let code = Code::Ptx { text: print(&module), entry: module.entry.name.clone() };
    let block = [module.entry.threads, 1, 1];
    let program = Program::launch(program::Launch::new(code, [blocks, 1, 1], block, args));
    Micro { name, amount, unit, module, program, buffers }
}

/// A kernel that does nothing: the cost of a launch.
pub fn empty(target: Target) -> Micro {
    let module = Module { target, entry: Builder::new().finish("micro_empty", 32) };
    micro(("launch".into(), 1.0, "launch"), module, 1, Vec::new(), Vec::new())
}

/// Peak rate of fused multiply-adds of a type (binary32 or binary64).
pub fn fma(target: Target, ty: Type, blocks: u32, iterations: u32) -> Micro {
    let mut b = Builder::new();
    let out = b.buffer("out", 16);
    let count = b.param("count", Type::U32, 1);
    let (x, y) = (b.mov(ty, Operand::Float(0.999_999)), b.mov(ty, Operand::Float(1e-6)));
    let chains: Vec<Reg> = (0..CHAINS).map(|i| b.mov(ty, Operand::Float(i as f64))).collect();
    b.repeat("fma", count, |b, _| {
        for _ in 0..DEPTH {
            for &dst in &chains {
                b.push(Inst::Fma { ty, dst, a: dst.into(), b: x.into(), c: y.into() });
            }
        }
    });
    let sum = chains[1..].iter().fold(chains[0], |sum, &c| b.arith(Arith::Add, ty, sum, c));
    let at = thread_address(&mut b, out, ty.bytes());
    b.store(Space::Global, ty, &[sum], at, 0);
    let word = if ty == Type::F64 { "f64" } else { "f32" };
    let module = Module { target, entry: b.finish(&format!("micro_fma_{word}"), THREADS) };
    let threads = u64::from(blocks) * u64::from(THREADS);
    let flops = 2.0 * threads as f64 * f64::from(iterations) * (CHAINS * DEPTH) as f64;
    let buffers = vec![buffer("out", threads * u64::from(ty.bytes()))];
    micro(
        (format!("fma_{word}"), flops, "flop"),
        module,
        blocks,
        buffers,
        vec![Arg::Buffer(0, 0), Arg::U32(iterations)],
    )
}

/// The address of this thread's element.
fn thread_address(b: &mut Builder, base: Reg, bytes: u32) -> Reg {
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let at = b.scale_add(Some(block), THREADS, tid);
    b.mad_wide(at, bytes, base)
}

/// Rate of the memory, or of the second-level cache where all of `bytes` fit into it and are passed several times. `bytes` of
/// one buffer are rounded down to what the blocks share evenly.
pub fn memory(target: Target, traffic: Traffic, blocks: u32, bytes: u64, passes: u32) -> Micro {
    let sweep = u64::from(blocks) * u64::from(THREADS * VECTORS) * 16;
    let sweeps = (bytes / sweep).max(1);
    let mut b = Builder::new();
    let (from, to) = (b.buffer("from", 16), b.buffer("to", 16));
    let step = b.param("step", Type::U64, 16);
    let (sweeps_reg, passes_reg) = (b.param("sweeps", Type::U32, 1), b.param("passes", Type::U32, 1));
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let first = b.scale_add(Some(block), THREADS * VECTORS, tid);
    let (from, to) = (b.mad_wide(first, 16u32, from), b.mad_wide(first, 16u32, to));
    let sums: Vec<Reg> = (0..4).map(|_| b.mov(Type::F32, Operand::Float(0.0))).collect();
    b.repeat("passes", passes_reg, |b, _| {
        let (source, target) = (b.walking(Type::U64, from, step), b.walking(Type::U64, to, step));
        b.repeat("sweeps", sweeps_reg, |b, _| {
            let at = |v: u32| i64::from(v * THREADS * 16);
            let vectors: Vec<Vec<Reg>> = (0..VECTORS)
                .map(|v| match traffic {
                    Traffic::Write => sums.clone(),
                    Traffic::Read | Traffic::Copy => b.load(Space::Global, Type::F32, 4, source, at(v)),
                })
                .collect();
            for (v, vector) in (0..VECTORS).zip(&vectors) {
                match traffic {
                    Traffic::Read => vector.iter().zip(&sums).for_each(|(x, sum)| b.advance(Type::F32, *sum, *x)),
                    Traffic::Write | Traffic::Copy => b.store(Space::Global, Type::F32, vector, target, at(v)),
                }
            }
            b.advance(Type::U64, source, step);
            b.advance(Type::U64, target, step);
        });
    });
    if traffic == Traffic::Read {
        b.store(Space::Global, Type::F32, &sums, to, 0);
    }
    let (word, sides) = match traffic {
        Traffic::Read => ("read", 1.0),
        Traffic::Write => ("write", 1.0),
        Traffic::Copy => ("copy", 2.0),
    };
    let module = Module { target, entry: b.finish(&format!("micro_memory_{word}"), THREADS) };
    let whole = sweep * sweeps;
    let amount = sides * whole as f64 * f64::from(passes);
    let args = vec![Arg::Buffer(0, 0), Arg::Buffer(1, 0), Arg::U64(sweep), Arg::U32(sweeps as u32), Arg::U32(passes)];
    let buffers = vec![buffer("from", whole), buffer("to", whole)];
    micro((format!("memory_{word}"), amount, "byte"), module, blocks, buffers, args)
}

/// Rate of shared memory: vectors of 16 bytes, no two threads of a warp in conflict. A barrier every so often keeps the loads in
/// the loop.
pub fn shared(target: Target, blocks: u32, iterations: u32) -> Micro {
    let mut b = Builder::new();
    let out = b.buffer("out", 16);
    let count = b.param("count", Type::U32, 1);
    let tid = b.special(Special::Tid);
    let at = b.scale(tid, 16);
    let start = b.mov(Type::F32, Operand::Float(1.0));
    for v in 0..2u32 {
        b.store(Space::Shared, Type::F32, &[start; 4], at, i64::from(v * THREADS * 16));
    }
    b.barrier();
    let sums: Vec<Reg> = (0..4).map(|_| b.mov(Type::F32, Operand::Float(0.0))).collect();
    b.repeat("loads", count, |b, _| {
        for v in 0..SHARED_LOADS {
            let vector = b.load(Space::Shared, Type::F32, 4, at, i64::from((v % 2) * THREADS * 16));
            vector.iter().zip(&sums).for_each(|(x, sum)| b.advance(Type::F32, *sum, *x));
            if v % 2 == 1 {
                b.barrier();
            }
        }
    });
    let total = sums[1..].iter().fold(sums[0], |sum, &c| b.arith(Arith::Add, Type::F32, sum, c));
    let to = thread_address(&mut b, out, 4);
    b.store(Space::Global, Type::F32, &[total], to, 0);
    let mut entry = b.finish("micro_shared", THREADS);
    entry.shared_bytes = 2 * THREADS * 16;
    let threads = u64::from(blocks) * u64::from(THREADS);
    let bytes = threads as f64 * f64::from(iterations) * f64::from(SHARED_LOADS) * 16.0;
    let args = vec![Arg::Buffer(0, 0), Arg::U32(iterations)];
    micro(
        ("shared_read".into(), bytes, "byte"),
        Module { target, entry },
        blocks,
        vec![buffer("out", threads * 4)],
        args,
    )
}
