//! The loop over the reduction, stage by stage.

use super::{Arithmetic, tree};
use crate::ir::{Arith, Builder, Compare, Index, Inst, Operand, Reg, Sym, Type};
use serde::{Deserialize, Serialize};
use tilewright_core::expr::Val;

/// How tiles of the operands come into shared memory, or rows of A to where they are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Through registers, by ordinary loads.
    Global,
    /// Through registers, by loads of data that nobody writes (`ld.global.nc`).
    Nc,
    /// By asynchronous copies (`cp.async`, from sm_80), several stages ahead.
    Async,
    /// Those of B like `Nc`. Rows of A go straight to the registers of the threads that multiply them.
    Straight,
}

impl Load {
    /// By its word.
    pub(crate) fn of(word: Val<'_>) -> Self {
        match word {
            Val::Str("nc") => Self::Nc,
            Val::Str("async") => Self::Async,
            Val::Str("straight") => Self::Straight,
            _ => Self::Global,
        }
    }
}

/// How a thread brings in its part of one operand's tiles.
pub(crate) trait Side {
    /// Loads the first stage into registers.
    fn load_first(&mut self, b: &mut Builder);
    /// Copies the first stage.
    fn copy_first(&mut self, b: &mut Builder);
    /// Goes on to the next stage before the loop.
    fn leave(&mut self, b: &mut Builder);
    /// From here on the next loop goes on in place.
    fn carry(&mut self, b: &mut Builder);
    /// Goes on to the next stage in the loop.
    fn advance(&self, b: &mut Builder);
    /// Loads a stage into registers if more than `ahead` stages are left, and goes on.
    fn load_next(&self, b: &mut Builder, left: Reg, ahead: u32);
    /// Copies a stage to the one at `to` bytes if more than `ahead` stages are left.
    fn copy_next(&self, b: &mut Builder, left: (Reg, u32), to: Operand);
    /// Stores what was loaded, in the stage whose turn it is.
    fn put(&self, b: &mut Builder, turn: Option<Reg>);
}

/// How a thread multiplies a stage.
pub(crate) trait Multiply {
    /// From here on the next loop goes on in place.
    fn carry(&mut self, b: &mut Builder) {
        let _ = b;
    }

    /// Adds the products of the stage whose turn it is to the accumulators; so many are left with it.
    fn compute(&self, b: &mut Builder, turn: Option<Reg>, left: Reg, acc: &[Reg]);

    /// Whether the first operands of a stage are loaded beneath the last products of the one before.
    fn is_ahead(&self) -> bool {
        false
    }

    /// Loads the first operands of the first stage, where stages are read ahead.
    fn begin(&mut self, b: &mut Builder, turn: Reg) {
        let _ = (b, turn);
    }

    /// [`Multiply::compute`] where the first operands are there. Before the last products `next` is called, which waits for the next stage
    /// and says where it is: its first operands are loaded beneath them.
    fn go_on(&self, b: &mut Builder, turn: Reg, acc: &[Reg], next: impl FnOnce(&mut Builder) -> Reg) {
        let _ = (b, turn, acc, next);
    }
}

/// The sums of a block over its slice of the reduction.
pub(crate) struct Reduction {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) load: Load,
    /// Stages in shared memory, and bytes from one to the next.
    pub(crate) stages: u32,
    pub(crate) step: u32,
    /// Stages of the slice, at least one.
    pub(crate) trips: Reg,
    /// Sums of a thread, and sets of accumulators that steps are dealt to.
    pub(crate) tile: usize,
    pub(crate) sets: u32,
    /// Threads of a group, and groups of the block.
    pub(crate) group: u32,
    pub(crate) groups: u32,
    /// The thread's index in its group, and the group; `None` where there is one.
    pub(crate) in_group: Reg,
    pub(crate) my_group: Option<Reg>,
    /// Address of shared memory.
    pub(crate) shared: Reg,
}

impl Reduction {
    /// Adds up; the sums are those of the first group.
    pub(crate) fn sums<S: Side, const SIDES: usize>(
        &self,
        b: &mut Builder,
        mut sides: [S; SIDES],
        read: &mut impl Multiply,
    ) -> Vec<Reg> {
        let tile = self.tile / self.arithmetic.lanes();
        let acc: Vec<Reg> = (0..tile * self.sets as usize).map(|_| self.arithmetic.start(b)).collect();
        match (self.load, self.stages) {
            (Load::Async, _) => self.asynchronous(b, &mut sides, read, &acc),
            (_, 1) => self.single(b, &mut sides, read, &acc),
            _ => self.double(b, &mut sides, read, &acc),
        }
        let mut sums = self.arithmetic.sums(b, &acc[..tile]);
        for set in acc[tile..].chunks(tile) {
            let set = self.arithmetic.sums(b, set);
            sums = sums.iter().zip(set).map(|(x, y)| self.arithmetic.add(b, *x, y)).collect();
        }
        if self.groups > 1 {
            sums = b.block("tree", |b| tree(b, self, &sums));
        }
        sums
    }

