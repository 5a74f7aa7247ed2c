//! Rows of A that go straight from device memory to the registers of the threads that multiply them.
//!
//! Where C has few columns, an element of A is multiplied by one thread, or a few that read it together. Shared memory would be a
//! detour: a store, a barrier and a load for an element that is used as often as C has columns. Here a thread holds its rows of a whole
//! stage. As soon as a step of them is multiplied, the same step of the next stage is loaded into the same registers, so that a stage
//! is always on its way, and nothing waits for it but its own multiply-adds.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::frame::{Params, Template};
use crate::ir::{Address, Arith, Builder, Caching, Inst, Operand, Reg, Space, Type};
use crate::simt::{Arithmetic, Multiply, Operands, add_products};

/// Rows of A of a thread, and its way through them.
pub(crate) struct OwnRows {
    arithmetic: Arithmetic,
    /// Whether memory is contiguous along the reduction.
    along_k: bool,
    /// Elements of one load.
    vec: u32,
    /// Rows beyond the thread's first where loads begin.
    places: Vec<u32>,
    /// Address of the next stage's first element.
    pointer: Reg,
    /// Bytes from stage to stage.
    stride: Operand,
    /// The leading dimension.
    ld: Reg,
    /// By place, whether it lies inside of the matrix; `None` is always.
    edges: Vec<Option<Reg>>,
    /// What is multiplied next, load after load.
    held: Vec<Reg>,
}

impl OwnRows {
    /// With the first stage loaded, of which only the remainder of the reduction exists.
    pub(crate) fn new(b: &mut Builder, bp: &Blueprint, at: &Position, params: &Params) -> Self {
        let (config, tiles, frame) = (&bp.config, bp.arrangement, bp.frame());
        let (along_k, vec, steps) = (bp.a_transposed, config.vec_a, config.u / config.k_l);
        let elements = frame.operands();
        let row = b.scale_add(at.t_m, tiles.chunk_m, at.block.m0);
        let mine = at.group.map(|group| b.scale(group, steps));
        let k = at.block.k0.map_or(mine, |k0| Some(b.scale_add(mine, 1, k0)));
        let (along, across) = if along_k { (k, Some(row)) } else { (Some(row), k) };
        let pointer = elements.at(b, params.a, (along, across), params.lda);
        let places: Vec<u32> =
            (0..config.m_s).step_by(if along_k { 1 } else { vec as usize }).map(|i| tiles.row(i)).collect();
        let edges = if frame.checked() {
            let left = b.sub(Type::U32, params.m, row);
            places.iter().map(|place| Some(b.exceeds(left, *place, None))).collect()
        } else {
            vec![None; places.len()]
        };
        let stride =
            if along_k { (config.u * elements.bytes).into() } else { elements.columns(b, params.lda, config.u).into() };
        let (ty, each) = bp.arithmetic.packed(vec);
        let loads = places.len() * (if along_k { steps / vec } else { steps }) as usize;
        let held = b.regs(ty, loads * each);
        let arithmetic = bp.arithmetic;
        let mut rows = Self { arithmetic, along_k, vec, places, pointer, stride, ld: params.lda, edges, held };
        let left = at.block.first.map(|first| mine.map_or(first, |mine| b.sub(Type::U32, first, mine)));
        rows.load_first(b, left);
        let past = at.block.first.map(|first| match along_k {
            true => b.arith(Arith::MulWide, Type::U32, first, elements.bytes),
            false => elements.columns_of(b, first, params.lda),
        });
        rows.pointer = b.add(Type::U64, rows.pointer, past.map_or(rows.stride, Operand::from));
        rows
    }

    /// Loads a stage of which so many steps are left; `None` for all.
    fn load_first(&self, b: &mut Builder, left: Option<Reg>) {
        if left.is_some() || self.edges[0].is_some() {
            self.arithmetic.clear(b, self.vec, &self.held);
        }
        for step in (0..self.steps()).step_by(self.depth() as usize) {
            let happens: Vec<Option<Reg>> =
                self.edges.iter().map(|edge| left.map_or(*edge, |left| Some(b.exceeds(left, step, *edge)))).collect();
            self.load(b, step, &happens);
        }
    }

