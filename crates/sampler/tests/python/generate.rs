//! Random T1 descriptions over the whole language of constraints.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

const NAMES: [&str; 4] = ["x", "y", "z", "w"];

/// How loosely a text binds: what stands in a place of tighter binding needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Atom,
    Arithmetic,
    Comparison,
    /// `not` and `in`, which the language takes only where a truth stands.
    Truth,
    Junction,
    Conditional,
}

use Binding::{Arithmetic, Atom, Comparison, Conditional, Junction, Truth};

struct Text(String, Binding);

/// A description with up to four parameters and some constraints.
pub(crate) fn document(rng: &mut ChaCha8Rng) -> Json {
    let names = &NAMES[..rng.random_range(1..=NAMES.len())];
    let parameters: Vec<Json> = names.iter().map(|name| json!({"Name": name, "Values": values(rng)})).collect();
    let mut expressions = Expressions { rng, names };
    let conditions: Vec<Json> =
        (0..expressions.rng.random_range(1..=3)).map(|_| json!({"Expression": expressions.constraint()})).collect();
    json!({"ConfigurationSpace": {"TuningParameters": parameters, "Conditions": conditions}})
}

/// One of them, by weight.
fn chosen<'a, T>(rng: &mut ChaCha8Rng, weighted: &'a [(u32, T)]) -> &'a T {
    &weighted.choose_weighted(rng, |w| w.0).expect("weights").1
}

/// The values of a parameter, as a list or as text.
fn values(rng: &mut ChaCha8Rng) -> Json {
    let lists = [
        (6, json!([1, 2, 4, 8, 16, 32])),
        (6, json!([0, 1, 2, 3, 5])),
        (3, json!([-3, -2, -1, 0, 4])),
        (2, json!([0.5, 1.0, 2.5, -1.5, 0.0])),
        (1, json!([1, 0.25, true, -2, 3.0])),
        (1, json!([true, false])),
        (1, json!(["nn", "nt", "tt", ""])),
        (1, json!(["nn", 1, 2.0, false])),
        (1, json!([0, 1 << 20, 1 << 31, (1i64 << 40) + 1, 3])),
        (1, json!([(1i64 << 53) + 1, i64::MAX, i64::MIN, -1, 7])),
        (1, json!([1e300, -1e-300, 1e16, 4.0, 1e-9])),
    ];
    let texts = ["range(0, 4)", "[2**i for i in range(4)]", "[1, 2] + list(range(4, 9, 2))", "(0, 1)", "[3]"];
    if rng.random_bool(0.15) {
        return json!(texts.choose(rng));
    }
    let mut list = chosen(rng, &lists).as_array().expect("a list").clone();
    for _ in 0..list.len() - rng.random_range(1..=list.len().min(4)) {
        list.remove(rng.random_range(0..list.len()));
    }
    Json::Array(list)
}

struct Expressions<'r> {
    rng: &'r mut ChaCha8Rng,
    names: &'r [&'r str],
}

