//! Values that nobody has written, from where they are read to where they matter.
//!
//! Right kernels read what nobody has written: threads beyond the edge of an image add up what lies behind the tile, and
//! store nothing. So a load of unwritten memory, or a variable without a value, is no fault by itself. Its lanes are marked;
//! what is computed of them is marked too; and it is a fault when a marked value goes to global memory, is an address or
//! operand of an atomic operation, guards a store, or, if it was loaded, decides a branch. The report names where the value
//! was read first. Marks go through shared and local memory as bytes that nobody has written.

use super::Worker;
use super::warp::Warp;
use crate::finding::{Fault, Sighting};
use crate::kernel::{ALWAYS, Data, Exchange, Flow, Kernel, Reg, Run};
use crate::lanes::{FULL, WARP};

/// The origin of variables without a value, until an instruction uses them.
const NO_VALUE: u16 = u16::MAX;

/// Where marked values come from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) pc: u32,
    pub(super) fault: Fault,
    /// Of each lane, for memory.
    pub(super) addresses: [Option<u64>; WARP],
}

/// The marks of a warp's registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Taints {
    /// Registers with a mark.
    marked: usize,
    /// By kind and slot: the marked lanes, and the number of their origin.
    lanes: [Vec<(u32, u16)>; 3],
    origins: Vec<Origin>,
}

impl Taints {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let lanes = [kernel.words, kernel.doubles, kernel.predicates].map(|count| vec![(0, 0); count]);
        Self { marked: 0, lanes, origins: Vec::new() }
    }

    /// Marks what has no value at the start.
    pub(super) fn begin_block(&mut self, kernel: &Kernel) {
        if self.marked > 0 {
            self.lanes.iter_mut().for_each(|lanes| lanes.fill((0, 0)));
            self.marked = 0;
        }
        self.origins.clear();
        for reg in &kernel.without_value {
            self.set(*reg, (FULL, NO_VALUE));
        }
    }

    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.marked > 0
    }

    fn get(&self, reg: Reg) -> (u32, u16) {
        self.lanes[reg.kind()].get(reg.slot()).copied().unwrap_or_default()
    }

    fn set(&mut self, reg: Reg, mark: (u32, u16)) {
        if let Some(old) = self.lanes[reg.kind()].get_mut(reg.slot()) {
            self.marked = self.marked + usize::from(mark.0 != 0) - usize::from(old.0 != 0);
            *old = mark;
        }
    }

    /// Replaces the marks of some lanes.
    fn replace(&mut self, reg: Reg, mask: u32, lanes: u32, origin: u16) {
        let (old, first) = self.get(reg);
        let lanes = old & !mask | lanes & mask;
        self.set(reg, (lanes, if lanes & mask != 0 { origin } else { first }));
    }

    /// The number of an instruction's origin.
    fn origin(&mut self, pc: u32, fault: &Fault) -> u16 {
        let known = self.origins.iter().position(|o| o.pc == pc && o.fault == *fault);
        let at = known.unwrap_or_else(|| {
            self.origins.push(Origin { pc, fault: fault.clone(), addresses: [None; WARP] });
            self.origins.len() - 1
        });
        at.min(usize::from(NO_VALUE) - 1) as u16
    }

    /// Marks lanes of loaded registers.
    pub(super) fn load(&mut self, data: &[Option<Data>], lane: usize, found: &Origin) {
        let origin = self.origin(found.pc, &found.fault);
        if let Some(known) = self.origins.get_mut(usize::from(origin)) {
            known.addresses[lane] = found.addresses[lane];
        }
        for data in data.iter().flatten() {
            self.replace(Reg::of_data(*data), 1 << lane, 1 << lane, origin);
        }
    }

    /// The marked lanes of a store's data, and where the first of them come from.
    pub(super) fn stored(&mut self, pc: u32, data: &[Option<Data>]) -> (u32, Option<Origin>) {
        if !self.any() {
            return (0, None);
        }
        let mut all = (0, None);
        for data in data.iter().flatten() {
            let (lanes, origin) = self.get(Reg::of_data(*data));
            if lanes != 0 {
                all.0 |= lanes;
                let origin = if origin == NO_VALUE { self.origin(pc, &Fault::Undefined) } else { origin };
                all.1 = all.1.or(Some(origin));
            }
        }
        (all.0, all.1.and_then(|at| self.origins.get(usize::from(at)).cloned()))
    }
}

