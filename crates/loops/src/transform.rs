//! Transformations: each makes another kernel of a kernel that computes the same.

use crate::affine::{Affine, idx};
use crate::error::LoopError;
use crate::kernel::{Array, Axis, Expr, Loop, LoopKernel, Mapping, Place, Stmt, visit, visit_mut};
use crate::size::Size;

impl LoopKernel {
    /// Replaces a loop by two: `outer` runs over blocks of `by` iterations, `inner` within a block. `by` must divide the
    /// extent, which is checked when sizes are given.
    ///
    /// # Errors
    /// No such loop, a name that is taken, a factor below 1, or a constant extent that it does not divide.
    pub fn split(mut self, index: &str, by: i64, outer: &'static str, inner: &'static str) -> Result<Self, LoopError> {
        let old = self.find_loop(index)?.clone();
        if by < 1 {
            return Err(LoopError::Range { of: format!("split of {index}"), value: by, min: 1, max: i64::MAX });
        }
        match old.extent.constant() {
            Some(value) if value % by != 0 => {
                return Err(LoopError::Indivisible { of: format!("loop {index}"), value, by });
            }
            _ => {}
        }
        for name in [outer, inner] {
            if name != index && self.loops.iter().any(|l| l.index == name) {
                return Err(LoopError::Twice { kernel: self.name, what: "loop", name: name.to_owned() });
            }
        }
        let at = self.loops.iter().position(|l| l.index == index).unwrap_or(0);
        let halves = [(outer, old.extent / by), (inner, Size::Const(by))];
        let halves = halves.map(|(index, extent)| Loop { index, extent, mapping: old.mapping });
        self.loops.splice(at..=at, halves);
        let replacement = idx(outer) * by + idx(inner);
        visit_mut(&mut self.body, &mut |stmt| {
            stmt.indices_mut(&mut |a| *a = a.substitute(index, &replacement));
            let Stmt::For { index: here, body } = stmt else { return };
            if *here == index {
                let body = std::mem::take(body);
                *stmt = Stmt::For { index: outer, body: vec![Stmt::For { index: inner, body }] };
            }
        });
        Ok(self)
    }

    /// Says what runs a loop.
    ///
    /// # Errors
    /// No such loop; written out with an extent that is no constant.
    pub fn map(mut self, index: &str, mapping: Mapping) -> Result<Self, LoopError> {
        let at = self.loops.iter().position(|l| l.index == index).ok_or_else(|| self.unknown("loop", index))?;
        if matches!(mapping, Mapping::Unrolled | Mapping::Vector) && self.loops[at].extent.constant().is_none() {
            let message = format!("extent {} is no constant: it cannot be written out", self.loops[at].extent);
            return Err(LoopError::of_loop(index, message));
        }
        self.loops[at].mapping = mapping;
        Ok(self)
    }

    /// Runs a loop on groups of `size` threads along an axis.
    ///
    /// # Errors
    /// See [`LoopKernel::split`].
    pub fn spread(
        self,
        index: &str,
        size: i64,
        axis: Axis,
        group: &'static str,
        thread: &'static str,
    ) -> Result<Self, LoopError> {
        self.split(index, size, group, thread)?.map(group, Mapping::Group(axis))?.map(thread, Mapping::Thread(axis))
    }

    /// Writes a loop out.
    ///
    /// # Errors
    /// See [`LoopKernel::map`].
    pub fn unroll(self, index: &str) -> Result<Self, LoopError> {
        self.map(index, Mapping::Unrolled)
    }

    /// Writes a loop out and joins accesses to neighbouring elements: 2 or 4 of them.
    ///
    /// # Errors
    /// See [`LoopKernel::map`]; another extent.
    pub fn vectorize(self, index: &str) -> Result<Self, LoopError> {
        match self.find_loop(index)?.extent.constant() {
            Some(2 | 4) | None => self.map(index, Mapping::Vector),
            Some(value) => Err(LoopError::Range { of: format!("vector loop {index} (2 or 4)"), value, min: 2, max: 4 }),
        }
    }

    /// Moves a loop to the outside of the one that it stands in; both must be perfectly nested.
    ///
    /// # Errors
    /// No such loops, or statements between them.
    pub fn interchange(mut self, outer: &str, inner: &str) -> Result<Self, LoopError> {
        self.find_loop(outer)?;
        self.find_loop(inner)?;
        let mut done = false;
        visit_mut(&mut self.body, &mut |stmt| {
            let Stmt::For { index: a, body } = stmt else { return };
            let [Stmt::For { index: b, .. }] = &mut body[..] else { return };
            if *a == outer && *b == inner && !done {
                std::mem::swap(a, b);
                done = true;
            }
        });
        if done {
            return Ok(self);
        }
        Err(LoopError::of_loop(outer, format!("{inner} is not the only thing in it")))
    }

