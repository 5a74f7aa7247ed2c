#![doc = include_str!("../README.md")]

pub mod baselines;
pub mod confidence;
pub mod cvdfs;
pub mod device;
mod error;
pub mod experts;
pub mod forward;
pub mod leave_one_out;
pub mod near;
pub mod pdfs;
pub mod profile;
pub mod protocol;
mod role;
pub mod samples;
pub mod shots;
mod sources;
pub mod transfer;
pub mod view;

pub use error::MtlError;
pub use role::Role;
pub use sources::{Source, Sources};
