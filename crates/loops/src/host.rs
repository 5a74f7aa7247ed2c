//! How a host runs an instance, and what it does then.
//!
//! A core takes one group after the other. Statements up to a barrier are a *region*: all lanes of the group run it before any goes
//! on. Lanes along the first axis are run as vectors, several at once so that they hide each other's latency.
//! [`operations`] counts what the generated code does, in the units that a host has: vector operations, not lanes.

use crate::instance::Instance;
use crate::kernel::{Access, Binary, Expr, Mapping, Stmt, Unary, visit};
use crate::traffic::{references, traffic};
use std::collections::BTreeMap;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;

pub use crate::traffic::{Reference, bytes_touched};

/// Bytes of the vectors that are generated.
pub const VECTOR_BYTES: i64 = 16;

/// Most vectors that a lane loop works on at once.
const PARTS: i64 = 4;

/// The vectors that lanes are run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Lanes of a vector; 1 where nothing can be joined.
    pub width: i64,
    /// Vectors at once.
    pub parts: i64,
}

impl Lanes {
    /// The vectors of an instance: as wide as its element type allows and the first axis of its groups divides.
    pub fn of(instance: &Instance) -> Self {
        let kernel = instance.kernel();
        let mut types: Vec<DType> = kernel.arrays.iter().map(|a| a.dtype).collect();
        visit(&kernel.body, &mut |stmt| {
            if let Stmt::Let { dtype, .. } = stmt {
                types.push(*dtype);
            }
        });
        types.dedup();
        let [lanes, ..] = instance.block();
        let one_type = types.windows(2).all(|pair| pair[0] == pair[1]);
        let wanted = if one_type { VECTOR_BYTES / types.first().map_or(4, |t| t.size() as i64) } else { 1 };
        let width = if lanes % wanted == 0 { wanted } else { 1 };
        let parts = (1..=PARTS).rev().find(|parts| lanes % (width * parts) == 0).unwrap_or(1);
        Self { width, parts }
    }

    /// Lanes of one turn of a lane loop.
    pub fn step(self) -> i64 {
        self.width * self.parts
    }
}

/// Most iterations of a loop that are written out: the generator computes values where they are used last, and holds all that
/// was loaded for them until then.
const MOST_WRITTEN_OUT: i64 = 4;

/// Whether the iterations of a loop are written out on a host.
pub fn written_out(instance: &Instance, index: &str) -> bool {
    let mapped = |mapping| matches!(mapping, Mapping::Unrolled | Mapping::Vector);
    let extent = instance.extent(index);
    let asked = instance.kernel().find_loop(index).is_ok_and(|l| mapped(l.mapping));
    extent == 1 || asked && extent <= MOST_WRITTEN_OUT
}

/// Whether all threads of a group must go through a statement together.
pub fn is_uniform(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Barrier | Stmt::Fetch { .. } => true,
        Stmt::For { body, .. } => body.iter().any(is_uniform),
        Stmt::Let { .. } | Stmt::Set { .. } | Stmt::Store { .. } => false,
    }
}

/// Locals that live longer than a region: declared where all threads are together, in a kernel with barriers.
pub fn kept_locals(body: &[Stmt]) -> Vec<(&'static str, DType)> {
    let mut out = Vec::new();
    if !body.iter().any(is_uniform) {
        return out;
    }
    for stmt in body {
        match stmt {
            Stmt::Let { name, dtype, .. } => out.push((*name, *dtype)),
            Stmt::For { body, .. } if is_uniform(stmt) => out.extend(kept_locals(body)),
            _ => {}
        }
    }
    out
}

/// Locals that a region reads or changes, with whether it changes them.
pub fn touched(region: &[&Stmt]) -> BTreeMap<&'static str, bool> {
    let mut out: BTreeMap<&'static str, bool> = BTreeMap::new();
    for stmt in region {
        visit(std::slice::from_ref(*stmt), &mut |stmt| {
            if let Some(value) = stmt.value() {
                value.visit(&mut |e| {
                    if let Expr::Local(name) = e {
                        out.entry(name).or_insert(false);
                    }
                });
            }
            if let Stmt::Set { name, .. } | Stmt::Let { name, .. } = stmt {
                out.insert(name, true);
            }
        });
    }
    out
}

