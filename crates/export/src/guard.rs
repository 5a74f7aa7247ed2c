//! What makes one configuration legal, as conditions on the fields of the input.
//!
//! The rules of a space mention parameters, facts of the device and names that a kernel derives from its input. With the
//! configuration and the device fixed, and the derived names expressed by fields, nothing but fields is left.

use crate::domain::Domain;
use crate::emit::is_expressible;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::{Compiled, Expr, ParseError, UnknownName, Value};
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::{Config, ParamSpace, RuleGroup, Symbols};

/// A condition under which a configuration is legal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The rule of the kernel's space that it comes from.
    pub rule: String,
    /// An expression over fields of the input, in the language of rules. Where it has no value, it does not hold.
    pub text: String,
    /// Whether the code would be wrong without it; else it is a guideline, which only says what is not worth running.
    pub is_needed: bool,
    /// Whether it is the same for all configurations: where it does not hold, the kernel has none.
    pub is_common: bool,
}

/// How the names in rules follow from the fields of the input, on one device.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: BTreeMap<String, Expr>,
    /// Names in rules that no field says.
    pub unknown: Vec<String>,
}

/// A checked input: its fields, and what the kernel's rules see of it.
pub type Seen = (Config, Symbols);

impl Names {
    /// Finds how each name that rules mention follows from the fields, and checks that on every input that was seen. A name is an
    /// expression that the kernel declares ([`AnyKernel::derivations`]), a field of the same name, or a fact of the device.
    pub fn find(kernel: &dyn AnyKernel, device: &DeviceSpec, domain: &Domain, seen: &[Seen]) -> Self {
        let mut out = Self::default();
        let declared = kernel.derivations();
        let mentioned = mentioned(kernel.space());
        for name in mentioned {
            let of_kernel = declared.iter().filter(|(of, _)| *of == name).filter_map(|(_, text)| text.parse().ok());
            // A fact of the device stays one only where no input changes it.
            let of_device = device.fact(&name).map(|fact| Expr::Const(Value::Int(fact)));
            let mut candidates = of_kernel.chain([Expr::Name(name.clone())]).chain(of_device);
            match candidates.find_map(|expr| agreed(&name, &expr, domain, seen)) {
                Some(expr) => drop(out.known.insert(name, expr)),
                None => out.unknown.push(name),
            }
        }
        out
    }

    /// The conditions of a configuration; none where one of them cannot be written as integer code over fields, or can never hold.
    pub fn conditions(&self, space: &ParamSpace, config: &Config, domain: &Domain) -> Option<Vec<Condition>> {
        let mut out: Vec<Condition> = Vec::new();
        for rule in space.rules() {
            let named = rule.expr.names();
            let value = |name: &str| config.get(name).cloned();
            let expr = rule.expr.fold(&value).substitute(&|name| self.known.get(name).cloned()).fold(&|_| None);
            match &expr {
                Expr::Const(value) if value.as_val().truthy() => continue,
                Expr::Const(_) => return None,
                _ if !is_expressible(&expr, domain) => return None,
                _ => {}
            }
            let text = expr.to_string();
            let is_needed = rule.group != RuleGroup::Guideline;
            if let Some(same) = out.iter_mut().find(|condition| condition.text == text) {
                same.is_needed |= is_needed;
                continue;
            }
            let is_common = space.params().iter().all(|param| !named.contains(&param.name));
            out.push(Condition { rule: rule.name.clone(), text, is_needed, is_common });
        }
        Some(out)
    }
}

/// The names in rules that are no parameters.
fn mentioned(space: &ParamSpace) -> Vec<String> {
    let all = space.rules().iter().flat_map(|rule| rule.expr.names());
    let mut names: Vec<String> = all.filter(|name| space.params().iter().all(|param| param.name != *name)).collect();
    names.sort();
    names.dedup();
    names
}

/// The expression over fields that differ, where it has the value of the name for every input that was seen.
fn agreed(name: &str, expr: &Expr, domain: &Domain, seen: &[Seen]) -> Option<Expr> {
    let expr = expr.fold(&|field| domain.fixed.get(field).cloned());
    let slots = domain.names();
    let compiled = expr.compile(&slots).ok()?;
    let agrees = |(input, symbols): &Seen| {
        // The artefact does not speak of inputs outside of its domain.
        let Ok(numbers) = domain.numbers(input) else { return true };
        let Some(value) = symbols.get(name) else { return false };
        compiled
            .eval(&domain.slots(&numbers))
            .is_ok_and(|found| found.order(value.as_val()) == Some(std::cmp::Ordering::Equal))
    };
    seen.iter().all(agrees).then_some(expr)
}

/// Conditions ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    conditions: Vec<(Compiled, bool)>,
}

/// A condition that is no expression over the domain's fields.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum GuardError {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Name(#[from] UnknownName),
}

impl Guard {
    pub(crate) fn new(conditions: &[Condition], domain: &Domain) -> Result<Self, GuardError> {
        let slots = domain.names();
        let one = |condition: &Condition| {
            let expr: Expr = condition.text.parse()?;
            Ok((expr.compile(&slots)?, condition.is_needed))
        };
        Ok(Self { conditions: conditions.iter().map(one).collect::<Result<_, GuardError>>()? })
    }

    /// Whether all conditions hold, or those that are needed.
    pub(crate) fn holds(&self, domain: &Domain, numbers: &[i64], only_needed: bool) -> bool {
        let slots = domain.slots(numbers);
        let asked = self.conditions.iter().filter(|(_, is_needed)| *is_needed || !only_needed);
        asked.into_iter().all(|(compiled, _)| compiled.holds(&slots) == Ok(true))
    }
}
