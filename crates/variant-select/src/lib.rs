#![doc = include_str!("../README.md")]

pub mod blend;
pub mod by_predictor;
mod classes;
mod encode;
pub mod evaluate;
pub mod extra;
pub mod fixed;
pub mod forest;
pub mod guard;
pub mod incumbent;
mod linear;
pub mod map;
mod order;
pub mod process;
pub mod protocol;
pub mod regression;
mod shapes;
pub mod softmax;
pub mod svm;
pub mod trees;
pub mod variants;

pub use encode::FeatureMap;
