//! A space with the device and the input fixed: legality, and the streaming walk over the legal set.

use super::derived::Derived;
use super::listed::Listed;
use super::memory::{self, Memory};
use super::values::Numbers;
use super::walk::{self, Census, Walk};
use super::{Config, Illegal, Legal, Name, Param, ParamSpace, Point, Rule, RuleGroup, SpaceError, Symbols, Values};
use crate::expr::{Compiled, Expr, Val, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A rule ready to be evaluated once the parameters up to `depth` have values.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) rule: usize,
    depth: usize,
    /// The parameters that it mentions before the one that decides it, in index order.
    pub(super) earlier: Vec<usize>,
    /// Number of combinations of their values.
    pub(super) combinations: usize,
    test: Test,
}

/// What decides a check.
#[derive(Clone, Debug)]
enum Test {
    Rule(Compiled),
    /// Whether the parameters up to this depth begin a listed point.
    Listed(Arc<Listed>, usize),
}

impl Check {
    fn new(rule: usize, depth: usize, earlier: Vec<usize>, params: &[Param], test: Test) -> Self {
        let combinations = earlier.iter().fold(1, |n: usize, &p| n.saturating_mul(params[p].values.len()));
        Self { rule, depth, earlier, combinations, test }
    }

    /// Whether it is true; a rule that cannot be evaluated does not hold.
    pub(super) fn holds(&self, values: &[Val<'_>]) -> bool {
        match &self.test {
            Test::Rule(compiled) => matches!(compiled.holds(values), Ok(true)),
            Test::Listed(listed, depth) => listed.begins(&values[..*depth]),
        }
    }
}

/// A parameter space for one device and one input.
///
/// Rules are folded with the symbols and ordered by the last parameter that they mention, so that a walk drops a whole
/// subtree at the first rule that fails. Points are walked in lexicographic order of their indices.
#[derive(Clone, Debug)]
pub struct BoundSpace {
    /// Shared by clones, and by nothing else.
    identity: u64,
    params: Vec<Param>,
    numbers: Arc<Numbers>,
    rules: Vec<Rule>,
    symbols: Symbols,
    derived: Arc<Derived>,
    /// Sorted by depth.
    checks: Vec<Check>,
    /// `checks[starts[d]..starts[d + 1]]` become decidable at depth `d`.
    starts: Vec<usize>,
    /// What is remembered of the rules, made by the first walk or on request.
    memory: OnceLock<Arc<Memory>>,
    pub(super) domains: OnceLock<Vec<Vec<u16>>>,
}

/// An expression with the names that are known folded in, and the same over slots.
pub(super) fn resolve(
    of: &str,
    expr: &Expr,
    slots: &[&str],
    known: &dyn Fn(&str) -> Option<Value>,
) -> Result<(Expr, Compiled), SpaceError> {
    let unknown = |name: String| SpaceError::UnknownName { rule: of.to_owned(), name };
    if let Some(name) = expr.names().into_iter().find(|n| !slots.contains(&&**n) && known(n).is_none()) {
        return Err(unknown(name));
    }
    let folded = expr.fold(known);
    let compiled = folded.compile(slots).map_err(|e| unknown(e.0))?;
    Ok((folded, compiled))
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// A part of the space: all points that begin with these indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard(pub(super) Vec<u16>);

impl BoundSpace {
    pub(super) fn new(space: &ParamSpace, symbols: &Symbols) -> Result<Self, SpaceError> {
        let params = space.params().to_vec();
        let slots: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let known = |n: &str| if slots.contains(&n) { None } else { symbols.get(n).cloned() };
        let mut checks = Vec::with_capacity(space.rules().len());
        for (i, rule) in space.rules().iter().enumerate() {
            let (expr, compiled) = resolve(&rule.name, &rule.expr, &slots, &known)?;
            if matches!(&expr, Expr::Const(v) if v.as_val().truthy()) {
                continue;
            }
            let names = expr.names();
            let mut earlier: Vec<usize> = (0..slots.len()).filter(|&p| names.contains(slots[p])).collect();
            // A rule without parameters decides before the first one: depth 0.
            let depth = earlier.pop().map_or(0, |p| p + 1);
            checks.push(Check::new(i, depth, earlier, &params, Test::Rule(compiled)));
        }
        let derived = Derived::new(&params, space.names(), symbols)?;
        Ok(Self::of_checks(params, space.rules().to_vec(), symbols.clone(), derived, checks))
    }

    fn of_checks(
        params: Vec<Param>,
        rules: Vec<Rule>,
        symbols: Symbols,
        derived: Derived,
        mut checks: Vec<Check>,
    ) -> Self {
        // Rules that look at little are checked before rules that look at much.
        checks.sort_by_key(|c| (c.depth, c.combinations));
        let starts = (0..=params.len() + 1).map(|d| checks.partition_point(|c| c.depth < d)).collect();
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        let numbers = Arc::new(Numbers::new(&params, &derived));
        let (derived, memory, domains) = (Arc::new(derived), OnceLock::new(), OnceLock::new());
        Self { identity, params, numbers, rules, symbols, derived, checks, starts, memory, domains }
    }

    /// A space whose legal points are listed: what a recording holds, without the rules that made it. `why` says what
    /// the list is, for points that are not on it.
    ///
    /// # Errors
    /// A parameter without values or with too many, two of one name, a point outside the parameters' values.
    pub fn listed(params: Vec<Param>, points: &[Point], why: &str) -> Result<Self, SpaceError> {
        let params = ParamSpace::builder().params(params).build()?.params().to_vec();
        let text = format!("one of {} listed points", points.len());
        let expr = Expr::Const(Value::Str(text));
        let rule = Rule { name: "listed".into(), group: RuleGroup::Implementation, expr, why: why.to_owned() };
        let mut space = Self::of_checks(params, vec![rule], Symbols::new(), Derived::default(), Vec::new());
        if let Some(outside) = points.iter().find(|p| !space.contains(p)) {
            return Err(SpaceError::Outside(outside.clone()));
        }
        let listed = Arc::new(Listed::new(&space.params, points));
        let check = |depth: usize| {
            let earlier = (0..depth.saturating_sub(1)).collect();
            Check::new(0, depth, earlier, &space.params, Test::Listed(listed.clone(), depth))
        };
        let checks = (0..=space.params.len()).map(check).collect();
        space = Self::of_checks(space.params, space.rules, space.symbols, Derived::default(), checks);
        Ok(space)
    }

    /// The legal points of a space made by [`BoundSpace::listed`], sorted; none of a space with rules.
    pub fn listed_points(&self) -> Option<&[Point]> {
        self.checks.iter().find_map(|check| match &check.test {
            Test::Listed(listed, _) => Some(listed.points()),
            Test::Rule(_) => None,
        })
    }

    /// The parameters, in index order.
    #[inline]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The rules, in the order of the description.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The names fixed for this device and input.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Number of points, legal or not.
    pub fn cartesian(&self) -> u128 {
        self.params.iter().map(|p| p.values.len() as u128).product()
    }

    /// The values of a point, in index order; none for indices beyond a parameter's values.
    pub fn values<'a>(&'a self, point: &'a [u16]) -> impl Iterator<Item = &'a Value> {
        self.params.iter().zip(point).filter_map(|(p, &i)| p.values.get(usize::from(i)))
    }

    /// The configuration of a point, by name; without the parameters that have no value of such an index.
    pub fn config(&self, point: &[u16]) -> Config {
        let value = |(p, &i): (&Param, &u16)| Some((p.name.clone(), p.values.get(usize::from(i))?.clone()));
        Config(self.params.iter().zip(point).filter_map(value).collect())
    }

    /// Whether the indices are of this space at all.
    #[inline]
    pub fn contains(&self, point: &[u16]) -> bool {
        self.numbers.contain(point)
    }

    /// A parameter or a derived name. See [`ParamSpace::name`].
    pub fn name(&self, name: &str) -> Option<Name> {
        let derived = || self.derived.position(name).map(|i| self.params.len() + i);
        self.params.iter().position(|p| p.name == name).or_else(derived).map(|i| Name(i as u16))
    }

    /// The values of a point by name, whether it is legal or not; `None` for indices that are not of this space.
    #[inline]
    pub fn at<'s>(&'s self, point: &'s [u16]) -> Option<Values<'s>> {
        self.contains(point).then(|| Values::new(self, point))
    }

    /// Checks every rule. Much cheaper once the rules are remembered: after a walk, or after [`BoundSpace::remember`].
    ///
    /// # Errors
    /// The first rule that does not hold, with its numbers; the rule `value` for indices that are not of this space.
    pub fn check<'s>(&'s self, point: &'s [u16]) -> Result<Legal<'s>, Illegal> {
        let at = self.at(point).ok_or_else(|| self.outside(point))?;
        match self.broken_check(point) {
            None => Ok(Legal::new(at)),
            Some(check) => Err(self.with_slots(point, |values| self.illegal(check, values))),
        }
    }

    /// Whether every rule holds; [`BoundSpace::check`] says why not.
    pub fn is_legal(&self, point: &[u16]) -> bool {
        self.contains(point) && self.broken_check(point).is_none()
    }

    /// The first rule that a point of this space breaks, in the order of checking; none for a legal point, nor for what is no
    /// point of this space.
    pub fn first_broken(&self, point: &[u16]) -> Option<&Rule> {
        let check = self.contains(point).then(|| self.broken_check(point)).flatten();
        check.map(|c| &self.rules[c.rule])
    }

    /// The first check that fails at a point of this space.
    fn broken_check(&self, point: &[u16]) -> Option<&Check> {
        match self.memory.get() {
            Some(memory) => {
                let constant = self.checks_at(0).iter().find(|c| !c.holds(&[]));
                constant.or_else(|| memory.first_broken(self, point))
            }
            None => self.with_slots(point, |values| self.checks.iter().find(|c| !c.holds(values))),
        }
    }

    /// What is wrong with indices that are of no point.
    fn outside(&self, point: &[u16]) -> Illegal {
        let beyond = self.params.iter().zip(point).find(|(p, i)| usize::from(**i) >= p.values.len());
        Illegal::value(&match beyond {
            Some((p, i)) => format!("index {i} of parameter {:?}, which has {} values", p.name, p.values.len()),
            None => format!("{} indices for {} parameters", point.len(), self.params.len()),
        })
    }

    /// Prepares for many checks: what a rule leaves is remembered from the first time that it is asked. Costs some tens
    /// of microseconds.
    pub fn remember(&self) {
        self.memory();
    }

    /// Values that the next parameter can take after the first ones: those for which every rule holds that mentions
    /// this parameter and none after it. Replaces the contents of `out`. Where nothing is left, gives the rule that
    /// took away the last value.
    pub fn next_values(&self, prefix: &[u16], out: &mut Vec<u16>) -> Option<&Rule> {
        out.clear();
        let depth = prefix.len();
        let param = self.params.get(depth)?;
        if depth == 0
            && let Some(constant) = self.checks_at(0).iter().find(|c| !c.holds(&[]))
        {
            return Some(&self.rules[constant.rule]);
        }
        let mut last = None;
        for chunk in 0..param.values.len().div_ceil(memory::LANES) {
            let mut left = self.memory().take_away(self, (depth, chunk), prefix, |check, taken| {
                if taken != 0 {
                    last = Some(check.rule);
                }
            });
            while left != 0 {
                out.push((chunk * memory::LANES) as u16 + left.trailing_zeros() as u16);
                left &= left - 1;
            }
        }
        last.filter(|_| out.is_empty()).map(|rule| &self.rules[rule])
    }

    /// Calls `f` with the values by slot; parameters beyond the given ones hold 0, which no rule decided so far looks at.
    pub(super) fn with_slots<'a, R>(&'a self, prefix: &[u16], f: impl FnOnce(&mut [Val<'a>]) -> R) -> R {
        let mut inline = [Val::Int(0); MAX_PARAMS_INLINE];
        let mut spilled = Vec::new();
        let values = match inline.get_mut(..self.params.len()) {
            Some(values) => values,
            None => {
                spilled.resize(self.params.len(), Val::Int(0));
                &mut spilled[..]
            }
        };
        for (slot, (param, &i)) in values.iter_mut().zip(self.params.iter().zip(prefix)) {
            *slot = param.values[usize::from(i)].as_val();
        }
        f(values)
    }

    /// Names of all rules that a point of this space breaks, for `rejected_by` counts.
    pub fn broken<'a>(&'a self, point: &[u16]) -> Vec<&'a str> {
        if !self.contains(point) {
            return Vec::new();
        }
        let mut names: Vec<&str> = self.with_slots(point, |values| {
            let broken = self.checks.iter().filter(|c| !c.holds(values));
            broken.map(|c| self.rules[c.rule].name.as_str()).collect()
        });
        // A list is checked at every depth.
        names.dedup();
        names
    }

    fn illegal(&self, check: &Check, values: &[Val<'_>]) -> Illegal {
        let rule = &self.rules[check.rule];
        let value = |n: &String| match self.params.iter().position(|p| p.name == *n) {
            Some(i) => Some(Value::from(values[i])),
            None => self.symbols.get(n).cloned(),
        };
        let numbers = rule.expr.names().into_iter().filter_map(|n| value(&n).map(|v| (n, v))).collect();
        let why = match &check.test {
            Test::Rule(compiled) => compiled.holds(values).map_or_else(|e| e.to_string(), |_| rule.why.clone()),
            Test::Listed(..) => rule.why.clone(),
        };
        Illegal { rule: rule.name.clone(), group: rule.group, text: rule.expr.to_string(), numbers, why }
    }

    /// The rules that become decidable with the parameter before `depth`; those without parameters at depth 0.
    pub(super) fn checks_at(&self, depth: usize) -> &[Check] {
        &self.checks[self.starts[depth]..self.starts[depth + 1]]
    }

    pub(super) fn memory(&self) -> &Memory {
        self.memory.get_or_init(|| Arc::new(Memory::new(self)))
    }

    /// Whether the other is a clone of this space, or it is one of the other: they have the same legal points.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    #[inline]
    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    #[inline]
    pub(super) fn derived(&self) -> &Derived {
        &self.derived
    }

    /// Whether every rule holds that the first parameters decide.
    pub(super) fn prefix_holds(&self, prefix: &[u16]) -> bool {
        let decided = &self.checks[..self.starts[prefix.len() + 1]];
        self.with_slots(prefix, |values| decided.iter().all(|c| c.holds(values)))
    }

    /// Splits the space for parallel walks into at least `at_least` parts, where it has as many; parts whose first
    /// parameters break a rule are left out. Walking the parts in order visits the points in the order of
    /// [`BoundSpace::for_each_legal`].
    pub fn shards(&self, at_least: usize) -> Vec<Shard> {
        let mut shards = vec![Vec::new()];
        let mut next = Vec::new();
        for _ in 0..self.params.len() {
            if shards.len() >= at_least {
                break;
            }
            let mut longer = Vec::new();
            for shard in &shards {
                self.next_values(shard, &mut next);
                longer.extend(next.iter().map(|&i| [shard.as_slice(), &[i]].concat()));
            }
            shards = longer;
        }
        shards.into_iter().map(Shard).collect()
    }

    /// A walk over the legal points in lexicographic order of their indices, without holding them in memory.
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self, &[])
    }