/// What the lanes of a vector touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// One element.
    Same,
    /// Neighbouring elements.
    Neighbours,
    /// Elements so far apart.
    Apart(i64),
}

/// How an access goes along the lanes of vectors.
pub fn along(instance: &Instance, access: &Access) -> Along {
    let lane = instance.kernel().nest().ok().and_then(|n| n.threads.first().map(|(_, index)| *index));
    let array = instance.kernel().find_array(access.array);
    let (Some(lane), Ok(array)) = (lane, array) else { return Along::Same };
    match instance.offset(array, &access.at).factor(lane) {
        0 => Along::Same,
        1 => Along::Neighbours,
        far => Along::Apart(far),
    }
}

/// What a host does for an instance, by name: see [`operations`].
pub type Operations = BTreeMap<&'static str, f64>;

/// Names of what is counted, in a fixed order.
pub const OPERATIONS: [&str; 30] = [
    "constant",
    "groups",
    "regions",
    "lane steps",
    "iterations",
    "chain",
    "f32 add",
    "f32 mul",
    "f32 fma",
    "f32 div",
    "f32 sqrt",
    "f32 exp",
    "f64 add",
    "f64 mul",
    "f64 fma",
    "f64 div",
    "f64 sqrt",
    "loads",
    "broadcasts",
    "single loads",
    "stores",
    "single stores",
    "atomics",
    "L2 near",
    "L2 far",
    "L2 written",
    "L3 near",
    "L3 far",
    "memory near",
    "memory far",
];

/// Sizes of a core's data caches in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caches {
    /// First level.
    pub l1: f64,
    /// Second level.
    pub l2: f64,
    /// Third level, or the last one.
    pub l3: f64,
}

impl Caches {
    /// Those of a device, by its facts; what is typical where there is none.
    pub fn of(device: &DeviceSpec) -> Self {
        let fact = |name: &str, otherwise: i64| device.fact(name).unwrap_or(otherwise) as f64;
        Self { l1: fact("l1d_bytes", 32 << 10), l2: fact("l2_bytes", 512 << 10), l3: fact("l3_bytes", 8 << 20) }
    }
}

/// Counts what the generated code does in one run on one core: vector operations by kind and type, accesses by how their lanes
/// lie, turns of loops, regions and groups, and cache lines by where they come from.
pub fn operations(instance: &Instance, caches: &Caches) -> Operations {
    let lanes = Lanes::of(instance);
    let groups = instance.groups() as f64;
    let mut count = Count { instance, lanes, out: Operations::new(), kept: Vec::new() };
    count.add("constant", 1.0);
    count.add("groups", groups);
    if let Ok(nest) = instance.kernel().nest() {
        count.kept = kept_locals(nest.body).into_iter().map(|(name, _)| name).collect();
        count.together(nest.body, groups);
    }
    let mut out = count.out;
    let all = references(instance);
    add_traffic(&mut out, &all, &all, caches);
    out
}

/// Adds the lines that some references, of all that share a core's caches, move between their levels.
pub fn add_traffic(out: &mut Operations, some: &[Reference], all: &[Reference], caches: &Caches) {
    let [into_l1, into_l2, into_l3] = [caches.l1, caches.l2, caches.l3].map(|size| traffic(some, all, size));
    // What one level has, those further out need not give.
    for (name, lines) in [
        ("L2 near", into_l1.near - into_l2.near),
        ("L2 far", into_l1.far - into_l2.far),
        ("L2 written", into_l1.written - into_l2.written),
        ("L3 near", into_l2.near + into_l2.written - into_l3.near - into_l3.written),
        ("L3 far", into_l2.far - into_l3.far),
        ("memory near", into_l3.near + 2.0 * into_l3.written),
        ("memory far", into_l3.far),
    ] {
        if lines > 0.0 {
            *out.entry(name).or_insert(0.0) += lines;
        }
    }
}

