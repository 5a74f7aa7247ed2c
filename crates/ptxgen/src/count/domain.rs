//! How many blocks and iterations reach the levels that threads and warps ask for.

use super::facts::Facts;
use super::linear::{self, Thresholds, Var, affine, between, no_form};
use super::walk::{Key, Levels, Number, Stepped, Totals};
use super::{Array, CountError, Launch};
use crate::ir::{Atom, Index, Sym};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tilewright_core::counts::{CountsBuilder, Expr, Property, Step, Stride};

/// Values of a variable that are gone through one by one.
const MOST_CASES: i64 = 4096;

/// A threshold for each axis; `None` asks nothing.
type Part = Vec<Option<i64>>;
type Parts = BTreeMap<Part, i64>;
/// What the other groups of a product ask for, and how often.
type Row = Vec<(Vec<Part>, i64)>;

/// Adds the numbers of a launch as expressions.
pub(super) fn express(b: &mut CountsBuilder, launch: &Launch, totals: Totals) -> Result<(), CountError> {
    let blocks: Vec<Var> = launch.blocks().into_iter().map(|(sym, extent)| Var { sym, extent }).collect();
    let facts = totals.facts(|trips| cases(&blocks, trips));
    let mut domain = Domain { b, facts, known: HashMap::new() };
    let groups = domain.number(&blocks, &totals, &BTreeMap::from([((0, Vec::new()), 1)]))?;
    domain.b.count(Property::Groups, groups);
    for (key, number) in &totals.numbers {
        let count = domain.number(&blocks, &totals, number)?;
        domain.key(launch, key, count)?;
    }
    for (key, number) in &totals.fixed {
        let count = domain.b.constant(*number);
        domain.key(launch, key, count)?;
    }
    Ok(())
}

/// An index for every value of the block that it depends on, as far as there are few.
fn cases(blocks: &[Var], index: &Index) -> Vec<Index> {
    for var in blocks {
        let Some(ways) = ways(var, &want(index, &var.sym)) else { continue };
        return ways.iter().flat_map(|way| cases(blocks, &index.substitute(&var.sym, &way.value))).collect();
    }
    vec![index.clone()]
}

struct Domain<'b> {
    b: &'b mut CountsBuilder,
    facts: Facts,
    /// Numbers of nests that have been found, by their axes and parts.
    known: HashMap<(usize, Vec<usize>, Parts), Expr>,
}

