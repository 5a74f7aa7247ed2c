//! The legal point nearest to a preference: what kernels take for their default.

use super::{BoundSpace, Param, Point};
use crate::expr::Value;

impl BoundSpace {
    /// The first legal point where each parameter tries the values of `wanted` first, in their order, then its others; parameters
    /// in the order of the space, so that one gives way only to rules that earlier choices have not settled.
    pub fn preferred_point(&self, wanted: impl Fn(&Param) -> Vec<Value>) -> Option<Point> {
        let order = |param: &Param| {
            let wanted = wanted(param);
            let mut order: Vec<u16> = (0..param.values.len() as u16).collect();
            // Stable: values that are not named keep their order behind those that are.
            order.sort_by_key(|&i| {
                wanted.iter().position(|w| *w == param.values[usize::from(i)]).unwrap_or(wanted.len())
            });
            order
        };
        let preferred: Vec<Vec<u16>> = self.params().iter().map(order).collect();
        let mut point = Vec::with_capacity(preferred.len());
        // Rules without parameters decide before the first value.
        (self.prefix_holds(&[]) && self.descend(&preferred, &mut point)).then_some(Point(point))
    }

    /// Depth first, in order of preference, dropping prefixes that already break a rule.
    fn descend(&self, preferred: &[Vec<u16>], point: &mut Vec<u16>) -> bool {
        let Some(order) = preferred.get(point.len()) else { return true };
        let mut allowed = Vec::new();
        self.next_values(point, &mut allowed);
        for &i in order {
            if allowed.contains(&i) {
                point.push(i);
                if self.descend(preferred, point) {
                    return true;
                }
                point.pop();
            }
        }
        false
    }
}