struct Count<'a> {
    instance: &'a Instance,
    lanes: Lanes,
    out: Operations,
    kept: Vec<&'static str>,
}

impl Count<'_> {
    fn add(&mut self, name: &'static str, amount: f64) {
        if amount > 0.0 {
            *self.out.entry(name).or_insert(0.0) += amount;
        }
    }

    /// Statements that all threads of a group go through together, `times` in all.
    fn together(&mut self, body: &[Stmt], times: f64) {
        let mut region: Vec<&Stmt> = Vec::new();
        for stmt in body {
            if !is_uniform(stmt) {
                region.push(stmt);
                continue;
            }
            self.region(&std::mem::take(&mut region), times);
            match stmt {
                Stmt::For { index, body } => {
                    let trips = self.instance.extent(index) as f64;
                    self.together(body, times * trips);
                }
                Stmt::Fetch { extents, .. } => self.fetch(extents, times),
                _ => {}
            }
        }
        self.region(&region, times);
    }

    fn fetch(&mut self, extents: &[i64], times: f64) {
        let row = extents.last().copied().unwrap_or(1);
        let rows = extents.iter().rev().skip(1).product::<i64>() as f64;
        let (vectors, rest) = (row / 4, row % 4);
        self.add("regions", times);
        self.add("iterations", times * rows);
        self.add("loads", times * rows * vectors as f64);
        self.add("stores", times * rows * vectors as f64);
        self.add("single loads", times * rows * rest as f64);
        self.add("single stores", times * rows * rest as f64);
    }

    fn region(&mut self, region: &[&Stmt], times: f64) {
        if region.is_empty() {
            return;
        }
        let steps = times * (self.instance.threads() / self.lanes.step()) as f64;
        self.add("regions", times);
        self.add("lane steps", steps);
        let touched = touched(region);
        let declared = |name: &str| region.iter().any(|s| matches!(s, Stmt::Let { name: n, .. } if *n == name));
        let parts = self.lanes.parts as f64;
        for name in self.kept.clone() {
            if let Some(changed) = touched.get(name) {
                if !declared(name) {
                    self.add("loads", steps * parts);
                }
                if *changed {
                    self.add("stores", steps * parts);
                }
            }
        }
        region.iter().for_each(|stmt| self.stmt(stmt, steps));
    }

    fn stmt(&mut self, stmt: &Stmt, times: f64) {
        if let Stmt::For { index, body } = stmt {
            let trips = times * self.instance.extent(index) as f64;
            if !written_out(self.instance, index) {
                self.add("iterations", trips);
                self.add("chain", trips * self.chain(body, self.instance.extent(index)));
            }
            return body.iter().for_each(|stmt| self.stmt(stmt, trips));
        }
        let dtype = self.dtype(stmt);
        if let Some(value) = stmt.value() {
            value.visit(&mut |e| self.node(e, dtype, times));
        }
        if let Stmt::Store { to, atomic, .. } = stmt {
            let (parts, step) = (self.lanes.parts as f64, self.lanes.step() as f64);
            match (atomic, along(self.instance, to)) {
                (true, _) => self.add("atomics", times * step),
                (false, Along::Neighbours) => self.add("stores", times * parts),
                (false, _) => self.add("single stores", times * step),
            }
        }
    }

    fn dtype(&self, stmt: &Stmt) -> DType {
        let kernel = self.instance.kernel();
        match stmt {
            Stmt::Let { dtype, .. } => *dtype,
            Stmt::Store { to, .. } => kernel.find_array(to.array).map_or(DType::F32, |a| a.dtype),
            // Kernels of two types are not run as vectors; their operations count as those of the first array.
            _ => kernel.arrays.first().map_or(DType::F32, |a| a.dtype),
        }
    }

    fn node(&mut self, e: &Expr, dtype: DType, times: f64) {
        let parts = times * self.lanes.parts as f64;
        if let Expr::Load(access) = e {
            match along(self.instance, access) {
                Along::Same => self.add("broadcasts", times),
                Along::Neighbours => self.add("loads", parts),
                Along::Apart(_) => self.add("single loads", parts * self.lanes.width as f64),
            }
        }
        for name in arithmetic(e).0 {
            // Powers are of f32 alone.
            let typed = format!("{} {name}", if *name == "exp" { DType::F32 } else { dtype });
            OPERATIONS.into_iter().find(|counted| *counted == typed).into_iter().for_each(|name| self.add(name, parts));
        }
    }
}