impl Domain<'_> {
    fn key(&mut self, launch: &Launch, key: &Key, count: Expr) -> Result<(), CountError> {
        match key {
            Key::Property(property) => self.b.count(*property, count),
            Key::Access(stepped) => {
                let array = stepped.array.as_ref().and_then(|name| launch.arrays.get(name));
                self.strides(stepped, array, count)?;
            }
        }
        Ok(())
    }

    fn number(&mut self, blocks: &[Var], totals: &Totals, number: &Number) -> Result<Expr, CountError> {
        let mut nests: BTreeMap<usize, Vec<(&Levels, i64)>> = BTreeMap::new();
        for ((nest, levels), count) in number.iter().filter(|(_, c)| **c != 0) {
            nests.entry(*nest).or_default().push((levels, *count));
        }
        let mut terms = Vec::new();
        for (nest, numbers) in nests {
            let used: BTreeSet<usize> = numbers.iter().flat_map(|(levels, _)| levels.iter().map(|(a, _)| *a)).collect();
            let used: Vec<usize> = used.into_iter().collect();
            // Many numbers are multiples of few.
            let divisor = numbers.iter().fold(0, |g, (_, c)| gcd(g, *c)).max(1);
            let part = |levels: &Levels| -> Part {
                used.iter().map(|axis| levels.iter().find(|(a, _)| a == axis).map(|(_, h)| *h)).collect()
            };
            let parts: Parts = numbers.into_iter().map(|(levels, c)| (part(levels), c / divisor)).collect();
            let loops = totals.nests[nest].iter();
            let loops = loops.map(|(id, trips)| Var { sym: Sym::Iteration(*id), extent: trips.clone() });
            let vars: Vec<Var> = blocks.iter().cloned().chain(loops).collect();
            let axes: Vec<Index> = used.iter().map(|axis| totals.axes[*axis].clone()).collect();
            let known = (nest, used, parts);
            let total = match self.known.get(&known) {
                Some(total) => *total,
                None => {
                    let total = self.total(&vars, &axes, &known.2)?;
                    self.known.insert(known, total);
                    total
                }
            };
            terms.push((total, divisor));
        }
        Ok(self.b.sum(terms, 0))
    }

    /// The sum over all values of the variables of how many parts are reached.
    fn total(&mut self, vars: &[Var], axes: &[Index], parts: &Parts) -> Result<Expr, CountError> {
        let extents = vars.iter().map(|v| Var { extent: self.facts.simplify(&v.extent), ..v.clone() });
        let vars: Vec<Var> = extents.collect();
        let (axes, parts) = self.clean(axes, parts);
        if parts.is_empty() {
            return Ok(self.b.constant(0));
        }
        let groups = components(&vars, &axes);
        let (with, without): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| !g.axes.is_empty());
        let mut factor = self.b.constant(1);
        for group in without {
            let own = Parts::from([(Vec::new(), 1)]);
            let count = self.solve(&group, &own)?;
            factor = self.b.mul(factor, count);
        }
        let split: BTreeMap<Vec<Part>, i64> = parts
            .iter()
            .map(|(part, count)| {
                let own = |g: &Group| g.places.iter().map(|i| part[*i]).collect::<Part>();
                (with.iter().map(own).collect(), *count)
            })
            .collect();
        let sum = self.product(&with.iter().collect::<Vec<_>>(), split)?;
        Ok(self.b.mul(factor, sum))
    }

    /// Moves constants to the thresholds, and leaves out what always holds and parts that never do.
    fn clean(&self, axes: &[Index], parts: &Parts) -> (Vec<Index>, Parts) {
        let used = |i: &usize| parts.keys().any(|p| p[*i].is_some());
        let places: Vec<usize> = (0..axes.len()).filter(used).collect();
        let simple: Vec<Index> = places.iter().map(|i| self.facts.simplify(&axes[*i])).collect();
        let constants: Vec<i64> = simple.iter().map(Index::constant_term).collect();
        let axes: Vec<Index> = simple.iter().zip(&constants).map(|(a, c)| a.minus(&(*c).into())).collect();
        // Whether it is zero, and what it is not below.
        let known: Vec<_> = axes.iter().map(|a| (a.constant().is_some(), self.facts.least(a))).collect();
        let mut out = Parts::new();
        'parts: for (part, count) in parts {
            let mut kept = Part::new();
            for ((place, axis), c) in places.iter().zip(&known).zip(&constants) {
                match (part[*place].map(|h| h - c), axis) {
                    (Some(h), (true, _)) if h >= 0 => continue 'parts,
                    (Some(h), (false, least)) if least.is_none_or(|l| l <= h) => kept.push(Some(h)),
                    _ => kept.push(None),
                }
            }
            *out.entry(kept).or_insert(0) += count;
        }
        out.retain(|_, c| *c != 0);
        // Axes that nothing asks for any more tie no variables together.
        let asked: Vec<usize> = (0..axes.len()).filter(|i| out.keys().any(|p| p[*i].is_some())).collect();
        let parts = out.into_iter().map(|(p, c)| (asked.iter().map(|i| p[*i]).collect(), c));
        let mut merged = Parts::new();
        parts.for_each(|(p, c): (Part, i64)| *merged.entry(p).or_insert(0) += c);
        merged.retain(|_, c| *c != 0);
        (asked.iter().map(|i| axes[*i].clone()).collect(), merged)
    }

    /// A sum over products of independent numbers, factored where rows are multiples of each other.
    fn product(&mut self, groups: &[&Group], terms: BTreeMap<Vec<Part>, i64>) -> Result<Expr, CountError> {
        match groups {
            [] => return Ok(self.b.constant(terms.values().sum())),
            [group] => {
                let parts = terms.into_iter().map(|(mut p, c)| (p.remove(0), c)).collect();
                return self.solve(group, &parts);
            }
            _ => {}
        }
        let by = |place: usize| rows(place, &terms);
        let tables: Vec<_> = (0..groups.len()).map(by).collect();
        let best = (0..groups.len()).min_by_key(|i| tables[*i].len()).unwrap_or(0);
        let others: Vec<&Group> = groups.iter().enumerate().filter(|(i, _)| *i != best).map(|(_, g)| *g).collect();
        let mut sum = Vec::new();
        for (row, parts) in &tables[best] {
            let own = self.solve(groups[best], parts)?;
            let rest = self.product(&others, row.iter().cloned().collect())?;
            sum.push((self.b.mul(own, rest), 1));
        }
        Ok(self.b.sum(sum, 0))
    }

    /// A number whose variables and axes hang together.
    fn solve(&mut self, group: &Group, parts: &Parts) -> Result<Expr, CountError> {
        let Group { vars, axes, .. } = group;
        if let Some((i, ways)) = group.case_by_case() {
            return self.case_by_case(group, i, &ways, parts);
        }
        if let Some(merged) = group.merged() {
            return self.solve(&merged, parts);
        }
        if vars.len() > 1 {
            let index = axes.first().or(vars.last().map(|v| &v.extent)).cloned().unwrap_or_default();
            return Err(no_form("a condition that ties several blocks or loops together", &index));
        }
        let var = vars.first();
        if let Some(axis) = var.and_then(|v| axes.iter().find(|a| want(a, &v.sym) != Want::Affine)) {
            return Err(no_form("a condition on a block or an iteration", axis));
        }
        let mut terms = Vec::new();
        let mut single: BTreeMap<usize, Thresholds> = BTreeMap::new();
        for (part, count) in parts {
            let asked: Vec<(usize, i64)> = part.iter().enumerate().filter_map(|(i, h)| Some((i, (*h)?))).collect();
            match (asked.as_slice(), var) {
                ([(axis, h)], _) => *single.entry(*axis).or_default().entry(*h).or_insert(0) += count,
                ([], Some(var)) => terms.push((linear::expr(self.b, &var.extent)?, *count)),
                (several, Some(var)) => {
                    let above: Vec<(&Index, i64)> = several.iter().map(|(i, h)| (&axes[*i], *h)).collect();
                    terms.push((between(self.b, var, &above)?, *count));
                }
                (_, None) => terms.push((self.b.constant(1), *count)),
            }
        }
        for (axis, thresholds) in single {
            terms.push((linear::sum(self.b, &axes[axis], var, &thresholds, &self.facts)?, 1));
        }
        Ok(self.b.sum(terms, 0))
    }

    fn case_by_case(&mut self, group: &Group, i: usize, ways: &[Way], parts: &Parts) -> Result<Expr, CountError> {
        let var = &group.vars[i];
        if ways.len() as i64 > MOST_CASES {
            let (place, cases) = ("launch".to_owned(), ways.len() as u64);
            return Err(CountError::TooMany { place, what: "blocks or iterations", cases, limit: MOST_CASES as u64 });
        }
        let mut terms = Vec::new();
        for way in ways {
            let with = |index: &Index| index.substitute(&var.sym, &way.value);
            let mut vars: Vec<Var> = Vec::new();
            for (j, v) in group.vars.iter().enumerate() {
                match (j == i, &way.left) {
                    (false, _) => vars.push(Var { extent: with(&v.extent), ..v.clone() }),
                    (true, Some(extent)) => vars.push(Var { extent: extent.clone(), ..v.clone() }),
                    (true, None) => {}
                }
            }
            let axes: Vec<Index> = group.axes.iter().map(with).collect();
            terms.push((self.total(&vars, &axes, parts)?, 1));
        }
        Ok(self.b.sum(terms, 0))
    }

    /// Adds accesses to the properties of their stride.
    fn strides(&mut self, of: &Stepped, array: Option<&Array>, count: Expr) -> Result<(), CountError> {
        let bytes = i64::from(of.bytes);
        let mut left = self.b.constant(1);
        for (times, stride) in (0..).zip(&Stride::ALL[..5]) {
            let both: &[i64] = if times == 0 { &[0] } else { &[times * bytes, -times * bytes] };
            for at in both {
                let is_it = equals(self.b, &of.step, *at)?;
                left = self.b.sub(left, is_it);
                let count = self.b.mul(count, is_it);
                self.fractions(of, array, *stride, count)?;
            }
        }
        let count = self.b.mul(count, left);
        self.fractions(of, array, Stride::More, count)
    }

    /// Adds accesses of a stride to the properties of the share of memory that they use.
    fn fractions(
        &mut self,
        of: &Stepped,
        array: Option<&Array>,
        stride: Stride,
        count: Expr,
    ) -> Result<(), CountError> {
        let below = if of.array.is_none() { 0 } else { i64::from(stride.steps()) };
        let property = |used: i64| Property::Accesses(of.op, Step { stride, used: used as u8 });
        match (of.step.constant(), array) {
            _ if below == 0 => self.b.count(property(0), count),
            (Some(step), _) => {
                let used = linear::ceil(of.used * below, step.abs().max(1)).clamp(1, below);
                self.b.count(property(used), count);
            }
            (None, None) => self.b.count(property(below), count),
            (None, Some(array)) => {
                let above = array.used.times(&below.into()).plus(&array.pitch).minus(&1.into());
                let (above, pitch) = (linear::expr(self.b, &above)?, linear::expr(self.b, &array.pitch)?);
                let used = self.b.quotient(above, pitch);
                let (one, most) = (self.b.constant(1), self.b.constant(below));
                let used = self.b.max(used, one);
                let used = self.b.min(used, most);
                for n in 1..=below {
                    let difference = self.b.offset(used, -n);
                    let is_it = self.b.zero(difference);
                    let count = self.b.mul(count, is_it);
                    self.b.count(property(n), count);
                }
            }
        }
        Ok(())
    }
}

