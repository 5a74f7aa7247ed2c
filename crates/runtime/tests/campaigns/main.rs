//! Whole campaigns and whole decisions on the toy kernel.

mod planning;
mod support;
mod tuning;
