//! What runs before anything is tuned: a textbook blocking for the caches at hand.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

/// Preferred values per parameter, best first; the first combination that is legal is taken, parameters in the order of
/// the space, so that a parameter gives way only to rules that earlier choices have not settled.
pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let mut preferred = Vec::new();
    for param in space.params() {
        let wanted = wanted(&param.name);
        let mut order: Vec<u16> = (0..param.values.len() as u16).collect();
        // Stable: values that are not named keep their order behind those that are.
        order.sort_by_key(|&i| {
            let value = &param.values[usize::from(i)];
            wanted.iter().position(|w| *w == *value).unwrap_or(wanted.len())
        });
        preferred.push(order);
    }
    let mut point = Vec::with_capacity(preferred.len());
    descend(space, &preferred, &mut point).then_some(Point(point))
}

fn wanted(name: &str) -> Vec<Value> {
    let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect();
    match name {
        "vec" => ints(&[64, 32, 16]),
        "m_s" => ints(&[32, 16, 24, 8, 12, 48, 64, 4, 6, 2]),
        "n_s" => ints(&[14, 12, 6, 10, 9, 8, 7, 5, 4, 3, 2, 1]),
        "k_l" => ints(&[1]),
        "t_m" => ints(&[192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
        "t_n" => ints(&[192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
        "k_g" => ints(&[1]),
        "pack_a" | "pack_b" => ints(&[1]),
        "u" => ints(&[256, 192, 128, 96, 64, 32, 16]),
        "m_l" => ints(&[256, 128, 64, 32, 16, 8]),
        "n_l" => ints(&[4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8]),
        "k_s" => ints(&[4, 2, 8]),
        "store" => vec![Value::from("normal")],
        "order" => vec![Value::from("broadcast")],
        _ => Vec::new(),
    }
}

/// Depth first, in order of preference, dropping prefixes that already break a rule.
fn descend(space: &BoundSpace, preferred: &[Vec<u16>], point: &mut Vec<u16>) -> bool {
    let depth = point.len();
    if depth == preferred.len() {
        return true;
    }
    let mut allowed = Vec::new();
    space.next_values(point, &mut allowed);
    for &i in &preferred[depth] {
        if allowed.contains(&i) {
            point.push(i);
            if descend(space, preferred, point) {
                return true;
            }
            point.pop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preferred_value_is_a_value() {
        let space = super::super::space::space().unwrap();
        for param in space.params() {
            for value in wanted(&param.name) {
                assert!(param.index_of(&value).is_some(), "{} = {value}", param.name);
            }
        }
    }
}