/// `[index = at]`.
fn equals(b: &mut CountsBuilder, index: &Index, at: i64) -> Result<Expr, CountError> {
    let difference = index.minus(&at.into());
    let constant = difference.constant_term();
    let divisor = difference.terms().filter(|(f, _)| !f.is_empty()).fold(0, |g, (_, c)| gcd(g, c));
    if divisor != 0 && constant % divisor != 0 {
        return Ok(b.constant(0));
    }
    let difference = linear::expr(b, &difference.floor(divisor.max(1)))?;
    Ok(b.zero(difference))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// Rows of a table with one part each: those that are multiples of the same row, with their parts and the multiples.
fn rows(place: usize, terms: &BTreeMap<Vec<Part>, i64>) -> Vec<(Row, Parts)> {
    let mut by_part: BTreeMap<&Part, Row> = BTreeMap::new();
    for (parts, count) in terms {
        let others = parts.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, p)| p.clone()).collect();
        by_part.entry(&parts[place]).or_default().push((others, *count));
    }
    let mut rows: BTreeMap<Row, Parts> = BTreeMap::new();
    for (part, mut row) in by_part {
        row.sort();
        let sign = if row[0].1 < 0 { -1 } else { 1 };
        let divisor = sign * row.iter().fold(0, |g, (_, c)| gcd(g, *c));
        row.iter_mut().for_each(|(_, c)| *c /= divisor);
        *rows.entry(row).or_default().entry(part.clone()).or_insert(0) += divisor;
    }
    rows.into_iter().collect()
}

