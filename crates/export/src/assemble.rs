//! A fitted tree, candidates and what covers the rest, put together.

use crate::artefact::{Artefact, ArtefactError, Choice, Contents, Device, Regret, is_general};
use crate::domain::Domain;
use crate::fit::Fitted;
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::space::Config;

/// What an artefact is made from, beside its tree.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// The kernel.
    pub kernel: KernelId,
    /// Its computation.
    pub computation: ComputationId,
    /// The device that everything was timed on.
    pub device: &'a DeviceSpec,
    /// The inputs that it speaks of.
    pub domain: Domain,
    /// Those that it was learned from.
    pub inputs: Vec<Config>,
    /// The columns of the table.
    pub candidates: Vec<Choice>,
    /// What is tried where none of a leaf is legal, in this order; see [`crate::cover`].
    pub fallback: Vec<Choice>,
}

impl Parts<'_> {
    /// The artefact of a tree over the candidates. Its last resort is the first configuration that has no needs of its own.
    ///
    /// # Errors
    /// Candidates of different parameters, or conditions over other fields.
    pub fn assemble(self, fitted: &Fitted) -> Result<Artefact, ArtefactError> {
        let mut choices: Vec<Choice> = fitted.chosen.iter().map(|&at| self.candidates[at].clone()).collect();
        let number = |column: usize| fitted.chosen.iter().position(|&at| at == column).unwrap_or_default();
        let tree = fitted.tree.clone().renumbered(&number);
        let mut fallback = Vec::new();
        for choice in self.fallback {
            let known = choices.iter().position(|known| known.config == choice.config);
            fallback.push(known.unwrap_or_else(|| {
                choices.push(choice);
                choices.len() - 1
            }));
        }
        let last = choices.iter().position(|choice| is_general(&choice.conditions));
        let regret =
            Regret { training: Some(fitted.training), cross_validated: fitted.cross_validated, held_out: None };
        Artefact::new(Contents {
            kernel: self.kernel.to_string(),
            computation: self.computation.to_string(),
            device: Device::of(self.device),
            domain: self.domain,
            inputs: self.inputs,
            regret,
            parameters: choices.first().map(names).unwrap_or_default(),
            choices,
            tree,
            fallback,
            last,
        })
    }
}

fn names(choice: &Choice) -> Vec<String> {
    choice.config.0.iter().map(|(name, _)| name.clone()).collect()
}
