#![doc = include_str!("../README.md")]

mod exports;
mod handles;
mod kernel;
mod launch;
mod numbers;
mod product;