/// The lanes that a shuffle moves marks to: it runs once on the marks instead of the values.
fn exchanged(warp: &mut Warp, exchange: &Exchange, flow: &Flow, mask: u32) -> u32 {
    let (Some(from), Some(to)) = (flow.from.first().copied(), flow.to.first().copied()) else { return 0 };
    let (marked, _) = warp.taints.get(from);
    let words = &mut warp.registers.words;
    let kept = [from, to].map(|reg| words.get(reg.slot()).copied());
    if let Some(values) = words.get_mut(from.slot()) {
        values.0 = std::array::from_fn(|lane| marked >> lane & 1);
    }
    let _ = (exchange.run.0)(&mut warp.registers, mask);
    let words = &mut warp.registers.words;
    let moved = words.get(to.slot()).map_or(0, |to| (0..WARP).fold(0, |m, lane| m | (to.0[lane] & 1) << lane));
    for (reg, kept) in [to, from].into_iter().zip(kept.into_iter().rev()) {
        if let (Some(values), Some(kept)) = (words.get_mut(reg.slot()), kept) {
            *values = kept;
        }
    }
    moved & mask
}

impl Worker<'_> {
    /// What an instruction does with marks, before it runs.
    pub(super) fn spread(&mut self, w: usize, warp: &mut Warp, mask: u32, pc: usize) {
        let kernel = self.setting.kernel;
        let (Some(inst), Some(flow)) = (kernel.code.get(pc), kernel.flows.get(pc)) else { return };
        let guard = Reg::predicate(inst.guard);
        let moves = matches!(inst.run, Run::Store(_) | Run::Atomic(_));
        if inst.guard != ALWAYS && (moves || matches!(inst.run, Run::Branch { .. } | Run::Table { .. })) {
            self.matters(w, warp, guard, warp.active, pc as u32, !moves);
        }
        for reg in &flow.must_have {
            self.matters(w, warp, *reg, mask, pc as u32, false);
        }
        let mut lanes = 0;
        let mut origin = NO_VALUE;
        for (i, reg) in flow.from.iter().enumerate() {
            let (marked, of) = warp.taints.get(*reg);
            let chosen = match (flow.select, i) {
                (Some(by), 0) => warp.registers.predicate((by, false)),
                (Some(by), 1) => warp.registers.predicate((by, true)),
                _ => FULL,
            };
            if marked & chosen & mask != 0 {
                lanes |= marked & chosen & mask;
                origin = if origin == NO_VALUE { of } else { origin };
            }
        }
        lanes = match &inst.run {
            _ if lanes == 0 => 0,
            Run::Exchange(exchange) if !flow.is_wide => exchanged(warp, exchange, flow, mask),
            _ if flow.is_wide => mask,
            _ => lanes,
        };
        if lanes != 0 && origin == NO_VALUE {
            origin = warp.taints.origin(pc as u32, &Fault::Undefined);
        }
        for reg in &flow.to {
            warp.taints.replace(*reg, mask, lanes, origin);
        }
    }

    /// Reports marked lanes of a register whose value matters. Variables without a value may decide branches: compilers
    /// test them for threads that have nothing to do.
    fn matters(&mut self, w: usize, warp: &mut Warp, reg: Reg, mask: u32, pc: u32, is_branch: bool) {
        let (marked, origin) = warp.taints.get(reg);
        let bad = marked & mask;
        if bad == 0 {
            return;
        }
        let origin = if origin == NO_VALUE { warp.taints.origin(pc, &Fault::Undefined) } else { origin };
        let Some(origin) = warp.taints.origins.get(usize::from(origin)).cloned() else { return };
        if !(is_branch && origin.fault == Fault::Undefined) {
            warp.taints.replace(reg, bad, 0, 0);
            self.report_origin(w, &origin, bad);
        }
    }

    /// Reports values that some lanes use.
    pub(super) fn report_origin(&mut self, w: usize, origin: &Origin, lanes: u32) {
        let lane = lanes.trailing_zeros() as usize & (WARP - 1);
        let (thread, address) = ((w * WARP + lane) as u32, origin.addresses[lane]);
        let sighting = Sighting { block: self.block, thread, address, count: lanes.count_ones().into(), first: None };
        self.findings.add(origin.pc, origin.fault.clone(), sighting);
    }
}
