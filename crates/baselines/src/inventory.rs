//! Which libraries of the host can be called, and why the others cannot.

use crate::foreign::onednn::OneDnn;
use crate::kernel::Routine;
use crate::small::SmallRoutine;
use crate::{libraries, rust_crates};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Who a library is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Short name: `openblas`.
    pub name: &'static str,
    /// What the library says of itself.
    pub version: String,
    /// The file it was loaded from; none for what is built in.
    pub path: Option<PathBuf>,
    /// The most threads it can use, if limited.
    pub max_threads: Option<usize>,
    /// The core whose code it runs, where it says so: `SkylakeX`.
    pub core: Option<String>,
    /// How it came to that core; none for what has no cores to choose among.
    pub core_choice: Option<CoreChoice>,
}

/// How a library came to the core whose code it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreChoice {
    /// Nothing was tried: the library decided.
    AsFound,
    /// The fastest file and core of so many that were tried here, and the variable that says so to the library, unless it takes that core
    /// by itself.
    Fastest {
        /// How many files and cores of this library were tried.
        tried: usize,
        /// `OPENBLAS_CORETYPE=SkylakeX`.
        by: Option<String>,
    },
    /// Whoever started this process said so, in a variable: `OPENBLAS_CORETYPE=Haswell`.
    Asked(String),
}

impl fmt::Display for CoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsFound => f.write_str("as found"),
            Self::Fastest { tried, by: None } => write!(f, "its own choice, the fastest of {tried} tried"),
            Self::Fastest { tried, by: Some(by) } => write!(f, "by {by}, the fastest of {tried} tried"),
            Self::Asked(by) => write!(f, "asked for by {by}"),
        }
    }
}

impl Identity {
    /// Of what is compiled in.
    pub(crate) fn built_in(name: &'static str, version: &str) -> Self {
        Self { name, version: version.to_owned(), path: None, max_threads: None, core: None, core_choice: None }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)?;
        match (&self.core, &self.core_choice) {
            (Some(core), Some(choice)) => write!(f, ", core {core}, {choice}")?,
            (Some(core), None) => write!(f, ", core {core}")?,
            (None, Some(choice)) => write!(f, ", core {choice}")?,
            (None, None) => {}
        }
        self.path.iter().try_for_each(|path| write!(f, " ({})", path.display()))
    }
}

/// All libraries of the host that are known.
pub(crate) const NAMES: [&str; 8] =
    ["gemm", "matrixmultiply", "openblas", "blis", "mkl", "nano-gemm", "libxsmm", "onednn"];

/// A library that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Short name: `mkl`.
    pub name: &'static str,
    /// Why: not found, or found but not usable.
    pub reason: String,
}

/// What this machine has for its host.
#[derive(Debug)]
pub struct Inventory {
    pub(crate) routines: Vec<Routine>,
    pub(crate) small: Vec<SmallRoutine>,
    pub(crate) onednn: Option<&'static OneDnn>,
    /// Libraries that can be called.
    pub found: Vec<Identity>,
    /// Those that cannot, and why.
    pub missing: Vec<Missing>,
}

/// All libraries of this machine's host. They are searched for and opened on the first call and stay open.
pub fn inventory() -> &'static Inventory {
    static INVENTORY: OnceLock<Inventory> = OnceLock::new();
    INVENTORY.get_or_init(|| {
        let mut routines: Vec<Routine> = rust_crates::routines().into();
        let mut missing = Vec::new();
        let loaded = libraries::load_all();
        for result in loaded.blas {
            match result {
                Ok(library) => routines.push(library.routine()),
                Err(reason) => missing.push(reason),
            }
        }
        let mut small = vec![rust_crates::small()];
        match loaded.libxsmm {
            Ok(routine) => small.push(routine),
            Err(reason) => missing.push(reason),
        }
        let small_ones = small.iter().map(|routine| routine.identity.clone());
        let mut found: Vec<Identity> =
            routines.iter().map(|routine| routine.identity.clone()).chain(small_ones).collect();
        let onednn = match loaded.onednn {
            Ok((identity, library)) => {
                found.push(identity);
                Some(library)
            }
            Err(reason) => {
                missing.push(reason);
                None
            }
        };
        Inventory { routines, small, onednn, found, missing }
    })
}
