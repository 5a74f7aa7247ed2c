//! From a description to a diagram: values that no constraint of one parameter excludes, components, layers, levels.

use super::arena::MAX_LINKED;
use super::component::{Component, Source};
use super::description::{Closure, Description, Test};
use super::diagram::{Below, Level};
use super::layers::{Layer, layers};
use super::lower::{Domain, conjuncts, constant};
use super::set::LegalSet;
use super::{LegalError, walk};
use rayon::prelude::*;
use tilewright_core::expr::{Compiled, EvalError, Expr, Val};
use tilewright_core::space::{Config, Param};

/// A part of a constraint, and the parameters that it mentions.
struct Part {
    /// The constraint, by its position in the description.
    origin: usize,
    test: PartTest,
    scope: Vec<usize>,
}

enum PartTest {
    Expr(Expr),
    /// With the parameters in the order of its arguments.
    Closure(Closure, Vec<usize>),
}

pub(super) fn build(description: &Description) -> Result<LegalSet, LegalError> {
    let params = &description.params;
    check_params(params)?;
    if let Some(points) = &description.listed {
        return walk::from_list(params, points);
    }
    let mut parts = parts(description)?;
    let mut kept: Vec<Vec<u16>> = params.iter().map(|p| (0..p.values.len() as u16).collect()).collect();
    let possible = narrow(params, &mut parts, &mut kept, !description.lenient);
    let fault = |u: Undefined| u.of(description);
    if !possible.map_err(fault)? {
        return Ok(LegalSet::empty(params));
    }
    let groups = groups(params.len(), &kept, &parts);
    if let Some(group) = groups.iter().find(|g| g.len() > MAX_LINKED) {
        return Err(LegalError::TooManyLinked { found: group.len(), limit: MAX_LINKED });
    }
    let one = |group: &Vec<usize>| one_group(description, &kept, &parts, group);
    // Small components take less time than a thread to wake up.
    let large = |g: &&Vec<usize>| g.iter().map(|&p| kept[p].len() as f64).product::<f64>() > 1e5;
    let found: Result<Vec<Option<Vec<Layer>>>, LegalError> = if groups.iter().filter(large).count() > 1 {
        groups.par_iter().map(one).collect()
    } else {
        groups.iter().map(one).collect()
    };
    stack(params, &kept, &groups, found?)
}

/// Puts the components one behind the other, the last one's points counted first.
fn stack(
    params: &[Param],
    kept: &[Vec<u16>],
    groups: &[Vec<usize>],
    found: Vec<Option<Vec<Layer>>>,
) -> Result<LegalSet, LegalError> {
    let mut levels = Vec::new();
    let mut points = 1u64;
    for (group, layers) in groups.iter().zip(found).rev() {
        let Some(layers) = layers else { return Ok(LegalSet::empty(params)) };
        let mut below = Below::terminal(points);
        for layer in layers.iter().rev() {
            let param = group[layer.var];
            let (level, next) = Level::reduce(layer, param, &kept[param], &below)?;
            levels.push(level);
            below = next;
        }
        points = below.points();
        if points == 0 {
            return Ok(LegalSet::empty(params));
        }
    }
    levels.reverse();
    let fixed = kept.iter().enumerate().filter(|(_, k)| k.len() == 1).map(|(p, k)| (p, k[0])).collect();
    Ok(LegalSet::of_levels(params, levels, fixed, points))
}

fn check_params(params: &[Param]) -> Result<(), LegalError> {
    for (i, p) in params.iter().enumerate() {
        if p.values.is_empty() {
            return Err(LegalError::NoValues(p.name.clone()));
        }
        if p.values.len() > usize::from(u16::MAX) {
            return Err(LegalError::TooManyValues { name: p.name.clone(), count: p.values.len() });
        }
        if params[..i].iter().any(|other| other.name == p.name) {
            return Err(LegalError::Duplicate(p.name.clone()));
        }
    }
    Ok(())
}

