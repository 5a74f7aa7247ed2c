//! What holds for every kernel, whatever its sizes.

use crate::affine::Affine;
use crate::error::LoopError;
use crate::kernel::{Access, Array, Axis, Expr, LoopKernel, Mapping, Place, Stmt};
use std::collections::BTreeMap;
use tilewright_core::dtype::DType;

/// A kernel taken apart: the loops that groups and threads run, and what each thread does.
#[derive(Clone, Debug, PartialEq)]
pub struct Nest<'a> {
    /// Indices of the grid.
    pub groups: Vec<(Axis, &'static str)>,
    /// Indices of the threads of a group.
    pub threads: Vec<(Axis, &'static str)>,
    /// What each thread does.
    pub body: &'a [Stmt],
}

impl LoopKernel {
    /// Takes the loops of groups and threads off.
    ///
    /// # Errors
    /// Such a loop stands inside of another one, or beside a statement, or two have one axis.
    pub fn nest(&self) -> Result<Nest<'_>, LoopError> {
        let mut nest = Nest { groups: Vec::new(), threads: Vec::new(), body: &self.body };
        while let [Stmt::For { index, body }] = nest.body {
            let (list, axis) = match self.find_loop(index)?.mapping {
                Mapping::Group(axis) => (&mut nest.groups, axis),
                Mapping::Thread(axis) => (&mut nest.threads, axis),
                _ => break,
            };
            if list.iter().any(|(taken, _)| *taken == axis) {
                return Err(LoopError::of_loop(index, format!("its axis {axis:?} is another loop's")));
            }
            list.push((axis, *index));
            nest.body = body;
        }
        for list in [&mut nest.groups, &mut nest.threads] {
            list.sort_unstable();
            if list.iter().zip([Axis::X, Axis::Y, Axis::Z]).any(|((axis, _), wanted)| *axis != wanted) {
                let (axis, index) = list[list.len() - 1];
                return Err(LoopError::of_loop(index, format!("its axis {axis:?} is used and one before it is not")));
            }
        }
        let mut inside = None;
        crate::kernel::visit(nest.body, &mut |stmt| {
            if let Stmt::For { index, .. } = stmt {
                let mapped = |l: &crate::kernel::Loop| matches!(l.mapping, Mapping::Group(_) | Mapping::Thread(_));
                if self.find_loop(index).is_ok_and(mapped) {
                    inside.get_or_insert(*index);
                }
            }
        });
        match inside {
            None => Ok(nest),
            Some(index) => Err(LoopError::of_loop(index, "loops of groups and threads stand outside of all others")),
        }
    }

    /// Refuses names that are unknown or taken, wrong numbers of indices, operands of different types, locals that are read
    /// before they are there, and loops in the wrong place.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), LoopError> {
        self.names()?;
        for array in &self.arrays {
            if !matches!(array.dtype, DType::F32 | DType::F64) {
                let what = format!("element type {}", array.dtype);
                return Err(LoopError::Unsupported { what, of: format!("array {}", array.name) });
            }
            if array.place == Place::Shared && array.shape.iter().any(|s| s.constant().is_none()) {
                return Err(LoopError::of_array(array.name, "in shared memory: its extents must be constants"));
            }
        }
        for l in &self.loops {
            if matches!(l.mapping, Mapping::Unrolled | Mapping::Vector) && l.extent.constant().is_none() {
                return Err(LoopError::of_loop(
                    l.index,
                    format!("extent {} is no constant: it cannot be written out", l.extent),
                ));
            }
        }
        self.nest()?;
        Checker { kernel: self, open: Vec::new(), locals: BTreeMap::new() }.body(&self.body)
    }

    fn names(&self) -> Result<(), LoopError> {
        let twice = |what, names: Vec<&'static str>| {
            let again = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
            again.map_or(Ok(()), |(_, name)| {
                Err(LoopError::Twice { kernel: self.name.clone(), what, name: (*name).to_owned() })
            })
        };
        twice("loop", self.loops.iter().map(|l| l.index).collect())?;
        twice("array", self.arrays.iter().map(|a| a.name).collect())
    }
}

fn dimensions(array: &Array, given: usize) -> LoopError {
    LoopError::of_array(array.name, format!("it has {} dimensions, an access gives {given}", array.shape.len()))
}

struct Checker<'a> {
    kernel: &'a LoopKernel,
    /// Indices of the loops around.
    open: Vec<&'static str>,
    locals: BTreeMap<&'static str, DType>,
}

