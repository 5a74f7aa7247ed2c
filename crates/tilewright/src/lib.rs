#![doc = include_str!("../README.md")]

mod batch;
mod callable;
mod counting;
pub mod device;
mod error;
pub mod exporting;
pub mod kernels;
pub mod known;
pub mod own;
pub mod planning;
mod request;
pub mod tuner;

pub use batch::gemm_batch;
pub use callable::Callable;
pub use counting::ByEmulator;
pub use device::DeviceName;
pub use error::Error;
pub use own::{Args, At, Before, BuildError, KernelBuilder, OwnKernel};
pub use request::{Request, gemm};
pub use tilewright_core::buffer::{Element, View};
pub use tilewright_user::{UserError, UserKernel};
pub use tuner::Tuner;

pub use tilewright_calibration as calibration;
pub use tilewright_compile as compile;
pub use tilewright_computations as computations;
pub use tilewright_core as core;
pub use tilewright_cpu as cpu;
pub use tilewright_datasets as datasets;
pub use tilewright_emulator as emulator;
pub use tilewright_export as export;
pub use tilewright_loops as loops;
pub use tilewright_mtl as mtl;
pub use tilewright_ops as ops;
pub use tilewright_perfmodel_linear as perfmodel_linear;
pub use tilewright_perfmodel_mlp as perfmodel_mlp;
pub use tilewright_ptxgen as ptxgen;
pub use tilewright_repository as repository;
pub use tilewright_runtime as runtime;
pub use tilewright_sampler as sampler;
pub use tilewright_search as search;
pub use tilewright_user as user;
pub use tilewright_variant_select as variant_select;
