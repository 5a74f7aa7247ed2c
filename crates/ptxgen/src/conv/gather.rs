//! From device memory to shared memory, by the table.
//!
//! Whether an element exists is asked of every load, and all reasons why it may not are one: rows and columns are compared as
//! unsigned numbers, so that those in the padding are large, and positions and steps that there are not have rows that are too.

use super::blueprint::Blueprint;
use super::emit::{Params, Position, digits};
use super::table::{ENTRY, FILTER, NO_FILTER, NOWHERE};
use crate::ir::{Address, Arith, Builder, Compare, Inst, Operand, Reg, Space, Type};
use crate::simt::{self, Loader, Mover, Slot};
use std::collections::BTreeMap;

/// What a load adds to an entry of the table: one output of the filters, or one position.
struct Place {
    /// Elements.
    offset: Reg,
    asks: Asks,
}

/// What is asked before a load.
enum Asks {
    /// Whether the place exists.
    Filter(Reg),
    /// Whether row and column lie within the image.
    Image { row: Reg, column: Option<Reg> },
}

/// How a thread brings in its part of the tiles of the filters, or of what is gathered.
pub(crate) struct Side {
    mover: Mover,
    base: Reg,
    /// Rows and columns of an image.
    extent: [Reg; 2],
    /// A place per pass along the rows of the tile.
    places: Vec<Place>,
    /// Address of the table's entry of the next stage's first step of this thread.
    entry: Reg,
    /// Bytes of the table from stage to stage.
    stride: u32,
}

impl Side {
    /// Of the filters, or of what is gathered.
    pub(crate) fn new(b: &mut Builder, bp: &Blueprint, at: &Position, params: &Params, filter: bool) -> Self {
        let (loader, to) = if filter { (bp.loader_f, 0) } else { (bp.loader_g, bp.tile_f_bytes) };
        let bytes = bp.arithmetic.bytes();
        let x = b.rem(at.tid, loader.along).map(|x| b.scale(x, loader.vec));
        let partial = loader.active() < bp.threads;
        let y = (loader.down > 1 || partial).then(|| b.div(at.tid, loader.along));
        let active = y.filter(|_| partial).map(|y| b.compare(Compare::Lt, y, loader.down, None));
        let (row_in, k_in) = if loader.along_k { (y, x) } else { (x, y) };
        let in_row = b.scale_add(row_in, bytes, at.shared);
        let target = b.scale_add(k_in, loader.pitch * bytes, in_row);
        let target = b.add(Type::U32, target, to);
        let (apart, passes) = loader.edges();
        let places = (0..passes).map(|pass| {
            let row = b.scale_add(row_in, 1, pass * apart);
            if filter { output(b, at, params, row, active) } else { position(b, bp, at, params, row, active) }
        });
        let places = places.collect();
        let entry = entry(b, at, params, &loader, k_in, partial);
        let mover = Mover::new(b, (bp.arithmetic, bp.config.load), loader, (active, target), false);
        let (base, extent) = (if filter { params.filter } else { params.gathered }, params.extent);
        Self { mover, base, extent, places, entry, stride: bp.config.u * ENTRY }
    }

    /// The entry that a load looks at, by the words that it needs.
    fn look(&self, b: &mut Builder, step: u32) -> Vec<Reg> {
        let at = step * ENTRY;
        let (count, offset) = match self.places.first().map(|place| &place.asks) {
            Some(Asks::Filter(_)) => (1, at + FILTER),
            Some(Asks::Image { column: None, .. }) => (2, at),
            _ => (4, at),
        };
        let dst = b.regs(Type::U32, count);
        let addr = Address { base: self.entry, offset: offset.into() };
        b.push(Inst::Ld { space: Space::Global, caching: self.mover.caching(), ty: Type::U32, dst: dst.clone(), addr });
        dst
    }

    /// Calls `each` on every load of a stage with its address and whether its elements exist. Where there is a number of stages
    /// left and one ahead, the load must be of a stage that there is, too.
    fn walk(&self, b: &mut Builder, more: Option<(Reg, u32)>, mut each: impl FnMut(&mut Builder, Slot, Address, Reg)) {
        let mut entries = BTreeMap::new();
        for slot in self.mover.loader.slots() {
            entries.entry(slot.step).or_insert_with(|| self.look(b, slot.step));
        }
        let mut there = vec![None; self.places.len()];
        for slot in self.mover.loader.slots() {
            let (entry, place) = (&entries[&slot.step], &self.places[slot.edge]);
            let exists = match place.asks {
                Asks::Filter(inside) => {
                    let inside = there[slot.edge].get_or_insert_with(|| match more {
                        Some((left, ahead)) => b.exceeds(left, ahead, Some(inside)),
                        None => inside,
                    });
                    b.compare(Compare::Lt, entry[0], NO_FILTER, Some(*inside))
                }
                Asks::Image { row, column } => {
                    let more = more.map(|(left, ahead)| *there[0].get_or_insert_with(|| b.exceeds(left, ahead, None)));
                    let row = b.add(Type::U32, row, entry[1]);
                    let inside = b.compare(Compare::Lt, row, self.extent[0], more);
                    column.map_or(inside, |column| {
                        let column = b.add(Type::U32, column, entry[2]);
                        b.compare(Compare::Lt, column, self.extent[1], Some(inside))
                    })
                }
            };
            let offset = b.add(Type::U32, place.offset, entry[0]);
            let base = self.address(b, offset);
            each(b, slot, Address { base, offset: 0 }, exists);
        }
    }

