//! Expressions of descriptions: over inputs and parameters, with Kernel Tuner's `ProblemSize[0]` and `max(parameter)`.

use std::collections::BTreeSet;
use tilewright_core::expr::{Compiled, EvalError, Expr, ParseError, Val, Value};
use tilewright_core::space::Param;

/// What expressions may name.
pub(crate) struct Names<'d> {
    pub(crate) inputs: Vec<String>,
    pub(crate) params: &'d [Param],
    /// The texts of the problem size.
    pub(crate) problem: Vec<String>,
}

/// An expression over inputs and parameters, ready to be evaluated.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    /// As rules of a space take it.
    pub(crate) text: String,
    names: Vec<String>,
    compiled: Compiled,
}

impl Formula {
    /// Reads a text.
    pub(crate) fn new(text: &str, names: &Names<'_>) -> Result<Self, String> {
        let text = extremes(&problem_sizes(text, &names.problem)?, names.params);
        let expr: Expr = text.parse().map_err(|e: ParseError| format!("{text:?}: {e}"))?;
        let used: BTreeSet<String> = expr.names();
        let is_known = |name: &String| names.inputs.contains(name) || names.params.iter().any(|p| p.name == *name);
        if let Some(unknown) = used.iter().find(|name| !is_known(name)) {
            let params = names.params.iter().map(|p| &p.name);
            let known: Vec<&str> = names.inputs.iter().chain(params).map(String::as_str).collect();
            return Err(format!("{unknown:?} is neither an input nor a parameter; there are: {}", known.join(" ")));
        }
        let slots: Vec<String> = used.into_iter().collect();
        let compiled =
            expr.compile(&slots.iter().map(String::as_str).collect::<Vec<_>>()).map_err(|e| e.to_string())?;
        Ok(Self { text, names: slots, compiled })
    }

    /// The inputs and parameters that it names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The value, by the values of names.
    pub(crate) fn eval<'v>(&self, value: &dyn Fn(&str) -> Option<Val<'v>>) -> Result<Value, EvalError> {
        let slots = self.names.iter().map(|name| value(name).ok_or_else(|| EvalError::UnknownName(name.clone())));
        let slots: Vec<Val<'v>> = slots.collect::<Result<_, _>>()?;
        self.compiled.eval(&slots).map(Value::from)
    }

    /// The value as a size: an integer of 0 or more. Numbers that are whole count as integers.
    pub(crate) fn size<'v>(&self, value: &dyn Fn(&str) -> Option<Val<'v>>) -> Result<u64, String> {
        let found = self.eval(value).map_err(|e| format!("{}: {e}", self.text))?;
        let whole = |x: f64| (x.fract() == 0.0 && (0.0..=9e15).contains(&x)).then_some(x as u64);
        let size = match &found {
            Value::Int(i) => u64::try_from(*i).ok(),
            other => other.as_f64().and_then(whole),
        };
        size.ok_or_else(|| format!("{} is {found}, which is no size", self.text))
    }
}

/// `ProblemSize[0]` by the text of that size.
fn problem_sizes(text: &str, problem: &[String]) -> Result<String, String> {
    const WORD: &str = "ProblemSize";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(WORD) {
        out.push_str(&rest[..at]);
        let after = rest[at + WORD.len()..].trim_start();
        let place = after.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (place, after) = place.ok_or_else(|| format!("{WORD} without a place: write {WORD}[0]"))?;
        let number: Result<usize, _> = place.trim().parse();
        let size = number.ok().and_then(|at| problem.get(at));
        let size = size.ok_or_else(|| format!("{WORD}[{}]: the problem has {} sizes", place.trim(), problem.len()))?;
        out.push_str(&format!("({size})"));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// `max(parameter)` and `min(parameter)` by the number: Kernel Tuner gives such expressions the list of all values.
fn extremes(text: &str, params: &[Param]) -> String {
    let mut out = text.to_owned();
    for param in params {
        let numbers = param.values.iter().filter_map(|v| Some((v.as_f64()?, v)));
        let (most, least) =
            (numbers.clone().max_by(|a, b| a.0.total_cmp(&b.0)), numbers.min_by(|a, b| a.0.total_cmp(&b.0)));
        for (word, value) in [("max", most), ("min", least)] {
            if let Some((_, value)) = value {
                out = out.replace(&format!("{word}({})", param.name), &value.to_string());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_tuners_words_become_expressions() {
        let params = [Param::ints("fw", [3, 15]), Param::ints("tile", [1, 2])];
        let names = Names { inputs: vec!["n".into()], params: &params, problem: vec!["n * 2".into(), "4096".into()] };
        let size = Formula::new("(ProblemSize[0]+max(fw)-1) * ProblemSize[1] // tile", &names).unwrap();
        let value = |name: &str| Some(Val::Int(if name == "n" { 10 } else { 2 }));
        assert_eq!(size.size(&value), Ok(34 * 4096 / 2));
        assert!(Formula::new("ProblemSize[2]", &names).unwrap_err().contains("2 sizes"));
        assert!(Formula::new("m + 1", &names).unwrap_err().contains("\"m\" is neither"));
        assert!(Formula::new("n - 11", &names).unwrap().size(&value).unwrap_err().contains("-1"));
    }
}
