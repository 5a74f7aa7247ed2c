//! A thread's loads of one operand, from device memory to their place in shared memory.

use super::{Arithmetic, Load, Loader, Slot};
use crate::ir::{Address, Builder, Caching, CopyThrough, Inst, Reg, Space, Type};

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
    /// With registers for what a stage loads where loads go through them; zero at first where some loads never happen.
    pub(crate) fn new(
        b: &mut Builder,
        (arithmetic, load): (Arithmetic, Load),
        loader: Loader,
        (active, target): (Option<Reg>, Reg),
        zero: bool,
    ) -> Self {
        let (ty, each) = arithmetic.packed(loader.vec);
        let held = b.regs(ty, if load == Load::Async { 0 } else { loader.loads as usize * each });
        if zero {
            arithmetic.clear(b, loader.vec, &held);
        }
        Self { arithmetic, load, loader, active, target, held }
    }

    /// How loads go through the caches.
    pub(crate) fn caching(&self) -> Caching {
        if self.load == Load::Nc { Caching::ReadOnly } else { Caching::Default }
    }

    fn held(&self, slot: Slot) -> &[Reg] {
        let (_, count) = self.arithmetic.packed(self.loader.vec);
        &self.held[slot.number * count..][..count]
    }

    /// Zeros in the registers of a load.
    pub(crate) fn clear(&self, b: &mut Builder, slot: Slot) {
        self.arithmetic.clear(b, self.loader.vec, self.held(slot));
    }

    /// One load into registers.
    pub(crate) fn load(&self, b: &mut Builder, slot: Slot, addr: Address, pred: Option<Reg>) {
        let ((ty, _), caching) = (self.arithmetic.packed(self.loader.vec), self.caching());
        let dst = self.held(slot).to_vec();
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
        let (ty, _) = self.arithmetic.packed(self.loader.vec);
        b.predicated(self.active, |b| {
            for slot in self.loader.slots() {
                let at = |element: u32| i64::from((slot.to + element) * self.arithmetic.bytes());
                if !self.loader.along_k {
                    b.store(Space::Shared, ty, self.held(slot), to, at(0));
                    continue;
                }
                // Neighbours along k go to neighbouring rows of the tile.
                let (ty, elements) = self.arithmetic.split(b, self.held(slot));
                for (i, src) in (0..).zip(elements) {
                    b.store(Space::Shared, ty, &[src], to, at(i * self.loader.pitch));
                }
            }
        });
    }
}