    /// The address of an element at an offset that is a multiple of the load's.
    fn address(&self, b: &mut Builder, offset: Reg) -> Reg {
        let vec = self.mover.loader.vec;
        let offset = b.div(offset, vec);
        b.mad_wide(offset, vec * self.mover.arithmetic.bytes(), self.base)
    }
}

/// The output of the filters at a row of the tile.
fn output(b: &mut Builder, at: &Position, params: &Params, row: Reg, active: Option<Reg>) -> Place {
    let out = b.add(Type::U32, at.k0, row);
    let inside = b.compare(Compare::Lt, out, params.outs, active);
    let offset = b.arith(Arith::Mul, Type::U32, out, params.out_stride);
    let offset = at.starts.map_or(offset, |[_, start, _]| b.add(Type::U32, offset, start));
    Place { offset, asks: Asks::Filter(inside) }
}

/// The position at a row of the tile.
fn position(b: &mut Builder, bp: &Blueprint, at: &Position, params: &Params, row: Reg, active: Option<Reg>) -> Place {
    let tile = bp.config.block();
    let order = bp.order();
    let parts = digits(b, Some(row), order.map(|d| tile[d]));
    let mut exists = active;
    let mut place = at.first;
    for (d, part) in order.into_iter().zip(parts) {
        place[d] = part.map_or(place[d], |part| b.add(Type::U32, place[d], part));
        exists = Some(b.compare(Compare::Lt, place[d], params.grid[d], exists));
    }
    let [image, p, q] = place;
    let mut seen = |position: Reg, d: usize| {
        let from = b.arith(Arith::Mul, Type::U32, position, params.step[d]);
        b.add(Type::U32, from, params.origin[d])
    };
    let (row, column) = (seen(p, 0), seen(q, 1));
    let mut offset = b.arith(Arith::Mul, Type::U32, image, params.gathered_strides[0]);
    for (at, stride) in [(row, params.gathered_strides[1]), (column, params.gathered_strides[2])] {
        let more = b.arith(Arith::Mul, Type::U32, at, stride);
        offset = b.add(Type::U32, offset, more);
    }
    let offset = at.starts.map_or(offset, |[start, _, _]| b.add(Type::U32, offset, start));
    let row = exists.map_or(row, |exists| b.select(Type::U32, exists, row, NOWHERE));
    Place { offset, asks: Asks::Image { row, column: bp.columns_checked.then_some(column) } }
}

/// The address of the entry of a thread's first step.
fn entry(b: &mut Builder, at: &Position, params: &Params, loader: &Loader, k_in: Option<Reg>, partial: bool) -> Reg {
    // Threads that load nothing look at the table all the same.
    let k_in = match k_in {
        Some(k) if partial && !loader.along_k => Some(b.arith(Arith::Min, Type::U32, k, loader.down - 1)),
        k => k,
    };
    let step = match (k_in, at.step0) {
        (Some(k), Some(first)) => Some(b.add(Type::U32, first, k)),
        (k, first) => k.or(first),
    };
    step.map_or(params.table, |step| b.mad_wide(step, ENTRY, params.table))
}

impl simt::Side for Side {
    fn load_first(&mut self, b: &mut Builder) {
        self.walk(b, None, |b, slot, addr, exists| {
            self.mover.clear(b, slot);
            self.mover.load(b, slot, addr, Some(exists));
        });
        self.leave(b);
    }

    fn copy_first(&mut self, b: &mut Builder) {
        self.walk(b, None, |b, slot, addr, exists| {
            self.mover.copy(b, slot, addr, (self.mover.active, Some(exists)), &self.mover.first());
        });
        self.leave(b);
    }

    fn leave(&mut self, b: &mut Builder) {
        self.entry = b.add(Type::U64, self.entry, self.stride);
    }

    fn carry(&mut self, b: &mut Builder) {
        self.entry = b.walking(Type::U64, self.entry, self.stride);
    }

    fn advance(&self, b: &mut Builder) {
        b.advance(Type::U64, self.entry, self.stride);
    }

    fn load_next(&self, b: &mut Builder, left: Reg, ahead: u32) {
        self.walk(b, Some((left, ahead)), |b, slot, addr, exists| {
            self.mover.clear(b, slot);
            self.mover.load(b, slot, addr, Some(exists));
        });
        self.advance(b);
    }

    fn copy_next(&self, b: &mut Builder, (left, ahead): (Reg, u32), to: Operand) {
        let more = b.exceeds(left, ahead, self.mover.active);
        let to = self.mover.stage(b, to);
        self.walk(b, None, |b, slot, addr, exists| {
            self.mover.copy(b, slot, addr, (Some(more), Some(exists)), &to);
        });
    }

    fn put(&self, b: &mut Builder, turn: Option<Reg>) {
        self.mover.put(b, turn);
    }
}
