//! Goes through the tree: which operations run under which conditions, in which loops.

use super::density::{Arrays, Side, Touch};
use super::facts::Facts;
use super::lanes::{Condition, Lanes, Split};
use super::warps::{Pattern, Terms, Trait, Warps};
use super::{CountError, Launch, class};
use crate::ir::{
    Access, Compare, Comparison, Cond, Entry, Form, Guard, Index, Inst, Loop, Meanings, Operand, Reg, Space,
};
use crate::ir::{Stmt, Sym};
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
struct Alike {
    at: Context,
    op: Op,
    pattern: Pattern,
    factors: Vec<Index>,
    array: Option<Side>,
}

/// All numbers of a launch.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) numbers: BTreeMap<Key, Number>,
    /// What levels are levels of.
    pub(super) axes: Vec<Index>,
    /// The loops around, with their trips; the first nest has none.
    pub(super) nests: Vec<Vec<(u32, Index)>>,
    /// Trips of loops that every block comes to.
    pub(super) reached: Vec<Index>,
}

/// Where code stands: in a nest of loops, under conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Context {
    nest: usize,
    conditions: Vec<Condition>,
}

impl Context {
    fn under(&self, more: &[Condition]) -> Self {
        let mut conditions = [self.conditions.as_slice(), more].concat();
        conditions.sort_unstable();
        conditions.dedup();
        Self { nest: self.nest, conditions }
    }
}

