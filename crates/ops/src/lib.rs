//! The computations that Tilewright tunes: input types, workloads, references in higher precision, error bounds.
//!
//! No kernel lives here: kernels of one computation share what this crate says about it.
//!
//! ```
//! use tilewright_core::computation::Computation;
//! use tilewright_core::space::Config;
//! use tilewright_ops::conv::Conv;
//! use tilewright_ops::gemm::Gemm;
//!
//! let fields = Config::parse("m=2560,n=16,k=2560,dtype=f32,layout=tn")?;
//! let input = Gemm.parse(&fields)?;
//! assert_eq!(input.lda, 2560);
//! assert_eq!(Gemm.work(&input).flops, 2.0 * 2560.0 * 16.0 * 2560.0);
//! let wrong = Gemm.parse(&Config::parse("m=4,n=4,k=4,lda=2")?).unwrap_err();
//! assert_eq!(wrong.field, "lda");
//!
//! let input = Conv.parse(&Config::parse("n=8,c=64,h=54,w=54,k=64,r=3,s=3,pad=1")?)?;
//! assert_eq!(input.output(), [54, 54]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activation;
mod bound;
pub mod conv;
mod filling;
pub mod gemm;
mod product;
mod types;