    /// Copies what the iterations of the loops `over` read of an array into shared memory first: at the beginning of the body
    /// of the loop `at`, or of what each thread does. Rows of the tile are `pad` elements longer than what is copied.
    ///
    /// # Errors
    /// Unknown names; accesses that differ in more than constants; a tile that depends on the thread or whose size is no
    /// constant.
    pub fn prefetch(
        mut self,
        array: &str,
        tile: &'static str,
        at: Option<&str>,
        over: &[&str],
        pad: i64,
    ) -> Result<Self, LoopError> {
        let source = self.find_array(array)?.clone();
        if self.arrays.iter().any(|a| a.name == tile) {
            return Err(LoopError::Twice { kernel: self.name, what: "array", name: tile.to_owned() });
        }
        let extents: Vec<(&str, i64)> = over
            .iter()
            .map(|index| {
                let constant = self.find_loop(index)?.extent.constant();
                let fault = || LoopError::of_loop(index, "what is fetched over it has no constant size");
                constant.map(|c| (*index, c)).ok_or_else(fault)
            })
            .collect::<Result<_, LoopError>>()?;
        let threads = self.nest()?.threads.len() + self.nest()?.groups.len();
        let inside = match at {
            Some(index) => find_body(&mut self.body, index),
            None => Some(peel(&mut self.body, threads)),
        };
        let Some(inside) = inside else {
            let index = at.unwrap_or_default();
            return Err(LoopError::Unknown { kernel: self.name, what: "loop", name: index.to_owned() });
        };
        let window = Window::of(&source, inside, &extents)?;
        window.rewrite(inside, array, tile);
        let mut body = vec![
            Stmt::Fetch { tile, from: source.name, origin: window.origin.clone(), extents: window.extents.clone() },
            Stmt::Barrier,
        ];
        // A tile that an earlier prefetch put here shares the barriers.
        let shared = matches!(inside.first(), Some(Stmt::Fetch { .. }));
        if shared {
            body.truncate(1);
        }
        body.append(inside);
        if at.is_some() && !shared {
            body.push(Stmt::Barrier);
        }
        *inside = body;
        let mut shape = window.extents;
        let padded = match source.order {
            crate::kernel::Order::RowMajor => shape.last_mut(),
            crate::kernel::Order::ColumnMajor => shape.first_mut(),
        };
        padded.into_iter().for_each(|e| *e += pad);
        let shape = shape.into_iter().map(Size::from).collect();
        let (dtype, order) = (source.dtype, source.order);
        self.arrays.push(Array { name: tile, dtype, shape, order, place: Place::Shared });
        Ok(self)
    }
}

/// The body of a loop.
fn find_body<'a>(body: &'a mut [Stmt], wanted: &str) -> Option<&'a mut Vec<Stmt>> {
    for stmt in body {
        if let Stmt::For { index, body } = stmt {
            if *index == wanted {
                return Some(body);
            }
            if let Some(found) = find_body(body, wanted) {
                return Some(found);
            }
        }
    }
    None
}

/// The body inside of the outermost loops.
fn peel(body: &mut Vec<Stmt>, depth: usize) -> &mut Vec<Stmt> {
    if depth == 0 || !matches!(&body[..], [Stmt::For { .. }]) {
        return body;
    }
    match &mut body[0] {
        Stmt::For { body, .. } => peel(body, depth - 1),
        _ => unreachable!("it was matched as a loop"),
    }
}

/// What is fetched of an array.
struct Window {
    over: Vec<String>,
    origin: Vec<Affine>,
    extents: Vec<i64>,
}

impl Window {
    fn of(source: &Array, body: &[Stmt], over: &[(&str, i64)]) -> Result<Self, LoopError> {
        let fault = |message: &str| LoopError::of_array(source.name, message);
        let mut found: Vec<Vec<Affine>> = Vec::new();
        let mut written = false;
        visit(body, &mut |stmt| {
            stmt.accesses(&mut |access, writes| {
                if access.array == source.name {
                    written |= writes;
                    found.push(access.at.clone());
                }
            });
        });
        if written {
            return Err(fault("it is written: what was fetched would be stale"));
        }
        let first = found.first().ok_or_else(|| fault("nothing reads it here"))?;
        let extent = |index: &str| over.iter().find(|(i, _)| *i == index).map_or(1, |(_, e)| *e);
        let swept = |index: &str| over.iter().any(|(i, _)| *i == index);
        let (mut origin, mut extents) = (Vec::new(), Vec::new());
        for dim in 0..first.len() {
            let fixed = first[dim].filtered(|i| !swept(i)) - first[dim].constant;
            let (mut low, mut high) = (i64::MAX, i64::MIN);
            for at in &found {
                if at[dim].filtered(|i| !swept(i)) - at[dim].constant != fixed {
                    return Err(fault("its accesses differ in more than constants and what is fetched over"));
                }
                let (l, h) = at[dim].filtered(swept).range(extent);
                (low, high) = (low.min(l), high.max(h));
            }
            origin.push(fixed + low);
            extents.push(high - low + 1);
        }
        Ok(Self { over: over.iter().map(|(i, _)| (*i).to_owned()).collect(), origin, extents })
    }

    fn rewrite(&self, body: &mut [Stmt], array: &str, tile: &'static str) {
        let swept = |index: &str| self.over.iter().any(|i| i == index);
        let relative = |e: &mut Expr| match e {
            Expr::Load(access) if access.array == array => {
                access.array = tile;
                for (at, origin) in access.at.iter_mut().zip(&self.origin) {
                    *at = at.filtered(swept) - origin.constant;
                }
            }
            _ => {}
        };
        visit_mut(body, &mut |stmt| {
            stmt.value_mut().into_iter().for_each(|value| value.visit_mut(&mut |e| relative(e)))
        });
    }
}
