//! Runs PTX text on the host: results, faults, exact dynamic counts. It parses what is printed, so that what is tested is
//! what ships, and it knows nothing of the crates that generate PTX.
//!
//! ```
//! use tilewright_emulator::{Argument, Launch, Memory, Module};
//!
//! let text = ".version 7.0 .target sm_80 .address_size 64
//!     .visible .entry double(.param .u64 x) {
//!       .reg .b32 %r<3>; .reg .b64 %rd<4>;
//!       ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
//!       ld.global.u32 %r2, [%rd3]; shl.b32 %r2, %r2, 1; st.global.u32 [%rd3], %r2; ret;
//!     }";
//! let module = Module::parse(text)?;
//! let mut memory = Memory::new();
//! let x = memory.add("x", &[1, 0, 0, 0, 2, 0, 0, 0])?;
//! let args = [Argument::buffer(x)];
//! let report = module.launch(&Launch::new("double", [1, 1, 1], [2, 1, 1], &args), &mut memory)?;
//! assert_eq!(memory.read(x), [2, 0, 0, 0, 4, 0, 0, 0]);
//! assert!(report.findings.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it runs
//!
//! Threads run in warps of 32 in lock-step. Where a branch parts a warp, each side runs until the nearest instruction that
//! every way to the end goes through (the immediate post-dominator of the branch), and both go on together from there.
//! Warps of a block take turns, each until it waits; or, by [`Schedule::Random`], a generator draws which one runs next and
//! for how many instructions (a power of two up to 512), from a seed and the block's number. A missing barrier that one
//! order hides gives a wrong result in another. Blocks run in parallel on rayon's pool and begin in the order of their
//! linear numbers. Shared memory and registers hold a NaN pattern at the start of a block.
//!
//! Arithmetic is that of PTX: every operation rounds once in the direction it names; `.ftz` flushes operands and results.
//! Approximations (`ex2.approx` and the like) are computed in their type and are closer to the exact value than the
//! hardware's.
//!
//! `mma` adds exact products in binary64 and rounds once; the hardware's order is not specified. By
//! [`MmaRounding::Truncated`] it adds as tensor cores do, so that an error bound that holds here holds there: from the first
//! product on, 8 at a time (4 of tf32), and the accumulator are aligned to the largest exponent among them, cut off at one bit
//! behind the 24 of binary32 and added; the sum is cut off to binary32, or rounded to nearest where it is a binary16, and is
//! the accumulator of the next ones. These are the numbers of Ampere and Ada, the least exact devices that have all these
//! instructions; code for targets before `sm_80` gets 4 products and no bit, as on Volta. Hopper has 16 products and two bits.
//! The numbers are those of Khattak and Mikaitis ("Accurate models of NVIDIA tensor cores", arXiv 2512.07004), after Fasi,
//! Higham, Mikaitis and Pranesh (PeerJ Computer Science 7:e330). Sums of integers are exact in both ways, and products of
//! binary64 are added by fused multiply-adds.
//!
//! `cp.async` reads its source at once and changes shared memory only at the wait that ends it. Until then its destination
//! shows what stood there before, and touching it is a finding.
//!
//! # What it finds
//!
//! See [`Fault`]. Accesses to shared memory race when two threads touch the same cell, one of them writes another value, and
//! nothing orders them; barriers of some warps order those alone. A cell is as wide as the narrowest access of the kernel to
//! shared or generic memory, at most 4 bytes. Lanes of one warp are ordered by `bar.warp.sync` of any of them, and not by
//! exchanges of values (CUDA programming guide, warp shuffle functions: they imply no memory barrier); on targets before
//! sm_70 they run in lock-step and never race. A plain load that races with atomic operations is left out where its lane
//! goes on to an atomic operation on the same cell: the test before a maximum, the first guess of a compare-and-swap.
//!
//! Plain accesses to global memory race by the same rules. Between blocks nothing orders them but fences and one place: what
//! comes before a fence (`membar.gl`, `fence.acq_rel.gpu`, wider ones, a release) in its thread, or before barriers that
//! come before it, is published by the warp's next atomic or volatile write, and by those of warps that a barrier orders
//! behind the fence. Who reads that place by an atomic or volatile access that returns a value knows it, with all that the
//! writers knew, and so do warps behind a barrier from there. That is a ticket: stores, a barrier, a fence, an atomic
//! addition whose last taker reads what all have stored. Fences and operations of scope `.cta` order the block alone. It is
//! lenient in three ways: no fence is asked for behind the read, since the CUDA programming guide's own example has none; a
//! write publishes to whoever reads the place later, whatever value that one sees; and the lanes of a warp count as one.
//! Atomic and volatile accesses to global memory race with nothing.
//!
//! [`Launch::overlaps`] marks a launch that may begin before the one before it has ended (programmatic dependent launch). The emulator
//! runs it after that one all the same. A thread that has not executed `griddepcontrol.wait` is at fault where it reads a buffer that the
//! earlier launch writes, or writes one that the earlier launch uses. This is strict: whole buffers count, and a thread must wait itself
//! even where a barrier orders it behind another thread's wait. Of several overlapping launches in a row each must wait for all before
//! it, and the first wait of a thread is taken to cover them all.
//!
//! A load of what nobody has written marks its result, and so does a variable without a value. What is computed of marked
//! values is marked, and it is a fault once such a value goes to global memory, is an address or an operand of an atomic
//! operation, guards a store, or decides a branch. Variables without a value may decide branches: compilers test them for
//! threads that have nothing to do.
//!
//! # What it counts
//!
//! Counts are exact and do not depend on the number of host threads, unless the kernel itself depends on the order of
//! blocks. A symbolic counter must reproduce these rules:
//!
//! - **One instruction of the text counts once**, in the [`Class`] of its [`Site`], whatever it takes to run it.
//! - **`issued`** counts warps that come to an instruction with at least one lane on their path, whatever its guard says. A
//!   divergent warp comes to an instruction once for each path that leads there before the paths meet again.
//! - **`threads`** counts lanes on the path whose guard holds; **`predicated_off`** lanes on the path whose guard does not.
//!   For a guarded branch, `threads` are the lanes that take it. Lanes on another path, lanes that have exited, and lanes
//!   beyond the block's last thread (a **partial warp**) are in neither.
//! - **Bytes** are those of executing lanes: bytes per lane times `threads`. `ldmatrix` counts 16 bytes for each row address;
//!   `cp.async` counts its source, with all its bytes for lanes that read at least one, nothing for lanes that only write
//!   zeros.
//! - **Stride** is counted for each warp access with at least one executing lane: the difference of addresses from a lane to
//!   the next, over pairs of neighbouring lanes that both execute, in units of the access (all elements of a vector). If
//!   pairs differ, the most frequent difference counts, the smaller magnitude of two that are equally frequent, and the
//!   access is `irregular` as well. Without such pairs the stride is zero. Its sign does not matter; what is no multiple of
//!   the access is [`Stride::More`]. Lane numbers follow `%tid.x` first, so in rows of 32 or more threads this is the stride
//!   along the first axis.
//! - **`transactions`** are distinct 32-byte sectors of each warp access for global and constant memory, and passes over the
//!   32 banks for shared memory: the greatest number of distinct words in one bank, for 8-byte accesses by half warps and
//!   for 16-byte accesses by quarter warps, added up. Local memory and parameters count one.
//! - **`distinct_bytes`** are the bytes that the executing lanes of a warp access touch together, each counted once, added
//!   up over warp accesses. `distinct_bytes / (32 transactions)` says how well an instruction uses the sectors of global
//!   memory; for copies, the whole copy counts as read, as it does for bytes.
//! - **Footprints** ([`Limits::footprints`]) are those of Stevens and Kloeckner's linear model (section 2.1), over a whole
//!   launch and for global memory alone, constants and variables of the module included. For an instruction `s` and a
//!   buffer `b`, `used` is the number of bytes of `b` that at least one executing lane of `s` touched within bounds in any
//!   warp access; a copy touches what it reads. `spanned` is the number of bytes of `b` in the union, over all warp accesses
//!   and their executing lanes, of the bytes from the lane's address `x` to `x + max(bytes, |step|)`, without the last:
//!   `bytes` are those of the lane's access, and `step` is the difference of addresses that counts as the access's
//!   stride (see above, before it is classed). What lies beyond the buffer's end is left out. The utilisation is
//!   `used / spanned`. The paper finds it per array: the last entries of the report unite the bytes of all
//!   instructions that load from a buffer, and of all that store or do atomics, and their ratio stands above the stride
//!   of each of these instructions ([`Footprint::amortised`]).
//! - **A function's instructions** stand in [`Counts::sites`] once for each call, behind the call, with the place where they
//!   are written. The call and each `ret` of a function count as branches.
//!
//! # Limits
//!
//! Calls through registers, recursion, `vprintf` and the device's heap, textures, `cp.async.bulk`, `mbarrier`,
//! `wgmma` and clusters of more than one block are read and refused at the launch. Functions take the place of their calls. Barriers count warps: a barrier under divergence is a finding, also where hardware would sort it out. In
//! shared memory fences order nothing: there barriers do. 64-bit plain accesses that race with 64-bit atomics of other blocks may tear.

#![forbid(unsafe_code)]

mod behaviour;
mod counts;
mod device;
mod finding;
mod kernel;
mod lanes;
mod launch;
mod lines;
mod lower;
mod machine;
mod memory;
mod module;
mod properties;
mod rounding;
mod sample;
mod text;
mod types;
mod uses;

pub use behaviour::{Behaviour, MmaRounding, Schedule, UnknownBehaviour};
pub use counts::{Class, Counts, FloatOp, Footprint, Precision, Site, Stride, Tally, Traffic};
pub use device::{EmulatorDevice, Log};
pub use finding::{Fault, Finding, Hazard, Racer, Spot};
pub use launch::{Argument, Launch, LaunchError, Limits, Report, Sample};
pub use lines::{Origin, SourceLine};
pub use memory::{BufferId, Memory, MemoryError};
pub use module::{LoadError, Module};
pub use properties::{overlaps, properties};
pub use text::{ParseError, Place};
pub use types::Space;
