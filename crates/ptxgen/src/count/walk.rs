//! Goes through the tree: which operations run under which conditions, in which loops.

use super::classes::Memory;
use super::density::{Arrays, Side, Touch};
use super::facts::Facts;
use super::known::Known;
use super::lanes::{Condition, Lanes, Split};
use super::reach::Reached;
use super::warps::{Pattern, Trait, Warps};
use super::{Array, CountError, Launch, class, linear};
use crate::ir::{Access, Cond, Entry, Form, Guard, Index, Inst, Loop, Meanings, Operand, Reg, Space};
use crate::ir::{Stmt, Sym};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use tilewright_core::counts::{Op, Property};

/// Axes that must be above thresholds, in order of the axes.
pub(super) type Levels = Vec<(usize, i64)>;

/// A number of the launch: for all that run in a nest of loops, how often for each combination of levels.
pub(super) type Number = BTreeMap<(usize, Levels), i64>;

/// What a number is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Property(Property),
    /// Warp accesses.
    Access(Stepped),
}

/// Warp accesses with a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stepped {
    pub(super) op: Op,
    pub(super) bytes: u32,
    /// Bytes from lane to lane.
    pub(super) step: Index,
    /// The array in device memory; `None` for shared memory.
    pub(super) array: Option<String>,
    /// Bytes that all accesses to the array use of a step, where that is a number.
    pub(super) used: i64,
}

/// All warp accesses that are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alike {
    pub(super) at: Context,
    op: Op,
    pub(super) pattern: Pattern,
    factors: Vec<Index>,
    array: Option<Side>,
}

/// All numbers of a launch.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) numbers: BTreeMap<Key, Number>,
    /// What is a number already, of all blocks and iterations together.
    pub(super) fixed: BTreeMap<Key, i64>,
    /// What levels are levels of.
    pub(super) axes: Vec<Index>,
    /// The loops around, with their trips; the first nest has none.
    pub(super) nests: Vec<Vec<(u32, Index)>>,
    /// Trips of loops that every block comes to.
    pub(super) reached: Vec<Index>,
}

/// Where code stands: in a nest of loops, under conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Context {
    pub(super) nest: usize,
    pub(super) conditions: Vec<Condition>,
}

impl Context {
    fn under(&self, more: &[Condition]) -> Self {
        let mut conditions = [self.conditions.as_slice(), more].concat();
        conditions.sort_unstable();
        conditions.dedup();
        Self { nest: self.nest, conditions }
    }
}

pub(super) struct Walk<'a> {
    pub(super) entry: &'a Entry,
    pub(super) launch: &'a Launch,
    pub(super) meanings: Meanings,
    /// Registers that hold a number where a condition holds, and zero elsewhere.
    selected: HashMap<Reg, Cond>,
    pub(super) lanes: Lanes,
    pub(super) warps: Warps,
    pub(super) place: Vec<String>,
    /// Operations by where they are reached and where they run.
    ops: BTreeMap<(Context, Context), BTreeMap<Op, i64>>,
    accesses: BTreeMap<Alike, i64>,
    arrays: Arrays,
    /// Addresses that have been met, without their constants.
    addresses: HashMap<Index, (Rc<Split>, Index, i64)>,
    /// Parameters that are addresses.
    buffers: Vec<Index>,
    /// What is known though the program does not tell it.
    pub(super) known: Known,
    pub(super) memory: Memory,
    /// Indices that have been met, in sizes of the input.
    sizes: RefCell<HashMap<Index, Index>>,
    pub(super) out: Totals,
}

/// The numbers of a launch of an entry.
pub(super) fn totals(entry: &Entry, launch: &Launch) -> Result<Totals, CountError> {
    let mut walk = Walk {
        entry,
        launch,
        meanings: Meanings::with_claims(entry.carried.clone()),
        selected: HashMap::new(),
        lanes: Lanes::new(entry.threads as usize),
        warps: Warps::default(),
        place: vec![entry.name.clone()],
        ops: BTreeMap::new(),
        accesses: BTreeMap::new(),
        arrays: Arrays::default(),
        addresses: HashMap::new(),
        buffers: Vec::new(),
        known: Known::default(),
        memory: Memory::default(),
        sizes: RefCell::default(),
        out: Totals { nests: vec![Vec::new()], ..Totals::default() },
    };
    let top = Context { nest: 0, conditions: Vec::new() };
    walk.body(&entry.body, &top, &[])?;
    // The return that is printed last.
    walk.op(&top, &[], Op::Exit, 1);
    walk.finish()
}

