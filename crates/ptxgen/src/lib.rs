#![doc = include_str!("../README.md")]

pub mod bacugen;
pub mod conv;
pub mod count;
pub mod features;
pub mod gemm;
pub mod ir;
pub mod loops;
pub mod micro;
pub mod mma;
pub mod print;
pub mod ragged;
mod simt;
pub mod target;
pub mod verify;
