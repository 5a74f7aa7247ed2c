//! A warp: registers, and the paths that its lanes are on.

use super::flight::Flights;
use super::special::Special;
use super::taint::Taints;
use crate::kernel::{ALWAYS, BarrierKind, Constant, Inst, Kernel, Run};
use crate::lanes::{FULL, Lanes32, Lanes64, Registers, WARP};

/// No place where paths meet.
pub(super) const NEVER: u32 = u32::MAX;

/// Lanes that wait to go on elsewhere.
#[derive(Clone, Copy, Debug)]
struct Path {
    pc: u32,
    /// Where this path joins the one below it.
    join: u32,
    mask: u32,
}

/// What a warp does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Ready,
    /// At barrier `id`.
    Waiting(u8),
    Done,
}

/// Where the lanes of a warp are.
#[derive(Clone, Debug, Default)]
pub(super) struct Warp {
    pub(super) registers: Registers,
    pub(super) pc: u32,
    pub(super) join: u32,
    /// Lanes on the current path.
    pub(super) active: u32,
    /// Lanes that exist and have not exited.
    pub(super) alive: u32,
    /// Lanes that exist.
    pub(super) born: u32,
    pub(super) state: State,
    stack: Vec<Path>,
    pub(super) flights: Flights,
    pub(super) taints: Taints,
    /// What a barrier's reduction leaves when it opens, and where.
    pub(super) reduction: Option<(BarrierKind, u16, u32)>,
}

/// Whether nothing but an exit comes at an instruction.
fn ends(code: &[Inst], mut pc: u32) -> bool {
    // Compilers put at most a few jumps in front of it.
    for _ in 0..8 {
        match code.get(pc as usize) {
            Some(Inst { guard: ALWAYS, run: Run::Exit, .. }) => return true,
            Some(Inst { guard: ALWAYS, run: Run::Branch { target, .. }, .. }) => pc = *target,
            _ => return false,
        }
    }
    false
}

/// What registers hold at the start of a block: a NaN with a recognisable pattern, so that reading them shows.
const POISON: u32 = 0xffc0_dead;

impl Warp {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let registers = Registers {
            words: vec![Lanes32([POISON; WARP]); kernel.words],
            doubles: vec![Lanes64([u64::from(POISON) << 32 | u64::from(POISON); WARP]); kernel.doubles],
            predicates: vec![0; kernel.predicates],
        };
        Self {
            registers,
            pc: 0,
            join: NEVER,
            active: 0,
            alive: 0,
            born: 0,
            state: State::Ready,
            stack: Vec::new(),
            flights: Flights::default(),
            taints: Taints::new(kernel),
            reduction: None,
        }
    }

    /// Constants stay in their registers from block to block.
    pub(super) fn set_constants(&mut self, kernel: &Kernel, value: impl Fn(Constant) -> u64) {
        for &(slot, wide, constant) in &kernel.constants {
            self.set(slot, wide, |_| value(constant));
        }
        if let Some(always) = self.registers.predicates.first_mut() {
            *always = FULL;
        }
    }

    fn set(&mut self, slot: u16, wide: bool, value: impl Fn(usize) -> u64) {
        let at = usize::from(slot);
        if wide {
            self.registers.doubles[at].0 = std::array::from_fn(&value);
        } else {
            self.registers.words[at].0 = std::array::from_fn(|lane| value(lane) as u32);
        }
    }

    /// Starts over with these lanes.
    pub(super) fn begin_block(&mut self, kernel: &Kernel, lanes: u32, special: impl Fn(Special, usize) -> u64) {
        for &(slot, wide, which) in &kernel.specials {
            self.set(slot, wide, |lane| special(which, lane));
        }
        (self.pc, self.join, self.active, self.alive, self.born) = (0, NEVER, lanes, lanes, lanes);
        self.state = if lanes == 0 { State::Done } else { State::Ready };
        self.stack.clear();
        self.flights.clear();
        self.taints.begin_block(kernel);
        self.reduction = None;
    }

    /// Goes on where paths meet, or with the next path, until there are lanes; done where there are none left.
    #[inline]
    pub(super) fn settle(&mut self) {
        while self.active == 0 || self.pc == self.join {
            let Some(path) = self.stack.pop() else {
                if self.active == 0 {
                    self.state = State::Done;
                }
                // Without a path below, nothing is joined.
                self.join = NEVER;
                return;
            };
            (self.pc, self.join, self.active) = (path.pc, path.join, path.mask & self.alive);
        }
    }

    /// Sends each group of lanes to its target; all meet at `join`.
    pub(super) fn split(&mut self, groups: &[(u32, u32)], join: u32) {
        if let [(target, _)] = groups {
            self.pc = *target;
            return;
        }
        if join != self.join {
            self.stack.push(Path { pc: join, join: self.join, mask: self.active });
        }
        // The last group runs first. Those that are at the join already wait there.
        for &(target, mask) in groups.iter().filter(|(target, _)| *target != join) {
            self.stack.push(Path { pc: target, join, mask });
        }
        // The popped path is the current one from here on.
        self.active = 0;
        self.join = NEVER;
    }

    /// Lanes that have exited, or wait where nothing but an exit comes.
    pub(super) fn gone(&self, code: &[Inst]) -> u32 {
        let (mut seen, mut out) = (self.active, self.born & !self.alive);
        for path in self.stack.iter().rev() {
            let waiting = path.mask & self.alive & !seen;
            if waiting != 0 && ends(code, path.pc) {
                out |= waiting;
            }
            seen |= path.mask;
        }
        out
    }

    /// Lanes that run no further.
    pub(super) fn exit(&mut self, lanes: u32) {
        self.alive &= !lanes;
        self.active &= !lanes;
    }
}
