//! An artefact as a text that needs nothing of Tilewright.

mod c;
mod expression;
mod identifier;
mod rust;

pub(crate) use expression::is_expressible;

use crate::artefact::{Artefact, ArtefactError, Choice, Contents, Loss};
use crate::guard::Condition;
use crate::tree::{Test, Tree};
use expression::{Inexpressible, Language, Scope};
use identifier::Identifiers;
use tilewright_core::expr::{Expr, Value};

/// What an artefact is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A sealed JSON document, which [`Artefact::read`] reads.
    Json,
    /// One C99 header.
    C,
    /// One Rust file.
    Rust,
    /// The C header for host and device code, with a dispatch by configuration at compile time.
    Cuda,
}

impl Target {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Json, Self::C, Self::Rust, Self::Cuda];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::C => "c",
            Self::Rust => "rust",
            Self::Cuda => "cuda",
        }
    }

    /// What the names of such files end with.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::C => "h",
            Self::Rust => "rs",
            Self::Cuda => "cuh",
        }
    }
}

/// Why an artefact has no text of a format.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// No JSON document.
    #[error(transparent)]
    Artefact(#[from] ArtefactError),
    /// A condition that is no integer code over the fields: one that [`crate::Names::conditions`] did not make.
    #[error("the condition {0:?} cannot be written as integer code over the fields")]
    Condition(String),
}

/// The text of an artefact.
///
/// # Errors
/// A condition that is no integer code.
pub fn emit(artefact: &Artefact, target: Target) -> Result<String, EmitError> {
    match target {
        Target::Json => Ok(artefact.write()?),
        Target::Rust => rust::emit(artefact),
        Target::C => c::emit(artefact, false),
        Target::Cuda => c::emit(artefact, true),
    }
}

/// What files are called after a kernel: `gemm_cpu` for `gemm.cpu.6`.
pub fn name(contents: &Contents) -> String {
    let version = |last: &str| last.chars().all(|c| c.is_ascii_digit());
    let family = match contents.kernel.rsplit_once('.') {
        Some((family, last)) if version(last) => family,
        _ => &contents.kernel,
    };
    Identifiers::c().name(family)
}

/// The conditions of a configuration as code: those that are needed, and the others.
fn conditions(scope: &Scope<'_>, choice: &Choice) -> Result<[Vec<String>; 2], EmitError> {
    let code = |condition: &&Condition| {
        let refused = |_: Inexpressible| EmitError::Condition(condition.text.clone());
        let expr: Expr = condition.text.parse().map_err(|_| EmitError::Condition(condition.text.clone()))?;
        scope.truth(&expr).map_err(refused)
    };
    let of = |is_needed| {
        let some = choice.conditions.iter().filter(move |condition| condition.is_needed == is_needed);
        some.map(|condition| code(&condition)).collect::<Result<Vec<_>, _>>()
    };
    Ok([of(true)?, of(false)?])
}

/// The code of a test; functions that saturate begin with a prefix.
fn test(test: &Test, fields: &[String], prefix: &str, language: Language) -> String {
    let literal = |i: i64| match language {
        Language::Rust => format!("{i}"),
        Language::C if i == i64::MIN => format!("(-INT64_C({}) - 1)", i64::MAX),
        Language::C => format!("INT64_C({i})").replace("INT64_C(-", "-INT64_C("),
    };
    let times = |a: &str, b: &str| match language {
        Language::Rust => format!("{a}.saturating_mul({b})"),
        Language::C => format!("{prefix}saturating_mul({a}, {b})"),
    };
    match test {
        Test::Product { of, at_most } => {
            let code = |field: &usize| fields[*field].clone();
            let product = of.iter().map(code).reduce(|all, one| times(&all, &one)).unwrap_or_default();
            format!("{product} <= {}", literal(*at_most))
        }
        Test::Ratio { left, by, right, times: factor } => {
            let side = |field: usize, by: i64| match by {
                1 => fields[field].clone(),
                by => times(&fields[field], &literal(by)),
            };
            format!("{} <= {}", side(*left, *by), side(*right, *factor))
        }
        Test::Multiple { field, of } => format!("{} % {} == 0", fields[*field], literal(*of)),
        Test::Is { field, word } => format!("{} == {word}", fields[*field]),
    }
}

