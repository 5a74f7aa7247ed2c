//! Sums over thresholds in closed form.
//!
//! With blocks of `L` rows on a matrix of `P`, `ceil(P / L)` of them, a row `h` of the tile is inside of `floor(P / L)` blocks,
//! and of one more where `P mod L > h`. Summed over the rows of a tile, or over a regular part of it, that is a
//! quasi-polynomial: `P` for all rows, `4 floor(P / 16) + min(P mod 16, 4)` for the first four of every sixteen.

use super::CountError;
use super::facts::{Facts, is_never_negative};
use crate::ir::{Atom, Index, Sym};
use std::collections::BTreeMap;
use tilewright_core::counts::{CountsBuilder, Expr};

/// How often each threshold is asked for.
pub(super) type Thresholds = BTreeMap<i64, i64>;

/// A variable from 0 to below its extent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Var {
    pub(super) sym: Sym,
    pub(super) extent: Index,
}

/// An index in sizes alone.
pub(super) fn expr(b: &mut CountsBuilder, index: &Index) -> Result<Expr, CountError> {
    let mut terms = Vec::new();
    for (factors, c) in index.terms() {
        let mut product = b.constant(1);
        for factor in factors {
            let factor = atom(b, factor)?;
            product = b.mul(product, factor);
        }
        terms.push((product, c));
    }
    Ok(b.sum(terms, 0))
}

fn atom(b: &mut CountsBuilder, atom: &Atom) -> Result<Expr, CountError> {
    Ok(match atom {
        Atom::Sym(Sym::Param(name)) => b.size(name),
        Atom::Sym(_) => return Err(no_form("a number that blocks or iterations differ in", &atom.clone().into())),
        Atom::Xor(..) => return Err(no_form("bits of a size", &atom.clone().into())),
        Atom::Floor(a, by) => {
            let a = expr(b, a)?;
            b.floor(a, *by)
        }
        Atom::Mod(a, by) => {
            let a = expr(b, a)?;
            b.rem(a, *by)
        }
        Atom::Quotient(x, y) => {
            let (x, y) = (expr(b, x)?, expr(b, y)?);
            b.quotient(x, y)
        }
        Atom::Min(x, y) => {
            let (x, y) = (expr(b, x)?, expr(b, y)?);
            b.min(x, y)
        }
        Atom::Max(x, y) => {
            let (x, y) = (expr(b, x)?, expr(b, y)?);
            b.max(x, y)
        }
    })
}

pub(super) fn no_form(what: &'static str, index: &Index) -> CountError {
    CountError::NotCountable { place: "launch".into(), what, index: index.to_string() }
}

/// `a / b`, rounded up.
pub(super) fn ceil(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) > 0)
}

/// `index = rest + coefficient * sym`.
pub(super) fn affine(index: &Index, sym: &Sym) -> (Index, Index) {
    let rest = index.substitute(sym, &Index::from(0));
    let coefficient = index.substitute(sym, &Index::from(1)).minus(&rest);
    (rest, coefficient)
}

/// The sum over thresholds `h`, times how often, of the values of `var` with `axis > h`; without a variable of `[axis > h]`.
pub(super) fn sum(
    b: &mut CountsBuilder,
    axis: &Index,
    var: Option<&Var>,
    thresholds: &Thresholds,
    facts: &Facts,
) -> Result<Expr, CountError> {
    let Some(var) = var else {
        let axis = expr(b, axis)?;
        return Ok(staircase(b, axis, thresholds));
    };
    let (rest, coefficient) = affine(axis, &var.sym);
    if let (Some(rest), Some(c), Some(extent)) = (rest.constant(), coefficient.constant(), var.extent.constant()) {
        let above = |(h, times): (&i64, &i64)| times * values_above(h - rest, c, extent);
        return Ok(b.constant(thresholds.iter().map(above).sum()));
    }
    match coefficient.constant() {
        Some(c) if c < 0 && covers(&var.extent, &rest, -c) => tiles(b, (&rest, -c), var, thresholds, facts),
        _ => {
            let mut terms = Vec::new();
            for (h, times) in thresholds {
                terms.push((between(b, var, &[(axis, *h)])?, *times));
            }
            Ok(b.sum(terms, 0))
        }
    }
}

/// The numbers `v` from 0 to below the extent with `c v > h`.
fn values_above(h: i64, c: i64, extent: i64) -> i64 {
    let extent = extent.max(0);
    match c {
        0 => extent * i64::from(h < 0),
        1.. => extent - (h.div_euclid(c) + 1).clamp(0, extent),
        // v < -h / -c.
        _ => ceil(-h, -c).clamp(0, extent),
    }
}

/// Whether the extent is the number of tiles of that length that `rest` has, or more.
fn covers(extent: &Index, rest: &Index, length: i64) -> bool {
    let tiles = |index: &Index| {
        let inner = match (index.atom(), length) {
            (_, 1) => index.clone(),
            (Some(Atom::Floor(inner, by)), _) if *by == length => inner.minus(&(length - 1).into()),
            _ => return false,
        };
        inner.minus(rest).constant().is_some_and(|c| c >= 0)
    };
    // Lines that are shared out in passes: passes = ceil(lines / blocks), and blocks * passes of them are gone through.
    let shared_out = || {
        let (factors, c) = extent.terms().next()?;
        let ([a, b], 1, 1) = (factors, c, extent.terms().count()) else { return None };
        let pair = |blocks: &Atom, passes: &Atom| {
            let Atom::Quotient(above, by) = passes else { return false };
            let blocks = Index::from(blocks.clone());
            **by == blocks && tiles(&above.plus(&1.into()).minus(&blocks))
        };
        Some(pair(a, b) || pair(b, a))
    };
    // Whole tiles: length * extent is what is divided into them.
    tiles(extent)
        || shared_out() == Some(true)
        || extent.times(&length.into()).minus(rest).constant().is_some_and(|c| c >= 0)
}

