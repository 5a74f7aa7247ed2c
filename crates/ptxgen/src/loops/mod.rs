//! Kernels of loops as PTX.
//!
//! Sizes are parameters of the entry, behind the addresses of the buffers. Loops over groups become the grid, loops over threads
//! the block; all others are loops of the tree, or written out. Offsets of elements are sums of one product for each index;
//! each partial sum is computed where its last index gets its value, and kept.

mod count;
mod offset;
mod value;

pub use count::{LoopCountError, count};

use crate::ir::{Axis, Builder, Compare, Form, Inst, Module, Operand, Reg, Space, Special, Sym, Type};
use crate::print::print;
use crate::target::Target;
use offset::{Offsets, Place};
use std::collections::{BTreeMap, HashMap};
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, Code, Launch, Program};
use tilewright_loops::kernel::{Access, Expr, LoopKernel, Mapping, Stmt, visit};
use tilewright_loops::{Affine, Instance, LoopError, idx};

/// Loads of a fetch that a thread has under way at once.
const IN_FLIGHT: i64 = 8;

/// Names of the indices within a tile that is fetched; no user's loop has them.
const TILE_INDICES: [&str; 4] = ["tile index 0", "tile index 1", "tile index 2", "tile index 3"];

/// The module of a kernel. Its parameters are the addresses of the buffers and then the sizes, by name.
///
/// # Errors
/// A fault of the kernel ([`LoopKernel::check`]), groups whose number of threads is no constant, or what has no code: falling
/// indices, arrays of more than four dimensions in a fetch, a vector loop around loops.
pub fn module(kernel: &LoopKernel, target: Target) -> Result<Module, LoopError> {
    kernel.check()?;
    let nest = kernel.nest()?;
    let mut lower = Lower::new(kernel)?;
    lower.parameters();
    lower.indices(&nest)?;
    lower.hoist(nest.body)?;
    lower.body(nest.body)?;
    let name: String = kernel.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let threads = u32::try_from(lower.threads).unwrap_or(u32::MAX);
    let shared = lower.shared_bytes;
    let mut entry = lower.b.finish(&format!("loops_{name}"), threads);
    entry.shared_bytes = u32::try_from(shared).unwrap_or(u32::MAX);
    entry.dynamic_shared = shared > 48 << 10;
    Ok(Module { target, entry })
}

/// The program of an instance, to be run on the buffers of [`Instance::buffers`].
///
/// # Errors
/// See [`module()`]; a grid that is too large.
pub fn program(instance: &Instance, target: Target) -> Result<(Module, Program), LoopError> {
    let module = module(instance.kernel(), target)?;
    let number = |of: &str, value: i64, max: i64| {
        u32::try_from(value).ok().filter(|v| i64::from(*v) <= max).ok_or_else(|| LoopError::Range {
            of: of.to_owned(),
            value,
            min: 1,
            max,
        })
    };
    let [x, y, z] = instance.grid();
    let grid = [
        number("groups along x", x, i32::MAX.into())?,
        number("groups along y", y, 65_535)?,
        number("groups along z", z, 65_535)?,
    ];
    let mut args: Vec<Arg> = (0..instance.buffers().len()).map(|i| Arg::Buffer(i, 0)).collect();
    for name in instance.kernel().sizes() {
        let value = instance.sizes().get(name).copied().unwrap_or(0);
        args.push(Arg::U32(number(name, value, u32::MAX.into())?));
    }
    let code = Code::Ptx { text: print(&module), entry: module.entry.name.clone() };
    let shared_bytes = if module.entry.dynamic_shared { module.entry.shared_bytes } else { 0 };
    let launch = Launch::new(code, grid, [module.entry.threads, 1, 1], args).sharing(shared_bytes);
    Ok((module, Program::launch(launch)))
}

fn float(dtype: DType) -> Type {
    if dtype == DType::F64 { Type::F64 } else { Type::F32 }
}

