#![doc = include_str!("../README.md")]

pub mod metrics;
mod order;
pub mod trees;