/// [`sum`] over tiles of a length, as many as are needed.
fn tiles(
    b: &mut CountsBuilder,
    (rest, length): (&Index, i64),
    var: &Var,
    thresholds: &Thresholds,
    facts: &Facts,
) -> Result<Expr, CountError> {
    let mut total = expr(b, rest)?;
    if !facts.covers(rest) {
        let zero = b.constant(0);
        total = b.max(total, zero);
    }
    let mut terms = Vec::new();
    let mut within = Thresholds::new();
    for (&h, &times) in thresholds {
        if (0..length).contains(&h) {
            within.insert(h, times);
        } else if h >= length {
            // Further tiles begin later.
            let here = tiles(b, (rest, length), var, &Thresholds::from([(h % length, 1)]), facts)?;
            let (mut later, zero) = (b.offset(here, -(h / length)), b.constant(0));
            if length > 1 || !facts.covers(&rest.minus(&h.into())) {
                later = b.max(later, zero);
            }
            terms.push((later, times));
        } else {
            let index = rest.minus(&Index::from(var.sym.clone()).times(&length.into()));
            terms.push((between(b, var, &[(&index, h)])?, times));
        }
    }
    let period = period(&within, length);
    let first: Thresholds = within.range(..period).map(|(h, c)| (*h, *c)).collect();
    if let (Some((h, times)), 1) = (first.first_key_value(), first.len()) {
        // floor(P / p) + [P mod p > h].
        let whole = b.offset(total, period - 1 - h);
        terms.push((b.floor(whole, period), *times));
        return Ok(b.sum(terms, 0));
    }
    let each = first.values().sum::<i64>();
    let whole = b.floor(total, period);
    let part = b.rem(total, period);
    let part = staircase(b, part, &first);
    terms.extend([(whole, each), (part, 1)]);
    Ok(b.sum(terms, 0))
}

/// The smallest divisor of the length that thresholds repeat with.
fn period(thresholds: &Thresholds, length: i64) -> i64 {
    let repeats = |p: i64| thresholds.iter().all(|(h, times)| thresholds.get(&((h + p) % length)) == Some(times));
    // With `n` thresholds, at most `n` periods fit in.
    let most = thresholds.len() as i64;
    let fits = (1..=most).rev().filter(|n| length % n == 0 && most % n == 0).map(|n| length / n);
    fits.into_iter().find(|p| repeats(*p)).unwrap_or(length)
}

/// The sum of `times * [x > h]`: runs of equally distant thresholds at once.
fn staircase(b: &mut CountsBuilder, x: Expr, thresholds: &Thresholds) -> Expr {
    let all: Vec<(i64, i64)> = thresholds.iter().map(|(h, c)| (*h, *c)).filter(|(_, c)| *c != 0).collect();
    let (mut terms, mut at) = (Vec::new(), 0);
    while let Some(&(first, times)) = all.get(at) {
        let distance = all.get(at + 1).map_or(1, |(h, _)| h - first);
        let is_next = |i: usize| all.get(at + i) == Some(&(first + distance * i as i64, times));
        let count = (1..).find(|i| !is_next(*i)).unwrap_or(1);
        let above = b.offset(x, -first);
        let run = if count == 1 {
            b.positive(above)
        } else {
            let (steps, most) = (b.ceil(above, distance), b.constant(count as i64));
            b.clamp(steps, most)
        };
        terms.push((run, times));
        at += count;
    }
    b.sum(terms, 0)
}

/// The values of a variable with which all of several axes are above their thresholds.
pub(super) fn between(b: &mut CountsBuilder, var: &Var, above: &[(&Index, i64)]) -> Result<Expr, CountError> {
    let most = expr(b, &var.extent)?;
    let (mut low, mut high) = (b.constant(0), most);
    for (axis, h) in above {
        let (rest, coefficient) = affine(axis, &var.sym);
        let (falls, rises) = (is_never_negative(&coefficient.times(&Index::from(-1))), is_never_negative(&coefficient));
        let h = Index::from(*h);
        if falls {
            // rest - c v > h: v < ceil((rest - h) / c).
            let c = coefficient.times(&Index::from(-1));
            let (x, c) = (expr(b, &rest.minus(&h).plus(&c).minus(&1.into()))?, expr(b, &c)?);
            let end = b.quotient(x, c);
            high = b.min(high, end);
        } else if rises {
            // rest + c v > h: v > floor((h - rest) / c).
            let (x, c) = (expr(b, &h.minus(&rest).plus(&coefficient))?, expr(b, &coefficient)?);
            let begin = b.quotient(x, c);
            low = b.max(low, begin);
        } else {
            return Err(no_form("a condition whose direction depends on sizes", axis));
        }
    }
    let (count, zero) = (b.sub(high, low), b.constant(0));
    Ok(b.max(count, zero))
}