    /// Steps that are loaded at once.
    fn depth(&self) -> u32 {
        if self.along_k { self.vec } else { 1 }
    }

    /// Steps of a stage that the thread's group takes.
    fn steps(&self) -> u32 {
        let (_, each) = self.arithmetic.packed(self.vec);
        (self.held.len() / each / self.places.len()) as u32 * self.depth()
    }

    /// The registers of what is loaded together from a step on.
    fn of(&self, step: u32) -> &[Reg] {
        let count = self.places.len() * self.arithmetic.packed(self.vec).1;
        &self.held[(step / self.depth()) as usize * count..][..count]
    }

    /// Loads what begins at a step, each load where its predicate holds.
    fn load(&self, b: &mut Builder, step: u32, happens: &[Option<Reg>]) {
        let ((ty, each), bytes) = (self.arithmetic.packed(self.vec), self.arithmetic.bytes());
        // One wide multiply-add is less than the sum of two addresses, and waits for no other.
        let across = |b: &mut Builder, count: u32| match count {
            0 => self.pointer,
            _ => b.mad_wide(self.ld, count * bytes, self.pointer),
        };
        let of_step = if self.along_k { self.pointer } else { across(b, step) };
        for ((place, dst), happens) in self.places.iter().zip(self.of(step).chunks(each)).zip(happens) {
            let (base, along) = if self.along_k { (across(b, *place), step) } else { (of_step, *place) };
            let addr = Address { base, offset: (along * bytes).into() };
            let (space, caching, dst) = (Space::Global, Caching::ReadOnly, dst.to_vec());
            b.predicated(*happens, |b| b.push(Inst::Ld { space, caching, ty, dst, addr }));
        }
    }

    /// One step's elements, as they lie in memory.
    fn of_step(&self, step: u32) -> Vec<Reg> {
        let (_, each) = self.arithmetic.packed(self.vec);
        let width = each / self.depth() as usize;
        let rows = self.of(step).chunks(each);
        let within = (step % self.depth()) as usize * width;
        rows.flat_map(|row| if self.along_k { row[within..][..width].to_vec() } else { row.to_vec() }).collect()
    }
}

/// How a thread multiplies its own rows by columns in shared memory.
pub(crate) struct Straight {
    pub(crate) rows: OwnRows,
    pub(crate) columns: Operands,
}

impl Multiply for Straight {
    fn carry(&mut self, b: &mut Builder) {
        self.rows.pointer = b.walking(Type::U64, self.rows.pointer, self.rows.stride);
    }

    /// The columns of a step are loaded one step ahead, its rows a stage ahead.
    fn compute(&self, b: &mut Builder, turn: Option<Reg>, left: Reg, acc: &[Reg]) {
        let (of, rows, columns, steps) = (self.rows.arithmetic, &self.rows, &self.columns, self.rows.steps());
        let base = columns.stage(b, turn);
        let happens: Vec<Option<Reg>> = match rows.edges[0] {
            Some(_) => rows.edges.iter().map(|edge| Some(b.exceeds(left, 1, *edge))).collect(),
            None => vec![Some(b.exceeds(left, 1, None)); rows.edges.len()],
        };
        let mut y_held = Vec::new();
        let mut next = columns.fetch(b, of, base, 0);
        for step in 0..steps {
            y_held = next.unwrap_or(y_held);
            let x = of.rows(b, &rows.of_step(step));
            let y = of.columns(b, &columns.of_step(&y_held, step));
            next = if step + 1 < steps { columns.fetch(b, of, base, step + 1) } else { None };
            add_products(b, of, (acc, step), &x, &y);
            if (step + 1).is_multiple_of(rows.depth()) {
                rows.load(b, step + 1 - rows.depth(), &happens);
            }
        }
        b.advance(Type::U64, rows.pointer, rows.stride);
    }
}
