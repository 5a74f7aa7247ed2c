//! The T1 document as Kernel Tuner's schema 1.0.0 and its hub have it, and the optional fields of ours.

use serde::Deserialize;
use serde_json::Value as Json;

/// An object of a description, whose fields that are not known are refused. With `launch`, it also says how a kernel is launched.
macro_rules! object {
    ($name:ident launch { $($(#[$of:meta])* $field:ident: $type:ty),* $(,)? }) => {
        object!($name {
            $($(#[$of])* $field: $type,)*
            local_size: Option<Size3>,
            global_size: Option<Size3>,
            global_size_type: Option<String>,
            grid_div_x: Option<OneOrMore>,
            grid_div_y: Option<OneOrMore>,
            grid_div_z: Option<OneOrMore>,
            problem_size: Option<OneOrMore>,
            shared_memory: Option<Formula>,
        });

        impl $name {
            /// How it is launched.
            pub(crate) fn launch(&self) -> Launch<'_> {
                Launch {
                    local: self.local_size.as_ref(),
                    global: self.global_size.as_ref(),
                    global_type: self.global_size_type.as_deref(),
                    divisors: [&self.grid_div_x, &self.grid_div_y, &self.grid_div_z].map(Option::as_ref),
                    problem: self.problem_size.as_ref(),
                    shared: self.shared_memory.as_ref(),
                }
            }
        }
    };
    ($name:ident { $($(#[$of:meta])* $field:ident: $type:ty),* $(,)? }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "PascalCase")]
        #[allow(dead_code, reason = "what other tools read is known, so that it is no mistake, and not used")]
        pub(crate) struct $name {
            $($(#[$of])* pub(crate) $field: $type,)*
        }
    };
}

/// How a kernel is launched, as written.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'d> {
    pub(crate) local: Option<&'d Size3>,
    pub(crate) global: Option<&'d Size3>,
    pub(crate) global_type: Option<&'d str>,
    pub(crate) divisors: [Option<&'d OneOrMore>; 3],
    pub(crate) problem: Option<&'d OneOrMore>,
    pub(crate) shared: Option<&'d Formula>,
}

/// A number, or the text of an expression.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Formula {
    Number(serde_json::Number),
    Text(String),
}

impl Formula {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A formula, or a list of them.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    One(Formula),
    More(Vec<Formula>),
}

impl OneOrMore {
    pub(crate) fn texts(&self) -> Vec<String> {
        match self {
            Self::One(formula) => vec![formula.text()],
            Self::More(formulas) => formulas.iter().map(Formula::text).collect(),
        }
    }
}

/// Sizes along three axes.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(crate) struct Size3 {
    x: Formula,
    y: Option<Formula>,
    z: Option<Formula>,
}

impl Size3 {
    /// 1 along an axis that is not written.
    pub(crate) fn texts(&self) -> [String; 3] {
        let text = |size: &Option<Formula>| size.as_ref().map_or_else(|| "1".to_owned(), Formula::text);
        [self.x.text(), text(&self.y), text(&self.z)]
    }
}

/// A truth, as JSON writes it or as a number.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum Truth {
    Bool(bool),
    Number(i64),
}

impl Truth {
    pub(crate) fn holds(self) -> bool {
        match self {
            Self::Bool(truth) => truth,
            Self::Number(number) => number != 0,
        }
    }
}

object!(Document {
    configuration_space: Space,
    kernel_specification: Kernel,
    inputs: Option<Vec<Input>>,
    reference: Option<Reference>,
    tolerance: Option<Tolerance>,
    work: Option<Work>,
    #[serde(rename = "$schema")]
    schema: Option<Json>,
    general: Option<Json>,
    search: Option<Json>,
    budget: Option<Json>,
    benchmark_config: Option<Json>,
});

object!(Space {
    tuning_parameters: Vec<Parameter>,
    #[serde(default)]
    conditions: Vec<Condition>,
});

object!(Parameter {
    name: String,
    values: Json,
    default: Option<Json>,
    r#type: Option<Json>,
});

object!(Condition {
    expression: String,
    parameters: Option<Json>,
});

object!(Kernel launch {
    language: String,
    kernel_name: String,
    kernel_file: String,
    #[serde(default)]
    compiler_options: Vec<String>,
    arguments: Option<Vec<Argument>>,
    inputs: Option<Vec<Input>>,
    reference: Option<Reference>,
    tolerance: Option<Tolerance>,
    work: Option<Work>,
    steps: Option<Vec<Step>>,
    benchmark_name: Option<String>,
    reference_arguments: Option<Json>,
    device: Option<Json>,
    profiling: Option<Json>,
    simulation_input: Option<Json>,
    stream: Option<Json>,
    misc: Option<Json>,
});

object!(Argument {
    name: Option<String>,
    r#type: String,
    memory_type: String,
    mem_type: Option<String>,
    access_type: Option<String>,
    fill_type: Option<String>,
    fill_value: Option<Formula>,
    size: Option<Formula>,
    type_size: Option<Json>,
    data_source: Option<String>,
    random_seed: Option<u64>,
    output: Option<Truth>,
    tolerance: Option<Tolerance>,
});

object!(Input { name: String, values: Json });

object!(Reference launch {
    kernel_file: Option<String>,
    kernel_name: Option<String>,
    language: Option<String>,
    configuration: Option<serde_json::Map<String, Json>>,
    file: Option<String>,
    files: Option<serde_json::Map<String, Json>>,
});

object!(Tolerance {
    absolute: Option<f64>,
    relative: Option<f64>,
});

object!(Work {
    flops: Option<Formula>,
    bytes: Option<Formula>,
});

object!(Step launch {
    kernel_name: String,
    arguments: Option<Vec<String>>,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_not_known_are_refused_by_place() {
        let text = r#"{"ConfigurationSpace": {"TuningParameters": [], "Conditions": []},
            "KernelSpecification": {"Language": "C", "KernelName": "f", "KernelFile": "f.c", "Lokalsize": 1}}"#;
        let Err(error) = serde_json::from_str::<Document>(text) else { panic!() };
        assert!(error.to_string().contains("unknown field `Lokalsize`") && error.line() == 2, "{error}");
    }
}
