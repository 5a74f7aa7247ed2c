//! OpenBLAS, BLIS, Intel MKL and oneDNN, opened at run time.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::foreign::onednn::OneDnn;
use crate::foreign::{Cblas, Library, LoadError, Visibility};
use crate::inventory::{Identity, Missing};
use crate::kernel::Routine;
use crate::locate;

/// `MKL_INTERFACE_LP64`: 32-bit integers.
const MKL_LP64: i64 = 0;
/// `MKL_THREADING_*`.
const MKL_INTEL_THREADS: i64 = 0;
const MKL_SEQUENTIAL: i64 = 1;
const MKL_GNU_THREADS: i64 = 3;

/// How long, in milliseconds, Intel's OpenMP workers spin after a region. Its default of 200 keeps a core busy long after the call
/// and would be charged to whoever is timed next; calls that follow one another still find the workers awake.
const BLOCKTIME_MS: i64 = 1;

/// How many threads were set last, and by which thread: OpenMP's settings belong to the thread that makes them.
type LastSet = Option<(ThreadId, usize)>;

/// A BLAS opened at run time.
#[derive(Debug)]
pub(crate) struct SharedBlas {
    identity: Identity,
    library: &'static Library,
    cblas: Cblas,
    set_threads: &'static str,
    openmp: Option<&'static Library>,
    /// Held during a call: the thread count is process-wide in these libraries.
    last_set: Mutex<LastSet>,
}

impl SharedBlas {
    /// The library as a routine; it is never closed.
    pub(crate) fn routine(self) -> Routine {
        let identity = self.identity.clone();
        let blas: &'static Self = Box::leak(Box::new(self));
        Routine {
            identity,
            sgemm: Box::new(move |call, threads| blas.with_threads(threads, || blas.cblas.sgemm(call))),
            dgemm: Box::new(move |call, threads| blas.with_threads(threads, || blas.cblas.dgemm(call))),
        }
    }

    fn with_threads(&self, threads: usize, gemm: impl FnOnce()) {
        let mut last = self.last_set.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (thread::current().id(), threads);
        if *last != Some(wanted) {
            self.set(threads);
            *last = Some(wanted);
        }
        gemm();
    }

    fn set(&self, threads: usize) {
        // both symbols were looked up when the library was opened
        let _ = self.library.call_with_int(self.set_threads, threads.max(1) as i64);
        if let Some(openmp) = self.openmp {
            let _ = openmp.call_with_int("kmp_set_blocktime", BLOCKTIME_MS);
        }
    }
}

