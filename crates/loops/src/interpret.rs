//! The reference: kernels run in binary64, with a bound on what rounding in the kernel's own types may add.
//!
//! Threads of a group take turns at every statement. That is a legal order for every kernel here, because loops have the
//! same number of iterations for all threads, and it is the order that barriers demand.

use crate::instance::Instance;
use crate::kernel::{Access, Binary, Expr, Stmt, Unary};
use std::collections::HashMap;
use tilewright_core::buffer::{Buffer, Expected, ExpectedBuffer, Role};
use tilewright_core::dtype::DType;

/// A value with a bound on the error of whoever computes it in a narrower type.
#[derive(Clone, Copy, Debug)]
struct Number {
    value: f64,
    error: f64,
}

/// A value without error.
fn exact(value: f64) -> Number {
    Number { value, error: 0.0 }
}

impl Number {
    fn rounded(self, unit: f64) -> Self {
        Self { error: self.error + unit * (self.value.abs() + self.error), ..self }
    }
}

/// Units in the last place by which approximate operations of a GPU may be off.
const APPROXIMATE: f64 = 8.0;

struct Machine<'a> {
    instance: &'a Instance,
    arrays: HashMap<&'static str, Vec<Number>>,
    /// Values of the indices of groups and sequential loops.
    uniform: HashMap<&'static str, i64>,
    /// Values of the indices of threads, by thread.
    threads: Vec<HashMap<&'static str, i64>>,
    /// Locals by thread.
    locals: Vec<HashMap<&'static str, (Number, DType)>>,
}

/// What the buffers of an instance hold after a run on `before`, with error bounds. Only buffers that are written are judged.
pub fn reference(instance: &Instance, before: &[Buffer]) -> Expected {
    let mut arrays = HashMap::new();
    for ((array, _), buffer) in instance.kernel().globals().zip(before) {
        arrays.insert(array.name, (0..buffer.len()).map(|i| exact(buffer.get_f64(i))).collect());
    }
    let mut machine = Machine { instance, arrays, uniform: HashMap::new(), threads: Vec::new(), locals: Vec::new() };
    machine.grid();
    let mut buffers = Vec::new();
    for (index, (array, role)) in instance.kernel().globals().enumerate() {
        if role != Role::In {
            let numbers = &machine.arrays[array.name];
            let values = numbers.iter().map(|n| n.value).collect();
            let bounds = numbers.iter().map(|n| (n.error * 1.01) as f32).collect();
            buffers.push(ExpectedBuffer { index, values, bounds });
        }
    }
    Expected { buffers }
}