    /// Calls `visit` on every legal point, in lexicographic order, without holding them in memory. Stops early when
    /// `visit` returns false; returns whether the walk was complete.
    pub fn for_each_legal(&self, mut visit: impl FnMut(&[u16]) -> bool) -> bool {
        if let Some(points) = self.listed_points() {
            return points.iter().all(|point| visit(point));
        }
        self.for_each_legal_in(&Shard(Vec::new()), &mut visit)
    }

    /// [`BoundSpace::for_each_legal`] on one part of the space.
    pub fn for_each_legal_in(&self, shard: &Shard, visit: &mut impl FnMut(&[u16]) -> bool) -> bool {
        let mut walk = Walk::new(self, &shard.0);
        while let Some(point) = walk.next_point() {
            if !visit(point) {
                return false;
            }
        }
        true
    }

    /// Legal points, and illegal ones by the first rule that they break in the order of checking, over the whole space.
    pub fn census(&self) -> Census {
        Census::new(self)
    }

    /// Number of legal points.
    pub fn count_legal(&self) -> u64 {
        if let Some(points) = self.listed_points() {
            return points.len() as u64;
        }
        let mut indices = vec![0; self.params.len()];
        if self.prefix_holds(&[]) { walk::judge(self, &mut indices, 0, &mut |_, _| {}) as u64 } else { 0 }
    }

    /// The first legal point in walking order.
    pub fn first_legal(&self) -> Option<Point> {
        self.walk().next_point().map(Point::from)
    }
}

/// Checking a point of a space with more parameters allocates.
const MAX_PARAMS_INLINE: usize = 32;
