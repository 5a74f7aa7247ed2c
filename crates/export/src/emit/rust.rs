//! One Rust file without dependencies and without `unsafe`.

use super::expression::{Language, Scope};
use super::identifier::Identifiers;
use super::{EmitError, Kind, conditions, head, nested, parameters, test, word};
use crate::artefact::{Artefact, Loss};
use crate::domain::Field;
use std::fmt::Write as _;
use tilewright_core::expr::Value;

const ARITHMETIC: &str = include_str!("arithmetic.rs.txt");

pub(super) fn emit(artefact: &Artefact) -> Result<String, EmitError> {
    let contents = artefact.contents();
    let mut out = String::new();
    for line in head(artefact) {
        let _ = writeln!(out, "//! {line}");
        let _ = writeln!(out, "//!");
    }
    out.push('\n');
    let quoted = |text: &str| format!("{text:?}");
    let _ = writeln!(out, "/// The kernel.\npub const KERNEL: &str = {};", quoted(&contents.kernel));
    let _ = writeln!(
        out,
        "/// The device that this holds for.\npub const DEVICE: &str = {};",
        quoted(&contents.device.name)
    );
    let _ = writeln!(
        out,
        "/// What the device must be to the last fact.\npub const FINGERPRINT: &str = {};",
        quoted(&contents.device.fingerprint)
    );
    let mean = contents.regret.held_out.map(|Loss { mean, .. }| mean);
    let _ = writeln!(
        out,
        "/// By what share choices take longer than planned ones, in the mean over held-out inputs.\npub const REGRET: Option<f64> = {mean:?};\n"
    );
    config(artefact, &mut out);
    let names = input(artefact, &mut out);
    guards(artefact, &names, &mut out)?;
    choose(artefact, &names, &mut out);
    Ok(out)
}

/// The parameters, and the configurations.
fn config(artefact: &Artefact, out: &mut String) {
    let contents = artefact.contents();
    let mut identifiers = Identifiers::rust();
    let parameters = parameters(contents);
    let members: Vec<(String, Kind)> =
        parameters.iter().map(|(name, values)| (identifiers.name(name), Kind::of(values))).collect();
    out.push_str("/// A configuration: one value for each parameter.\n#[derive(Clone, Copy, Debug, PartialEq)]\n");
    out.push_str("pub struct Config {\n");
    for ((member, kind), (name, _)) in members.iter().zip(&parameters) {
        let _ = writeln!(
            out,
            "    /// The parameter `{name}`.\n    #[allow(non_snake_case)]\n    pub {member}: {},",
            of(*kind)
        );
    }
    let count = contents.choices.len();
    let _ = writeln!(out, "}}\n\n/// The configurations, by number.\npub const CONFIGS: [Config; {count}] = [");
    for choice in &contents.choices {
        let value = |((member, kind), (_, value)): (&(String, Kind), &(String, Value))| {
            format!("{member}: {}", literal(*kind, value))
        };
        let values: Vec<String> = members.iter().zip(&choice.config.0).map(value).collect();
        let _ = writeln!(out, "    Config {{ {} }},", values.join(", "));
    }
    out.push_str("];\n\n");
}

fn of(kind: Kind) -> &'static str {
    match kind {
        Kind::Truth => "bool",
        Kind::Integer => "i64",
        Kind::Real => "f64",
        Kind::Word => "&'static str",
    }
}

fn literal(kind: Kind, value: &Value) -> String {
    match kind {
        Kind::Truth => value.as_val().truthy().to_string(),
        Kind::Integer => value.as_val().as_integer().unwrap_or_default().to_string(),
        Kind::Real => format!("{:?}", value.as_f64().unwrap_or_default()),
        Kind::Word => format!("{:?}", word(value)),
    }
}

/// The input; the names of its members.
fn input(artefact: &Artefact, out: &mut String) -> Vec<String> {
    let domain = &artefact.contents().domain;
    let (mut identifiers, mut types) = (Identifiers::rust(), Identifiers::rust());
    for taken in ["Config", "Input", "Option", "Some", "None"] {
        types.camel(taken);
    }
    let mut members = Vec::new();
    for field in &domain.fields {
        members.push((
            identifiers.name(&field.name),
            if field.is_integer() { None } else { Some(types.camel(&field.name)) },
        ));
    }
    for (field, (_, name)) in domain.fields.iter().zip(&members) {
        if let Some(name) = name {
            words(field, name, out);
        }
    }
    out.push_str("/// What a choice depends on.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct Input {\n");
    for (field, (member, name)) in domain.fields.iter().zip(&members) {
        let name = name.as_deref().unwrap_or("i64");
        let _ = writeln!(
            out,
            "    /// The field `{}`.\n    #[allow(non_snake_case)]\n    pub {member}: {name},",
            field.name
        );
    }
    out.push_str("}\n\n");
    let code = |(member, name): (String, Option<String>)| match name {
        Some(_) => format!("(i.{member} as i64)"),
        None => format!("i.{member}"),
    };
    members.into_iter().map(code).collect()
}

