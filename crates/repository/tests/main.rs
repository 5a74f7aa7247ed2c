//! The store in a folder and the one on a server, by the same tests.

mod conformance;
mod embedded;
mod killed;
#[cfg(feature = "redis")]
mod server;
