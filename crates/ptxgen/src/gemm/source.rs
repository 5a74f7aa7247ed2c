//! Where a thread reads one operand in device memory, stage by stage, and which of its loads happen.
//!
//! The first stage takes the remainder of the reduction, so that all others are full: only its loads are predicated along k.
//! In the direction of rows (columns for B) a predicate per pass is computed once. What is not loaded is zero.

use super::frame::{Block, Elements, Frame, Params};
use crate::ir::{Address, Arith, Builder, Compare, Operand, Reg, Type};
use crate::simt::{Loader, Slot};

/// A thread's way through an operand.
pub(crate) struct Source {
    pub(crate) loader: Loader,
    elements: Elements,
    /// Address of the next stage's first element of this thread.
    pointer: Reg,
    /// Bytes between two passes across, where there are several.
    pass: Option<Reg>,
    /// Bytes from stage to stage.
    stride: Operand,
    /// Bytes from the first stage to the second, where the first is not full.
    first: Option<Reg>,
    /// For each pass in the direction of rows, whether the elements exist; `None` is always. Where loads go through
    /// registers, whether the thread loads is part of it.
    pub(crate) edges: Vec<Option<Reg>>,
    /// Steps of the first stage that are left from this thread's first one on.
    left_k: Option<Reg>,
}

/// Where a thread stands among those that load an operand.
pub(crate) struct Share {
    /// Elements of the thread's first row and step within the tile; `None` for the first.
    pub(crate) row: Option<Reg>,
    pub(crate) k: Option<Reg>,
    /// Whether this thread loads at all; `None` is always.
    pub(crate) active: Option<Reg>,
}

impl Share {
    /// The thread's part of a loader's work, of so many threads.
    pub(crate) fn new(b: &mut Builder, loader: &Loader, tid: Reg, threads: u32) -> Self {
        let x = b.rem(tid, loader.along).map(|x| b.scale(x, loader.vec));
        let partial = loader.active() < threads;
        let y = (loader.down > 1 || partial).then(|| b.div(tid, loader.along));
        let active = y.filter(|_| partial).map(|y| b.compare(Compare::Lt, y, loader.down, None));
        let (row, k) = if loader.along_k { (y, x) } else { (x, y) };
        Self { row, k, active }
    }
}

impl Source {
    /// Of A, or of B. Predicates of loads include whether the thread loads where `through_registers`.
    pub(crate) fn new(
        b: &mut Builder,
        frame: &Frame,
        (at, params): (&Block, &Params),
        (loader, is_a): (Loader, bool),
        share: &Share,
        through_registers: bool,
    ) -> Self {
        let (base, ld, tile, rows) =
            if is_a { (params.a, params.lda, at.m0, params.m) } else { (params.b, params.ldb, at.n0, params.n) };
        let (elements, u) = (frame.operands(), frame.u);
        let row = b.scale_add(share.row, 1, tile);
        let k = at.k0.map_or(share.k, |k0| Some(b.scale_add(share.k, 1, k0)));
        let (along, across) = if loader.along_k { (k, Some(row)) } else { (Some(row), k) };
        let pointer = elements.at(b, base, (along, across), ld);
        let active = share.active.filter(|_| through_registers);
        let edges = edges(b, frame, &loader, (row, rows), active);
        let left_k = at.first.map(|first| share.k.map_or(first, |k| b.sub(Type::U32, first, k)));
        Self { loader, elements, pointer, pass: None, stride: (u * elements.bytes).into(), first: None, edges, left_k }
    }

    /// What is added to addresses; apart from [`Source::new`] so that a template may find its places in between.
    pub(crate) fn steps(&mut self, b: &mut Builder, frame: &Frame, (at, params): (&Block, &Params), is_a: bool) {
        let (loader, elements) = (&self.loader, self.elements);
        let ld = if is_a { params.lda } else { params.ldb };
        self.pass = (loader.passes_down > 1).then(|| elements.columns(b, ld, loader.down));
        if !loader.along_k {
            self.stride = elements.columns(b, ld, frame.u).into();
        }
        self.first = at.first.map(|first| match loader.along_k {
            true => b.arith(Arith::MulWide, Type::U32, first, elements.bytes),
            false => elements.columns_of(b, first, ld),
        });
    }

    /// Whether some loads never happen.
    pub(crate) fn is_partial(&self) -> bool {
        self.edges[0].is_some() || self.left_k.is_some()
    }

    /// Calls `each` on every load of a stage with the address of its pass across, which is found just before it is used.
    pub(crate) fn walk(&self, b: &mut Builder, mut each: impl FnMut(&mut Builder, Slot, Address)) {
        let mut pointer = self.pointer;
        let mut down = 0;
        for slot in self.loader.slots() {
            if let Some(pass) = self.pass.filter(|_| slot.down > down) {
                pointer = b.add(Type::U64, pointer, pass);
                down = slot.down;
            }
            each(b, slot, Address { base: pointer, offset: i64::from(slot.offset * self.elements.bytes) });
        }
    }

    /// Whether a load of the first stage happens.
    pub(crate) fn in_first(&self, b: &mut Builder, slot: Slot) -> Option<Reg> {
        let edge = self.edges[slot.edge];
        self.left_k.map_or(edge, |left| Some(b.exceeds(left, slot.step, edge)))
    }

    /// Goes on from the first stage.
    pub(crate) fn leave_first(&mut self, b: &mut Builder) {
        let by = self.first.map_or(self.stride, Operand::from);
        self.pointer = b.add(Type::U64, self.pointer, by);
    }

    /// Goes on to the next stage before the loop.
    pub(crate) fn leave(&mut self, b: &mut Builder) {
        self.pointer = b.add(Type::U64, self.pointer, self.stride);
    }

    /// From here on the next loop goes on in place.
    pub(crate) fn carry(&mut self, b: &mut Builder) {
        self.pointer = b.walking(Type::U64, self.pointer, self.stride);
    }

    /// Goes on to the next stage in the loop.
    pub(crate) fn advance(&self, b: &mut Builder) {
        b.advance(Type::U64, self.pointer, self.stride);
    }
}

/// For each pass in the direction of rows, whether it lies inside of the matrix.
fn edges(
    b: &mut Builder,
    frame: &Frame,
    loader: &Loader,
    (row, rows): (Reg, Reg),
    and: Option<Reg>,
) -> Vec<Option<Reg>> {
    let (apart, passes) = loader.edges();
    if !frame.checked() {
        return vec![and; passes as usize];
    }
    let left = b.sub(Type::U32, rows, row);
    (0..passes).map(|pass| Some(b.exceeds(left, pass * apart, and))).collect()
}
