//! Parameters that hang together by constraints, and the order in which they are best decided.

use super::arena::{Arena, Id, Kind, Vars};
use super::description::Test;
use super::lanes::{Known, LANES, Lanes, NO_VALUE, Program, Registers};
use super::lower::{Domain, Lowering};
use std::collections::BTreeMap;
use tilewright_core::expr::{Compiled, EvalError, Expr};

/// A source without a value.
pub(super) struct Fault {
    /// The source, by its position.
    pub(super) source: usize,
    /// Its parameters and positions of their values.
    pub(super) at: Vec<(usize, u16)>,
    pub(super) error: EvalError,
}

/// Linked parameters and their constraints.
pub(super) struct Component<'a> {
    pub(super) domains: Vec<Domain<'a>>,
    pub(super) arena: Arena,
    pub(super) constraints: Vec<Id>,
    /// Constraints that could not be proven, over the values of their parameters, in order.
    wholes: Vec<(Test<Compiled, usize>, Vec<usize>)>,
    /// By such a constraint, the source that it comes from.
    origins: Vec<usize>,
    /// Whether a constraint without a value is an error, and not one that does not hold.
    pub(super) strict: bool,
}

impl<'a> Component<'a> {
    /// Of constraints over parameters by their position in the component. None if one never holds.
    pub(super) fn new(domains: Vec<Domain<'a>>, sources: Vec<Test<Expr, usize>>, strict: bool) -> Option<Self> {
        let (arena, constraints) = (Arena::default(), Vec::new());
        let mut component = Self { domains, arena, constraints, wholes: Vec::new(), origins: Vec::new(), strict };
        for (origin, source) in sources.into_iter().enumerate() {
            let id = match source {
                Test::Expr(e) => component.expr(&e),
                Test::Closure(holds, params) => {
                    let mut vars = params.clone();
                    vars.sort_unstable();
                    vars.dedup();
                    let places = params.iter().filter_map(|p| vars.iter().position(|v| v == p)).collect();
                    component.whole(Test::Closure(holds, places), vars)
                }
            };
            component.origins.resize(component.wholes.len(), origin);
            match component.arena.constant_of(id) {
                Some(0) => return None,
                Some(_) => {}
                None if component.constraints.contains(&id) => {}
                None => component.constraints.push(id),
            }
        }
        Some(component)
    }

    fn expr(&mut self, e: &Expr) -> Id {
        let mut lowering = Lowering::new(&mut self.arena, &self.domains, self.strict);
        if let Some(id) = lowering.constraint(e) {
            return id;
        }
        let names = e.names();
        let vars: Vec<usize> = (0..self.domains.len()).filter(|&v| names.contains(self.domains[v].name)).collect();
        let slots: Vec<&str> = vars.iter().map(|&v| self.domains[v].name).collect();
        match e.compile(&slots) {
            Ok(compiled) => self.whole(Test::Expr(compiled), vars),
            // Names were checked before.
            Err(_) => self.arena.constant(Kind::Bool, 0),
        }
    }

    fn whole(&mut self, whole: Test<Compiled, usize>, vars: Vec<usize>) -> Id {
        let mut set = 0;
        for &var in &vars {
            self.arena.position(var as u8, self.domains[var].values.len());
            set |= 1 << var;
        }
        self.wholes.push((whole, vars));
        self.arena.opaque(self.wholes.len() - 1, set)
    }

    /// 1 where an opaque constraint holds at these positions, in the order of its parameters, 0 where it does not, or
    /// [`NO_VALUE`].
    pub(super) fn holds(&self, number: usize, positions: &[u16]) -> u64 {
        let (whole, vars) = &self.wholes[number];
        match whole.holds(vars.len(), |i| self.domains[vars[i]].values[usize::from(positions[i])]) {
            Ok(holds) => holds.into(),
            Err(_) if self.strict => NO_VALUE,
            Err(_) => 0,
        }
    }

    /// The first source without a value where parameters have these positions.
    pub(super) fn fault_at(&self, positions: &[u16]) -> Option<Fault> {
        self.wholes.iter().zip(&self.origins).find_map(|((whole, vars), &source)| {
            let value = |i: usize| self.domains[vars[i]].values[usize::from(positions[vars[i]])];
            let error = whole.holds(vars.len(), value).err()?;
            Some(Fault { source, at: vars.iter().map(|&v| (v, positions[v])).collect(), error })
        })
    }

    /// What later parameters need to know once those in `set` have values.
    pub(super) fn cut(&mut self, set: Vars) -> Vec<Id> {
        let mut out = Vec::new();
        for i in 0..self.constraints.len() {
            let id = self.constraints[i];
            if self.arena.vars(id) & !set != 0 {
                self.arena.cut(id, set, &mut out);
            }
        }
        out
    }

    /// An order in which few different states arise, by estimate: the cheapest way through the sets of parameters decided.
    pub(super) fn order(&mut self) -> Vec<usize> {
        let mut registers = Registers::default();
        let share = |&c: &Id| (self.arena.vars(c), self.selectivity(c, &mut registers));
        let selectivity: Vec<(Vars, f64)> = self.constraints.iter().map(share).collect();
        let (mut widths, mut best) = (BTreeMap::new(), None::<Path>);
        for followed in BEAMS {
            let path = self.path(followed, &selectivity, &mut widths);
            // Sets that look cheap at first may push out what a narrower look found.
            let cheapest = best.filter(|best| best.cost <= path.cost).unwrap_or(path);
            let is_short = cheapest.cost < WORTH * followed as f64;
            best = Some(cheapest);
            if is_short {
                break;
            }
        }
        best.map_or_else(Vec::new, |path| path.order)
    }