fn parts(description: &Description) -> Result<Vec<Part>, LegalError> {
    let params = &description.params;
    let mut out = Vec::with_capacity(description.constraints.len());
    for (origin, constraint) in description.constraints.iter().enumerate() {
        let find = |name: &str| {
            params.iter().position(|p| p.name == name).ok_or_else(|| LegalError::UnknownName {
                constraint: constraint.name.clone(),
                name: name.to_owned(),
                known: params.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(" "),
            })
        };
        match &constraint.test {
            Test::Expr(e) => {
                let mut list = Vec::new();
                conjuncts(e, &mut list);
                for e in list {
                    let scope = scope(&e, find)?;
                    out.push(Part { origin, test: PartTest::Expr(e), scope });
                }
            }
            Test::Closure(names, holds) => {
                let arguments: Vec<usize> = names.iter().map(|n| find(n)).collect::<Result<_, _>>()?;
                let mut scope = arguments.clone();
                scope.sort_unstable();
                scope.dedup();
                out.push(Part { origin, test: PartTest::Closure(holds.clone(), arguments), scope });
            }
        }
    }
    Ok(out)
}

/// The parameters of an expression, sorted.
fn scope(e: &Expr, find: impl Fn(&str) -> Result<usize, LegalError>) -> Result<Vec<usize>, LegalError> {
    let mut out = Vec::new();
    let mut fault = None;
    e.visit(&mut |e| {
        if let Expr::Name(name) = e {
            match find(name) {
                Ok(at) if !out.contains(&at) => out.push(at),
                Ok(_) => {}
                Err(e) => fault = fault.take().or(Some(e)),
            }
        }
    });
    out.sort_unstable();
    fault.map_or(Ok(out), Err)
}

/// Applies the parts that mention one parameter or none until nothing changes, and drops them. False if nothing is left.
fn narrow(params: &[Param], parts: &mut Vec<Part>, kept: &mut [Vec<u16>], strict: bool) -> Result<bool, Undefined> {
    loop {
        for part in parts.iter_mut() {
            fix(params, kept, part);
        }
        let mut changed = false;
        for param in 0..params.len() {
            let own: Vec<&Part> = parts.iter().filter(|p| p.scope == [param]).collect();
            if own.is_empty() {
                continue;
            }
            let before = kept[param].len();
            let mut fault = None;
            let tests: Vec<Single<'_>> = own.iter().map(|part| Single::new(part, params)).collect();
            kept[param].retain(|&i| {
                let value = params[param].values[usize::from(i)].as_val();
                let outcomes: Vec<Result<bool, EvalError>> = tests.iter().map(|t| t.holds(value)).collect();
                let excluded = outcomes.contains(&Ok(false));
                if let (false, Some(at)) = (excluded, outcomes.iter().position(Result::is_err)) {
                    let error = outcomes[at].clone().err().unwrap_or(EvalError::DivisionByZero);
                    fault.get_or_insert(Undefined { origin: own[at].origin, at: vec![(param, i)], error });
                }
                outcomes.iter().all(|o| *o == Ok(true))
            });
            if let (true, Some(fault)) = (strict, fault) {
                return Err(fault);
            }
            // A parameter down to one value is a constant for the others.
            changed |= kept[param].len() < before && kept[param].len() <= 1;
        }
        for part in parts.iter().filter(|p| p.scope.is_empty()) {
            match Single::new(part, params).holds(Val::Int(0)) {
                Ok(true) => {}
                Err(error) if strict => return Err(Undefined { origin: part.origin, at: Vec::new(), error }),
                _ => return Ok(false),
            }
        }
        parts.retain(|p| p.scope.len() > 1);
        if kept.iter().any(Vec::is_empty) {
            return Ok(false);
        }
        if !changed {
            break;
        }
    }
    for part in parts.iter_mut() {
        fix(params, kept, part);
    }
    Ok(true)
}

/// A part of at most one parameter.
enum Single<'a> {
    Expr(Option<Compiled>),
    Closure(&'a Closure, usize),
}

impl<'a> Single<'a> {
    fn new(part: &'a Part, params: &[Param]) -> Self {
        match &part.test {
            PartTest::Expr(e) => {
                let names: Vec<&str> = part.scope.iter().map(|&p| params[p].name.as_str()).collect();
                Self::Expr(e.compile(&names).ok())
            }
            PartTest::Closure(holds, arguments) => Self::Closure(holds, arguments.len()),
        }
    }