impl Machine<'_> {
    fn grid(&mut self) {
        let instance = self.instance;
        let Ok(nest) = instance.kernel().nest() else { return };
        self.threads = vec![HashMap::new()];
        for (_, index) in &nest.threads {
            let extent = instance.extent(index);
            self.threads = (0..extent)
                .flat_map(|value| {
                    self.threads.iter().map(move |t| {
                        let mut t = t.clone();
                        t.insert(*index, value);
                        t
                    })
                })
                .collect();
        }
        let grid: Vec<(&'static str, i64)> = nest.groups.iter().map(|(_, i)| (*i, instance.extent(i))).collect();
        for group in 0..instance.groups() {
            let mut rest = group;
            for (index, extent) in &grid {
                self.uniform.insert(index, rest % extent);
                rest /= extent;
            }
            for array in instance.kernel().shared() {
                let len = instance.shape(array.name).iter().product::<i64>();
                self.arrays.insert(array.name, vec![exact(f64::NAN); usize::try_from(len).unwrap_or(0)]);
            }
            self.locals = vec![HashMap::new(); self.threads.len()];
            self.body(nest.body);
        }
    }

    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::For { index, body } => {
                    for value in 0..self.instance.extent(index) {
                        self.uniform.insert(index, value);
                        self.body(body);
                    }
                }
                Stmt::Fetch { tile, from, origin, extents } => self.fetch(tile, from, origin, extents),
                Stmt::Barrier => {}
                _ => (0..self.threads.len()).for_each(|thread| self.stmt(stmt, thread)),
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt, thread: usize) {
        match stmt {
            Stmt::Let { name, dtype, value } => {
                let value = self.value(value, *dtype, thread);
                self.locals[thread].insert(name, (value, *dtype));
            }
            Stmt::Set { name, value } => {
                if let Some((_, dtype)) = self.locals[thread].get(name).copied() {
                    let value = self.value(value, dtype, thread);
                    self.locals[thread].insert(name, (value, dtype));
                }
            }
            Stmt::Store { to, value, atomic } => {
                let Some((at, dtype)) = self.place(to, thread) else { return };
                let mut value = self.value(value, dtype, thread);
                if *atomic {
                    let unit = dtype.unit_roundoff();
                    let old = self.read(to.array, at);
                    value = self.binary(Binary::Add, old, value).rounded(unit);
                    // Sums come in any order: the bound is that of the largest partial sum so far.
                    value.error = value.error.max(old.error + unit * old.value.abs());
                }
                if let Some(slot) = self.arrays.get_mut(to.array).and_then(|a| a.get_mut(at)) {
                    *slot = value;
                }
            }
            Stmt::For { .. } | Stmt::Fetch { .. } | Stmt::Barrier => {}
        }
    }

    fn fetch(&mut self, tile: &str, from: &'static str, origin: &[crate::affine::Affine], extents: &[i64]) {
        let kernel = self.instance.kernel();
        let (Ok(to), Ok(source)) = (kernel.find_array(tile), kernel.find_array(from)) else { return };
        for linear in 0..extents.iter().product::<i64>() {
            let (mut rest, mut read, mut write) = (linear, 0, 0);
            for (dim, extent) in extents.iter().enumerate() {
                let here = rest % extent;
                rest /= extent;
                let first = origin[dim].eval(|i| self.index(i, 0));
                read += (first + here) * self.instance.stride(source, dim);
                write += here * self.instance.stride(to, dim);
            }
            let value = self.read(from, usize::try_from(read).unwrap_or(usize::MAX));
            let slot = usize::try_from(write).unwrap_or(usize::MAX);
            if let Some(slot) = self.arrays.get_mut(to.name).and_then(|a| a.get_mut(slot)) {
                *slot = value;
            }
        }
    }

    fn index(&self, index: &str, thread: usize) -> i64 {
        let of_thread = self.threads[thread].get(index);
        of_thread.or_else(|| self.uniform.get(index)).copied().unwrap_or(0)
    }

    fn place(&self, access: &Access, thread: usize) -> Option<(usize, DType)> {
        let array = self.instance.kernel().find_array(access.array).ok()?;
        let at = self.instance.offset(array, &access.at).eval(|i| self.index(i, thread));
        Some((usize::try_from(at).ok()?, array.dtype))
    }

    fn read(&self, array: &str, at: usize) -> Number {
        self.arrays.get(array).and_then(|a| a.get(at)).copied().unwrap_or(exact(f64::NAN))
    }

    fn value(&self, e: &Expr, dtype: DType, thread: usize) -> Number {
        let unit = dtype.unit_roundoff();
        match e {
            Expr::Number(x) if dtype == DType::F32 => exact(f64::from(*x as f32)),
            Expr::Number(x) => exact(*x),
            Expr::Index(at) => exact(at.eval(|i| self.index(i, thread)) as f64).rounded(unit),
            Expr::Load(access) => {
                self.place(access, thread).map_or(exact(f64::NAN), |(at, _)| self.read(access.array, at))
            }
            Expr::Local(name) => self.locals[thread].get(name).map_or(exact(f64::NAN), |(value, _)| *value),
            Expr::Unary(op, a) => self.unary(*op, self.value(a, dtype, thread), unit),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a, dtype, thread), self.value(b, dtype, thread));
                self.binary(*op, a, b).rounded(unit)
            }
            Expr::Fma(a, b, c) => {
                let [a, b, c] = [a, b, c].map(|x| self.value(x, dtype, thread));
                // Hosts without fused operations round the product too.
                let product = self.binary(Binary::Mul, a, b).rounded(unit);
                self.binary(Binary::Add, product, c).rounded(unit)
            }
        }
    }

    fn unary(&self, op: Unary, a: Number, unit: f64) -> Number {
        let a_least = (a.value - a.error).max(f64::MIN_POSITIVE);
        match op {
            Unary::Sqrt => {
                Number { value: a.value.sqrt(), error: 0.5 * a.error / a_least.sqrt() }.rounded(APPROXIMATE * unit)
            }
            Unary::Rsqrt => {
                let value = 1.0 / a.value.sqrt();
                Number { value, error: 0.5 * a.error / (a_least * a_least.sqrt()) }.rounded(APPROXIMATE * unit)
            }
            Unary::Exp => {
                let value = a.value.exp();
                // The argument is scaled and rounded before a power of two is taken.
                let error = value * (a.error + 2.0 * unit * a.value.abs()).exp_m1() + f64::from(f32::MIN_POSITIVE);
                Number { value, error }.rounded(APPROXIMATE * unit)
            }
        }
    }

    fn binary(&self, op: Binary, a: Number, b: Number) -> Number {
        let (x, y) = (a.value, b.value);
        match op {
            Binary::Add => Number { value: x + y, error: a.error + b.error },
            Binary::Sub => Number { value: x - y, error: a.error + b.error },
            Binary::Mul => Number { value: x * y, error: x.abs() * b.error + y.abs() * a.error + a.error * b.error },
            Binary::Div => {
                let least = (y.abs() - b.error).max(f64::MIN_POSITIVE);
                Number { value: x / y, error: (a.error + (x / y).abs() * b.error) / least }
            }
        }
    }
}
