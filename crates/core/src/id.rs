//! Names of computations and kernels.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            /// An identifier known at compile time.
            pub const fn new(name: &'static str) -> Self {
                Self(Cow::Borrowed(name))
            }

            /// The identifier as written in files and on the command line.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(Cow::Owned(name))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// What is computed, for example `gemm`.
    ComputationId
}
id! {
    /// One tunable implementation of a computation, for example `gemm.cpu`. Carries a version where the meaning of its
    /// parameters changed, so that recorded measurements are never read for another generation of the kernel.
    KernelId
}

impl KernelId {
    /// The name without computation and version: `openblas` of `gemm.openblas.1`.
    pub fn name(&self) -> &str {
        let versioned = self.0.rsplit_once('.').filter(|(_, version)| version.parse::<u32>().is_ok());
        let family = versioned.map_or(&*self.0, |(family, _)| family);
        family.split_once('.').map_or(family, |(_, name)| name)
    }
}
