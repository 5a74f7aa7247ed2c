//! The artefact: what it holds, how it answers, how it is written and read.

use crate::domain::{Domain, OutsideError};
use crate::guard::{Condition, Guard};
use crate::tree::Tree;
use serde::{Deserialize, Serialize};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::document::{DocumentError, Format};
use tilewright_core::space::Config;

/// The kind of document that artefacts are.
pub const FORMAT: Format = Format { name: "tilewright-export", version: 1 };

/// More nesting than any tree has that was grown here: reading and walking recurse.
const MOST_LEAVES: usize = 1024;

/// The device that an artefact holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As on the command line.
    pub id: String,
    /// Model name as the hardware gives it.
    pub name: String,
    /// How it runs plans.
    pub kind: DeviceKind,
    /// Driver or instruction-set level.
    pub driver: String,
    /// [`DeviceSpec::fingerprint`].
    pub fingerprint: String,
    /// Threads of a host, where that is a fact: another number is another device.
    pub threads: Option<i64>,
}

impl Device {
    /// What an artefact says of a device.
    pub fn of(spec: &DeviceSpec) -> Self {
        let DeviceSpec { id, name, kind, driver, .. } = spec.clone();
        Self { id, name, kind, driver, fingerprint: spec.fingerprint(), threads: spec.fact("threads") }
    }

    /// For people: the name, and what else tells it from others.
    pub fn title(&self) -> String {
        let threads = self.threads.map_or(String::new(), |threads| format!(", {threads} threads"));
        format!("{} ({}{threads}, fingerprint {})", self.name, self.id, self.fingerprint)
    }
}

/// One configuration of an artefact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Its parameters.
    pub config: Config,
    /// When it is legal.
    pub conditions: Vec<Condition>,
}

/// How much slower choices are than the best that is known, in mean and at worst, as shares: 0.02 is two percent more time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The geometric mean of the times over the best times, less 1.
    pub mean: f64,
    /// The largest one, less 1.
    pub worst: f64,
    /// On how many inputs.
    pub inputs: usize,
}

impl Loss {
    /// Of the logarithms of times over best times; none of no inputs.
    pub fn of(logs: &[f64]) -> Option<Self> {
        let inputs = logs.len();
        let mean = (logs.iter().sum::<f64>() / inputs as f64).exp_m1();
        let worst = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp_m1();
        (inputs > 0).then_some(Self { mean, worst, inputs })
    }
}

/// How good the choices are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regret {
    /// On the inputs that the tree was grown on, beside the best configuration of each that was timed.
    pub training: Option<Loss>,
    /// On the same inputs, each with a tree that had not seen it.
    pub cross_validated: Option<Loss>,
    /// On other inputs, beside what a plan of each chose there.
    pub held_out: Option<Loss>,
}

/// What an artefact holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// The kernel, with its version.
    pub kernel: String,
    /// Its computation.
    pub computation: String,
    /// The device that it holds for.
    pub device: Device,
    /// The inputs that it speaks of.
    pub domain: Domain,
    /// The inputs that it was learned from.
    pub inputs: Vec<Config>,
    /// How good it is.
    pub regret: Regret,
    /// The names of the parameters, in the order of the kernel.
    pub parameters: Vec<String>,
    /// The configurations.
    pub choices: Vec<Choice>,
    /// Chooses among them.
    pub tree: Tree,
    /// Configurations that are tried where none of a leaf is legal.
    pub fallback: Vec<usize>,
    /// The one that is taken where guidelines speak against all of these: it computes every input that the kernel computes at all.
    pub last: Option<usize>,
}

/// An artefact that is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ArtefactError {
    /// No document of this format, a damaged one, or one of another version.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A part that says what cannot be.
    #[error("{part}: {message}")]
    Contents {
        /// The part.
        part: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// It holds for another device.
    #[error("the artefact holds for {made}, and this device is {here}")]
    OtherDevice {
        /// The device that it was made on.
        made: String,
        /// The device at hand.
        here: String,
    },
    /// It is about another kernel.
    #[error("the artefact is of {made}, not of {asked}")]
    OtherKernel {
        /// Its kernel.
        made: String,
        /// The kernel that was asked for.
        asked: String,
    },
}

/// A readable, checked artefact.
#[derive(Clone, Debug)]
pub struct Artefact {
    contents: Contents,
    guards: Vec<Guard>,
}

impl Artefact {
    /// Checks contents, and prepares them for answers.
    ///
    /// # Errors
    /// Numbers of configurations, fields or words that there are not, or conditions that are no expressions over the fields.
    pub fn new(contents: Contents) -> Result<Self, ArtefactError> {
        check(&contents)?;
        let guard = |choice: &Choice| {
            let refused = |e: crate::guard::GuardError| wrong("choices", e.to_string());
            Guard::new(&choice.conditions, &contents.domain).map_err(refused)
        };
        let guards = contents.choices.iter().map(guard).collect::<Result<_, _>>()?;
        Ok(Self { contents, guards })
    }

    /// Reads what [`Artefact::write`] wrote.
    ///
    /// # Errors
    /// Another or a damaged document, or as [`Artefact::new`]. Never panics, whatever the text.
    pub fn read(text: &str) -> Result<Self, ArtefactError> {
        let value = serde_json::from_str(text).map_err(DocumentError::from)?;
        let mut contents: Contents = FORMAT.open(value)?;
        // Objects of JSON have no order of their own.
        let (order, parameters) = (contents.domain.order.clone(), contents.parameters.clone());
        contents.inputs.iter_mut().chain([&mut contents.domain.fixed]).for_each(|input| sort(input, &order));
        contents.choices.iter_mut().for_each(|choice| sort(&mut choice.config, &parameters));
        Self::new(contents)
    }

