//! One file a command.

pub(crate) mod ablation;
pub(crate) mod bench;
pub(crate) mod campaign;
mod contest;
pub(crate) mod count;
pub(crate) mod data;
mod data_export;
pub(crate) mod doctor;
pub(crate) mod emit;
pub(crate) mod export;
mod held_out;
pub(crate) mod import;
pub(crate) mod kernel;
pub(crate) mod linear;
pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod repository;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod select;
pub(crate) mod space;
pub(crate) mod transfer;
pub(crate) mod tune;
pub(crate) mod verify;