/// Variables and axes that hang together.
#[derive(Clone, Debug, Default)]
struct Group {
    vars: Vec<Var>,
    axes: Vec<Index>,
    /// Places of the axes among all.
    places: Vec<usize>,
}

fn depends(index: &Index, sym: &Sym) -> bool {
    !index.all(|s| s != sym)
}

fn components(vars: &[Var], axes: &[Index]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let ties = |index: &Index, group: &Group| group.vars.iter().any(|v| depends(index, &v.sym));
    for var in vars {
        let own = Group { vars: vec![var.clone()], ..Group::default() };
        let (tied, mut rest): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|g| ties(&var.extent, g) || g.vars.iter().any(|v| depends(&v.extent, &var.sym)));
        rest.push(tied.into_iter().chain([own]).fold(Group::default(), Group::join));
        groups = rest;
    }
    for (place, axis) in axes.iter().enumerate() {
        let own = Group { axes: vec![axis.clone()], places: vec![place], ..Group::default() };
        let (tied, mut rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| ties(axis, g));
        // Conditions on sizes alone hang together where they are the same.
        rest.push(tied.into_iter().chain([own]).fold(Group::default(), Group::join));
        groups = rest;
    }
    groups
}

/// One case of a variable: what it is there, and how far what is left of it goes.
struct Way {
    value: Index,
    left: Option<Index>,
}

impl Group {
    fn join(mut self, other: Self) -> Self {
        self.vars.extend(other.vars);
        self.axes.extend(other.axes);
        self.places.extend(other.places);
        self
    }