/// What could be opened, and why the rest could not.
pub(crate) struct Loaded {
    pub(crate) blas: Vec<Result<SharedBlas, Missing>>,
    pub(crate) onednn: Result<(Identity, &'static OneDnn), Missing>,
}

/// Opens what is there. MKL comes last: its layers become visible to all libraries opened after them.
pub(crate) fn load_all() -> Loaded {
    let mut search = Search { folders: locate::folders(), python: None };
    let openblas = search.first("openblas", "libopenblas.so", open_openblas);
    let blis = search.first("blis", "libblis.so", open_blis);
    let onednn = search.first("onednn", "libdnnl.so", open_onednn);
    let mkl = search.first("mkl", "libmkl_rt.so", open_mkl);
    Loaded { blas: vec![openblas, blis, mkl], onednn }
}

/// Where libraries are looked for.
struct Search {
    folders: Vec<PathBuf>,
    /// Asked for once, by the first library that the other folders lack.
    python: Option<Vec<PathBuf>>,
}

impl Search {
    fn first<T>(&mut self, name: &'static str, stem: &str, load: Load<T>) -> Result<T, Missing> {
        let mut candidates = locate::candidates(&self.folders, stem);
        if candidates.is_empty() {
            candidates = locate::candidates(self.python.get_or_insert_with(locate::python_folders), stem);
        }
        first_usable(name, stem, &candidates, load)
    }
}

type Load<T> = fn(&Path) -> Result<T, LoadError>;

fn first_usable<T>(name: &'static str, stem: &str, candidates: &[PathBuf], load: Load<T>) -> Result<T, Missing> {
    let mut reasons = Vec::new();
    for path in candidates {
        match load(path) {
            Ok(library) => return Ok(library),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!("no {stem}* found; see scripts/baselines.sh and {}", locate::PATH_VARIABLE));
    }
    Err(Missing { name, reason: reasons.join("; ") })
}

fn open_onednn(path: &Path) -> Result<(Identity, &'static OneDnn), LoadError> {
    let library = OneDnn::open(path)?;
    let (version, max_threads) = (library.version().to_owned(), library.max_threads());
    Ok((Identity { name: "onednn", version, path: Some(path.to_owned()), max_threads }, library))
}

fn open_openblas(path: &Path) -> Result<SharedBlas, LoadError> {
    let library = Library::open(path, Visibility::Local)?;
    let version = library.text("openblas_get_config")?;
    if version.contains("USE64BITINT") {
        return Err(LoadError::Interface { path: path.to_owned() });
    }
    let version = version.trim_start_matches("OpenBLAS").trim().to_owned();
    assemble("openblas", path, library, version, "openblas_set_num_threads")
}

fn open_blis(path: &Path) -> Result<SharedBlas, LoadError> {
    let library = Library::open(path, Visibility::Local)?;
    let version = library.text("bli_info_get_version_str")?;
    assemble("blis", path, library, version, "bli_thread_set_num_threads")
}

fn open_mkl(path: &Path) -> Result<SharedBlas, LoadError> {
    let (layer, openmp) = mkl_threading(path);
    let library = Library::open(path, Visibility::Local)?;
    // before any other call: the layers are opened by the first one
    library.call_with_int("MKL_Set_Interface_Layer", MKL_LP64)?;
    library.call_with_int("MKL_Set_Threading_Layer", layer)?;
    // else MKL may use fewer threads than it is told
    library.call_with_int("MKL_Set_Dynamic", 0)?;
    let version = library.text_in_buffer("MKL_Get_Version_String")?;
    let mut blas = assemble("mkl", path, library, version, "MKL_Set_Num_Threads")?;
    blas.openmp = openmp;
    blas.identity.max_threads = (layer == MKL_SEQUENTIAL).then_some(1);
    Ok(blas)
}

/// MKL's threading layer and, if it is Intel's, the OpenMP runtime, opened for MKL's layers to find.
fn mkl_threading(mkl: &Path) -> (i64, Option<&'static Library>) {
    let mut folders: Vec<PathBuf> = mkl.parent().map(Path::to_owned).into_iter().collect();
    folders.extend(locate::folders());
    let open = |stem| {
        let candidates = locate::candidates(&folders, stem);
        candidates.iter().find_map(|path| Library::open(path, Visibility::Global).ok())
    };
    if let Some(intel) = open("libiomp5.so") {
        return (MKL_INTEL_THREADS, Some(intel));
    }
    match open("libgomp.so") {
        Some(_) => (MKL_GNU_THREADS, None),
        None => (MKL_SEQUENTIAL, None),
    }
}

fn assemble(
    name: &'static str,
    path: &Path,
    library: &'static Library,
    version: String,
    set_threads: &'static str,
) -> Result<SharedBlas, LoadError> {
    let cblas = library.cblas()?;
    for symbol in ["cblas_sgemm", "cblas_dgemm", set_threads] {
        own_symbol(path, library, symbol)?;
    }
    let identity = Identity { name, version, path: Some(path.to_owned()), max_threads: None };
    Ok(SharedBlas { identity, library, cblas, set_threads, openmp: None, last_set: Mutex::new(None) })
}

/// Checks that `symbol` lies in the file of its library and not in another that defines the same name.
fn own_symbol(path: &Path, library: &Library, symbol: &str) -> Result<(), LoadError> {
    let address = library.address(symbol)?;
    let Some(file) = mapped_file(address) else { return Ok(()) };
    let same = std::fs::canonicalize(path).ok() == std::fs::canonicalize(&file).ok();
    if same { Ok(()) } else { Err(LoadError::Foreign { path: path.to_owned(), symbol: symbol.to_owned(), file }) }
}

/// The file mapped at `address`; none where the system does not tell.
fn mapped_file(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let file = rest.split_once('/').map(|(_, path)| PathBuf::from(format!("/{path}")))?;
        (start..end).contains(&address).then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_lies_in_its_own_file() {
        if !Path::new("/proc/self/maps").exists() {
            eprintln!("skipped: the system has no /proc/self/maps");
            return;
        }
        let here = this_test_lies_in_its_own_file as fn() as usize;
        assert_eq!(mapped_file(here), std::env::current_exe().ok());
        assert_eq!(mapped_file(8), None);
    }

    #[test]
    fn a_missing_library_says_what_to_do() {
        let missing = first_usable("blis", "libblis.so", &[], open_blis).unwrap_err();
        assert!(missing.reason.contains("scripts/baselines.sh"), "{}", missing.reason);
    }

    #[test]
    fn a_file_that_is_no_library_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libblis.so.4");
        std::fs::write(&file, b"not a library").unwrap();
        let missing = first_usable("blis", "libblis.so", &[file], open_blis).unwrap_err();
        assert!(missing.reason.contains("libblis.so.4"), "{}", missing.reason);
    }
}
