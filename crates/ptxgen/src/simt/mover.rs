//! A thread's loads of one operand, from device memory to their place in shared memory.

use super::{Arithmetic, Load, Loader, Slot};
use crate::ir::{Address, Builder, Caching, CopyThrough, Inst, Operand, Reg, Space, Type};

/// Where a thread puts what it loads, and what it holds until then.
pub(crate) struct Mover {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) load: Load,
    pub(crate) loader: Loader,
    /// Whether this thread loads at all; `None` is always.
    pub(crate) active: Option<Reg>,
    /// Where it puts what it loads, in the first stage.
    pub(crate) target: Reg,
    /// What has been loaded and not been put yet, slot after slot.
    held: Vec<Reg>,
}

impl Mover {
    /// With registers for the elements of a stage where loads go through them; zero at first where some loads never happen.
    pub(crate) fn new(
        b: &mut Builder,
        (arithmetic, load): (Arithmetic, Load),
        loader: Loader,
        (active, target): (Option<Reg>, Reg),
        zero: bool,
    ) -> Self {
        let count = if load == Load::Async { 0 } else { loader.loads * loader.vec };
        let ty = arithmetic.ty;
        let held = (0..count).map(|_| if zero { b.mov(ty, Operand::Float(0.0)) } else { b.reg(ty) }).collect();
        Self { arithmetic, load, loader, active, target, held }
    }

    /// How loads go through the caches.
    pub(crate) fn caching(&self) -> Caching {
        if self.load == Load::Nc { Caching::ReadOnly } else { Caching::Default }
    }

    fn held(&self, slot: Slot) -> &[Reg] {
        let count = self.loader.vec as usize;
        &self.held[slot.number * count..][..count]
    }

    /// Zeros in the registers of a load.
    pub(crate) fn clear(&self, b: &mut Builder, slot: Slot) {
        let (ty, src) = (self.arithmetic.ty, Operand::Float(0.0));
        self.held(slot).iter().for_each(|dst| b.push(Inst::Mov { ty, dst: *dst, src }));
    }

    /// One load into registers.
    pub(crate) fn load(&self, b: &mut Builder, slot: Slot, addr: Address, pred: Option<Reg>) {
        let (ty, caching, dst) = (self.arithmetic.ty, self.caching(), self.held(slot).to_vec());
        b.predicated(pred, |b| b.push(Inst::Ld { space: Space::Global, caching, ty, dst, addr }));
    }

    /// One copy to the stage at `to`; where `inside` is false, zeros.
    pub(crate) fn copy(
        &self,
        b: &mut Builder,
        slot: Slot,
        from: Address,
        (happens, inside): (Option<Reg>, Option<Reg>),
        to: Reg,
    ) {
        let each = self.arithmetic.bytes();
        let bytes = self.loader.vec * each;
        let read = inside.map(|p| b.select(Type::U32, p, bytes, 0u32).into());
        let through = if bytes == 16 { CopyThrough::Second } else { CopyThrough::All };
        let to = Address { base: to, offset: i64::from(slot.to * each) };
        b.predicated(happens, |b| b.push(Inst::CpAsync { bytes, through, to, from, read }));
    }

    /// Stores what was loaded, in the stage whose turn it is.
    pub(crate) fn put(&self, b: &mut Builder, turn: Option<Reg>) {
        let to = turn.map_or(self.target, |t| b.add(Type::U32, self.target, t));
        let (ty, bytes, count) = (self.arithmetic.ty, self.arithmetic.bytes(), self.loader.vec as usize);
        b.predicated(self.active, |b| {
            for slot in self.loader.slots() {
                // Neighbours along k go to neighbouring rows of the tile.
                let (width, down) = if self.loader.along_k { (1, self.loader.pitch) } else { (count, 0) };
                for (i, src) in self.held(slot).chunks(width).enumerate() {
                    let at = (slot.to + i as u32 * down) * bytes;
                    b.store(Space::Shared, ty, src, to, at.into());
                }
            }
        });
    }
}
