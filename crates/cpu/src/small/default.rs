//! What runs before anything is tuned.

use tilewright_core::expr::Value;
use tilewright_core::space::{BoundSpace, Point};

pub(super) fn default_point(space: &BoundSpace) -> Option<Point> {
    let int = |name| space.symbols().get(name).and_then(Value::as_int);
    let is = |name| space.symbols().get(name) == Some(&Value::Bool(true));
    let lanes = int("vec_max").unwrap_or(16) / int("element").unwrap_or(4);
    let ints = |list: &[i64]| list.iter().map(|&i| Value::Int(i)).collect::<Vec<_>>();
    let axis = if !is("transpose_a") { ["m", "n"] } else { ["n", "m"] };
    space.preferred_point(|param| match &*param.name {
        "axis" => axis.map(Value::from).into(),
        "vec" => ints(&[64, 32, 16]),
        "m_s" => [2, 1].map(|vectors| Value::Int(vectors * lanes)).into(),
        "n_s" => ints(&[12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        "k_l" => ints(&[1, 2]),
        "pack_a" => ints(&[0, 1]),
        "k_s" => ints(&[64, 32, 16, 8, 4, 2, 1]),
        "loops" => ints(&[0, 1]),
        "t" => ints(&[192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]),
        _ => Vec::new(),
    })
}