/// What a node computes, and of what.
fn arithmetic(e: &Expr) -> (&'static [&'static str], Vec<&Expr>) {
    match e {
        Expr::Number(_) | Expr::Local(_) | Expr::Index(_) | Expr::Load(_) => (&[], Vec::new()),
        Expr::Unary(Unary::Sqrt, a) => (&["sqrt"], vec![a]),
        Expr::Unary(Unary::Rsqrt, a) => (&["sqrt", "div"], vec![a]),
        Expr::Unary(Unary::Exp, a) => (&["exp"], vec![a]),
        Expr::Binary(Binary::Add | Binary::Sub, a, b) => (&["add"], vec![a, b]),
        Expr::Binary(Binary::Mul, a, b) => (&["mul"], vec![a, b]),
        Expr::Binary(Binary::Div, a, b) => (&["div"], vec![a, b]),
        Expr::Fma(a, b, c) => (&["fma"], vec![a, b, c]),
    }
}

/// Typical cycles from an operand to the result.
const LATENCY: [(&str, f64); 6] =
    [("add", 3.0), ("mul", 3.0), ("fma", 4.0), ("div", 11.0), ("sqrt", 15.0), ("exp", 50.0)];

fn latency(name: &str) -> f64 {
    LATENCY.iter().find(|(n, _)| *n == name).map_or(1.0, |(_, cycles)| *cycles)
}

/// Operations that a core looks ahead.
const WINDOW: f64 = 200.0;

/// Cycles after the beginning of an iteration at which a local has its value, if that depends on an earlier iteration.
type Depths = BTreeMap<&'static str, f64>;

impl Count<'_> {
    /// Cycles that an iteration waits for the one before, if `trips` of them follow each other: the longest chain of operations
    /// from what a local was to what it becomes. Iterations of several turns overlap as far as a core looks ahead.
    fn chain(&self, body: &[Stmt], trips: i64) -> f64 {
        let mut depths = Depths::new();
        let mut set = Vec::new();
        visit(body, &mut |stmt| {
            if let Stmt::Set { name, .. } = stmt {
                set.push(*name);
                depths.insert(name, 0.0);
            }
        });
        let mut operations = 1.0;
        self.follow(body, &mut depths, &mut operations);
        let longest = set.iter().filter_map(|name| depths.get(name)).copied().fold(0.0, f64::max);
        let turns = (WINDOW / (operations * self.lanes.parts as f64 * trips as f64)).max(1.0);
        longest / turns
    }

    fn follow(&self, body: &[Stmt], depths: &mut Depths, operations: &mut f64) {
        for stmt in body {
            match stmt {
                Stmt::For { index, body } => {
                    // Loops within are chains of their own.
                    let times = if written_out(self.instance, index) { self.instance.extent(index) } else { 0 };
                    (0..times).for_each(|_| self.follow(body, depths, operations));
                }
                Stmt::Let { name, value, .. } | Stmt::Set { name, value } => {
                    match depth(value, depths, operations) {
                        Some(depth) => depths.insert(name, depth),
                        None => depths.remove(name),
                    };
                }
                _ => {}
            }
        }
    }
}

/// When a value is there; None where it depends on no earlier iteration.
fn depth(e: &Expr, depths: &Depths, operations: &mut f64) -> Option<f64> {
    if let Expr::Local(name) = e {
        return depths.get(name).copied();
    }
    let (names, operands) = arithmetic(e);
    *operations += if names.is_empty() && !matches!(e, Expr::Load(_)) { 0.0 } else { 1.0 };
    let before = operands.into_iter().filter_map(|operand| depth(operand, depths, operations)).reduce(f64::max);
    before.map(|d| d + names.iter().map(|name| latency(name)).sum::<f64>())
}
