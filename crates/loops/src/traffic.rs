//! Cache lines that an instance moves on a host, by working sets.
//!
//! For every access the loops around it are known in the order in which a core runs them. The data that one iteration of
//! a loop touches are its working set. A cache keeps what the outermost loop reuses whose iterations fit into it: an access then
//! misses once for each line that all iterations of that loop touch together, and again for every iteration of the loops
//! further out. Where everything fits, a run that follows another one misses nothing.

use crate::affine::Affine;
use crate::instance::Instance;
use crate::kernel::{Array, Place, Stmt};
use std::collections::BTreeMap;

/// Bytes of a cache line.
const LINE: f64 = 64.0;

/// Bytes that are touched one after the other from which on a cache foresees what comes next.
const NEAR: f64 = 4.0 * LINE;

/// Parts of a cache's size at which misses are looked at; their mean is taken, since real caches fill up gradually.
const PARTS: [f64; 4] = [0.5, 0.7, 0.9, 1.2];

/// Lines that come into a cache.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// Read in runs of neighbouring lines.
    pub(crate) near: f64,
    /// Read in runs that are too short for anything to foresee what comes next.
    pub(crate) far: f64,
    /// Written: they come in, and leave again.
    pub(crate) written: f64,
}

/// Elements that one statement touches in all iterations of its loops.
#[derive(Clone, Debug)]
pub struct Reference {
    bytes: f64,
    /// Loops from the outermost: name, iterations, and bytes from one to the next.
    loops: Vec<(&'static str, f64, f64)>,
    /// Bytes between the first and the last of several accesses that differ in constants.
    spread: f64,
    first: f64,
    array: &'static str,
    written: bool,
    far: bool,
}

impl Reference {
    /// An access of so many bytes in loops from the outermost: name, iterations, bytes from one iteration to the next. `run` is how
    /// many bytes are touched one after the other before the next ones lie elsewhere.
    pub fn new(bytes: f64, loops: Vec<(&'static str, f64, f64)>, written: bool, run: f64) -> Self {
        Self { bytes, loops, spread: 0.0, first: 0.0, array: "", written, far: run < NEAR }
    }

    /// Distinct lines that the loops from the given depth on touch.
    fn lines(&self, depth: usize) -> f64 {
        let mut steps: BTreeMap<u64, f64> = BTreeMap::new();
        for (_, trips, step) in self.loops.iter().skip(depth).filter(|(_, trips, step)| *step != 0.0 && *trips > 1.0) {
            // Loops with the same step slide over each other.
            *steps.entry(step.abs() as u64).or_insert(0.0) += trips - 1.0;
        }
        let (mut run, mut runs) = (self.bytes + self.spread, 1.0);
        for (step, more) in steps {
            let step = step as f64;
            if step <= run + LINE {
                run += step * more;
            } else {
                runs *= more + 1.0;
            }
        }
        runs * (run / LINE).ceil().max(1.0)
    }

    fn shares(&self, other: &Self, depth: usize) -> bool {
        let names = |r: &Self| r.loops.iter().take(depth).map(|(n, ..)| *n).collect::<Vec<_>>();
        other.loops.len() >= depth && names(self) == names(other)
    }
}

/// Lines that some of the references that share a cache of so many bytes bring into it in one run, where runs follow each other on the
/// same data.
pub(crate) fn traffic(some: &[Reference], all: &[Reference], capacity: f64) -> Traffic {
    let mut out = Traffic::default();
    for part in PARTS {
        for reference in some {
            let lines = misses(reference, all, capacity * part) / PARTS.len() as f64;
            match (reference.written, reference.far) {
                (true, _) => out.written += lines,
                (false, true) => out.far += lines,
                (false, false) => out.near += lines,
            }
        }
    }
    out
}

fn misses(reference: &Reference, all: &[Reference], capacity: f64) -> f64 {
    let fits = |depth: usize| {
        let sharing = all.iter().filter(|other| reference.shares(other, depth));
        sharing.map(|r| r.lines(depth)).sum::<f64>() * LINE <= capacity
    };
    let depth = (0..=reference.loops.len()).find(|d| fits(*d)).unwrap_or(reference.loops.len());
    match depth.checked_sub(1) {
        None => 0.0,
        Some(outer) => {
            let again: f64 = reference.loops.iter().take(outer).map(|(_, trips, _)| trips).product();
            again * reference.lines(outer)
        }
    }
}

/// Bytes that are touched one after the other, gaps of less than a line included: lanes first, since they are one vector, then
/// loops from the innermost.
fn run_of(bytes: f64, loops: &[(&'static str, f64, f64)], lane: Option<&'static str>) -> f64 {
    let lanes = loops.iter().filter(|(name, ..)| Some(*name) == lane);
    let others = loops.iter().rev().filter(|(name, ..)| Some(*name) != lane);
    let mut run = bytes;
    for (_, trips, step) in lanes.chain(others).filter(|(_, trips, step)| *step != 0.0 && *trips > 1.0) {
        if step.abs() > run + LINE {
            break;
        }
        run += step.abs() * (trips - 1.0);
    }
    run
}

/// Bytes of device memory that an instance touches.
pub fn bytes_touched(instance: &Instance) -> f64 {
    references(instance).iter().map(|r| r.lines(0) * LINE).sum()
}

pub(crate) fn references(instance: &Instance) -> Vec<Reference> {
    let Ok(nest) = instance.kernel().nest() else { return Vec::new() };
    let mut walk = Walk { instance, out: Vec::new(), threads: Vec::new() };
    let extent = |index: &'static str| (index, instance.extent(index) as f64);
    let groups: Vec<_> = nest.groups.iter().rev().map(|(_, index)| extent(index)).collect();
    walk.threads = nest.threads.iter().rev().map(|(_, index)| extent(index)).collect();
    walk.body(nest.body, &groups, &[]);
    walk.out
}

struct Walk<'a> {
    instance: &'a Instance,
    out: Vec<Reference>,
    threads: Vec<(&'static str, f64)>,
}

type Loops<'l> = &'l [(&'static str, f64)];

impl Walk<'_> {
    /// `outer` are the loops that all threads of a group run together, `inner` those that each runs alone.
    fn body(&mut self, body: &[Stmt], outer: Loops<'_>, inner: Loops<'_>) {
        for stmt in body {
            match stmt {
                Stmt::For { index, body } => {
                    let here = (*index, self.instance.extent(index) as f64);
                    let together = inner.is_empty() && crate::host::is_uniform(stmt);
                    let (outer, inner) = match together {
                        true => ([outer, &[here]].concat(), inner.to_vec()),
                        false => (outer.to_vec(), [inner, &[here]].concat()),
                    };
                    self.body(body, &outer, &inner);
                }
                Stmt::Fetch { from, origin, extents, .. } => self.fetch(from, origin, extents, outer),
                _ => stmt.accesses(&mut |access, written| {
                    let Ok(array) = self.instance.kernel().find_array(access.array) else { return };
                    let loops = [outer, &self.threads, inner].concat();
                    self.add(array, &self.instance.offset(array, &access.at), &loops, written);
                }),
            }
        }
    }

    fn fetch(&mut self, from: &str, origin: &[Affine], extents: &[i64], outer: Loops<'_>) {
        let Ok(array) = self.instance.kernel().find_array(from) else { return };
        const TILE: [&str; 4] = ["tile index 0", "tile index 1", "tile index 2", "tile index 3"];
        let mut offset = self.instance.offset(array, origin);
        let mut loops = outer.to_vec();
        for ((dim, extent), name) in extents.iter().enumerate().zip(TILE) {
            offset = offset + crate::affine::idx(name) * self.instance.stride(array, dim);
            loops.push((name, *extent as f64));
        }
        self.add(array, &offset, &loops, false);
    }

    fn add(&mut self, array: &Array, offset: &Affine, loops: Loops<'_>, written: bool) {
        if array.place == Place::Shared {
            return;
        }
        let bytes = array.dtype.size() as f64;
        let loops: Vec<_> =
            loops.iter().map(|(name, trips)| (*name, *trips, offset.factor(name) as f64 * bytes)).collect();
        let far = run_of(bytes, &loops, self.threads.last().map(|(index, _)| *index)) < NEAR;
        let first = offset.constant as f64 * bytes;
        let merged = self.out.iter_mut().find(|r| {
            r.array == array.name
                && r.written == written
                && r.loops == loops
                && (r.first - first).abs() <= LINE + r.spread
        });
        match merged {
            Some(known) => {
                let (low, high) = (known.first.min(first), (known.first + known.spread).max(first));
                (known.first, known.spread) = (low, high - low);
            }
            None => {
                self.out.push(Reference { bytes, loops, spread: 0.0, first, array: array.name, written, far });
            }
        }
    }
}