    fn holds(&self, value: Val<'_>) -> Result<bool, EvalError> {
        match self {
            Self::Expr(compiled) => compiled.as_ref().map_or(Ok(false), |c| c.holds(&[value])),
            Self::Closure(holds, arguments) => Ok(holds(&vec![value; *arguments])),
        }
    }
}

/// A constraint without a value, by positions.
pub(super) struct Undefined {
    pub(super) origin: usize,
    /// Parameters and indices of their values.
    pub(super) at: Vec<(usize, u16)>,
    pub(super) error: EvalError,
}

impl Undefined {
    fn of(self, description: &Description) -> LegalError {
        let value = |(p, i): (usize, u16)| {
            let param = &description.params[p];
            (param.name.clone(), param.values[usize::from(i)].clone())
        };
        let constraint = description.constraints.get(self.origin).map_or(String::new(), |c| c.name.clone());
        LegalError::Undefined { constraint, at: Config(self.at.into_iter().map(value).collect()), error: self.error }
    }
}

/// Replaces parameters of a single value by it. Closures keep theirs.
fn fix(params: &[Param], kept: &[Vec<u16>], part: &mut Part) {
    let PartTest::Expr(e) = &mut part.test else { return };
    let single = |p: &usize| matches!(kept[*p].as_slice(), [_]);
    if !part.scope.iter().any(single) {
        return;
    }
    *e = e.substitute(&|name| {
        let at = part.scope.iter().copied().find(|&p| params[p].name == name)?;
        match kept[at].as_slice() {
            [only] => Some(constant(params[at].values[usize::from(*only)].as_val())),
            _ => None,
        }
    });
    part.scope.retain(|p| !single(p));
}

/// Parameters that constraints link, those with one value left out of it unless a closure asks for them.
fn groups(params: usize, kept: &[Vec<u16>], parts: &[Part]) -> Vec<Vec<usize>> {
    let mut root: Vec<usize> = (0..params).collect();
    fn find(root: &[usize], mut at: usize) -> usize {
        while root[at] != at {
            at = root[at];
        }
        at
    }
    let mut wanted: Vec<bool> = kept.iter().map(|k| k.len() > 1).collect();
    for part in parts {
        for &p in &part.scope {
            wanted[p] = true;
            let (a, b) = (find(&root, part.scope[0]), find(&root, p));
            root[b.max(a)] = a.min(b);
        }
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); params];
    for p in (0..params).filter(|&p| wanted[p]) {
        out[find(&root, p)].push(p);
    }
    out.retain(|g| !g.is_empty());
    out
}

/// The layers of a component; none if a constraint never holds.
fn one_group(
    description: &Description,
    kept: &[Vec<u16>],
    parts: &[Part],
    group: &[usize],
) -> Result<Option<Vec<Layer>>, LegalError> {
    let params = &description.params;
    let domain = |&p: &usize| {
        let values = kept[p].iter().map(|&i| params[p].values[usize::from(i)].as_val()).collect();
        Domain { name: &params[p].name, values }
    };
    let domains: Vec<Domain<'_>> = group.iter().map(domain).collect();
    let place = |p: &usize| group.iter().position(|g| g == p);
    let own: Vec<&Part> = parts.iter().filter(|p| p.scope.first().is_some_and(|p| group.contains(p))).collect();
    let sources = own.iter().map(|part| match &part.test {
        PartTest::Expr(e) => Source::Expr(e.clone()),
        PartTest::Closure(holds, arguments) => Source::Closure(&**holds, arguments.iter().filter_map(place).collect()),
    });
    let Some(mut component) = Component::new(domains, sources.collect()) else { return Ok(None) };
    if !description.lenient
        && let Some(fault) = component.undefined()
    {
        let at = fault.at.into_iter().map(|(var, position)| (group[var], kept[group[var]][position]));
        return Err(
            Undefined { origin: own[fault.source].origin, at: at.collect(), error: fault.error }.of(description)
        );
    }
    layers(&mut component).map(Some)
}