    /// One stage in shared memory; the next waits in registers.
    fn single<S: Side>(&self, b: &mut Builder, sides: &mut [S], read: &mut impl Multiply, acc: &[Reg]) {
        b.block("first stage", |b| sides.iter_mut().for_each(|side| side.load_first(b)));
        sides.iter_mut().for_each(|side| side.carry(b));
        read.carry(b);
        b.repeat("k", self.trips, |b, it| {
            sides.iter().for_each(|side| side.put(b, None));
            b.barrier();
            sides.iter().for_each(|side| side.load_next(b, it.left, 1));
            read.compute(b, None, it.left, acc);
            b.barrier();
        });
    }

    /// Two stages in shared memory, filled through registers: one barrier a stage.
    fn double<S: Side>(&self, b: &mut Builder, sides: &mut [S], read: &mut impl Multiply, acc: &[Reg]) {
        let step = self.step;
        b.block("first stage", |b| {
            sides.iter_mut().for_each(|side| side.load_first(b));
            sides.iter().for_each(|side| side.put(b, None));
            b.barrier();
        });
        sides.iter_mut().for_each(|side| side.carry(b));
        read.carry(b);
        let current = b.carried(Type::U32, 0u32, Sym::Turn { count: 2, step }.into());
        b.repeat("k", self.trips, |b, it| {
            sides.iter().for_each(|side| side.load_next(b, it.left, 1));
            read.compute(b, Some(current), it.left, acc);
            let (a, op) = (step.into(), Arith::Sub);
            b.push(Inst::Arith { op, ty: Type::U32, dst: current, a, b: current.into() });
            sides.iter().for_each(|side| side.put(b, Some(current)));
            b.barrier();
        });
    }

    /// Several stages in shared memory, copied asynchronously: one barrier a stage.
    fn asynchronous<S: Side>(&self, b: &mut Builder, sides: &mut [S], read: &mut impl Multiply, acc: &[Reg]) {
        let (stages, step) = (self.stages, self.step);
        b.block("first stages", |b| {
            sides.iter_mut().for_each(|side| side.copy_first(b));
            b.push(Inst::CpAsyncCommit);
            for stage in 1..stages - 1 {
                for side in sides.iter_mut() {
                    side.copy_next(b, (self.trips, stage), (stage * step).into());
                    side.leave(b);
                }
                b.push(Inst::CpAsyncCommit);
            }
        });
        sides.iter_mut().for_each(|side| side.carry(b));
        read.carry(b);
        let turn: Index = Sym::Turn { count: stages, step }.into();
        let current = b.carried(Type::U32, 0u32, turn.clone());
        let free = b.carried(Type::U32, (stages - 1) * step, turn);
        // Everybody's copies have arrived, and everybody has left the stage that is filled next.
        let arrive = |b: &mut Builder| {
            b.push(Inst::CpAsyncWait { pending: stages - 2 });
            b.barrier();
        };
        let copy = |b: &mut Builder, left: Reg| {
            for side in sides.iter() {
                side.copy_next(b, (left, stages - 1), free.into());
                side.advance(b);
            }
            b.push(Inst::CpAsyncCommit);
        };
        let is_ahead = read.is_ahead();
        if is_ahead {
            arrive(b);
            read.begin(b, current);
        }
        b.repeat("k", self.trips, |b, it| {
            if !is_ahead {
                arrive(b);
            }
            copy(b, it.left);
            if is_ahead {
                read.go_on(b, current, acc, |b| {
                    self.turn(b, [current, free], Some(it.left));
                    arrive(b);
                    current
                });
            } else {
                read.compute(b, Some(current), it.left, acc);
                self.turn(b, [current, free], None);
            }
        });
        if self.groups > 1 {
            b.barrier();
        }
    }

    /// The stage that was multiplied is filled next, and the one after it is multiplied. Nobody fills one after the last: where stages are
    /// read ahead, and so many are `left`, the last follows itself, and what is read of it is not used.
    fn turn(&self, b: &mut Builder, [current, free]: [Reg; 2], left: Option<Reg>) {
        b.push(Inst::Mov { ty: Type::U32, dst: free, src: current.into() });
        let next = following(b, current, self.stages, self.step);
        let Some(left) = left else {
            b.push(Inst::Mov { ty: Type::U32, dst: current, src: next.into() });
            return;
        };
        let pred = b.compare(Compare::Gt, left, 1u32, None);
        b.push(Inst::Selp { ty: Type::U32, dst: current, a: next.into(), b: current.into(), pred });
    }
}

/// Where the stage lies that follows one of several.
fn following(b: &mut Builder, current: Reg, stages: u32, step: u32) -> Reg {
    if stages == 2 {
        return b.sub(Type::U32, step, current);
    }
    let next = b.arith(Arith::Add, Type::U32, current, step);
    let wraps = b.compare(Compare::Eq, next, stages * step, None);
    b.select(Type::U32, wraps, 0u32, next)
}