struct Walk<'a> {
    entry: &'a Entry,
    launch: &'a Launch,
    meanings: Meanings,
    /// Registers that hold a number where a condition holds, and zero elsewhere.
    selected: HashMap<Reg, Cond>,
    lanes: Lanes,
    warps: Warps,
    place: Vec<String>,
    /// Operations by where they are reached and where they run.
    ops: BTreeMap<(Context, Context), BTreeMap<Op, i64>>,
    accesses: BTreeMap<Alike, i64>,
    arrays: Arrays,
    /// Addresses that have been met, without their constants.
    addresses: HashMap<Index, (Rc<Split>, Index, i64)>,
    /// Parameters that are addresses.
    buffers: Vec<Index>,
    out: Totals,
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

    fn here(&self) -> String {
        self.place.join("/")
    }

    fn no_form<T>(&self, what: &'static str, index: &Index) -> Result<T, CountError> {
        Err(CountError::NotCountable { place: self.here(), what, index: index.to_string() })
    }

    /// In sizes of the input.
    fn sized(&self, index: &Index) -> Index {
        let launch = self.launch;
        index.map(&|sym| match sym {
            Sym::Param(name) => launch.params.get(&**name).cloned(),
            Sym::Nctaid(axis) => Some(launch.grid[*axis as usize].clone()),
            _ => None,
        })
    }

    /// What stands for a number that the program does not tell: a statistic, if it is given. `None` where the program tells it.
    fn statistic(&self, index: &Index, name: &str) -> Result<Option<Index>, CountError> {
        if index.all(|s| !matches!(s, Sym::Opaque(_) | Sym::Turn { .. })) {
            return Ok(None);
        }
        let (place, what) = (self.here(), index.to_string());
        let statistic = format!("{place}.{name}");
        let given = self.launch.statistics.contains(&statistic).then(|| Some(Index::param(&statistic)));
        given.ok_or_else(|| CountError::DataDependent { place, what, statistics: vec![statistic] })
    }

    /// The condition that so many threads of a block meet: the first ones.
    fn first(&mut self, threads: &Index) -> Result<Option<Condition>, CountError> {
        let place = &self.place;
        self.lanes.positive(&|| place.join("/"), &threads.minus(&Sym::Tid.into()))
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
        self.tally(Property::Warps(Op::Branch), &inside, 1, true);
        self.tally(Property::Threads(Op::Branch), &inside, 1, false);
        self.tally(Property::Threads(Op::Branch), at, -1, false);
        self.tally(Property::Off(Op::Branch), at, 1, false);
        Ok(())
    }

    fn guard(&mut self, guard: &'a Guard, at: &Context) -> Result<(), CountError> {
        let conditions = self.conditions(&guard.when)?;
        if guard.form == Form::Predicate {
            return self.body(&guard.body, at, &conditions);
        }
        // The branch goes around the body.
        let inside = at.under(&conditions);
        self.tally(Property::Warps(Op::Branch), at, 1, true);
        self.tally(Property::Threads(Op::Branch), at, 1, false);
        self.tally(Property::Threads(Op::Branch), &inside, -1, false);
        self.tally(Property::Off(Op::Branch), &inside, 1, false);
        self.body(&guard.body, &inside, &[])
    }

    fn conditions(&mut self, cond: &Cond) -> Result<Vec<Condition>, CountError> {
        let mut out = Vec::new();
        for comparison in &cond.0 {
            self.comparison(comparison, &mut out)?;
        }
        Ok(out)
    }

    fn comparison(&mut self, c: &Comparison, out: &mut Vec<Condition>) -> Result<(), CountError> {
        let difference = self.sized(&c.left).minus(&self.sized(&c.right));
        if let Some(threads) = self.statistic(&difference, "threads")? {
            out.extend(self.first(&threads)?);
            return Ok(());
        }
        let negative = || difference.times(&Index::from(-1));
        let or_equal = |index: Index| index.plus(&1.into());
        let all = match c.cmp {
            Compare::Gt => vec![difference],
            Compare::Ge => vec![or_equal(difference)],
            Compare::Lt => vec![negative()],
            Compare::Le => vec![or_equal(negative())],
            Compare::Eq => vec![or_equal(negative()), or_equal(difference)],
            Compare::Ne => return self.different(&difference, out),
        };
        for index in all {
            let place = &self.place;
            out.extend(self.lanes.positive(&|| place.join("/"), &index)?);
        }
        Ok(())
    }

    /// `index != 0`, which the counter has no axis for.
    fn different(&mut self, index: &Index, out: &mut Vec<Condition>) -> Result<(), CountError> {
        if !index.all(|s| *s == Sym::Tid) {
            return self.no_form("a condition `!=`", index);
        }
        let holds = |t: usize| i64::from(index.eval(&|_| Some(t as i64)) != Some(0));
        let values = (0..self.lanes.threads).map(holds).collect();
        out.push(Condition { axis: None, values: self.lanes.intern(values), more: 0 });
        Ok(())
    }

    fn inst(&mut self, inst: &Inst, at: &Context) -> Result<(), CountError> {
        self.op(at, &[], class::op(inst), 1);
        self.follow(inst, at, &[])
    }

    /// Accesses of an instruction, and what registers mean after it.
    fn follow(&mut self, inst: &Inst, at: &Context, guard: &[Condition]) -> Result<(), CountError> {
        self.access(inst, at, guard)?;
        if let Inst::Selp { dst, a: Operand::Int(1..), b: Operand::Int(0), pred, .. } = inst {
            self.selected.insert(*dst, self.meanings.cond(*pred));
        }
        if let Inst::ToGlobal { src, .. } = inst {
            self.buffers.push(self.meanings.of((*src).into()));
        }
        self.meanings.step(inst, &self.entry.params);
        Ok(())
    }

    fn op(&mut self, at: &Context, guard: &[Condition], op: Op, times: i64) {
        *self.ops.entry((at.clone(), at.under(guard))).or_default().entry(op).or_insert(0) += times;
    }

    fn access(&mut self, inst: &Inst, at: &Context, guard: &[Condition]) -> Result<(), CountError> {
        let mut accesses = inst.accesses();
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
        };
        let array = (!is_shared).then(|| (self.buffer_of(&split.shared), access.writes));
        if let Some(side) = &array {
            let (origin, bytes) = (first + constant, access.bytes);
            let shifts = Touch::shifts(&split.shared, &|sym| self.extent(at, sym)?.constant());
            self.arrays.add(side.clone(), Touch { values, origin, bytes, shifts });
        }
        *self.accesses.entry(Alike { at: at.clone(), op, pattern, factors, array }).or_insert(0) += 1;
        Ok(())
    }

    /// The address of an access: split into threads and what they share, as a whole without its constant, and the constant.
    fn address(&mut self, access: &Access) -> Result<(Rc<Split>, Index, i64), CountError> {
        let meaning = self.meanings.of(access.addr.base.into());
        let offset = meaning.constant_term();
        let meaning = meaning.minus(&offset.into());
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

    /// How far a block's or an iteration's number goes.
    fn extent(&self, at: &Context, sym: &Sym) -> Option<&Index> {
        match sym {
            Sym::Ctaid(axis) => Some(&self.launch.grid[*axis as usize]),
            _ => self.out.nests[at.nest].iter().find(|(id, _)| Sym::Iteration(*id) == *sym).map(|(_, trips)| trips),
        }
    }

    /// Adds the threads, or the warps, that get there.
    fn tally(&mut self, property: Property, at: &Context, times: i64, warps: bool) {
        let reached = self.reached(at, warps);
        self.add(Key::Property(property), at.nest, &reached, times);
    }

    /// The levels at which threads, or warps, get there.
    fn reached(&mut self, at: &Context, warps: bool) -> Vec<(Levels, i64)> {
        match warps {
            false => levels(at, &self.warps.threads(&self.lanes, &at.conditions)),
            true => {
                let mut all = self.warps.warps(&self.lanes, &at.conditions, None);
                all.remove(&Trait::Any).map(|terms| levels(at, &terms)).unwrap_or_default()
            }
        }
    }

    fn add(&mut self, key: Key, nest: usize, reached: &[(Levels, i64)], times: i64) {
        let number = self.out.numbers.entry(key).or_default();
        for (levels, count) in reached {
            *number.entry((nest, levels.clone())).or_insert(0) += count * times;
        }
    }

    fn finish(mut self) -> Result<Totals, CountError> {
        for ((at, runs), ops) in std::mem::take(&mut self.ops) {
            let (warps, threads) = (self.reached(&at, true), self.reached(&runs, false));
            let off = (at != runs).then(|| self.reached(&at, false));
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
            for (what, terms) in self.warps.warps(&self.lanes, &alike.at.conditions, Some(&alike.pattern)) {
                if what != Trait::Any {
                    let key = self.key(&alike, what)?;
                    self.add(key, alike.at.nest, &levels(&alike.at, &terms), times);
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
            (Some(side), Some(step)) if step != 0 => self.arrays.used(&self.lanes, side, step),
            _ => 0,
        };
        let array = alike.array.as_ref().map(|(name, _)| name.clone());
        Ok(Key::Access(Stepped { op: alike.op, bytes: alike.pattern.bytes, step: index, array, used }))
    }
}

/// The levels of conditions at these values: `axis + value + more > 0` is `axis > -(value + more)`, and of several on one axis
/// the highest counts.
fn levels(at: &Context, terms: &Terms) -> Vec<(Levels, i64)> {
    let conditions: Vec<(usize, i64)> = at.conditions.iter().filter_map(|c| Some((c.axis?, c.more))).collect();
    let of = |values: &[i64]| {
        let mut levels = Levels::new();
        // Conditions stand in the order of their axes.
        for ((axis, more), value) in conditions.iter().zip(values) {
            let least = -(value + more);
            match levels.last_mut().filter(|(last, _)| last == axis) {
                Some((_, level)) => *level = least.max(*level),
                None => levels.push((*axis, least)),
            }
        }
        levels
    };
    terms.iter().map(|(values, count)| (of(values), *count)).collect()
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
