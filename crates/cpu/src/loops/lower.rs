//! The function of an instance: loops over groups, and what all threads of a group go through together.

use super::LowerError;
use super::region::Local;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, Type, Value, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::collections::{BTreeMap, HashMap};
use tilewright_core::dtype::DType;
use tilewright_loops::host::{Lanes, is_uniform, kept_locals, written_out};
use tilewright_loops::kernel::{Array, Order, Stmt};
use tilewright_loops::{Affine, Instance};

/// What an index is at the moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Index {
    Value(Value),
    Const(i64),
}

pub(super) struct Lower<'a, 'f> {
    pub(super) b: FunctionBuilder<'f>,
    pub(super) instance: &'a Instance,
    pub(super) lanes: Lanes,
    pub(super) has_fma: bool,
    /// First address of each array in device memory.
    bases: HashMap<&'static str, Value>,
    /// This thread's memory: shared arrays, then kept locals.
    pub(super) memory: Value,
    shared: BTreeMap<&'static str, i64>,
    /// Where kept locals begin.
    pub(super) kept: BTreeMap<&'static str, (i64, DType)>,
    /// Indices with their values, in the order in which they got them.
    pub(super) open: Vec<(&'static str, Index)>,
    pub(super) locals: HashMap<&'static str, Local>,
    /// The index along which vectors lie.
    pub(super) lane: Option<&'static str>,
}

/// Memory operations: never a trap, and no alignment beyond that of elements.
pub(super) fn plain() -> MemFlags {
    MemFlags::new().with_notrap()
}

pub(super) fn scalar(dtype: DType) -> Type {
    if dtype == DType::F64 { types::F64 } else { types::F32 }
}

/// Builds the function; bytes of memory that each thread needs.
pub(super) fn function(instance: &Instance, isa: &dyn TargetIsa, func: &mut ir::Function) -> Result<usize, LowerError> {
    let nest = instance.kernel().nest()?;
    let mut context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(func, &mut context);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    b.seal_block(block);
    let [arrays, memory, first, end] = [0, 1, 2, 3].map(|i| b.block_params(block)[i]);
    let mut bases = HashMap::new();
    for (i, (array, _)) in instance.kernel().globals().enumerate() {
        let offset = i32::try_from(8 * i).unwrap_or(0);
        bases.insert(array.name, b.ins().load(types::I64, plain().with_readonly(), arrays, offset));
    }
    let (mut bytes, shared) = instance.shared_layout();
    let mut kept = BTreeMap::new();
    for (name, dtype) in kept_locals(nest.body) {
        kept.insert(name, (bytes, dtype));
        bytes += (instance.threads() * dtype.size() as i64 + 15) / 16 * 16;
    }
    let has_fma = isa.isa_flags().iter().any(|f| f.name == "has_fma" && f.as_bool() == Some(true));
    let mut lower = Lower {
        b,
        instance,
        lanes: Lanes::of(instance),
        has_fma,
        bases,
        memory,
        shared,
        kept,
        open: Vec::new(),
        locals: HashMap::new(),
        lane: nest.threads.first().map(|(_, index)| *index),
    };
    lower.groups(&nest, first, end)?;
    lower.b.ins().return_(&[]);
    lower.b.seal_all_blocks();
    lower.b.finalize();
    Ok(usize::try_from(bytes).unwrap_or(0))
}

impl Lower<'_, '_> {
    fn groups(&mut self, nest: &tilewright_loops::Nest<'_>, first: Value, end: Value) -> Result<(), LowerError> {
        let (head, body, exit) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let group = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[first.into()]);
        self.b.switch_to_block(head);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, group, end);
        self.b.ins().brif(more, body, &[], exit, &[]);
        self.b.switch_to_block(body);
        let mut rest = group;
        for (i, (_, index)) in nest.groups.iter().enumerate() {
            let extent = self.instance.extent(index);
            let last = i + 1 == nest.groups.len();
            let here = if last { rest } else { self.b.ins().urem_imm(rest, extent) };
            if !last {
                rest = self.b.ins().udiv_imm(rest, extent);
            }
            self.open.push((index, Index::Value(here)));
        }
        self.together(nest.body)?;
        self.open.truncate(0);
        let next = self.b.ins().iadd_imm(group, 1);
        self.b.ins().jump(head, &[next.into()]);
        self.b.switch_to_block(exit);
        Ok(())
    }

    /// Statements that all threads of a group go through together.
    pub(super) fn together(&mut self, body: &[Stmt]) -> Result<(), LowerError> {
        let mut region: Vec<&Stmt> = Vec::new();
        for stmt in body {
            if !is_uniform(stmt) {
                region.push(stmt);
                continue;
            }
            self.region(&std::mem::take(&mut region))?;
            match stmt {
                Stmt::For { index, body } => self.repeat(index, &mut |lower| lower.together(body))?,
                Stmt::Fetch { tile, from, origin, extents } => self.fetch(tile, from, origin, extents)?,
                _ => {}
            }
        }
        self.region(&region)
    }

    /// A loop of the domain.
    pub(super) fn repeat(
        &mut self,
        index: &'static str,
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let extent = self.instance.extent(index);
        if written_out(self.instance, index) {
            for value in 0..extent {
                self.open.push((index, Index::Const(value)));
                body(self)?;
                self.open.pop();
            }
            return Ok(());
        }
        self.counted(index, extent, 1, body)
    }

    /// A loop of at least one turn.
    pub(super) fn counted(
        &mut self,
        index: &'static str,
        extent: i64,
        step: i64,
        body: &mut dyn FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        if extent <= step {
            self.open.push((index, Index::Const(0)));
            body(self)?;
            self.open.pop();
            return Ok(());
        }
        let (head, exit) = (self.b.create_block(), self.b.create_block());
        let i = self.b.append_block_param(head, types::I64);
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.ins().jump(head, &[zero.into()]);
        self.b.switch_to_block(head);
        self.open.push((index, Index::Value(i)));
        body(self)?;
        self.open.pop();
        let next = self.b.ins().iadd_imm(i, step);
        let again = self.b.ins().icmp_imm(IntCC::SignedLessThan, next, extent);
        self.b.ins().brif(again, head, &[next.into()], exit, &[]);
        self.b.switch_to_block(exit);
        Ok(())
    }

    /// A sum of products of indices, those that got their values first added first: what does not change within a loop can leave it.
    pub(super) fn affine(&mut self, at: &Affine) -> (Option<Value>, i64) {
        let (mut sum, mut constant) = (None, at.constant);
        for (index, place) in self.open.clone() {
            let factor = at.factor(index);
            match place {
                _ if factor == 0 => {}
                Index::Const(value) => constant += factor * value,
                Index::Value(value) => {
                    let product = if factor == 1 { value } else { self.b.ins().imul_imm(value, factor) };
                    sum = Some(sum.map_or(product, |sum| self.b.ins().iadd(sum, product)));
                }
            }
        }
        (sum, constant)
    }

    /// The address of an element and what is added to it in bytes.
    pub(super) fn address(&mut self, array: &Array, at: &[Affine]) -> (Value, i32) {
        let bytes = array.dtype.size() as i64;
        let (sum, constant) = self.affine(&(self.instance.offset(array, at) * bytes));
        let (base, first) = match self.shared.get(array.name) {
            Some(first) => (self.memory, *first),
            None => (self.bases.get(array.name).copied().unwrap_or(self.memory), 0),
        };
        let base = sum.map_or(base, |sum| self.b.ins().iadd(base, sum));
        match i32::try_from(constant + first) {
            Ok(offset) => (base, offset),
            Err(_) => (self.b.ins().iadd_imm(base, constant + first), 0),
        }
    }

    /// Copies a tile, row by row as it lies in memory.
    fn fetch(
        &mut self,
        tile: &'static str,
        from: &'static str,
        origin: &[Affine],
        extents: &[i64],
    ) -> Result<(), LowerError> {
        const NAMES: [&str; 4] = ["tile index 0", "tile index 1", "tile index 2", "tile index 3"];
        let kernel = self.instance.kernel();
        let (to, source) = (kernel.find_array(tile)?.clone(), kernel.find_array(from)?.clone());
        let mut dims: Vec<usize> = (0..extents.len()).collect();
        if source.order == Order::ColumnMajor {
            dims.reverse();
        }
        if dims.len() > NAMES.len() {
            let what = "a fetch of more than four dimensions".to_owned();
            return Err(tilewright_loops::LoopError::Unsupported { what, of: from.to_owned() }.into());
        }
        self.rows(&dims, &NAMES, extents, &mut |lower, row| {
            let at = |origin: &[Affine]| -> Vec<Affine> {
                let names = origin.iter().zip(NAMES).enumerate();
                let moved = names.map(
                    |(d, (o, name))| {
                        if d == row { o.clone() } else { o.clone() + tilewright_loops::idx(name) }
                    },
                );
                moved.collect()
            };
            let (read, read_at) = lower.address(&source, &at(origin));
            let (write, write_at) = lower.address(&to, &at(&vec![Affine::from(0); origin.len()]));
            lower.copy_row(source.dtype, extents[row], (read, read_at), (write, write_at));
        })
    }

    fn rows(
        &mut self,
        dims: &[usize],
        names: &[&'static str; 4],
        extents: &[i64],
        row: &mut dyn FnMut(&mut Self, usize),
    ) -> Result<(), LowerError> {
        match dims {
            [] => Ok(()),
            [last] => {
                row(self, *last);
                Ok(())
            }
            [first, rest @ ..] => {
                self.counted(names[*first], extents[*first], 1, &mut |lower| lower.rows(rest, names, extents, row))
            }
        }
    }

    fn copy_row(&mut self, dtype: DType, len: i64, (read, read_at): (Value, i32), (write, write_at): (Value, i32)) {
        let bytes = len * dtype.size() as i64;
        let mut done = 0;
        while done < bytes {
            let ty = match bytes - done {
                16.. => types::I8X16,
                8.. => types::I64,
                _ => types::I32,
            };
            let at = i32::try_from(done).unwrap_or(0);
            let value = self.b.ins().load(ty, plain(), read, read_at + at);
            self.b.ins().store(plain(), value, write, write_at + at);
            done += i64::from(ty.bytes());
        }
    }
}
