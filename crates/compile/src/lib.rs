#![doc = include_str!("../README.md")]

mod cache;
mod compilers;
mod device;
mod host;
mod includes;
mod native;
mod nvcc;
mod nvrtc;

pub use compilers::{Built, CompileError, Compilers};
pub use device::{Compiling, OpenNatives};
pub use includes::beside;
pub use native::{NativeHost, in_process};
