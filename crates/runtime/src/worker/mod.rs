//! Devices in processes of their own: a kernel that faults or hangs ends that process only.
//!
//! The parent holds an [`Isolated`], a [`Device`](tilewright_core::device::Device) like any other. It starts the child, sends one
//! request at a time over a pipe ([`Frame`]s: JSON with binary attachments, both with their lengths), and waits for the reply
//! no longer than it has patience. A child that dies, hangs, answers nonsense, or says itself that its device is lost, is
//! ended and replaced at the next request; what it was asked last has failed. The child runs [`serve`].

mod frame;
mod isolated;
mod message;
mod process;
mod serve;

pub use frame::{Frame, FrameError};
pub use isolated::{Isolated, WorkerCommand};
pub use serve::{ServeError, serve};
