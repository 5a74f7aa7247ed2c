//! CUDA devices by the driver, which is looked for when a device is opened: nothing of CUDA is needed to build, and without
//! a driver everything here answers with a typed error.
//!
//! A [`CudaDevice`] is a [`Device`](tilewright_core::device::Device) of this process. A kernel that faults takes the context, and
//! with it the device, away from the whole process, so everything that runs unproven code runs it in a
//! [`worker`](crate::worker).
//!
//! | file | what |
//! |---|---|
//! | `driver` | handles of the driver with their lifetimes: the place of `unsafe` |
//! | `error` | what the driver's errors mean |
//! | `facts` | the facts of a device |
//! | `code` | from text to machine code, in parallel, ahead of its use |
//! | `signature` | the parameters of an entry |
//! | `program` | a program ready to be put on the stream |
//! | `lane`, `timing`, `spin` | what is timed, and how |
//! | `library` | routines of the vendor's libraries as steps of programs |
//!
//! # How it is timed
//!
//! By events on one stream. Ahead of the first event a kernel that looks at the device's timer keeps the device busy until everything
//! that is timed, and the second event, are on the stream, so that the host's part is not timed. A run is led by warm-ups, then stretches are timed until the median is known well enough: one
//! run where it takes long, otherwise a CUDA graph of as many runs as fill [`timing::STRETCH`], so that neither launching
//! nor reading the clock is part of it. With a cold cache ([`CachePolicy::Cold`](tilewright_core::measurement::CachePolicy)) a
//! buffer of twice the size of the second-level cache is overwritten before each run, and each run is timed alone.

mod code;
mod device;
mod driver;
mod error;
mod facts;
mod function;
mod lane;
mod library;
mod program;
mod signature;
mod spin;
mod tensor_map;
pub mod timing;

pub use device::CudaDevice;
pub use driver::{count, level};
pub use facts::fact_names;
pub use library::{DeviceLibrary, Stage};
