//! Which libraries of the host can be called, and why the others cannot.

use crate::foreign::onednn::OneDnn;
use crate::kernel::Routine;
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
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)?;
        self.path.iter().try_for_each(|path| write!(f, " ({})", path.display()))
    }
}

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
        let mut found: Vec<Identity> = routines.iter().map(|routine| routine.identity.clone()).collect();
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
        Inventory { routines, onednn, found, missing }
    })
}
