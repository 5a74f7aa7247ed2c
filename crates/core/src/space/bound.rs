//! A space with the device and the input fixed: legality, and the streaming walk over the legal set.

use super::{Config, Illegal, Param, ParamSpace, Point, Rule, SpaceError, Symbols};
use crate::expr::{Compiled, Expr, Val, Value};

/// A rule ready to be evaluated once the parameters up to `depth` have values.
#[derive(Clone, Debug)]
struct Check {
    rule: usize,
    depth: usize,
    compiled: Compiled,
}

/// A parameter space for one device and one input.
///
/// Rules are folded with the symbols and ordered by the last parameter that they mention, so that a walk drops a whole
/// subtree at the first rule that fails. Points are walked in lexicographic order of their indices.
#[derive(Clone, Debug)]
pub struct BoundSpace {
    params: Vec<Param>,
    rules: Vec<Rule>,
    symbols: Symbols,
    /// Sorted by depth.
    checks: Vec<Check>,
    /// `checks[starts[d]..starts[d + 1]]` become decidable at depth `d`.
    starts: Vec<usize>,
}

/// A part of the space: all points that begin with these indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard(Vec<u16>);

impl BoundSpace {
    pub(super) fn new(space: &ParamSpace, symbols: &Symbols) -> Result<Self, SpaceError> {
        let params = space.params().to_vec();
        let slots: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let known = |n: &str| if slots.contains(&n) { None } else { symbols.get(n).cloned() };
        let mut checks = Vec::with_capacity(space.rules().len());
        for (i, rule) in space.rules().iter().enumerate() {
            let unknown = |name: String| SpaceError::UnknownName { rule: rule.name.clone(), name };
            if let Some(name) = rule.expr.names().into_iter().find(|n| !slots.contains(&&**n) && known(n).is_none()) {
                return Err(unknown(name));
            }
            let expr = rule.expr.fold(&known);
            if matches!(&expr, Expr::Const(v) if v.as_val().truthy()) {
                continue;
            }
            let compiled = expr.compile(&slots).map_err(|e| unknown(e.0))?;
            let last = |n: &String| slots.iter().position(|s| s == n).map_or(0, |p| p + 1);
            // A rule without parameters decides before the first one: depth 0.
            let depth = expr.names().iter().map(last).max().unwrap_or(0);
            checks.push(Check { rule: i, depth, compiled });
        }
        checks.sort_by_key(|c| c.depth);
        let starts = (0..=params.len() + 1).map(|d| checks.partition_point(|c| c.depth < d)).collect();
        Ok(Self { params, rules: space.rules().to_vec(), symbols: symbols.clone(), checks, starts })
    }

    /// The parameters, in index order.
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

    /// The values of a point, in index order.
    ///
    /// # Panics
    /// If an index is beyond its parameter's values: points come from this space.
    pub fn values<'a>(&'a self, point: &'a [u16]) -> impl Iterator<Item = &'a Value> {
        self.params.iter().zip(point).map(|(p, &i)| &p.values[usize::from(i)])
    }

    /// The configuration of a point, by name.
    pub fn config(&self, point: &[u16]) -> Config {
        Config(self.params.iter().zip(self.values(point)).map(|(p, v)| (p.name.clone(), v.clone())).collect())
    }

    /// Whether the indices are of this space at all.
    pub fn contains(&self, point: &[u16]) -> bool {
        point.len() == self.params.len()
            && self.params.iter().zip(point).all(|(p, &i)| usize::from(i) < p.values.len())
    }

    /// Checks every rule.
    ///
    /// # Errors
    /// The first rule that does not hold, with its numbers.
    pub fn check(&self, point: &[u16]) -> Result<(), Illegal> {
        let values: Vec<Val<'_>> = self.values(point).map(Value::as_val).collect();
        match self.checks.iter().find(|c| !matches!(c.compiled.holds(&values), Ok(true))) {
            None => Ok(()),
            Some(c) => Err(self.illegal(c, &values)),
        }
    }

    /// Whether every rule holds; cheaper than [`BoundSpace::check`], which says why not.
    pub fn is_legal(&self, point: &[u16]) -> bool {
        let mut values = [Val::Int(0); MAX_PARAMS_INLINE];
        if self.params.len() > MAX_PARAMS_INLINE {
            return self.check(point).is_ok();
        }
        for (slot, v) in values.iter_mut().zip(self.values(point)) {
            *slot = v.as_val();
        }
        self.checks.iter().all(|c| matches!(c.compiled.holds(&values), Ok(true)))
    }

