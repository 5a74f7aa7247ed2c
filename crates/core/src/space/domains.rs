//! Values that a parameter can take at all, for this device and input.

use super::BoundSpace;
use crate::expr::Value;

impl BoundSpace {
    /// By parameter, the indices of the values that no rule excludes on its own: rules that mention only this parameter,
    /// symbols, and parameters that are down to a single value are applied until nothing changes. The product of these
    /// lists is the space of *possible* configurations (ISAAC, section 4) for the input at hand; every legal point is
    /// in it. A list may be empty: then nothing is legal.
    pub fn domains(&self) -> &[Vec<u16>] {
        self.domains.get_or_init(|| self.find_domains())
    }

    fn find_domains(&self) -> Vec<Vec<u16>> {
        let all = |n: usize| (0..n as u16).collect::<Vec<_>>();
        let mut domains: Vec<Vec<u16>> = self.params().iter().map(|p| all(p.values.len())).collect();
        let mut rules: Vec<_> = self.rules().iter().map(|r| r.expr.fold(&|n| self.symbol(n))).collect();
        loop {
            let single = |n: &str| {
                let at = self.params().iter().position(|p| p.name == n)?;
                match domains[at].as_slice() {
                    [only] => Some(self.params()[at].values[usize::from(*only)].clone()),
                    _ => None,
                }
            };
            rules = rules.iter().map(|r| r.fold(&single)).collect();
            let mut changed = false;
            for (at, param) in self.params().iter().enumerate() {
                let before = domains[at].len();
                let mine: Vec<_> = rules.iter().filter(|r| r.names().iter().eq([&param.name])).collect();
                domains[at].retain(|&i| {
                    let value = &param.values[usize::from(i)];
                    mine.iter().all(|r| truthy(&r.fold(&|n| (n == param.name).then(|| value.clone()))))
                });
                changed |= domains[at].len() < before;
            }
            if !changed {
                return domains;
            }
        }
    }

    /// A symbol that is no parameter.
    fn symbol(&self, name: &str) -> Option<Value> {
        if self.params().iter().any(|p| p.name == name) { None } else { self.symbols().get(name).cloned() }
    }
}

/// Whether an expression without names is true; one that has no value does not hold.
fn truthy(expr: &crate::expr::Expr) -> bool {
    expr.eval_with(&|_| None).is_ok_and(|v| v.as_val().truthy())
}

#[cfg(test)]
mod tests {
    use crate::space::{Param, ParamSpace, RuleGroup, Symbols};

    #[test]
    fn single_values_reach_other_parameters() {
        let space = ParamSpace::builder()
            .param(Param::ints("vec", [16, 32, 64]))
            .param(Param::ints("m_s", [4, 6, 8, 16]))
            .param(Param::ints("n_s", [1, 2]))
            .rule("vec", RuleGroup::Hardware, "vec == widest", "")
            .rule("whole", RuleGroup::Implementation, "m_s % (vec // 4) == 0", "")
            .rule("both", RuleGroup::Hardware, "m_s * n_s <= 16", "")
            .build()
            .unwrap();
        let bound = space.bind(&Symbols::new().with("widest", 32)).unwrap();
        assert_eq!(bound.domains(), [vec![1], vec![2, 3], vec![0, 1]]);
        let domains = bound.domains();
        bound.for_each_legal(|p| {
            assert!(p.iter().zip(domains).all(|(i, d)| d.contains(i)));
            true
        });
        let none = space.bind(&Symbols::new().with("widest", 48)).unwrap();
        assert!(none.domains()[0].is_empty());
    }
}