impl<'a> Walk<'a> {
    fn body(&mut self, body: &'a [Stmt], at: &Context, guard: &[Condition]) -> Result<(), CountError> {
        let mut ops: BTreeMap<Op, i64> = BTreeMap::new();
        for (i, stmt) in body.iter().enumerate() {
            self.place.push(i.to_string());
            match stmt {
                Stmt::Inst(inst) => {
                    *ops.entry(class::op(inst)).or_insert(0) += 1;
                    self.follow(inst, at, guard)?;
                }
                Stmt::Block { name, body } => self.named(name, |w| w.body(body, at, guard))?,
                Stmt::Loop(l) => self.named(l.name, |w| w.repeat(l, at))?,
                Stmt::Guard(guard) => self.named("when", |w| w.guard(guard, at))?,
            }
            self.place.pop();
        }
        ops.into_iter().for_each(|(op, times)| self.op(at, guard, op, times));
        Ok(())
    }

    fn named(&mut self, name: &str, f: impl FnOnce(&mut Self) -> Result<(), CountError>) -> Result<(), CountError> {
        if let Some(last) = self.place.last_mut() {
            *last = format!("{name}[{last}]");
        }
        f(self)
    }

    pub(super) fn here(&self) -> String {
        self.place.join("/")
    }

    pub(super) fn no_form<T>(&self, what: &'static str, index: &Index) -> Result<T, CountError> {
        Err(CountError::NotCountable { place: self.here(), what, index: index.to_string() })
    }

    /// In sizes of the input, and in digits of blocks where they have any.
    pub(super) fn sized(&self, index: &Index) -> Index {
        if let Some(known) = self.sizes.borrow().get(index) {
            return known.clone();
        }
        let launch = self.launch;
        let sized = index.map(&|sym| match sym {
            Sym::Param(name) => launch.params.get(&**name).cloned(),
            Sym::Nctaid(axis) => Some(launch.grid[*axis as usize].clone()),
            _ => None,
        });
        let sized = launch.by_digits(sized, self.lanes.threads as i64);
        self.sizes.borrow_mut().insert(index.clone(), sized.clone());
        sized
    }

    fn repeat(&mut self, l: &'a Loop, at: &Context) -> Result<(), CountError> {
        let trips = self.sized(&l.trips);
        let trips = self.statistic(&trips, "trips")?.unwrap_or(trips);
        if !trips.is_uniform() {
            return self.no_form("a loop whose trips differ between the threads of a block", &trips);
        }
        for inst in l.head() {
            self.inst(&inst, at)?;
        }
        if at.conditions.is_empty() {
            self.out.reached.push(trips.clone());
        }
        let mut loops = self.out.nests[at.nest].clone();
        loops.push((l.id, trips));
        self.out.nests.push(loops);
        let inside = Context { nest: self.out.nests.len() - 1, ..at.clone() };
        self.body(&l.body, &inside, &[])?;
        for inst in l.tail() {
            self.inst(&inst, &inside)?;
        }
        // All iterations but the last of each run go round again.
        self.tally(Property::Warps(Op::Branch), &inside, 1, true)?;
        self.tally(Property::Threads(Op::Branch), &inside, 1, false)?;
        self.tally(Property::Threads(Op::Branch), at, -1, false)?;
        self.tally(Property::Off(Op::Branch), at, 1, false)?;
        Ok(())
    }

    fn guard(&mut self, guard: &'a Guard, at: &Context) -> Result<(), CountError> {
        let conditions = self.conditions(&guard.when)?;
        if guard.form == Form::Predicate {
            return self.body(&guard.body, at, &conditions);
        }
        // The branch goes around the body.
        let inside = at.under(&conditions);
        self.tally(Property::Warps(Op::Branch), at, 1, true)?;
        self.tally(Property::Threads(Op::Branch), at, 1, false)?;
        self.tally(Property::Threads(Op::Branch), &inside, -1, false)?;
        self.tally(Property::Off(Op::Branch), &inside, 1, false)?;
        self.body(&guard.body, &inside, &[])
    }

    fn inst(&mut self, inst: &Inst, at: &Context) -> Result<(), CountError> {
        self.op(at, &[], class::op(inst), 1);
        self.follow(inst, at, &[])
    }

    /// Accesses of an instruction, and what registers mean after it.
    fn follow(&mut self, inst: &Inst, at: &Context, guard: &[Condition]) -> Result<(), CountError> {
        let accesses = inst.accesses();
        self.access(inst, accesses.clone(), at, guard)?;
        if let Inst::Selp { dst, a: Operand::Int(1..), b: Operand::Int(0), pred, .. } = inst {
            self.selected.insert(*dst, self.meanings.cond(*pred));
        }
        if let Inst::ToGlobal { src, .. } = inst {
            self.buffers.push(self.meanings.of((*src).into()));
        }
        if let Inst::Mov { src: Operand::Tickets, .. } = inst {
            self.buffers.push(self.meanings.of(Operand::Tickets));
        }
        self.meanings.step(inst, &self.entry.params);
        self.learn(inst, &accesses)
    }

