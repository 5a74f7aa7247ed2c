//! One file a command.

//TEMP pub(crate) mod ablation;
pub(crate) mod bench;
mod contest;
//TEMP pub(crate) mod data;
pub(crate) mod doctor;
mod held_out;
//TEMP pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod space;
pub(crate) mod tune;
pub(crate) mod verify;
