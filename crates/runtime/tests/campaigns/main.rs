//! Whole campaigns and whole decisions on the toy kernel.

mod planning;
mod several;
mod strategies;
mod support;
mod ties;
mod tuning;
mod variants;