    /// Whether a text says of itself that it is an artefact.
    pub fn is_one(text: &str) -> bool {
        let value = serde_json::from_str::<serde_json::Value>(text);
        value.is_ok_and(|value| value.get("format").and_then(|f| f.as_str()) == Some(FORMAT.name))
    }

    /// The JSON document.
    ///
    /// # Errors
    /// A number that JSON does not have.
    pub fn write(&self) -> Result<String, ArtefactError> {
        let sealed = FORMAT.seal(&self.contents)?;
        Ok(format!("{sealed:#}\n"))
    }

    /// What it holds.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The same with another regret: it is measured with the artefact's own answers.
    #[must_use]
    pub fn with_regret(mut self, regret: Regret) -> Self {
        self.contents.regret = regret;
        self
    }

    /// Refuses another device, or another kernel.
    ///
    /// # Errors
    /// What it is made for, and what is at hand.
    pub fn expect(&self, kernel: &str, device: &DeviceSpec) -> Result<(), ArtefactError> {
        let (made, here) = (&self.contents.device, Device::of(device));
        if made.fingerprint != here.fingerprint {
            return Err(ArtefactError::OtherDevice { made: made.title(), here: here.title() });
        }
        if self.contents.kernel != kernel {
            let (made, asked) = (self.contents.kernel.clone(), kernel.to_owned());
            return Err(ArtefactError::OtherKernel { made, asked });
        }
        Ok(())
    }

    /// The number of the configuration for an input; none where no configuration of the artefact computes it.
    ///
    /// # Errors
    /// An input that the artefact does not speak of.
    pub fn choose(&self, input: &Config) -> Result<Option<usize>, OutsideError> {
        Ok(self.choose_by(&self.contents.domain.numbers(input)?))
    }

    /// [`Artefact::choose`] for the numbers of an input, by [`Domain::numbers`].
    pub fn choose_by(&self, numbers: &[i64]) -> Option<usize> {
        let legal = |only_needed| {
            let domain = &self.contents.domain;
            move |at: &usize| self.guards[*at].holds(domain, numbers, only_needed)
        };
        let order = self.contents.tree.leaf(numbers).iter().chain(&self.contents.fallback).copied();
        order.into_iter().find(legal(false)).or_else(|| self.contents.last.filter(legal(true)))
    }

    /// The configurations for an input that are legal, the preferred first.
    ///
    /// # Errors
    /// As [`Artefact::choose`].
    pub fn ranked(&self, input: &Config) -> Result<Vec<usize>, OutsideError> {
        let numbers = self.contents.domain.numbers(input)?;
        let mut out: Vec<usize> = Vec::new();
        for at in self.contents.tree.leaf(&numbers).iter().chain(&self.contents.fallback) {
            if !out.contains(at) && self.guards[*at].holds(&self.contents.domain, &numbers, false) {
                out.push(*at);
            }
        }
        Ok(out)
    }

    /// Whether an answer is sure for every input of the domain that the kernel computes: nothing but conditions that all
    /// configurations share stands before the last resort.
    pub fn is_guaranteed(&self) -> bool {
        self.contents.last.is_some()
    }
}

fn wrong(part: &'static str, message: impl Into<String>) -> ArtefactError {
    ArtefactError::Contents { part, message: message.into() }
}

/// Whether a configuration computes everything that the kernel computes: what is needed of it is needed of all.
pub(crate) fn is_general(conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| condition.is_common || !condition.is_needed)
}

fn sort(config: &mut Config, order: &[String]) {
    config.0.sort_by_key(|(name, _)| order.iter().position(|known| known == name));
}

fn check(contents: &Contents) -> Result<(), ArtefactError> {
    let (choices, fields) = (contents.choices.len(), contents.domain.fields.len());
    let (mut problem, mut leaves) = (None, 0);
    contents.tree.visit(&mut |node| match node {
        Tree::Leaf(order) => {
            leaves += 1;
            if order.iter().any(|&at| at >= choices) {
                problem = Some(format!("a leaf names a configuration beyond the {choices} that there are"));
            }
        }
        Tree::Branch { test, .. } => {
            if !test.is_total() || test.fields().iter().any(|&field| field >= fields) {
                problem = Some(format!("{test:?} asks what the {fields} fields do not say"));
            }
        }
    });
    match problem {
        Some(message) => return Err(wrong("tree", message)),
        None if leaves > MOST_LEAVES => return Err(wrong("tree", format!("{leaves} leaves; at most {MOST_LEAVES}"))),
        None => {}
    }
    if contents.fallback.iter().chain(&contents.last).any(|&at| at >= choices) {
        return Err(wrong("fallback", format!("names a configuration beyond the {choices} that there are")));
    }
    if contents.last.is_some_and(|at| !is_general(&contents.choices[at].conditions)) {
        return Err(wrong("last", "has conditions of its own, so that it is no last resort"));
    }
    if contents.choices.is_empty() {
        return Err(wrong("choices", "there are none"));
    }
    let has_all = |choice: &Choice| choice.config.0.iter().map(|(name, _)| name).eq(&contents.parameters);
    match contents.choices.iter().position(|choice| !has_all(choice)) {
        Some(at) => {
            Err(wrong("choices", format!("number {at} has other parameters than {}", contents.parameters.join(" "))))
        }
        None => Ok(()),
    }
}