/// Writes the tree as nested conditions, from a depth on; `leaf` writes the number of a leaf. Leaves of the same configurations are one.
fn nested(
    tree: &Tree,
    (depth, leaf): (usize, &dyn Fn(usize) -> String),
    condition: &dyn Fn(&Test) -> String,
    out: &mut String,
    leaves: &mut Vec<Vec<usize>>,
) {
    let indent = "    ".repeat(depth);
    match tree {
        Tree::Leaf(order) => {
            let at = leaves.iter().position(|known| known == order).unwrap_or_else(|| {
                leaves.push(order.clone());
                leaves.len() - 1
            });
            out.push_str(&format!("{indent}{}\n", leaf(at)));
        }
        Tree::Branch { test, yes, no } => {
            out.push_str(&format!("{indent}if {} {{\n", condition(test)));
            nested(yes, (depth + 1, leaf), condition, out, leaves);
            out.push_str(&format!("{indent}}} else {{\n"));
            nested(no, (depth + 1, leaf), condition, out, leaves);
            out.push_str(&format!("{indent}}}\n"));
        }
    }
}

/// What a head comment says, line by line.
fn head(artefact: &Artefact) -> Vec<String> {
    let contents = artefact.contents();
    let mut out = vec![
        format!("{} tuned by Tilewright, as code that needs nothing of it.", contents.kernel),
        format!("Device: {}", contents.device.title()),
        format!("Learned from {} inputs.", contents.inputs.len()),
    ];
    let regret = contents.regret;
    let kinds =
        [("training", regret.training), ("cross-validated", regret.cross_validated), ("held-out", regret.held_out)];
    for (kind, loss) in kinds {
        let said = |Loss { mean, worst, inputs }: Loss| {
            let (mean, worst) = (100.0 * mean, 100.0 * worst);
            format!("Regret, {kind}: {mean:.2}% in the mean, {worst:.2}% at worst, on {inputs} inputs.")
        };
        out.extend(loss.map(said));
    }
    if !contents.domain.fixed.0.is_empty() {
        out.push(format!("It holds for inputs with {}.", contents.domain.fixed));
    }
    out.push(match artefact.is_guaranteed() {
        true => "A configuration is found for every input that the kernel computes.".into(),
        false => "Some inputs may have no configuration here: ask Tilewright for those.".into(),
    });
    // Names come from hardware and files: nothing of them may end a comment.
    out.into_iter()
        .map(|line| line.replace(|c: char| c.is_control(), " ").replace("*/", "* /").replace("\\", "/"))
        .collect()
}

/// The parameters of configurations, with their kinds.
fn parameters(contents: &Contents) -> Vec<(String, Vec<Value>)> {
    let first = contents.choices.first().map(|choice| choice.config.0.as_slice()).unwrap_or_default();
    let values = |at: usize| contents.choices.iter().map(|choice| choice.config.0[at].1.clone()).collect();
    first.iter().enumerate().map(|(at, (name, _))| (name.clone(), values(at))).collect()
}

/// What a parameter is in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Truth,
    Integer,
    Real,
    Word,
}

impl Kind {
    /// The narrowest that holds all values; numbers beside words are words.
    fn of(values: &[Value]) -> Self {
        let all = |is: fn(&Value) -> bool| values.iter().all(is);
        match () {
            () if all(|value| matches!(value, Value::Bool(_))) => Self::Truth,
            () if all(|value| value.as_val().as_integer().is_some()) => Self::Integer,
            () if all(|value| value.as_f64().is_some()) => Self::Real,
            () => Self::Word,
        }
    }
}

/// The code of members of a struct.
fn members(names: &[String], of: &str) -> Vec<String> {
    names.iter().map(|name| format!("{of}{name}")).collect()
}

/// The text of a value as words have it.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