impl Expressions<'_> {
    fn constraint(&mut self) -> String {
        self.truth(3).0
    }

    /// In parentheses where it binds too loosely for its place, and most often where it does not.
    fn inside(&mut self, Text(text, binding): Text, loosest: Binding) -> Text {
        if binding == Atom || binding <= loosest && self.rng.random_bool(0.3) {
            Text(text, binding)
        } else {
            Text(format!("({text})"), Atom)
        }
    }

    /// Two texts with an operator between them; what stands free in them binds as loosely afterwards.
    fn joined(&mut self, a: Text, op: &str, b: Text, (own, loosest): (Binding, Binding)) -> Text {
        let (a, b) = (self.inside(a, loosest), self.inside(b, loosest));
        Text(format!("{} {op} {}", a.0, b.0), own.max(a.1).max(b.1))
    }

    fn one_of(&mut self, texts: &[&str]) -> String {
        (*texts.choose(self.rng).expect("some")).to_owned()
    }

    fn truth(&mut self, depth: u32) -> Text {
        let kinds = [(8, 0), (4, 1), (2, 2), (2, 3), (2, 4), (1, 5), (1, 6), (1, 7)];
        match if depth == 0 { 0 } else { *chosen(self.rng, &kinds) } {
            1 => self.junction(depth - 1),
            2 => {
                let inner = self.truth(depth - 1);
                let inner = self.inside(inner, Comparison);
                Text(format!("not {}", inner.0), Truth)
            }
            3 => self.membership(depth - 1),
            4 => {
                let (a, b) = (self.number(depth - 1), self.number(depth - 1));
                let rest = self.joined(a, "%", b, (Arithmetic, Arithmetic));
                Text(format!("{} == 0", rest.0), Comparison)
            }
            5 => self.number(depth),
            6 => {
                let (a, c, b) = (self.truth(depth - 1), self.truth(depth - 1), self.truth(depth - 1));
                self.conditional(a, c, b)
            }
            7 => {
                let (name, word) = (self.one_of(self.names), self.one_of(&["'nn'", "\"tt\"", "''", "1"]));
                let op = self.one_of(&["==", "!=", "<"]);
                Text(format!("{name} {op} {word}"), Comparison)
            }
            _ => self.comparison(depth.saturating_sub(1)),
        }
    }

    fn junction(&mut self, depth: u32) -> Text {
        let op = self.one_of(&["and", "or"]);
        let mut out = self.truth(depth);
        for _ in 0..self.rng.random_range(1..=2) {
            let next = self.truth(depth);
            out = self.joined(out, &op, next, (Junction, Junction));
        }
        out
    }

    fn comparison(&mut self, depth: u32) -> Text {
        let mut out = self.number(depth);
        for _ in 0..*chosen(self.rng, &[(6, 1), (2, 2), (1, 3)]) {
            let op = self.one_of(&["<", "<=", "==", "!=", ">", ">="]);
            let next = self.number(depth);
            out = match out {
                // A chain is no comparison in parentheses.
                Text(text, Comparison) => {
                    let next = self.inside(next, Arithmetic);
                    Text(format!("{text} {op} {}", next.0), Comparison)
                }
                other => self.joined(other, &op, next, (Comparison, Comparison)),
            };
        }
        out
    }

    fn membership(&mut self, depth: u32) -> Text {
        let a = self.number(depth);
        let a = self.inside(a, Arithmetic).0;
        let op = self.one_of(&["in", "not in"]);
        if self.rng.random_bool(0.3) {
            let list = self.one_of(&["range(3)", "[2**i for i in range(4)]", "[1, 2] + [4]", "(0.5, 'nn')"]);
            return Text(format!("{a} {op} {list}"), Truth);
        }
        let items: Vec<String> = (0..self.rng.random_range(1..=3)).map(|_| self.number(depth.min(1)).0).collect();
        let (open, close) = *[("[", "]"), ("(", ",)"), ("{", "}")].choose(self.rng).expect("some");
        Text(format!("{a} {op} {open}{}{close}", items.join(", ")), Truth)
    }

    fn conditional(&mut self, a: Text, c: Text, b: Text) -> Text {
        let (a, c, b) = (self.inside(a, Junction), self.inside(c, Junction), self.inside(b, Conditional));
        Text(format!("{} if {} else {}", a.0, c.0, b.0), Conditional)
    }

    fn number(&mut self, depth: u32) -> Text {
        let kinds = [(6, 0), (9, 1), (1, 2), (3, 3), (2, 4), (1, 5), (1, 6)];
        match if depth == 0 { 0 } else { *chosen(self.rng, &kinds) } {
            1 => {
                let ops = [(4, "+"), (4, "-"), (6, "*"), (3, "//"), (3, "%"), (3, "/"), (1, "**")];
                let op = *chosen(self.rng, &ops);
                let (a, b) = (self.number(depth - 1), self.number(depth - 1));
                self.joined(a, op, b, (Arithmetic, Comparison))
            }
            2 => {
                let (sign, inner) = (self.one_of(&["-", "-", "+"]), self.number(depth - 1));
                let inner = self.inside(inner, Arithmetic);
                Text(format!("{sign}{}", inner.0), Arithmetic)
            }
            3 => self.call(depth - 1),
            4 => {
                let (a, c, b) = (self.number(depth - 1), self.truth(depth - 1), self.number(depth - 1));
                self.conditional(a, c, b)
            }
            5 => self.truth(depth - 1),
            6 => self.bounded(),
            _ => self.leaf(),
        }
    }

    /// Floats of what bounds often decide.
    fn bounded(&mut self) -> Text {
        let (a, b) = (self.one_of(self.names), self.one_of(self.names));
        let (op, limit) = (self.one_of(&["<=", ">", "!=", "=="]), self.one_of(&["0", "-9", "100", "1024"]));
        let product = format!("{a} * {b} {op} {limit}");
        let (function, other) = (self.one_of(&["", "float", "-", "abs"]), self.one_of(&["0.5", "2.0", "4"]));
        Text(format!("({function}({other} if {product} else 3) * 0.5)"), Atom)
    }

    fn call(&mut self, depth: u32) -> Text {
        let function = self.one_of(&[
            "min",
            "max",
            "min",
            "max",
            "abs",
            "int",
            "float",
            "round",
            "ceil",
            "floor",
            "math.ceil",
            "sqrt",
            "log2",
        ]);
        if !function.starts_with("m") || function.starts_with("math") {
            return Text(format!("{function}({})", self.number(depth).0), Atom);
        }
        let items: Vec<String> = (0..self.rng.random_range(2..=3)).map(|_| self.number(depth).0).collect();
        let (open, close) = *[("", ""), ("[", "]"), ("{", "}")].choose(self.rng).expect("some");
        Text(format!("{function}({open}{}{close})", items.join(", ")), Atom)
    }

    fn leaf(&mut self) -> Text {
        let text = match *chosen(self.rng, &[(12, 0), (5, 1), (2, 2), (1, 3)]) {
            0 => self.one_of(self.names),
            1 => self.rng.random_range(0..=12).to_string(),
            2 => self.one_of(&["0.5", "1.0", "2.5", "64", "1024", "0", ".25", "1e3"]),
            _ => self.one_of(&["True", "False", "len([1, 2])", "'nn'", "1_000", "4294967296", "1e200"]),
        };
        Text(text, Atom)
    }
}