impl Checker<'_> {
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
            Stmt::For { index, body } => {
                self.kernel.find_loop(index)?;
                if self.open.contains(index) {
                    return Err(LoopError::of_loop(index, "it stands inside of itself"));
                }
                self.open.push(index);
                self.body(body)?;
                self.open.pop();
            }
            Stmt::Let { name, dtype, value } => {
                self.value(value, *dtype)?;
                if self.locals.insert(name, *dtype).is_some() {
                    let kernel = self.kernel.name.clone();
                    return Err(LoopError::Twice { kernel, what: "local", name: (*name).to_owned() });
                }
            }
            Stmt::Set { name, value } => {
                let dtype = self.local(name)?;
                self.value(value, dtype)?;
            }
            Stmt::Store { to, value, atomic } => {
                let array = self.access(to)?;
                match array.place {
                    Place::Global(tilewright_core::buffer::Role::In) => {
                        return Err(LoopError::of_array(array.name, "it is an input and is written"));
                    }
                    Place::Shared if *atomic => {
                        let what = "adding at once in shared memory".to_owned();
                        return Err(LoopError::Unsupported { what, of: format!("array {}", array.name) });
                    }
                    _ => {}
                }
                self.value(value, array.dtype)?;
            }
            Stmt::Fetch { tile, from, origin, extents } => self.fetch(tile, from, origin, extents)?,
            Stmt::Barrier => {}
        }
        Ok(())
    }

    fn fetch(&self, tile: &str, from: &str, origin: &[Affine], extents: &[i64]) -> Result<(), LoopError> {
        let (tile, from) = (self.kernel.find_array(tile)?, self.kernel.find_array(from)?);
        let dims = from.shape.len();
        for given in [origin.len(), extents.len(), tile.shape.len()] {
            if given != dims {
                return Err(dimensions(from, given));
            }
        }
        if tile.place != Place::Shared || from.place == Place::Shared || tile.dtype != from.dtype {
            return Err(LoopError::of_array(tile.name, format!("{} cannot be fetched into it", from.name)));
        }
        self.indices(origin)?;
        let threads: Vec<_> = self.kernel.nest()?.threads;
        let thread = origin.iter().flat_map(|o| o.terms()).find(|(i, _)| threads.iter().any(|(_, t)| t == i));
        match thread {
            None => Ok(()),
            Some((index, _)) => {
                Err(LoopError::of_loop(index, format!("the tile of {} depends on the thread", from.name)))
            }
        }
    }

    fn indices(&self, at: &[Affine]) -> Result<(), LoopError> {
        match at.iter().flat_map(|a| a.terms()).find(|(index, _)| !self.open.contains(index)) {
            None => Ok(()),
            Some((index, _)) => Err(self.kernel.unknown("loop around a statement", index)),
        }
    }

    fn access(&self, access: &Access) -> Result<&Array, LoopError> {
        let array = self.kernel.find_array(access.array)?;
        if array.shape.len() != access.at.len() {
            return Err(dimensions(array, access.at.len()));
        }
        self.indices(&access.at)?;
        Ok(array)
    }

    fn local(&self, name: &str) -> Result<DType, LoopError> {
        self.locals.get(name).copied().ok_or_else(|| self.kernel.unknown("local", name))
    }

    fn value(&self, value: &Expr, dtype: DType) -> Result<(), LoopError> {
        let mut fault = Ok(());
        value.visit(&mut |e| {
            if fault.is_ok() {
                fault = self.node(e, dtype);
            }
        });
        fault
    }

    fn node(&self, e: &Expr, expected: DType) -> Result<(), LoopError> {
        let same = |name: &str, found: DType| {
            if found == expected {
                return Ok(());
            }
            Err(LoopError::Misused {
                of: format!("{name:?}"),
                message: format!("it is of {found} in a statement of {expected}"),
            })
        };
        match e {
            Expr::Load(access) => same(access.array, self.access(access)?.dtype),
            Expr::Local(name) => same(name, self.local(name)?),
            Expr::Index(at) => self.indices(std::slice::from_ref(at)),
            Expr::Unary(crate::kernel::Unary::Exp, _) if expected == DType::F64 => {
                Err(LoopError::Unsupported { what: "exp".to_owned(), of: "f64".to_owned() })
            }
            _ => Ok(()),
        }
    }
}
