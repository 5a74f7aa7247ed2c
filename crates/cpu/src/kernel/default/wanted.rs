//! The values that a choice wants of each parameter.

use super::{ALL, Choice, Threads};
use crate::config::Axis;
use tilewright_core::expr::Value;
use tilewright_core::space::Param;

impl Choice {
    /// Preferred values, best first.
    pub(super) fn wanted(&self, param: &Param) -> Vec<Value> {
        let one = |i: usize| vec![Value::from(i)];
        let flag = |b: bool| vec![Value::from(usize::from(b))];
        let descending = |most| descending(param, most);
        match param.name.as_str() {
            "axis" => vec![Value::from(if self.axis == Axis::M { "m" } else { "n" })],
            "vec" => descending(self.vec),
            "m_s" => descending(self.tile.0 * self.vec / self.es),
            "n_s" => descending(self.tile.1),
            "k_l" => descending(self.k_l),
            "t" => descending(if self.is_little { 1 } else { ALL }),
            "t_m" | "k_g" => match (self.threads, param.name.as_str()) {
                (Threads::Grid(along), "t_m") => descending(along),
                (Threads::Reduction, "k_g") => descending(ALL),
                _ => one(1),
            },
            "pack_a" => flag(self.pack_v),
            "pack_b" => flag(self.pack_s),
            "u" => descending(self.u),
            "m_l" => descending(self.v_block),
            "n_l" => descending(self.s_block),
            // A set of accumulators that another waits for is worth a longer turn.
            "k_s" => descending(if self.k_l > 1 { self.k_s.max(8) } else { self.k_s }),
            "store" => vec![Value::from(if self.stream { "stream" } else { "normal" })],
            "order" => vec![Value::from(if self.broadcast { "broadcast" } else { "vector" })],
            "prefetch" => one(self.prefetch),
            _ => Vec::new(),
        }
    }
}

/// The values of a parameter up to a limit, from the largest down, then those beyond it, from the smallest up.
fn descending(param: &Param, most: usize) -> Vec<Value> {
    let value = |v: &Value| v.as_int().and_then(|i| usize::try_from(i).ok()).unwrap_or(ALL);
    let (mut within, mut beyond): (Vec<Value>, Vec<Value>) =
        param.values.iter().cloned().partition(|v| value(v) <= most);
    within.sort_by_key(|v| std::cmp::Reverse(value(v)));
    beyond.sort_by_key(value);
    within.into_iter().chain(beyond).collect()
}
