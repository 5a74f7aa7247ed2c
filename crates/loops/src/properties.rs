//! What the paper counts (section 2), from the loops themselves: operations of threads, whatever the device.
//!
//! Names are those of `core::counts`. Global accesses are told apart by width, direction and amortised stride fraction: the
//! distance of neighbouring lanes, below the share of the elements between them that the kernel uses too.

use crate::instance::Instance;
use crate::kernel::{Access, Array, Binary, Expr, Place, Stmt, Unary, visit};
use std::collections::{BTreeMap, BTreeSet};
use tilewright_core::dtype::DType;

/// Largest stride that is told apart.
const STRIDES: i64 = 4;

/// Numbers of properties by name.
pub type Properties = BTreeMap<String, f64>;

/// Counts the properties of an instance.
pub fn properties(instance: &Instance) -> Properties {
    let mut count = Count { instance, out: Properties::new(), used: BTreeMap::new() };
    let groups = instance.groups() as f64;
    count.add("constant", 1.0);
    count.add("groups", groups);
    let Ok(nest) = instance.kernel().nest() else { return count.out };
    count.residues(nest.body);
    count.body(nest.body, groups * instance.threads() as f64);
    let mut out = count.out;
    // What goes both ways may share its cost.
    let loads: Vec<(String, f64)> = out
        .iter()
        .filter_map(|(name, loads)| {
            let kind = name.strip_prefix("load.global.")?;
            let stores = out.get(&format!("store.global.{kind}"))?;
            Some((format!("overlap.global.{kind}"), loads.min(*stores)))
        })
        .collect();
    out.extend(loads);
    out
}

struct Count<'a> {
    instance: &'a Instance,
    out: Properties,
    /// For each array and stride, which elements between neighbouring lanes are used.
    used: BTreeMap<(&'static str, i64), BTreeSet<i64>>,
}

