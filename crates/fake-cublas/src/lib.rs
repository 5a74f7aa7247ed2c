#![doc = include_str!("../README.md")]

mod exports;
mod handles;
mod launch;
mod product;
