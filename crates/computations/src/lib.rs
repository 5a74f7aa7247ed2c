#![doc = include_str!("../README.md")]

pub mod bfs;
pub mod campaign;
pub mod computation;
pub mod device;
pub mod generate;
pub mod histogram;
pub mod image;
pub mod isa;
pub mod matrix;
pub mod multiply;
pub mod solver;
pub mod sort;
pub mod spmv;
pub mod transpose;