impl Count<'_> {
    fn add(&mut self, name: &str, amount: f64) {
        *self.out.entry(name.to_owned()).or_insert(0.0) += amount;
    }

    fn array(&self, access: &Access) -> Option<&Array> {
        self.instance.kernel().find_array(access.array).ok()
    }

    /// Elements from lane to lane.
    fn stride(&self, array: &Array, access: &Access) -> i64 {
        let nest = self.instance.kernel().nest();
        let lane = nest.ok().and_then(|n| n.threads.first().map(|(_, index)| *index));
        lane.map_or(0, |lane| self.instance.offset(array, &access.at).factor(lane).abs())
    }

    /// Notes which elements between lanes are used, by all accesses of an array with one stride.
    fn residues(&mut self, body: &[Stmt]) {
        let mut found: Vec<Access> = Vec::new();
        visit(body, &mut |stmt| stmt.accesses(&mut |access, _| found.push(access.clone())));
        for access in found {
            let Some(array) = self.array(&access) else { continue };
            let (name, stride) = (array.name, self.stride(array, &access));
            if stride < 2 {
                continue;
            }
            let offset = self.instance.offset(array, &access.at);
            let mut reached = BTreeSet::from([offset.constant.rem_euclid(stride)]);
            for (index, factor) in offset.terms().filter(|(_, factor)| factor % stride != 0) {
                let steps = self.instance.extent(index).min(stride);
                reached =
                    reached.iter().flat_map(|r| (0..steps).map(move |s| (r + s * factor).rem_euclid(stride))).collect();
            }
            self.used.entry((name, stride)).or_default().extend(reached);
        }
    }

    fn body(&mut self, body: &[Stmt], times: f64) {
        for stmt in body {
            match stmt {
                Stmt::For { index, body } => self.body(body, times * self.instance.extent(index) as f64),
                Stmt::Barrier => self.add("barrier", times),
                Stmt::Fetch { from, extents, .. } => {
                    let bits = self.instance.kernel().find_array(from).map_or(32, |a| 8 * a.dtype.size());
                    let elements = extents.iter().product::<i64>() as f64;
                    let amount = times / self.instance.threads() as f64 * elements;
                    self.add(&format!("load.global.{bits}@1"), amount);
                }
                _ => self.stmt(stmt, times),
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt, times: f64) {
        let mut touched: Vec<(Access, bool)> = Vec::new();
        stmt.accesses(&mut |access, writes| touched.push((access.clone(), writes)));
        let mut dtype = DType::F32;
        for (access, writes) in touched {
            let Some(array) = self.array(&access) else { continue };
            dtype = array.dtype;
            let bits = 8 * array.dtype.size();
            let atomic = matches!(stmt, Stmt::Store { atomic: true, .. });
            let name = match (array.place, writes) {
                (Place::Shared, false) => format!("load.shared.{bits}"),
                // The paper counts local loads alone.
                (Place::Shared, true) => continue,
                (Place::Global(_), true) if atomic => format!("atomic.global.{bits}"),
                (Place::Global(_), writes) => {
                    let step = self.step(array, &access);
                    format!("{}.global.{bits}@{step}", if writes { "store" } else { "load" })
                }
            };
            self.add(&name, times);
        }
        if let Stmt::Let { dtype: own, .. } = stmt {
            dtype = *own;
        }
        if let Some(value) = stmt.value() {
            let mut names = Vec::new();
            value.visit(&mut |e| names.extend(operation(e)));
            names.iter().for_each(|name| self.add(&format!("{name}.{dtype}"), times));
        }
    }

    /// The amortised stride fraction.
    fn step(&self, array: &Array, access: &Access) -> String {
        match self.stride(array, access) {
            stride @ (0 | 1) => stride.to_string(),
            stride => {
                let used = self.used.get(&(array.name, stride)).map_or(1, BTreeSet::len) as i64;
                let below = stride.min(STRIDES);
                let above = (used * below + stride - 1) / stride;
                let beyond = if stride > STRIDES { ">" } else { "" };
                format!("{above}/{beyond}{below}")
            }
        }
    }
}

fn operation(e: &Expr) -> Option<&'static str> {
    match e {
        Expr::Unary(Unary::Exp, _) => Some("exp"),
        Expr::Unary(Unary::Sqrt | Unary::Rsqrt, _) => Some("special"),
        Expr::Binary(Binary::Add | Binary::Sub, ..) => Some("add"),
        Expr::Binary(Binary::Mul, ..) => Some("mul"),
        Expr::Binary(Binary::Div, ..) => Some("div"),
        Expr::Fma(..) => Some("fma"),
        Expr::Number(_) | Expr::Index(_) | Expr::Load(_) | Expr::Local(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use crate::size::Sizes;

    fn of(kernel: crate::LoopKernel, sizes: &[(&'static str, i64)]) -> Properties {
        let sizes: Sizes = sizes.iter().copied().collect();
        properties(&Instance::new(kernel, &sizes).unwrap())
    }

    #[test]
    fn strides_are_amortised_by_what_is_used_between_them() {
        let filled = of(library::strided_sums(3, 128).unwrap(), &[("n", 256)]);
        assert_eq!(filled.get("load.global.32@3/3"), Some(&(3.0 * 256.0 * 256.0)));
        let gaps = of(library::scale_and_add(2, 128).unwrap(), &[("n", 256)]);
        assert_eq!(gaps.get("load.global.32@1/2"), Some(&512.0));
        assert_eq!(gaps.get("store.global.32@1/2"), Some(&256.0));
        assert_eq!(gaps.get("overlap.global.32@1/2"), Some(&256.0));
        let colours = of(library::convolution((16, 16)).unwrap(), &[("n", 16)]);
        assert_eq!(colours.get("load.global.32@3/3"), Some(&(256.0 * 9.0 * 147.0)));
        let far = of(library::uncoalesced(16, 128).unwrap(), &[("n", 128), ("k", 2)]);
        assert_eq!(far.get("load.global.32@1/>4"), Some(&256.0));
    }

    #[test]
    fn a_tiled_product_counts_its_tiles() {
        let p = of(library::matmul((16, 16)).unwrap(), &[("n", 64), ("m", 32), ("l", 48)]);
        let products = 64.0 * 32.0 * 48.0;
        assert_eq!(p.get("fma.f32"), Some(&products));
        assert_eq!(p.get("load.shared.32"), Some(&(2.0 * products)));
        assert_eq!(p.get("load.global.32@1"), Some(&(2.0 * products / 16.0)));
        assert_eq!(p.get("barrier"), Some(&(64.0 * 48.0 * 2.0 * 2.0)));
        assert_eq!(p.get("groups"), Some(&12.0));
    }
}