fn unsupported(what: &str, of: &str) -> LoopError {
    LoopError::Unsupported { what: what.to_owned(), of: of.to_owned() }
}

struct Lower<'a> {
    kernel: &'a LoopKernel,
    b: Builder,
    /// First address of each array in device memory.
    bases: HashMap<&'static str, Reg>,
    /// Where each shared array begins.
    shared: BTreeMap<&'static str, i64>,
    shared_base: Option<Reg>,
    shared_bytes: i64,
    threads: i64,
    tid: Reg,
    offsets: Offsets,
    locals: HashMap<&'static str, Vec<Reg>>,
    /// The vector loop around, and what its joined loads gave.
    lanes: Option<(&'static str, usize)>,
    joined: HashMap<(&'static str, Vec<Affine>), Vec<Reg>>,
}

impl<'a> Lower<'a> {
    fn new(kernel: &'a LoopKernel) -> Result<Self, LoopError> {
        let mut threads = 1;
        for (_, index) in kernel.nest()?.threads {
            let extent = kernel.find_loop(index)?.extent.constant();
            threads *= extent.ok_or_else(|| unsupported("a number of threads that is no constant", index))?;
        }
        if !(1..=1024).contains(&threads) {
            let of = "threads of a group".to_owned();
            return Err(LoopError::Range { of, value: threads, min: 1, max: 1024 });
        }
        let (mut shared, mut at) = (BTreeMap::new(), 0);
        for array in kernel.shared() {
            shared.insert(array.name, at);
            let elements = array.len().constant().unwrap_or(0);
            at += (elements * array.dtype.size() as i64 + 15) / 16 * 16;
        }
        let mut b = Builder::new();
        let tid = b.reg(Type::U32);
        Ok(Self {
            kernel,
            b,
            bases: HashMap::new(),
            shared,
            shared_base: None,
            shared_bytes: at,
            threads,
            tid,
            offsets: Offsets::default(),
            locals: HashMap::new(),
            lanes: None,
            joined: HashMap::new(),
        })
    }

    fn parameters(&mut self) {
        for (array, _) in self.kernel.globals() {
            let base = self.b.buffer(array.name, 16);
            self.bases.insert(array.name, base);
        }
        for name in self.kernel.sizes() {
            let multiple = self.kernel.multiples.iter().find(|(n, _)| *n == name).map_or(1, |(_, of)| *of);
            let reg = self.b.param(name, Type::U32, multiple);
            self.offsets.size(name, reg);
        }
        self.b.push(Inst::Mov { ty: Type::U32, dst: self.tid, src: Special::Tid.into() });
        if self.shared_bytes > 0 {
            self.shared_base = Some(self.b.mov(Type::U32, Operand::Shared));
        }
    }

    /// Indices of groups and threads.
    fn indices(&mut self, nest: &tilewright_loops::Nest<'_>) -> Result<(), LoopError> {
        for (axis, index) in &nest.groups {
            let axis = match axis {
                tilewright_loops::kernel::Axis::X => Axis::X,
                tilewright_loops::kernel::Axis::Y => Axis::Y,
                tilewright_loops::kernel::Axis::Z => Axis::Z,
            };
            let reg = self.b.special(Special::Ctaid(axis));
            self.offsets.enter(index, Place::Reg(reg));
        }
        let mut inner = 1;
        for (_, index) in &nest.threads {
            let extent = self.kernel.find_loop(index)?.extent.constant().unwrap_or(1);
            let rest = self.b.div(self.tid, u32::try_from(inner).unwrap_or(1));
            let place = match u32::try_from(extent) {
                _ if inner * extent == self.threads => Place::Reg(rest),
                Ok(extent) => self.b.rem(rest, extent).map_or(Place::Const(0), Place::Reg),
                Err(_) => Place::Reg(rest),
            };
            self.offsets.enter(index, place);
            inner *= extent;
        }
        Ok(())
    }

    /// Partial sums of all offsets in a body, as far as indices have values: computed here and not in every iteration.
    fn hoist(&mut self, body: &[Stmt]) -> Result<(), LoopError> {
        let mut accesses: Vec<(&'static str, Vec<Affine>)> = Vec::new();
        visit(body, &mut |stmt| {
            stmt.accesses(&mut |access, _| accesses.push((access.array, access.at.clone())));
            if let Stmt::Fetch { from, origin, .. } = stmt {
                accesses.push((*from, origin.clone()));
            }
        });
        for (array, at) in accesses {
            let array = self.kernel.find_array(array)?;
            let sum = self.offsets.sum(array, &at, None)?;
            self.offsets.emit(&mut self.b, &sum.terms);
        }
        Ok(())
    }

    fn body(&mut self, body: &[Stmt]) -> Result<(), LoopError> {
        let outer = self.locals.clone();
        for stmt in body {
            self.stmt(stmt)?;
        }
        self.locals = outer;
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), LoopError> {
        match stmt {
            Stmt::For { index, body } => self.repeat(index, body),
            Stmt::Fetch { tile, from, origin, extents } => self.fetch(tile, from, origin, extents),
            Stmt::Barrier => {
                self.b.barrier();
                Ok(())
            }
            Stmt::Let { name, dtype, value } => {
                self.join(value)?;
                let lanes = self.lanes.map_or(1, |(_, lanes)| lanes);
                let ty = float(*dtype);
                let regs = self.b.regs(ty, lanes);
                for (lane, reg) in regs.iter().enumerate() {
                    self.value_into(value, ty, lane, *reg)?;
                }
                self.locals.insert(name, regs);
                Ok(())
            }
            Stmt::Set { name, value } => {
                self.join(value)?;
                let regs = self.locals.get(name).cloned().unwrap_or_default();
                let lanes = self.lanes.map_or(1, |(_, lanes)| lanes);
                for lane in 0..lanes {
                    // A local from outside of the vector loop takes the lanes one after the other.
                    let Some(reg) = regs.get(lane.min(regs.len().saturating_sub(1))).copied() else { continue };
                    let ty = if reg.class == crate::ir::Class::F64 { Type::F64 } else { Type::F32 };
                    self.value_into(value, ty, lane, reg)?;
                }
                Ok(())
            }
            Stmt::Store { to, value, atomic } => self.store(to, value, *atomic),
        }
    }

    fn repeat(&mut self, index: &'static str, body: &[Stmt]) -> Result<(), LoopError> {
        let found = self.kernel.find_loop(index)?;
        match (found.mapping, found.extent.constant()) {
            (Mapping::Unrolled, Some(extent)) => {
                for value in 0..extent {
                    self.offsets.enter(index, Place::Const(value));
                    self.body(body)?;
                    self.offsets.leave(index);
                }
                Ok(())
            }
            (Mapping::Vector, Some(extent)) => self.vector(index, extent, body),
            _ => {
                let extent = found.extent.clone();
                let count = self.offsets.extent(&mut self.b, &extent);
                self.counted(index, count, body)
            }
        }
    }

    fn counted(&mut self, index: &'static str, count: Operand, body: &[Stmt]) -> Result<(), LoopError> {
        let uses = {
            let mut uses = false;
            visit(body, &mut |stmt| {
                let mut clone = match stmt {
                    Stmt::For { .. } => return,
                    other => other.clone(),
                };
                clone.indices_mut(&mut |a| uses |= a.factor(index) != 0);
            });
            uses
        };
        let iteration: Sym = self.b.next_loop();
        let i = uses.then(|| self.b.carried(Type::U32, Operand::Int(0), iteration.into()));
        let mut result = Ok(());
        // The builder is lent to the loop's closure, and the rest of this struct with it.
        let mut builder = std::mem::take(&mut self.b);
        builder.repeat(index, count, |b, _| {
            std::mem::swap(&mut self.b, b);
            if let Some(i) = i {
                self.offsets.enter(index, Place::Reg(i));
            }
            result = self.hoist(body).and_then(|()| self.body(body));
            if let Some(i) = i {
                self.b.advance(Type::U32, i, 1u32);
                self.offsets.leave(index);
            }
            std::mem::swap(&mut self.b, b);
        });
        self.b = builder;
        result
    }

    fn vector(&mut self, index: &'static str, extent: i64, body: &[Stmt]) -> Result<(), LoopError> {
        if self.lanes.is_some()
            || body.iter().any(|s| matches!(s, Stmt::For { .. } | Stmt::Fetch { .. } | Stmt::Barrier))
        {
            return Err(unsupported("a vector loop around loops or barriers", index));
        }
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for stmt in body {
            stmt.accesses(&mut |access, writes| {
                if writes { written.push(access.array) } else { read.push(access.array) }
            });
        }
        if let Some(both) = read.iter().find(|array| written.contains(array)) {
            return Err(unsupported("reading and writing in a vector loop", both));
        }
        self.lanes = Some((index, usize::try_from(extent).unwrap_or(1)));
        let result = self.body(body);
        self.lanes = None;
        self.joined.clear();
        result
    }

    /// Joins loads of neighbouring elements over the lanes of the vector loop around.
    fn join(&mut self, value: &Expr) -> Result<(), LoopError> {
        self.joined.clear();
        let Some((index, lanes)) = self.lanes else { return Ok(()) };
        let mut loads: Vec<Access> = Vec::new();
        value.visit(&mut |e| {
            if let Expr::Load(access) = e {
                loads.push(access.clone());
            }
        });
        for access in loads {
            if self.neighbours(&access, index)? && !self.joined.contains_key(&(access.array, access.at.clone())) {
                let (space, base, offset, ty) = self.address(&access, 0)?;
                let regs = self.b.load(space, ty, lanes, base, offset);
                self.joined.insert((access.array, access.at.clone()), regs);
            }
        }
        Ok(())
    }

    /// Whether the lanes of a vector loop touch neighbouring elements that are aligned together.
    fn neighbours(&self, access: &Access, index: &'static str) -> Result<bool, LoopError> {
        let array = self.kernel.find_array(access.array)?;
        let (_, lanes) = self.lanes.unwrap_or((index, 1));
        if lanes * array.dtype.size() > 16 {
            return Ok(false);
        }
        let mut factor = tilewright_loops::Size::Const(0);
        for (dim, at) in access.at.iter().enumerate() {
            factor = factor + array.stride(dim) * at.factor(index);
        }
        let sum = self.offsets.sum(array, &access.at, Some((index, 0)))?;
        Ok(factor.constant() == Some(1) && self.offsets.aligned(&sum, lanes as i64, &self.kernel.multiples))
    }

    fn store(&mut self, to: &Access, value: &Expr, atomic: bool) -> Result<(), LoopError> {
        self.join(value)?;
        let ty = float(self.kernel.find_array(to.array)?.dtype);
        let lanes = self.lanes.map_or(1, |(_, lanes)| lanes);
        let values = (0..lanes).map(|lane| self.value(value, ty, lane)).collect::<Result<Vec<_>, _>>()?;
        if let (Some((index, _)), false) = (self.lanes, atomic)
            && self.neighbours(to, index)?
        {
            let (space, base, offset, ty) = self.address(to, 0)?;
            self.b.push(Inst::St { space, ty, addr: crate::ir::Address { base, offset }, src: values });
            return Ok(());
        }
        for (lane, src) in values.into_iter().enumerate() {
            let (space, base, offset, ty) = self.address(to, lane)?;
            let addr = crate::ir::Address { base, offset };
            self.b.push(match atomic {
                true => Inst::Red { ty, addr, src },
                false => Inst::St { space, ty, addr, src: vec![src] },
            });
        }
        Ok(())
    }

    /// Where an element is: a register and what is added to it, in bytes.
    fn address(&mut self, access: &Access, lane: usize) -> Result<(Space, Reg, i64, Type), LoopError> {
        let array = self.kernel.find_array(access.array)?;
        let lane = self.lanes.map(|(index, _)| (index, lane as i64));
        let sum = self.offsets.sum(array, &access.at, lane)?;
        let (ty, bytes) = (float(array.dtype), array.dtype.size() as i64);
        let (space, base, first) = match self.shared.get(array.name) {
            Some(first) => (Space::Shared, self.shared_base, *first),
            None => (Space::Global, self.bases.get(array.name).copied(), 0),
        };
        let base = (space, base.unwrap_or(self.tid));
        let reg = self.offsets.address(&mut self.b, base, &sum.terms, bytes);
        Ok((space, reg, first + sum.constant * bytes, ty))
    }

    /// The threads copy a tile together: each takes every so many-th element, in the order of memory.
    fn fetch(
        &mut self,
        tile: &'static str,
        from: &'static str,
        origin: &[Affine],
        extents: &[i64],
    ) -> Result<(), LoopError> {
        let indices =
            TILE_INDICES.get(..extents.len()).ok_or_else(|| unsupported("a fetch of so many dimensions", from))?;
        let source = self.kernel.find_array(from)?;
        let mut dims: Vec<usize> = (0..extents.len()).collect();
        if source.order == tilewright_loops::kernel::Order::RowMajor {
            dims.reverse();
        }
        let at = |plus: &[Affine]| -> Vec<Affine> {
            plus.iter().zip(indices).map(|(o, index)| o.clone() + idx(index)).collect()
        };
        let read = Access { array: from, at: at(origin) };
        let write = Access { array: tile, at: at(&vec![Affine::from(0); extents.len()]) };
        let total: i64 = extents.iter().product();
        let full = total / self.threads;
        for first in (0..full).step_by(IN_FLIGHT as usize) {
            let rounds = first..(first + IN_FLIGHT).min(full);
            self.copy(&read, &write, (&dims, extents), rounds)?;
        }
        let rest = total % self.threads;
        if rest > 0 {
            let pred = self.b.compare(Compare::Lt, self.tid, Operand::Int(rest), None);
            let mut result = Ok(());
            let mut builder = std::mem::take(&mut self.b);
            // What is computed by some threads alone is known to nobody afterwards.
            let kept = self.offsets.clone();
            builder.when(pred, Form::Branch, |b| {
                std::mem::swap(&mut self.b, b);
                result = self.copy(&read, &write, (&dims, extents), full..full + 1);
                std::mem::swap(&mut self.b, b);
            });
            self.b = builder;
            self.offsets = kept;
            result?;
        }
        Ok(())
    }

    fn copy(
        &mut self,
        read: &Access,
        write: &Access,
        (dims, extents): (&[usize], &[i64]),
        rounds: std::ops::Range<i64>,
    ) -> Result<(), LoopError> {
        let mut moved = Vec::new();
        for round in rounds {
            let linear = self.b.add(Type::U32, self.tid, Operand::Int(round * self.threads));
            let mut inner = 1;
            for (i, &dim) in dims.iter().enumerate() {
                let rest = self.b.div(linear, u32::try_from(inner).unwrap_or(1));
                let place = match (i + 1 == dims.len(), u32::try_from(extents[dim])) {
                    (false, Ok(extent)) => self.b.rem(rest, extent).map_or(Place::Const(0), Place::Reg),
                    _ => Place::Reg(rest),
                };
                self.offsets.enter(TILE_INDICES[dim], place);
                inner *= extents[dim];
            }
            let (space, base, offset, ty) = self.address(read, 0)?;
            let value = self.b.load(space, ty, 1, base, offset);
            let to = self.address(write, 0)?;
            moved.push((value, to));
            TILE_INDICES.iter().for_each(|index| self.offsets.leave(index));
        }
        for (value, (space, base, offset, ty)) in moved {
            self.b.store(space, ty, &value, base, offset);
        }
        Ok(())
    }
}