    /// A variable that has to be gone through case by case.
    fn case_by_case(&self) -> Option<(usize, Vec<Way>)> {
        self.vars.iter().enumerate().find_map(|(i, var)| {
            let others = self.vars.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, v)| &v.extent);
            let in_extents = others.clone().map(|e| match want(e, &var.sym) {
                Want::Affine => Want::All,
                want => want,
            });
            let wanted = self.axes.iter().map(|a| want(a, &var.sym)).chain(in_extents).fold(Want::Nothing, Want::or);
            ways(var, &wanted).map(|ways| (i, ways))
        })
    }

    /// Two variables as one: `c x + c X y` with `x` below `X` is `c z` with `z` below `X Y`.
    fn merged(&self) -> Option<Self> {
        let pairs = (0..self.vars.len()).flat_map(|i| (0..self.vars.len()).map(move |j| (i, j)));
        pairs.filter(|(i, j)| i != j).find_map(|(i, j)| {
            let (x, y) = (&self.vars[i], &self.vars[j]);
            let fits = |axis: &Index| {
                let ((_, c), (_, d)) = (affine(axis, &x.sym), affine(axis, &y.sym));
                c.times(&x.extent) == d
            };
            let free = self.vars.iter().all(|v| !depends(&v.extent, &x.sym) && !depends(&v.extent, &y.sym));
            (free && self.axes.iter().all(fits)).then(|| {
                let mut out = self.clone();
                out.vars[i].extent = x.extent.times(&y.extent);
                out.vars.remove(j);
                out.axes.iter_mut().for_each(|a| *a = a.substitute(&y.sym, &Index::from(0)));
                out
            })
        })
    }
}

/// How an index depends on a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Nothing,
    /// A multiple of it and a rest.
    Affine,
    /// By its remainder and quotient by a number.
    Period(i64),
    /// In other ways.
    All,
}

impl Want {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Period(a), Self::Period(b)) => Self::Period(a / gcd(a, b) * b),
            (Self::Period(a), _) | (_, Self::Period(a)) => Self::Period(a),
            (Self::Affine, _) | (_, Self::Affine) => Self::Affine,
            _ => Self::Nothing,
        }
    }
}

fn want(index: &Index, sym: &Sym) -> Want {
    let mut out = Want::Nothing;
    for (factors, _) in index.terms() {
        let mut times = 0;
        for atom in factors {
            let own = match atom {
                Atom::Sym(s) if s == sym => Want::Affine,
                Atom::Sym(_) => Want::Nothing,
                Atom::Floor(a, by) | Atom::Mod(a, by) => match want(a, sym) {
                    Want::Affine => match affine(a, sym).1.constant() {
                        Some(c) => Want::Period(by / gcd(c, *by)),
                        None => Want::All,
                    },
                    inner => inner,
                },
                Atom::Min(a, b) | Atom::Max(a, b) | Atom::Quotient(a, b) | Atom::Xor(a, b) => {
                    match want(a, sym).or(want(b, sym)) {
                        Want::Affine => Want::All,
                        inner => inner,
                    }
                }
            };
            times += i32::from(own != Want::Nothing);
            out = out.or(own);
        }
        if times > 1 && out == Want::Affine {
            out = Want::All;
        }
    }
    out
}

/// The cases of a variable, where it has to be gone through; `None` where it has not, or cannot be.
fn ways(var: &Var, want: &Want) -> Option<Vec<Way>> {
    let constant = var.extent.constant();
    let one_by_one = |count: i64| (0..count).map(|r| Way { value: r.into(), left: None }).collect();
    match (want, constant) {
        (Want::Nothing | Want::Affine | Want::Period(1), _) => None,
        (Want::All, Some(count)) => Some(one_by_one(count.min(MOST_CASES + 1))),
        (Want::Period(period), Some(count)) if count <= *period => Some(one_by_one(count.min(MOST_CASES + 1))),
        (Want::Period(period), _) if *period <= MOST_CASES => {
            let way = |r: i64| Way {
                value: Index::from(var.sym.clone()).times(&(*period).into()).plus(&r.into()),
                left: Some(var.extent.plus(&(period - 1 - r).into()).floor(*period)),
            };
            Some((0..*period).map(way).collect())
        }
        _ => None,
    }
}
