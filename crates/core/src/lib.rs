//! The contract of Tilewright: the vocabulary and the traits that every other crate meets at.
//!
//! Nothing here does I/O and nothing here knows a backend. A [`computation::Computation`] says what is computed, a
//! [`kernel::Kernel`] is one tunable implementation of it, and a [`problem::Problem`] is the object-safe view of
//! (kernel, device, input) that samplers, models, searches and devices see.
//!
//! ```
//! use tilewright_core::expr::Expr;
//! use tilewright_core::space::{Param, ParamSpace, RuleGroup, Symbols};
//!
//! let space = ParamSpace::builder()
//!     .param(Param::ints("m_s", [1, 2, 4, 8]))
//!     .param(Param::ints("n_s", [1, 2, 4, 8]))
//!     .rule("registers", RuleGroup::Hardware, "m_s * n_s <= registers", "accumulators live in registers")
//!     .build()?;
//! let bound = space.bind(&Symbols::new().with("registers", 16))?;
//! assert_eq!(bound.cartesian(), 16);
//! assert_eq!(bound.count_legal(), 13);
//! let illegal = bound.check(&[3, 3]).unwrap_err();
//! assert_eq!(illegal.rule, "registers");
//! let parsed: Expr = "m_s * n_s <= 16".parse()?;
//! assert_eq!(parsed.to_string(), "m_s * n_s <= 16");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod named;

pub mod buffer;
pub mod choice;
pub mod computation;
pub mod counts;
pub mod data;
pub mod decision;
pub mod device;
pub mod document;
pub mod dtype;
pub mod element;
pub mod expr;
pub mod feature;
pub mod id;
pub mod kernel;
pub mod measurement;
pub mod metrics;
pub mod objective;
pub mod operations;
pub mod predictor;
pub mod prior;
pub mod problem;
pub mod program;
pub mod search;
pub mod selector;
pub mod setting;
pub mod size;
pub mod space;
pub mod text;
pub mod timing;
pub mod training;
