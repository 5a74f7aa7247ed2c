use super::*;

const A: Property = Property::Groups;
const B: Property = Property::Launches;

fn only(build: impl FnOnce(&mut CountsBuilder) -> Expr) -> Counts {
    let mut b = CountsBuilder::new();
    let expr = build(&mut b);
    b.count(A, expr);
    b.finish()
}

/// Text and value of an expression in `x` and `y`.
fn both(sizes: [i64; 2], build: impl Fn(&mut CountsBuilder, Expr, Expr) -> Expr) -> (String, i64) {
    let counts = only(|b| {
        let (x, y) = (b.size("x"), b.size("y"));
        build(b, x, y)
    });
    (counts.expression(A).unwrap(), counts.evaluator().eval(&sizes).unwrap()[0])
}

fn div(b: &mut CountsBuilder, x: Expr, y: Expr, f: fn(&mut CountsBuilder, Expr, i64) -> Expr, by: i64) -> Expr {
    let difference = b.sub(x, y);
    f(b, difference, by)
}

#[test]
fn expressions_are_readable_and_evaluate() {
    let text = |s: &str, v| (s.to_owned(), v);
    assert_eq!(both([100, 0], |b, x, _| b.ceil(x, 64)), text("ceil(x/64)", 2));
    // Numbers on the way may be negative, where sizes may not.
    assert_eq!(both([0, 7], |b, x, y| div(b, x, y, CountsBuilder::floor, 4)), text("floor((x - y)/4)", -2));
    assert_eq!(both([0, 7], |b, x, y| div(b, x, y, CountsBuilder::floor, 3)), text("floor((x - y)/3)", -3));
    assert_eq!(both([0, 7], |b, x, y| div(b, x, y, CountsBuilder::rem, 4)), text("mod(x - y, 4)", 1));
    assert_eq!(both([0, 7], |b, x, y| div(b, x, y, CountsBuilder::rem, 5)), text("mod(x - y, 5)", 3));
    assert_eq!(both([7, 2], |b, x, y| b.quotient(x, y)), text("floor(x/y)", 3));
    let clamped = |b: &mut CountsBuilder, x, y| {
        let above = b.offset(x, -3);
        let most = b.scale(y, 2);
        b.clamp(above, most)
    };
    let sum = |b: &mut CountsBuilder, x, y| b.sum([(x, -1), (y, -2)], 5);
    assert_eq!(both([9, 2], clamped).1, 4);
    assert_eq!(both([1, 2], clamped).1, 0);
    assert_eq!(both([1, 1], sum), text("5 - x - 2*y", 2));
    let product = |b: &mut CountsBuilder, x, y| {
        let (more, twice) = (b.offset(x, 1), b.scale(y, 2));
        b.mul(twice, more)
    };
    assert_eq!(both([4, 3], product), text("2*y*(x + 1)", 30));
    assert_eq!(both([4, 3], |b, x, _| b.positive(x)), text("[x > 0]", 1));
    // What cannot be otherwise is left out.
    let within = |b: &mut CountsBuilder, x, _| {
        let (rest, eight) = (b.rem(x, 8), b.constant(8));
        b.clamp(rest, eight)
    };
    assert_eq!(both([13, 0], within), text("mod(x, 8)", 5));
    assert_eq!(both([4, 0], |b, _, y| b.zero(y)), text("[y = 0]", 1));
}

#[test]
fn equal_parts_are_one() {
    let mut b = CountsBuilder::new();
    let x = b.size("x");
    let (a, scaled) = (b.ceil(x, 8), b.scale(x, 16));
    let more = b.offset(scaled, 56);
    let eight = b.offset(x, 7);
    assert_eq!(b.floor(eight, 8), a);
    let twice = b.scale(x, 2);
    assert_eq!(b.floor(more, 8), b.offset(twice, 7));
    let nested = b.floor(a, 4);
    assert_eq!(nested, {
        let up = b.offset(x, 7);
        b.floor(up, 32)
    });
    let (one, two) = (b.offset(x, 1), b.offset(x, 2));
    assert_eq!((b.min(one, two), b.max(one, two)), (one, two));
    let zero = b.sub(one, one);
    assert_eq!(b.value(zero), Some(0));
}

#[test]
fn what_overflows_is_named_with_its_sizes() {
    let mut b = CountsBuilder::new();
    let (x, y) = (b.size("x"), b.size("y"));
    let square = b.mul(x, x);
    let share = b.quotient(x, y);
    b.count(A, x);
    b.count(B, square);
    b.count(Property::Constant, share);
    let mut evaluator = b.finish().evaluator();
    assert!(evaluator.eval(&[1 << 20, 1]).is_ok());
    let sizes = "x=4294967296 y=1".to_owned();
    assert_eq!(
        evaluator.eval(&[1 << 32, 1]),
        Err(EvalError::NoValue { property: B, fault: "overflows 63 bits", sizes })
    );
    let sizes = "x=3 y=0".to_owned();
    assert_eq!(
        evaluator.eval(&[3, 0]),
        Err(EvalError::NoValue { property: Property::Constant, fault: "divides by zero", sizes })
    );
    assert_eq!(evaluator.eval(&[3, -1]), Err(EvalError::Negative { name: "y".into(), value: -1 }));
    assert_eq!(evaluator.eval(&[3]), Err(EvalError::Length { expected: 2, found: 1 }));
    assert_eq!(evaluator.eval_by(|n| (n == "x").then_some(3)), Err(EvalError::Missing("y".into())));
    assert_eq!(evaluator.eval_by(|n| Some(n.len() as i64)), Ok(&[1, 1, 1][..]));
}