    /// The cheapest way found where so many sets of decided parameters are followed at a time; `widths` are those known.
    fn path(&mut self, followed: usize, selectivity: &[(Vars, f64)], widths: &mut BTreeMap<Vars, f64>) -> Path {
        let all = self.domains.len();
        let mut beam: Vec<Path> = vec![Path { width: 1.0, ..Path::default() }];
        for _ in 0..all {
            let mut next: BTreeMap<Vars, Path> = BTreeMap::new();
            for path in &beam {
                let linked = self.linked(path.set, selectivity);
                for var in (0..all).filter(|&v| linked >> v & 1 == 1) {
                    let cost = path.cost + path.width * self.tried(var, path.set, selectivity);
                    let set = path.set | 1 << var;
                    match next.get(&set) {
                        Some(known) if known.cost <= cost => {}
                        _ => {
                            let width = *widths.entry(set).or_insert_with(|| self.width(set, selectivity));
                            let order = [path.order.as_slice(), &[var]].concat();
                            next.insert(set, Path { set, cost, width, order });
                        }
                    }
                }
            }
            beam = next.into_values().collect();
            beam.sort_by(|a, b| (a.cost + a.width).total_cmp(&(b.cost + b.width)).then(a.set.cmp(&b.set)));
            beam.truncate(followed);
        }
        beam.into_iter().next().unwrap_or_default()
    }

    /// About how many values of a parameter are looked at in each state: what constraints with one other parameter leave
    /// is remembered.
    fn tried(&self, var: usize, set: Vars, constraints: &[(Vars, f64)]) -> f64 {
        let values = self.domains[var].values.len() as f64;
        let with = set | 1 << var;
        let pairs = constraints.iter().filter(|(v, _)| v >> var & 1 == 1 && v & !with == 0 && v.count_ones() == 2);
        1.0 + values * pairs.map(|(_, share)| share).product::<f64>()
    }

    /// Parameters that share a constraint with those decided; all of those left where there are none.
    fn linked(&self, set: Vars, constraints: &[(Vars, f64)]) -> Vars {
        let left = !set & (Vars::MAX >> (Vars::BITS as usize - self.domains.len()));
        let near = constraints.iter().filter(|(v, _)| v & set != 0).fold(0, |near, (v, _)| near | v) & left;
        if near == 0 { left } else { near }
    }

    /// About how many states there are once the parameters in `set` are decided.
    fn width(&mut self, set: Vars, constraints: &[(Vars, f64)]) -> f64 {
        let cut = self.cut(set);
        let states: f64 = cut.iter().map(|&id| self.arena.node(id).distinct).product();
        let support = cut.iter().fold(0, |vars, &id| vars | self.arena.vars(id));
        let members = |v: &usize| support >> v & 1 == 1;
        let tuples: f64 =
            (0..self.domains.len()).filter(members).map(|v| self.domains[v].values.len() as f64).product();
        let decided = constraints.iter().filter(|(v, _)| v & !support == 0);
        (states.min(tuples) * decided.map(|(_, s)| s).product::<f64>()).max(1.0)
    }

    /// The proportion of combinations for which a constraint holds, by a sample.
    fn selectivity(&self, id: Id, registers: &mut Registers) -> f64 {
        let vars = self.arena.vars(id);
        let Some(program) = Program::new(&self.arena, id, &Known { slots: &[], vars }) else { return 1.0 };
        let size = |v: usize| self.domains[v].values.len();
        let scope: Vec<usize> = (0..self.domains.len()).filter(|&v| vars >> v & 1 == 1).collect();
        let combinations = scope.iter().fold(1usize, |n, &v| n.saturating_mul(size(v)));
        let count = combinations.min(if combinations > 1 << 12 { LANES } else { SAMPLE });
        let mut positions = vec![Vec::new(); self.domains.len()];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for i in 0..count {
            let mut rest = i;
            for &v in &scope {
                let at = if combinations == count {
                    let at = rest % size(v);
                    rest /= size(v);
                    at
                } else {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    ((u128::from(state) * size(v) as u128) >> 64) as usize
                };
                positions[v].push(at as u16);
            }
        }
        // A program over all parameters has no slots.
        let at = |var: u8| positions[usize::from(var)].as_slice();
        let lanes = Lanes { component: self, slot: &|_, out| out.fill(0), positions: &at };
        let held = registers.run(&program, count, &lanes).iter().filter(|&&word| word != 0).count();
        (held as f64 + 0.5) / (count as f64 + 1.0)
    }
}

/// Sets of decided parameters that are followed at a time: first a few, and more while the way that they find is long.
const BEAMS: [usize; 3] = [4, 32, 256];

/// Pairs of a state and a value that are looked at in the time that following one set more takes.
const WORTH: f64 = 1e5;

/// Combinations behind an estimate.
const SAMPLE: usize = if LANES < 64 { LANES } else { 64 };

/// A way to decide a set of parameters.
#[derive(Default)]
struct Path {
    set: Vars,
    /// Pairs of a state and a value looked at so far.
    cost: f64,
    /// States after it.
    width: f64,
    order: Vec<usize>,
}
