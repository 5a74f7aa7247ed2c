//! Regions: what all lanes of a group run before any goes on.

use super::LowerError;
use super::lower::{Lower, plain, scalar};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlags, Value, types};
use cranelift_frontend::Variable;
use tilewright_core::dtype::DType;
use tilewright_loops::Affine;
use tilewright_loops::host::{Along, along, touched};
use tilewright_loops::kernel::{Access, Stmt};

/// A local in registers: one variable for each vector.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) dtype: DType,
    pub(super) parts: Vec<Variable>,
}

impl Lower<'_, '_> {
    pub(super) fn region(&mut self, region: &[&Stmt]) -> Result<(), LowerError> {
        if region.is_empty() {
            return Ok(());
        }
        let [x, y, z] = self.instance.block();
        let nest = self.instance.kernel().nest()?;
        let names: Vec<&'static str> = nest.threads.iter().map(|(_, index)| *index).collect();
        let step = self.lanes.step();
        let mut turn = |lower: &mut Self| lower.lanes(region);
        match names[..] {
            [] => turn(self),
            [i] => self.counted(i, x, step, &mut turn),
            [i, j] => self.counted(j, y, 1, &mut |l| l.counted(i, x, step, &mut turn)),
            [i, j, k, ..] => {
                self.counted(k, z, 1, &mut |l| l.counted(j, y, 1, &mut |l| l.counted(i, x, step, &mut turn)))
            }
        }
    }

    /// Number of this turn's first lane in the group.
    fn first_lane(&self) -> Affine {
        let (mut sum, mut inner) = (Affine::from(0), 1);
        if let Ok(nest) = self.instance.kernel().nest() {
            for (_, index) in &nest.threads {
                sum = sum + tilewright_loops::idx(index) * inner;
                inner *= self.instance.extent(index);
            }
        }
        sum
    }

    fn lanes(&mut self, region: &[&Stmt]) -> Result<(), LowerError> {
        let touched = touched(region);
        let outer = self.locals.clone();
        let kept: Vec<_> =
            self.kept.iter().filter(|(n, _)| touched.contains_key(*n)).map(|(n, at)| (*n, *at)).collect();
        let declared = |name: &str| region.iter().any(|s| matches!(s, Stmt::Let { name: n, .. } if *n == name));
        for (name, (first, dtype)) in &kept {
            if !declared(name) {
                let (base, offset) = self.kept_address(*first, *dtype);
                let ty = self.vector(*dtype);
                let parts = (0..self.lanes.parts).map(|part| {
                    let at = offset + (part * i64::from(ty.bytes())) as i32;
                    self.b.ins().load(ty, plain(), base, at)
                });
                let parts: Vec<Value> = parts.collect();
                self.declare(name, *dtype, &parts);
            }
        }
        for stmt in region {
            self.stmt(stmt)?;
        }
        for (name, (first, dtype)) in &kept {
            if touched.get(name) == Some(&true) {
                let (base, offset) = self.kept_address(*first, *dtype);
                let bytes = i64::from(self.vector(*dtype).bytes());
                for (part, value) in self.local(name).into_iter().enumerate() {
                    self.b.ins().store(plain(), value, base, offset + (part as i64 * bytes) as i32);
                }
            }
        }
        self.locals = outer;
        Ok(())
    }

    fn kept_address(&mut self, first: i64, dtype: DType) -> (Value, i32) {
        let lane = self.first_lane() * dtype.size() as i64;
        let (sum, constant) = self.affine(&lane);
        let base = sum.map_or(self.memory, |sum| self.b.ins().iadd(self.memory, sum));
        (base, i32::try_from(first + constant).unwrap_or(0))
    }

    pub(super) fn declare(&mut self, name: &'static str, dtype: DType, values: &[Value]) {
        let ty = self.vector(dtype);
        let parts: Vec<Variable> = values
            .iter()
            .map(|value| {
                let variable = self.b.declare_var(ty);
                self.b.def_var(variable, *value);
                variable
            })
            .collect();
        self.locals.insert(name, Local { dtype, parts });
    }