    fn op(&mut self, at: &Context, guard: &[Condition], op: Op, times: i64) {
        *self.ops.entry((at.clone(), at.under(guard))).or_default().entry(op).or_insert(0) += times;
    }

    fn access(
        &mut self,
        inst: &Inst,
        mut accesses: Vec<Access>,
        at: &Context,
        guard: &[Condition],
    ) -> Result<(), CountError> {
        if accesses.is_empty() {
            return Ok(());
        }
        let (op, mut at) = (class::op(inst), at.under(guard));
        if let Inst::CpAsync { read, .. } = inst {
            // Copies count by their sources, where they have one.
            accesses.retain(|a| a.space == Space::Global);
            at = match read {
                None | Some(Operand::Int(1..)) => at,
                Some(Operand::Reg(reg)) => match self.selected.get(reg).cloned() {
                    Some(cond) => at.under(&self.conditions(&cond)?),
                    None => match self.statistic(&Sym::Opaque(u32::MAX).into(), "reading")? {
                        Some(threads) => at.under(self.first(&threads)?.as_slice()),
                        None => at,
                    },
                },
                Some(_) => return Ok(()),
            };
        }
        for access in accesses {
            self.pattern(&access, inst, op, &at)?;
        }
        Ok(())
    }

    fn pattern(&mut self, access: &Access, inst: &Inst, op: Op, at: &Context) -> Result<(), CountError> {
        let meaning = self.meanings.of(access.addr.base.into());
        if access.space == Space::Global && !self.addresses.contains_key(&without_constant(&meaning)) {
            let address = self.sized(&meaning);
            if self.is_mixed(&address) {
                return self.known_pattern(access, op, at, &address);
            }
        }
        let (split, address, constant) = self.address(access)?;
        let first = self.lanes.values(split.values)[0];
        let values = self.lanes.relative(split.values);
        let is_shared = access.space == Space::Shared;
        if is_shared
            && (!split.by_factor.is_empty() || split.shared.trailing_zeros(&|s| self.entry.trailing_zeros(s)) < 2)
        {
            return self.no_form("the banks of an address that depends on sizes", &address);
        }
        let of_sizes = |f: &Index| f.all(|s| matches!(s, Sym::Param(_)));
        if !split.by_factor.keys().all(of_sizes) {
            return self.no_form("a stride that differs from block to block", &address);
        }
        let (factors, columns): (Vec<Index>, Vec<usize>) = split.by_factor.iter().map(|(f, v)| (f.clone(), *v)).unzip();
        let pattern = Pattern {
            values,
            factors: columns,
            bytes: access.bytes,
            lanes: if let Inst::Ldmatrix { dst, .. } = inst { 8 * dst.len() } else { 32 },
            banks: is_shared.then_some((first + constant).rem_euclid(4)),
            known: Vec::new(),
        };
        let array = (!is_shared).then(|| (self.buffer_of(&split.shared), access.writes));
        if let Some(side) = &array {
            let (origin, bytes) = (first + constant, access.bytes);
            let shifts = Touch::shifts(&split.shared, &|sym| self.extent(at, sym));
            self.arrays.add(side.clone(), Touch { values, origin, bytes, shifts });
        }
        *self.accesses.entry(Alike { at: at.clone(), op, pattern, factors, array }).or_insert(0) += 1;
        Ok(())
    }

    /// An access whose addresses differ by known numbers.
    fn known_pattern(&mut self, access: &Access, op: Op, at: &Context, address: &Index) -> Result<(), CountError> {
        let linear = self.linear(address)?;
        let values = self.lanes.relative(linear.values);
        let known = linear.terms.into_iter().collect();
        let pattern = Pattern { values, factors: Vec::new(), bytes: access.bytes, lanes: 32, banks: None, known };
        let array = Some((self.buffer_of(&linear.shared), access.writes));
        *self.accesses.entry(Alike { at: at.clone(), op, pattern, factors: Vec::new(), array }).or_insert(0) += 1;
        Ok(())
    }

    /// The address of an access: split into threads and what they share, as a whole without its constant, and the constant.
    pub(super) fn address(&mut self, access: &Access) -> Result<(Rc<Split>, Index, i64), CountError> {
        let meaning = self.meanings.of(access.addr.base.into());
        let offset = meaning.constant_term();
        let meaning = without_constant(&meaning);
        let known = match self.addresses.get(&meaning) {
            Some(known) => known.clone(),
            None => {
                let sized = self.sized(&meaning);
                let constant = sized.constant_term();
                let address = sized.minus(&constant.into());
                let place = &self.place;
                let split = self.lanes.split(&|| place.join("/"), &address)?;
                self.addresses.insert(meaning, (split.clone(), address.clone(), constant));
                (split, address, constant)
            }
        };
        let (split, address, constant) = known;
        Ok((split, address, constant + offset + access.addr.offset))
    }

