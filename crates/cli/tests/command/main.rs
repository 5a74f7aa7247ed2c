//! The binary as others script against it, and as it fares beside others of its kind.

mod answers;
mod bad_input;
mod campaign_rehearsals;
#[cfg(target_os = "linux")]
mod campaigns;
#[cfg(target_os = "linux")]
mod cublas;
#[cfg(target_os = "linux")]
mod cuda;
#[cfg(target_os = "linux")]
mod described;
mod exported;
mod foreign;
mod gpu;
mod home;
mod linear;
mod named_data;
#[cfg(target_os = "linux")]
mod places;
mod processes;
mod repository;
mod search;
mod select;
#[cfg(target_os = "linux")]
mod signals;
mod spaces;
#[cfg(target_os = "linux")]
mod streams;
mod transfer;
mod transferred;
mod tuned;
#[cfg(target_os = "linux")]
mod unstored;
mod wording;
