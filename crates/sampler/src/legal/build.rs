//! From a description to a diagram: values that no constraint of one parameter excludes, components, layers, levels.

use super::arena::MAX_LINKED;
use super::component::Component;
use super::description::{Description, Test};
use super::diagram::{Below, Level};
use super::layers::{Layer, Layers, layers};
use super::lower::{Domain, conjuncts};
use super::narrow::{Undefined, narrow};
use super::set::LegalSet;
use super::{LegalError, walk};
use rayon::prelude::*;
use tilewright_core::expr::Expr;
use tilewright_core::space::Param;

/// What [`conjuncts`] takes a constraint apart into.
pub(super) struct Part {
    /// The constraint, by its position in the description.
    pub(super) origin: usize,
    pub(super) test: Test<Expr, usize>,
    /// The parameters that it mentions.
    pub(super) params: Vec<usize>,
    /// Those of them that values have not been put in for.
    pub(super) scope: Vec<usize>,
}

pub(super) fn build(description: &Description) -> Result<LegalSet, LegalError> {
    let params = &description.params;
    Param::check(params)?;
    if let Some(points) = &description.listed {
        return walk::from_list(params, points);
    }
    let mut parts = parts(description)?;
    let mut kept: Vec<Vec<u16>> = params.iter().map(|p| (0..p.values.len() as u16).collect()).collect();
    let Some(mut faults) = narrow(params, &mut parts, &mut kept, !description.lenient) else {
        return Ok(LegalSet::empty(params));
    };
    let groups = groups(params.len(), &kept, &parts);
    if let Some(group) = groups.iter().find(|g| g.len() > MAX_LINKED) {
        return Err(LegalError::TooManyLinked { found: group.len(), limit: MAX_LINKED });
    }
    let one = |group: &Vec<usize>| one_group(description, &kept, &parts, group);
    // Small components take less time than a thread to wake up.
    let large = |g: &&Vec<usize>| g.iter().map(|&p| kept[p].len() as f64).product::<f64>() > 1e5;
    let found: Result<Vec<Option<Followed>>, LegalError> = if groups.iter().filter(large).count() > 1 {
        groups.par_iter().map(one).collect()
    } else {
        groups.iter().map(one).collect()
    };
    // A fault counts only where every component leaves something: what one excludes, it excludes with all values of the
    // others. The same rule then holds within components and between them.
    let Some(followed) = found?.into_iter().collect::<Option<Vec<Followed>>>() else {
        return Ok(LegalSet::empty(params));
    };
    let (layers, of_groups): (Vec<Vec<Layer>>, Vec<Option<Undefined>>) = followed.into_iter().unzip();
    faults.extend(of_groups.into_iter().flatten());
    match faults.into_iter().min_by_key(|fault| fault.origin) {
        Some(first) => Err(first.of(description)),
        None => stack(params, &kept, &groups, &layers),
    }
}

/// The layers of a component, and a constraint without a value where no other is false.
type Followed = (Vec<Layer>, Option<Undefined>);

/// Puts the components one behind the other, the last one's points counted first.
fn stack(
    params: &[Param],
    kept: &[Vec<u16>],
    groups: &[Vec<usize>],
    found: &[Vec<Layer>],
) -> Result<LegalSet, LegalError> {
    let mut levels = Vec::new();
    let mut points = 1u64;
    for (group, layers) in groups.iter().zip(found).rev() {
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
                    out.push(Part { origin, test: Test::Expr(e), params: scope.clone(), scope });
                }
            }
            Test::Closure(holds, names) => {
                let arguments: Vec<usize> = names.iter().map(|n| find(n)).collect::<Result<_, _>>()?;
                let mut scope = arguments.clone();
                scope.sort_unstable();
                scope.dedup();
                let test = Test::Closure(holds.clone(), arguments);
                out.push(Part { origin, test, params: scope.clone(), scope });
            }
        }
    }
    Ok(out)
}

/// The parameters of an expression, sorted.
fn scope(e: &Expr, find: impl Fn(&str) -> Result<usize, LegalError>) -> Result<Vec<usize>, LegalError> {
    let mut out = e.names().iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    out.sort_unstable();
    Ok(out)
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

/// The layers of a component; none where every combination of its values breaks a constraint.
fn one_group(
    description: &Description,
    kept: &[Vec<u16>],
    parts: &[Part],
    group: &[usize],
) -> Result<Option<Followed>, LegalError> {
    let params = &description.params;
    let domain = |&p: &usize| {
        let values = kept[p].iter().map(|&i| params[p].values[usize::from(i)].as_val()).collect();
        Domain { name: &params[p].name, values }
    };
    let domains: Vec<Domain<'_>> = group.iter().map(domain).collect();
    let place = |p: &usize| group.iter().position(|g| g == p);
    let own: Vec<&Part> = parts.iter().filter(|p| p.scope.first().is_some_and(|p| group.contains(p))).collect();
    let sources = own.iter().map(|part| match &part.test {
        Test::Expr(e) => Test::Expr(e.clone()),
        Test::Closure(holds, arguments) => Test::Closure(holds.clone(), arguments.iter().filter_map(place).collect()),
    });
    let component = Component::new(domains, sources.collect(), !description.lenient);
    let Some(mut component) = component else { return Ok(None) };
    let Some(Layers { layers, fault }) = layers(&mut component)? else { return Ok(None) };
    let fault = fault.map(|fault| {
        let at = |param: usize| {
            let chosen = fault.at.iter().find(|(var, _)| group[*var] == param);
            chosen.map(|&(_, position)| kept[param][usize::from(position)])
        };
        Undefined::new(own[fault.source], kept, at, fault.error.clone())
    });
    Ok(Some((layers, fault)))
}