    /// The name of the buffer that an address begins in.
    fn buffer_of(&self, address: &Index) -> String {
        let is_in = |b: &&Index| address.minus(b).terms().count() < address.terms().count();
        self.buffers.iter().find(is_in).map(Index::to_string).unwrap_or_default()
    }

    /// How far a block's or an iteration's number goes, where that is a number.
    fn extent(&self, at: &Context, sym: &Sym) -> Option<i64> {
        match sym {
            Sym::Ctaid(axis) => self.launch.grid[*axis as usize].constant(),
            Sym::Digit(axis, i) => self.launch.digit(*axis, *i),
            _ => self.out.nests[at.nest].iter().find(|(id, _)| Sym::Iteration(*id) == *sym)?.1.constant(),
        }
    }

    /// Adds the threads, or the warps, that get there.
    fn tally(&mut self, property: Property, at: &Context, times: i64, warps: bool) -> Result<(), CountError> {
        let reached = self.reached(at, warps)?;
        self.add(Key::Property(property), at.nest, &reached, times);
        Ok(())
    }

    fn add(&mut self, key: Key, nest: usize, reached: &Reached, times: i64) {
        match reached {
            Reached::Levels(levels) => {
                let number = self.out.numbers.entry(key).or_default();
                for (levels, count) in levels {
                    *number.entry((nest, levels.clone())).or_insert(0) += count * times;
                }
            }
            Reached::Times(count) => *self.out.fixed.entry(key).or_insert(0) += count * times,
        }
    }

    fn finish(mut self) -> Result<Totals, CountError> {
        for ((at, runs), ops) in std::mem::take(&mut self.ops) {
            let (warps, threads) = (self.reached(&at, true)?, self.reached(&runs, false)?);
            let off = if at == runs { None } else { Some(self.reached(&at, false)?) };
            for (op, times) in ops {
                self.add(Key::Property(Property::Warps(op)), at.nest, &warps, times);
                self.add(Key::Property(Property::Threads(op)), at.nest, &threads, times);
                if let Some(all) = &off {
                    self.add(Key::Property(Property::Off(op)), at.nest, all, times);
                    self.add(Key::Property(Property::Off(op)), at.nest, &threads, -times);
                }
            }
        }
        for (alike, times) in std::mem::take(&mut self.accesses) {
            for (what, reached) in self.accessed(&alike)? {
                if what != Trait::Any {
                    let key = self.key(&alike, what)?;
                    self.add(key, alike.at.nest, &reached, times);
                }
            }
        }
        self.out.axes = std::mem::take(&mut self.lanes.axes);
        Ok(self.out)
    }

    fn key(&self, alike: &Alike, what: Trait) -> Result<Key, CountError> {
        let Trait::Step(step) = what else {
            if what == Trait::Undecided {
                let (place, what) = (self.entry.name.clone(), "a stride that several sizes decide");
                let index = alike.factors.iter().map(Index::to_string).collect::<Vec<_>>().join(", ");
                return Err(CountError::NotCountable { place, what, index });
            }
            return Ok(Key::Property(Property::Passes(alike.op)));
        };
        let more = step[1..].iter().zip(&alike.factors);
        let index = more.fold(Index::from(step[0]), |sum, (c, f)| sum.plus(&f.times(&(*c).into())));
        let used = match (&alike.array, index.constant()) {
            // Which elements data lead to, the launch says, or all are.
            (Some((name, _)), Some(step)) if !alike.pattern.known.is_empty() => {
                let share = |array: &Array| Some((array.used.constant()?, array.pitch.constant()?.max(1)));
                let (used, pitch) = self.launch.arrays.get(name).and_then(share).unwrap_or((1, 1));
                linear::ceil(step.abs() * used, pitch)
            }
            (Some(side), Some(step)) if step != 0 => self.arrays.used(&self.lanes, side, step),
            _ => 0,
        };
        let array = alike.array.as_ref().map(|(name, _)| name.clone());
        Ok(Key::Access(Stepped { op: alike.op, bytes: alike.pattern.bytes, step: index, array, used }))
    }
}

fn without_constant(index: &Index) -> Index {
    index.minus(&index.constant_term().into())
}

impl Totals {
    /// What is known because loops run at least once.
    pub(super) fn facts(&self, each: impl Fn(&Index) -> Vec<Index>) -> Facts {
        let mut facts = Facts::default();
        for trips in self.reached.iter().flat_map(each) {
            facts.learn(&trips, 1);
        }
        facts
    }
}