/// A field of words.
fn words(field: &Field, name: &str, out: &mut String) {
    let mut variants = Identifiers::rust();
    let _ = writeln!(
        out,
        "/// The values of the field `{}`.\n#[allow(non_camel_case_types)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum {name} {{",
        field.name
    );
    let names: Vec<String> = field.words.iter().map(|value| variants.camel(&word(value))).collect();
    for (at, (value, variant)) in field.words.iter().zip(&names).enumerate() {
        let said = word(value).replace(|c: char| c.is_control(), " ");
        let _ = writeln!(out, "    /// `{said}`\n    {variant} = {at},");
    }
    out.push_str("}\n\n");
    let _ =
        writeln!(out, "impl {name} {{\n    /// All values, by number.\n    pub const ALL: [Self; {}] = [", names.len());
    names.iter().for_each(|variant| out.push_str(&format!("        Self::{variant},\n")));
    out.push_str("    ];\n}\n\n");
}

/// One function a configuration for what its code needs, and one for all of its rules.
fn guards(artefact: &Artefact, names: &[String], out: &mut String) -> Result<(), EmitError> {
    let contents = artefact.contents();
    let scope = Scope { language: Language::Rust, domain: &contents.domain, fields: names, prefix: "" };
    let mut body = String::new();
    for (at, choice) in contents.choices.iter().enumerate() {
        let [needed, others] = conditions(&scope, choice)?;
        for (name, list) in [("needed", needed), ("advised", others)] {
            let _ = writeln!(
                body,
                "#[allow(unused_parens, unused_variables, clippy::all)]\nfn {name}_{at}(i: &Input) -> Option<bool> {{"
            );
            for condition in &list {
                let _ = writeln!(body, "    if !({condition}) {{\n        return Some(false);\n    }}");
            }
            body.push_str("    Some(true)\n}\n\n");
        }
    }
    out.push_str(ARITHMETIC);
    out.push('\n');
    out.push_str(&body);
    let arms = |name: &str, out: &mut String| {
        for at in 0..contents.choices.len() {
            let _ = writeln!(out, "        {at} => {name}_{at}(i),");
        }
        out.push_str("        _ => None,\n");
    };
    out.push_str("/// Whether the code of a configuration computes an input.\npub fn runs(index: usize, i: &Input) -> bool {\n    let holds = match index {\n");
    arms("needed", out);
    out.push_str("    };\n    holds == Some(true)\n}\n\n");
    out.push_str("/// Whether a configuration is legal for an input: its code computes it, and no guideline speaks against it.\npub fn is_legal(index: usize, i: &Input) -> bool {\n    let advised = match index {\n");
    arms("advised", out);
    out.push_str("    };\n    runs(index, i) && advised == Some(true)\n}\n\n");
    Ok(())
}

fn choose(artefact: &Artefact, names: &[String], out: &mut String) {
    let contents = artefact.contents();
    let (mut body, mut leaves) = (String::new(), Vec::new());
    let condition = |one: &crate::tree::Test| test(one, names, "", Language::Rust);
    nested(&contents.tree, (1, &|at| at.to_string()), &condition, &mut body, &mut leaves);
    out.push_str("/// The leaf of the tree.\n#[allow(unused_variables, clippy::all)]\nfn leaf(i: &Input) -> usize {\n");
    out.push_str(&body);
    let _ = writeln!(out, "}}\n\nconst LEAVES: [&[usize]; {}] = [", leaves.len());
    leaves.iter().for_each(|order| out.push_str(&format!("    &{order:?},\n")));
    let (count, last) = (contents.fallback.len(), contents.last);
    let _ = writeln!(
        out,
        "];\nconst FALLBACK: [usize; {count}] = {:?};\nconst LAST: Option<usize> = {last:?};\n",
        contents.fallback
    );
    out.push_str(CHOOSE);
}

const CHOOSE: &str = "/// The number of the configuration for an input; none where no configuration computes it.
pub fn choose_index(i: &Input) -> Option<usize> {
    let order = LEAVES[leaf(i)].iter().chain(&FALLBACK).copied();
    order.into_iter().find(|at| is_legal(*at, i)).or(LAST.filter(|at| runs(*at, i)))
}

/// The configuration for an input; none where no configuration computes it.
pub fn choose(i: &Input) -> Option<&'static Config> {
    choose_index(i).map(|at| &CONFIGS[at])
}
";