    /// Names of all rules that a point breaks, for `rejected_by` counts.
    pub fn broken<'a>(&'a self, point: &[u16]) -> Vec<&'a str> {
        let values: Vec<Val<'_>> = self.values(point).map(Value::as_val).collect();
        let broken = self.checks.iter().filter(|c| !matches!(c.compiled.holds(&values), Ok(true)));
        broken.map(|c| self.rules[c.rule].name.as_str()).collect()
    }

    fn illegal(&self, check: &Check, values: &[Val<'_>]) -> Illegal {
        let rule = &self.rules[check.rule];
        let value = |n: &String| match self.params.iter().position(|p| p.name == *n) {
            Some(i) => Some(Value::from(values[i])),
            None => self.symbols.get(n).cloned(),
        };
        let numbers = rule.expr.names().into_iter().filter_map(|n| value(&n).map(|v| (n, v))).collect();
        let why = match check.compiled.holds(values) {
            Err(e) => e.to_string(),
            Ok(_) => rule.why.clone(),
        };
        Illegal { rule: rule.name.clone(), group: rule.group, text: rule.expr.to_string(), numbers, why }
    }

    /// Splits the space into at least `at_least` parts where it has as many, for parallel walks. Walking the parts in
    /// order visits the points in the order of [`BoundSpace::for_each_legal`].
    pub fn shards(&self, at_least: usize) -> Vec<Shard> {
        let mut shards = vec![Vec::new()];
        for p in &self.params {
            if shards.len() >= at_least {
                break;
            }
            let extend = |s: &Vec<u16>| {
                let s = s.clone();
                (0..p.values.len() as u16).map(move |i| [s.as_slice(), &[i]].concat())
            };
            shards = shards.iter().flat_map(extend).collect();
        }
        shards.into_iter().map(Shard).collect()
    }

    /// Calls `visit` on every legal point, in lexicographic order, without holding them in memory. Stops early when
    /// `visit` returns false; returns whether the walk was complete.
    pub fn for_each_legal(&self, mut visit: impl FnMut(&[u16]) -> bool) -> bool {
        self.for_each_legal_in(&Shard(Vec::new()), &mut visit)
    }

    /// [`BoundSpace::for_each_legal`] on one part of the space.
    pub fn for_each_legal_in(&self, shard: &Shard, visit: &mut impl FnMut(&[u16]) -> bool) -> bool {
        let mut indices = vec![0u16; self.params.len()];
        let mut values = vec![Val::Int(0); self.params.len()];
        for (d, &i) in shard.0.iter().enumerate() {
            indices[d] = i;
            values[d] = self.params[d].values[usize::from(i)].as_val();
        }
        let fixed = shard.0.len();
        if !(0..=fixed).all(|d| self.holds_at(d, &values)) {
            return true;
        }
        self.walk(fixed, &mut indices, &mut values, visit)
    }

    fn holds_at(&self, depth: usize, values: &[Val<'_>]) -> bool {
        let checks = &self.checks[self.starts[depth]..self.starts[depth + 1]];
        checks.iter().all(|c| matches!(c.compiled.holds(values), Ok(true)))
    }

    fn walk<'a>(
        &'a self,
        depth: usize,
        indices: &mut [u16],
        values: &mut [Val<'a>],
        visit: &mut impl FnMut(&[u16]) -> bool,
    ) -> bool {
        let Some(param) = self.params.get(depth) else {
            return visit(indices);
        };
        for (i, v) in param.values.iter().enumerate() {
            indices[depth] = i as u16;
            values[depth] = v.as_val();
            if self.holds_at(depth + 1, values) && !self.walk(depth + 1, indices, values, visit) {
                return false;
            }
        }
        true
    }

    /// Number of legal points, by walking them.
    pub fn count_legal(&self) -> u64 {
        let mut count = 0;
        self.for_each_legal(|_| {
            count += 1;
            true
        });
        count
    }

    /// The first legal point in walking order.
    pub fn first_legal(&self) -> Option<Point> {
        let mut first = None;
        self.for_each_legal(|p| {
            first = Some(Point::from(p));
            false
        });
        first
    }
}

/// Spaces with more parameters take the allocating path of [`BoundSpace::is_legal`].
const MAX_PARAMS_INLINE: usize = 32;
