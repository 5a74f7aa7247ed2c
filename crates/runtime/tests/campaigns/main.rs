//! Whole campaigns and whole decisions on the toy kernel.

mod planning;
mod strategies;
mod support;
mod tuning;