    pub(super) fn local(&mut self, name: &str) -> Vec<Value> {
        let parts = self.locals.get(name).map_or(Vec::new(), |l| l.parts.clone());
        parts.into_iter().map(|v| self.b.use_var(v)).collect()
    }

    fn body(&mut self, body: &[Stmt]) -> Result<(), LowerError> {
        let outer = self.locals.clone();
        for stmt in body {
            self.stmt(stmt)?;
        }
        self.locals = outer;
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), LowerError> {
        match stmt {
            Stmt::For { index, body } => self.repeat(index, &mut |lower| lower.body(body)),
            Stmt::Let { name, dtype, value } => {
                let values = self.value(value, *dtype)?;
                self.declare(name, *dtype, &values);
                Ok(())
            }
            Stmt::Set { name, value } => {
                let Some(local) = self.locals.get(name).cloned() else { return Ok(()) };
                let values = self.value(value, local.dtype)?;
                local.parts.iter().zip(values).for_each(|(v, value)| self.b.def_var(*v, value));
                Ok(())
            }
            Stmt::Store { to, value, atomic } => self.store(to, value, *atomic),
            // Regions end before them.
            Stmt::Fetch { .. } | Stmt::Barrier => Ok(()),
        }
    }

    fn store(&mut self, to: &Access, value: &tilewright_loops::kernel::Expr, atomic: bool) -> Result<(), LowerError> {
        let array = self.instance.kernel().find_array(to.array)?.clone();
        let values = self.value(value, array.dtype)?;
        let (base, offset) = self.address(&array, &to.at);
        let bytes = array.dtype.size() as i64;
        let apart = match along(self.instance, to) {
            Along::Same => 0,
            Along::Neighbours if !atomic => {
                for (part, value) in values.into_iter().enumerate() {
                    let at = offset + (part as i64 * self.lanes.width * bytes) as i32;
                    self.b.ins().store(plain(), value, base, at);
                }
                return Ok(());
            }
            Along::Neighbours => 1,
            Along::Apart(far) => far,
        };
        for (part, value) in values.into_iter().enumerate() {
            for lane in 0..self.lanes.width {
                let one = if self.lanes.width == 1 { value } else { self.b.ins().extractlane(value, lane as u8) };
                let far = (part as i64 * self.lanes.width + lane) * apart * bytes;
                let (base, at) = self.moved(base, offset, far);
                match atomic {
                    true => self.add_at_once(array.dtype, one, base, at),
                    false => {
                        self.b.ins().store(plain(), one, base, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// An address so many bytes further on.
    pub(super) fn moved(&mut self, base: Value, offset: i32, by: i64) -> (Value, i32) {
        match i32::try_from(i64::from(offset) + by) {
            Ok(offset) => (base, offset),
            Err(_) => (self.b.ins().iadd_imm(base, by), offset),
        }
    }

    /// Compares and swaps until nobody has come in between.
    fn add_at_once(&mut self, dtype: DType, value: Value, base: Value, offset: i32) {
        let float = scalar(dtype);
        let int = if dtype == DType::F64 { types::I64 } else { types::I32 };
        let at = self.b.ins().iadd_imm(base, i64::from(offset));
        let old = self.b.ins().load(int, plain(), at, 0);
        let (again, done) = (self.b.create_block(), self.b.create_block());
        let seen = self.b.append_block_param(again, int);
        self.b.ins().jump(again, &[old.into()]);
        self.b.switch_to_block(again);
        let before = self.b.ins().bitcast(float, MemFlags::new(), seen);
        let sum = self.b.ins().fadd(before, value);
        let after = self.b.ins().bitcast(int, MemFlags::new(), sum);
        let found = self.b.ins().atomic_cas(MemFlags::trusted(), at, seen, after);
        let same = self.b.ins().icmp(IntCC::Equal, found, seen);
        self.b.ins().brif(same, done, &[], again, &[found.into()]);
        self.b.switch_to_block(done);
    }
}
