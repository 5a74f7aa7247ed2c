//! From device memory to shared memory.
//!
//! The first stage takes the remainder of the reduction, so that all others are full: only its loads are predicated along k.
//! In the direction of rows (columns for B) a predicate per pass is computed once. What is not loaded is zero.

use super::blueprint::Blueprint;
use super::emit::{Params, Position};
use crate::ir::{Address, Arith, Builder, Compare, Operand, Reg, Type};
use crate::simt::{self, Loader, Mover, Slot};

/// How a thread brings in its part of one operand's tiles.
pub(crate) struct Side {
    mover: Mover,
    /// Address of the next stage's first element of this thread.
    pointer: Reg,
    /// Bytes between two passes across, where there are several.
    pass: Option<Reg>,
    /// Bytes from stage to stage.
    stride: Operand,
    /// Bytes from the first stage to the second, where the first is not full.
    first: Option<Reg>,
    /// For each pass in the direction of rows, whether the elements exist; `None` is always. Where loads go through
    /// registers, `active` is part of it.
    edges: Vec<Option<Reg>>,
    /// Steps of the first stage that are left from this thread's first one on.
    left_k: Option<Reg>,
}

impl Side {
    /// Of A, or of B.
    pub(crate) fn new(
        b: &mut Builder,
        bp: &Blueprint,
        at: &Position,
        params: &Params,
        is_a: bool,
        shared: Reg,
    ) -> Self {
        let loader = if is_a { bp.loader_a } else { bp.loader_b };
        let (base, ld, tile, rows) =
            if is_a { (params.a, params.lda, at.m0, params.m) } else { (params.b, params.ldb, at.n0, params.n) };
        let (bytes, u) = (bp.arithmetic.bytes(), bp.config.u);
        let x = b.rem(at.tid, loader.along).map(|x| b.scale(x, loader.vec));
        let partial = loader.active() < bp.threads;
        let y = (loader.down > 1 || partial).then(|| b.div(at.tid, loader.along));
        let active = y.filter(|_| partial).map(|y| b.compare(Compare::Lt, y, loader.down, None));
        let (row_in, k_in) = if loader.along_k { (y, x) } else { (x, y) };
        let row = b.scale_add(row_in, 1, tile);
        let k = at.k0.map_or(k_in, |k0| Some(b.scale_add(k_in, 1, k0)));
        let (along, across) = if loader.along_k { (k, Some(row)) } else { (Some(row), k) };
        let pointer = element(b, bp, base, (along, across), ld);
        let edges = edges(b, bp, &loader, (row, rows), active.filter(|_| !bp.is_async()));
        let left_k = at.first.map(|first| k_in.map_or(first, |k| b.sub(Type::U32, first, k)));
        let in_row = b.scale_add(row_in, bytes, shared);
        let target = b.scale_add(k_in, loader.pitch * bytes, in_row);
        let target = b.add(Type::U32, target, if is_a { 0 } else { bp.tile_a_bytes });
        let pass = (loader.passes_down > 1).then(|| columns(b, bp, ld, loader.down));
        let stride = if loader.along_k { (u * bytes).into() } else { columns(b, bp, ld, u).into() };
        let first = at.first.map(|first| match loader.along_k {
            true => b.arith(Arith::MulWide, Type::U32, first, bytes),
            false => steps(b, bp, first, ld),
        });
        let zero = edges[0].is_some() || left_k.is_some();
        let mover = Mover::new(b, (bp.arithmetic, bp.config.load), loader, (active, target), zero);
        Self { mover, pointer, pass, stride, first, edges, left_k }
    }

    /// Calls `each` on every load of a stage with the address of its pass across, which is found just before it is used.
    fn walk(&self, b: &mut Builder, mut each: impl FnMut(&mut Builder, Slot, Reg)) {
        let mut pointer = self.pointer;
        let mut down = 0;
        for slot in self.mover.loader.slots() {
            if let Some(pass) = self.pass.filter(|_| slot.down > down) {
                pointer = b.add(Type::U64, pointer, pass);
                down = slot.down;
            }
            each(b, slot, pointer);
        }
    }

    /// Whether a load of the first stage happens.
    fn in_first(&self, b: &mut Builder, slot: Slot) -> Option<Reg> {
        let edge = self.edges[slot.edge];
        self.left_k.map_or(edge, |left| Some(b.exceeds(left, slot.step, edge)))
    }

    fn at(&self, slot: Slot, base: Reg) -> Address {
        Address { base, offset: i64::from(slot.offset * self.mover.arithmetic.bytes()) }
    }

    fn leave_first(&mut self, b: &mut Builder) {
        let by = self.first.map_or(self.stride, Operand::from);
        self.pointer = b.add(Type::U64, self.pointer, by);
    }
}

