//! A CUDA driver for tests. Programs that open `libcuda.so` and find this library run on a device that is the
//! [emulator](tilewright_emulator): what they allocate, copy, launch, record and time goes the ways of the real driver, without a
//! GPU. It has the entry points that this project calls and no others.
//!
//! - Work is done when it is put on a stream. A capturing stream records it, and a graph does it when it is launched.
//!   A launch that has left all memory as it was is not run again before something changes; only its time passes.
//! - The clock counts: launches, instructions of warps by waves of blocks, bytes of copies. Times are the same every time and say
//!   nothing of any real device.
//! - A kernel that faults breaks the device, and every later call says so, as on a device. One that hangs is never done.
//!   Races and reads of what nobody wrote, which hardware lets pass, break it too.
//! - Code is PTX text: "linking" checks it and hands it back as the image. Machine code of ptxas is refused, so hide ptxas from a
//!   program that runs on this driver.

mod attributes;
mod exports;
mod repeats;
mod state;
