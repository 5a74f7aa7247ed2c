//! What guards ask, as conditions on threads.

use super::CountError;
use super::lanes::Condition;
use super::walk::Walk;
use crate::ir::{Compare, Comparison, Cond, Index, Sym};

impl Walk<'_> {
    /// What stands for a number that the program does not tell: a statistic, if it is given. `None` where the program tells it.
    pub(super) fn statistic(&self, index: &Index, name: &str) -> Result<Option<Index>, CountError> {
        if index.all(|s| !matches!(s, Sym::Opaque(_) | Sym::Turn { .. })) {
            return Ok(None);
        }
        let (place, what) = (self.here(), index.to_string());
        let statistic = format!("{place}.{name}");
        let given = self.launch.statistics.contains(&statistic).then(|| Some(Index::param(&statistic)));
        given.ok_or_else(|| CountError::DataDependent { place, what, statistics: vec![statistic] })
    }

    /// The condition that so many threads of a block meet: the first ones.
    pub(super) fn first(&mut self, threads: &Index) -> Result<Option<Condition>, CountError> {
        let place = &self.place;
        self.lanes.positive(&|| place.join("/"), &threads.minus(&Sym::Tid.into()))
    }

    pub(super) fn conditions(&mut self, cond: &Cond) -> Result<Vec<Condition>, CountError> {
        let mut out = Vec::new();
        for comparison in &cond.0 {
            self.comparison(comparison, &mut out)?;
        }
        Ok(out)
    }

    fn comparison(&mut self, c: &Comparison, out: &mut Vec<Condition>) -> Result<(), CountError> {
        if c.cmp == Compare::Lt && self.known.tells(&c.left) {
            let (with, ask) = self.ask(&c.left, &c.right)?;
            if let Some(cond) = with {
                out.extend(self.conditions(&cond)?);
            }
            out.push(Condition::asks(ask));
            return Ok(());
        }
        let difference = self.sized(&c.left).minus(&self.sized(&c.right));
        if let Some(threads) = self.statistic(&difference, "threads")? {
            out.extend(self.first(&threads)?);
            return Ok(());
        }
        let negative = || difference.times(&Index::from(-1));
        let or_equal = |index: Index| index.plus(&1.into());
        let all = match c.cmp {
            Compare::Gt => vec![difference],
            Compare::Ge => vec![or_equal(difference)],
            Compare::Lt => vec![negative()],
            Compare::Le => vec![or_equal(negative())],
            Compare::Eq => vec![or_equal(negative()), or_equal(difference)],
            Compare::Ne => return self.different(&difference, out),
        };
        for index in all {
            let place = &self.place;
            out.extend(self.lanes.positive(&|| place.join("/"), &index)?);
        }
        Ok(())
    }

    /// `index != 0`, which the counter has no axis for.
    fn different(&mut self, index: &Index, out: &mut Vec<Condition>) -> Result<(), CountError> {
        if !index.all(|s| *s == Sym::Tid) {
            return self.no_form("a condition `!=`", index);
        }
        let holds = |t: usize| i64::from(index.eval(&|_| Some(t as i64)) != Some(0));
        let values = (0..self.lanes.threads).map(holds).collect();
        out.push(Condition { axis: None, values: self.lanes.intern(values), more: 0, ask: None });
        Ok(())
    }
}