impl simt::Side for Side {
    fn load_first(&mut self, b: &mut Builder) {
        self.walk(b, |b, slot, pointer| {
            let pred = self.in_first(b, slot);
            self.mover.load(b, slot, self.at(slot, pointer), pred);
        });
        self.leave_first(b);
    }

    fn copy_first(&mut self, b: &mut Builder) {
        self.walk(b, |b, slot, pointer| {
            let happens = (self.mover.active, self.in_first(b, slot));
            self.mover.copy(b, slot, self.at(slot, pointer), happens, self.mover.target);
        });
        self.leave_first(b);
    }

    fn leave(&mut self, b: &mut Builder) {
        self.pointer = b.add(Type::U64, self.pointer, self.stride);
    }

    fn carry(&mut self, b: &mut Builder) {
        self.pointer = b.walking(Type::U64, self.pointer, self.stride);
    }

    fn advance(&self, b: &mut Builder) {
        b.advance(Type::U64, self.pointer, self.stride);
    }

    fn load_next(&self, b: &mut Builder, left: Reg, ahead: u32) {
        let mut preds = vec![None; self.edges.len()];
        self.walk(b, |b, slot, pointer| {
            let pred = *preds[slot.edge].get_or_insert_with(|| b.exceeds(left, ahead, self.edges[slot.edge]));
            self.mover.load(b, slot, self.at(slot, pointer), Some(pred));
        });
        self.advance(b);
    }

    fn copy_next(&self, b: &mut Builder, (left, ahead): (Reg, u32), to: Operand) {
        let more = b.exceeds(left, ahead, self.mover.active);
        let to = b.add(Type::U32, self.mover.target, to);
        self.walk(b, |b, slot, pointer| {
            let happens = (Some(more), self.edges[slot.edge]);
            self.mover.copy(b, slot, self.at(slot, pointer), happens, to);
        });
    }

    fn put(&self, b: &mut Builder, turn: Option<Reg>) {
        self.mover.put(b, turn);
    }
}

/// The address of an element: `along` in the contiguous direction, `across` times the leading dimension.
pub(crate) fn element(
    b: &mut Builder,
    bp: &Blueprint,
    base: Reg,
    (along, across): (Option<Reg>, Option<Reg>),
    ld: Reg,
) -> Reg {
    let bytes = bp.arithmetic.bytes();
    let offset = match (along, across) {
        (None, None) => return base,
        (Some(along), None) => return b.mad_wide(along, bytes, base),
        (along, Some(across)) if bp.wide => {
            let product = b.arith(Arith::MulWide, Type::U32, across, ld);
            let along = along.map(|along| b.widen(along));
            along.map_or(product, |along| b.add(Type::U64, product, along))
        }
        (along, Some(across)) => {
            let product = b.arith(Arith::Mul, Type::U32, across, ld);
            let offset = along.map_or(product, |along| b.add(Type::U32, product, along));
            return b.mad_wide(offset, bytes, base);
        }
    };
    let offset = b.arith(Arith::Shl, Type::U64, offset, bytes.trailing_zeros());
    b.add(Type::U64, base, offset)
}

/// Bytes of a number of columns of a stored matrix.
pub(crate) fn columns(b: &mut Builder, bp: &Blueprint, ld: Reg, count: u32) -> Reg {
    let bytes = count * bp.arithmetic.bytes();
    if bp.wide {
        return b.arith(Arith::MulWide, Type::U32, ld, bytes);
    }
    let narrow = b.scale(ld, bytes);
    b.widen(narrow)
}

/// Bytes of as many columns as a register says.
fn steps(b: &mut Builder, bp: &Blueprint, count: Reg, ld: Reg) -> Reg {
    let bytes = bp.arithmetic.bytes();
    if bp.wide {
        let elements = b.arith(Arith::MulWide, Type::U32, count, ld);
        return b.arith(Arith::Shl, Type::U64, elements, bytes.trailing_zeros());
    }
    let elements = b.arith(Arith::Mul, Type::U32, count, ld);
    b.arith(Arith::MulWide, Type::U32, elements, bytes)
}

/// For each pass in the direction of rows, whether it lies inside of the matrix.
fn edges(
    b: &mut Builder,
    bp: &Blueprint,
    loader: &Loader,
    (row, rows): (Reg, Reg),
    and: Option<Reg>,
) -> Vec<Option<Reg>> {
    let (apart, passes) = loader.edges();
    if !bp.checked() {
        return vec![and; passes as usize];
    }
    let left = b.sub(Type::U32, rows, row);
    (0..passes).map(|pass| Some(b.exceeds(left, pass * apart, and))).collect()
}
