//! A thread's loads of one operand, from device memory to their place in shared memory.

use super::{Arithmetic, Load, Loader, Slot};
use crate::ir::{Address, Builder, Caching, CopyThrough, Inst, Operand, Reg, Space, Type};

/// Bytes that come from memory together.
const LINE: u32 = 128;

/// Where a thread puts its loads of a stage in shared memory.
pub(crate) struct Targets {
    /// Addresses in the first stage.
    registers: Vec<Reg>,
    /// For each load which of the addresses, and bytes beyond it.
    spots: Vec<(usize, u32)>,
    /// Bytes from one element of a load to the next, where the tile takes them apart.
    scattered: Option<u32>,
}

impl Targets {
    /// Loads that stay together, each at its spot.
    pub(crate) fn new(registers: Vec<Reg>, spots: Vec<(usize, u32)>) -> Self {
        Self { registers, spots, scattered: None }
    }

    /// Rows of neighbouring elements for every step of the reduction, whatever the direction that memory is contiguous in.
    fn rows(loader: &Loader, bytes: u32, target: Reg) -> Self {
        let spots = loader.slots().iter().map(|slot| (0, slot.to * bytes)).collect();
        // Neighbours along k go to neighbouring rows of the tile, unless they stay together.
        let scattered = loader.along_k && loader.rows.is_none();
        Self { registers: vec![target], spots, scattered: scattered.then_some(loader.pitch * bytes) }
    }

    /// The addresses so many bytes further on.
    fn shifted(&self, b: &mut Builder, by: impl Into<Operand>) -> Vec<Reg> {
        let by = by.into();
        self.registers.iter().map(|reg| b.add(Type::U32, *reg, by)).collect()
    }
}

/// Where a thread puts what it loads, and what it holds until then.
pub(crate) struct Mover {
    pub(crate) arithmetic: Arithmetic,
    pub(crate) load: Load,
    pub(crate) loader: Loader,
    /// Whether this thread loads at all; `None` is always.
    pub(crate) active: Option<Reg>,
    /// Where it puts what it loads, in the first stage.
    targets: Targets,
    /// What has been loaded and not been put yet, slot after slot.
    held: Vec<Reg>,
}

impl Mover {
    /// To rows of neighbouring elements, of which the thread's first is at the target.
    pub(crate) fn new(
        b: &mut Builder,
        numbers: (Arithmetic, Load),
        loader: Loader,
        (active, target): (Option<Reg>, Reg),
        zero: bool,
    ) -> Self {
        let targets = Targets::rows(&loader, numbers.0.bytes(), target);
        Self::to(b, numbers, loader, (active, targets), zero)
    }

    /// With registers for what a stage loads where loads go through them; zero at first where some loads never happen.
    pub(crate) fn to(
        b: &mut Builder,
        (arithmetic, load): (Arithmetic, Load),
        loader: Loader,
        (active, targets): (Option<Reg>, Targets),
        zero: bool,
    ) -> Self {
        let (ty, each) = arithmetic.packed(loader.vec);
        let held = b.regs(ty, if load == Load::Async { 0 } else { loader.loads as usize * each });
        if zero {
            arithmetic.clear(b, loader.vec, &held);
        }
        Self { arithmetic, load, loader, active, targets, held }
    }

    /// How loads go through the caches.
    pub(crate) fn caching(&self) -> Caching {
        if matches!(self.load, Load::Nc | Load::Straight) { Caching::ReadOnly } else { Caching::Default }
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

    /// Where copies go in the first stage.
    pub(crate) fn first(&self) -> Vec<Reg> {
        self.targets.registers.clone()
    }

    /// Where copies go in the stage so many bytes further on.
    pub(crate) fn stage(&self, b: &mut Builder, at: Operand) -> Vec<Reg> {
        self.targets.shifted(b, at)
    }

    /// One copy to a stage; where `inside` is false, zeros.
    pub(crate) fn copy(
        &self,
        b: &mut Builder,
        slot: Slot,
        from: Address,
        (happens, inside): (Option<Reg>, Option<Reg>),
        to: &[Reg],
    ) {
        let each = self.arithmetic.bytes();
        let bytes = self.loader.vec * each;
        let read = inside.map(|p| b.select(Type::U32, p, bytes, 0u32).into());
        let through = match bytes {
            16 if self.loader.run() * each >= LINE => CopyThrough::SecondByLine,
            16 => CopyThrough::Second,
            _ => CopyThrough::All,
        };
        let (target, offset) = self.targets.spots[slot.number];
        let to = Address { base: to[target], offset: offset.into() };
        b.predicated(happens, |b| b.push(Inst::CpAsync { bytes, through, to, from, read }));
    }

    /// Stores what was loaded, in the stage whose turn it is.
    pub(crate) fn put(&self, b: &mut Builder, turn: Option<Reg>) {
        let to = turn.map_or_else(|| self.first(), |turn| self.targets.shifted(b, turn));
        let (ty, _) = self.arithmetic.packed(self.loader.vec);
        b.predicated(self.active, |b| {
            for slot in self.loader.slots() {
                let (target, offset) = self.targets.spots[slot.number];
                let Some(apart) = self.targets.scattered else {
                    b.store(Space::Shared, ty, self.held(slot), to[target], offset.into());
                    continue;
                };
                let (ty, elements) = self.arithmetic.split(b, self.held(slot));
                for (i, src) in (0..).zip(elements.chunks(self.arithmetic.parts())) {
                    b.store(Space::Shared, ty, src, to[target], i64::from(offset + i * apart));
                }
            }
        });
    }
}
