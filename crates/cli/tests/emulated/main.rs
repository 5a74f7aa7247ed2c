//! Generated PTX kernels, run by the emulator: generator and emulator meet only here and in the binary.

mod bacugen;
mod bounds;
mod conformance;
mod convolutions;
mod count_conv;
mod count_loops;
mod counts;
mod elements;
mod launches;
mod matrices;
mod products;
mod stand;
mod streams;
mod tickets;
