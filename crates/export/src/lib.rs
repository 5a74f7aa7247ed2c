#![doc = include_str!("../README.md")]

mod artefact;
mod assemble;
mod domain;
mod emit;
mod fit;
mod guard;
mod tree;

pub use artefact::{Artefact, ArtefactError, Choice, Contents, Device, FORMAT, Loss, Regret};
pub use assemble::Parts;
pub use domain::{Domain, DomainError, Field, OutsideError};
pub use emit::{EmitError, Target, emit, name};
pub use fit::{Cell, FitError, FitSettings, Fitted, Table, cover, fit};
pub use guard::{Condition, Names, Seen};
pub use tree::{Test, Tree};
