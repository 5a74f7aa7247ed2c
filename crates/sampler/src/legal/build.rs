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
use tilewright_core::expr::{Expr, Val};
use tilewright_core::space::Param;

/// A part of a constraint, and the parameters that it mentions.
struct Part {
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
    if !narrow(params, &mut parts, &mut kept) {
        return Ok(LegalSet::empty(params));
    }
    let groups = groups(params.len(), &kept, &parts);
    if let Some(group) = groups.iter().find(|g| g.len() > MAX_LINKED) {
        return Err(LegalError::TooManyLinked { found: group.len(), limit: MAX_LINKED });
    }
    let one = |group: &Vec<usize>| one_group(params, &kept, &parts, group);
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
    for constraint in &description.constraints {
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
                    out.push(Part { test: PartTest::Expr(e), scope });
                }
            }
            Test::Closure(names, holds) => {
                let arguments: Vec<usize> = names.iter().map(|n| find(n)).collect::<Result<_, _>>()?;
                let mut scope = arguments.clone();
                scope.sort_unstable();
                scope.dedup();
                out.push(Part { test: PartTest::Closure(holds.clone(), arguments), scope });
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
fn narrow(params: &[Param], parts: &mut Vec<Part>, kept: &mut [Vec<u16>]) -> bool {
    loop {
        for part in parts.iter_mut() {
            fix(params, kept, part);
        }
        let mut changed = false;
        for part in parts.iter().filter(|p| p.scope.len() <= 1) {
            let Some(&param) = part.scope.first() else {
                if holds(part, &[], &[]) {
                    continue;
                }
                return false;
            };
            let names = [params[param].name.as_str()];
            let compiled = if let PartTest::Expr(e) = &part.test { e.compile(&names).ok() } else { None };
            let before = kept[param].len();
            kept[param].retain(|&i| {
                let value = params[param].values[usize::from(i)].as_val();
                match &compiled {
                    Some(compiled) => matches!(compiled.holds(&[value]), Ok(true)),
                    None => holds(part, &names, &[value]),
                }
            });
            // A parameter down to one value is a constant for the others.
            changed |= kept[param].len() < before && kept[param].len() <= 1;
        }
        parts.retain(|p| p.scope.len() > 1);
        if kept.iter().any(Vec::is_empty) {
            return false;
        }
        if !changed {
            break;
        }
    }
    for part in parts.iter_mut() {
        fix(params, kept, part);
    }
    true
}

/// Whether a part of at most one parameter holds.
fn holds(part: &Part, names: &[&str], values: &[Val<'_>]) -> bool {
    match &part.test {
        PartTest::Expr(e) => e.compile(names).is_ok_and(|c| matches!(c.holds(values), Ok(true))),
        PartTest::Closure(holds, arguments) => {
            let values: Vec<Val<'_>> = arguments.iter().filter_map(|_| values.first().copied()).collect();
            holds(&values)
        }
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
    params: &[Param],
    kept: &[Vec<u16>],
    parts: &[Part],
    group: &[usize],
) -> Result<Option<Vec<Layer>>, LegalError> {
    let domain = |&p: &usize| {
        let values = kept[p].iter().map(|&i| params[p].values[usize::from(i)].as_val()).collect();
        Domain { name: &params[p].name, values }
    };
    let domains: Vec<Domain<'_>> = group.iter().map(domain).collect();
    let place = |p: &usize| group.iter().position(|g| g == p);
    let sources = parts.iter().filter(|part| part.scope.first().is_some_and(|p| group.contains(p)));
    let sources = sources.map(|part| match &part.test {
        PartTest::Expr(e) => Source::Expr(e.clone()),
        PartTest::Closure(holds, arguments) => Source::Closure(&**holds, arguments.iter().filter_map(place).collect()),
    });
    match Component::new(domains, sources.collect()) {
        Some(mut component) => layers(&mut component).map(Some),
        None => Ok(None),
    }
}
