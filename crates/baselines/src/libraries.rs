//! OpenBLAS, BLIS, Intel MKL, libxsmm and oneDNN, opened at run time.

use std::path::{Path, PathBuf};

use crate::cores::{self, BLIS, Family, LIBXSMM, MKL, OPENBLAS};
use crate::foreign::onednn::OneDnn;
use crate::foreign::small::Libxsmm;
use crate::foreign::{Cblas, CblasComplex, Library, LoadError, Visibility};
use crate::inventory::{Identity, Missing};
use crate::kernel::{ComplexRoutine, Routine, RunHalves};
use crate::locate;
use crate::small::{Maker, SmallRoutine};
use crate::threads::ThreadCount;

/// `MKL_INTERFACE_LP64`: 32-bit integers.
const MKL_LP64: i64 = 0;
/// `MKL_THREADING_*`.
const MKL_INTEL_THREADS: i64 = 0;
const MKL_SEQUENTIAL: i64 = 1;
const MKL_GNU_THREADS: i64 = 3;

/// How long, in milliseconds, Intel's OpenMP workers spin after a region. Its default of 200 keeps a core busy long after the call
/// and would be charged to whoever is timed next; calls that follow one another still find the workers awake.
const BLOCKTIME_MS: i64 = 1;

/// A BLAS opened at run time.
#[derive(Debug)]
pub(crate) struct SharedBlas {
    identity: Identity,
    library: &'static Library,
    cblas: Cblas,
    set_threads: String,
    openmp: Option<&'static Library>,
    /// Names of its cores by their numbers, of a library that is told numbers.
    numbered: Vec<String>,
    threads: ThreadCount,
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
            sbatch: Box::new(move |batch, threads| blas.with_threads(threads, || blas.cblas.sbatch(batch))),
            dbatch: Box::new(move |batch, threads| blas.with_threads(threads, || blas.cblas.dbatch(batch))),
            halves: blas
                .cblas
                .halves()
                .map(|gemm| -> RunHalves { Box::new(move |call, threads| blas.with_threads(threads, || gemm(call))) }),
            complex: blas.cblas.complex.map(|complex| blas.complex(complex)),
            three_m: blas.cblas.three_m.map(|complex| blas.complex(complex)),
        }
    }

    fn complex(&'static self, complex: CblasComplex) -> ComplexRoutine {
        ComplexRoutine {
            cgemm: Box::new(move |batch, threads| self.with_threads(threads, || complex.cgemm(batch))),
            zgemm: Box::new(move |batch, threads| self.with_threads(threads, || complex.zgemm(batch))),
        }
    }

    #[inline]
    fn with_threads(&self, threads: usize, gemm: impl FnOnce()) {
        if !self.threads.is(threads) {
            self.threads.change(threads, || self.set(threads));
        }
        gemm();
    }

    fn set(&self, threads: usize) {
        // both symbols were looked up when the library was opened
        let _ = self.library.call_with_int(&self.set_threads, threads.max(1) as i64);
        if let Some(openmp) = self.openmp {
            // Where MKL has no instructions for products of bfloat16, it heeds the runtime's count alone.
            let _ = openmp.call_with_int("omp_set_num_threads", threads.max(1) as i64);
            let _ = openmp.call_with_int("kmp_set_blocktime", BLOCKTIME_MS);
        }
    }
}

/// What could be opened, and why the rest could not.
pub(crate) struct Loaded {
    pub(crate) blas: Vec<Result<SharedBlas, Missing>>,
    pub(crate) libxsmm: Result<SmallRoutine, Missing>,
    pub(crate) onednn: Result<(Identity, &'static OneDnn), Missing>,
}

/// Opens what is there. MKL comes last: its layers become visible to all libraries opened after them.
pub(crate) fn load_all() -> Loaded {
    let mut search = Search::default();
    let openblas = search.open(&OPENBLAS, open_openblas);
    let blis = search.open(&BLIS, open_blis);
    let libxsmm = search.open(&LIBXSMM, open_libxsmm);
    let onednn = first_usable("onednn", ONEDNN, &search.files(&[ONEDNN]), open_onednn);
    let mkl = search.open(&MKL, open_mkl);
    Loaded { blas: vec![openblas, blis, mkl], libxsmm, onednn }
}

const ONEDNN: &str = "libdnnl.so";

/// A library that was opened alone.
pub(crate) enum Opened {
    /// A whole BLAS, and the names of its cores by their numbers if it is told numbers.
    Blas(Routine, Vec<String>),
    /// One for small products.
    Small(SmallRoutine),
}

/// Opens this file of a library with cores, and nothing else.
pub(crate) fn open(library: &str, file: &Path) -> Result<Opened, LoadError> {
    let blas = |opened: Result<SharedBlas, LoadError>| {
        opened.map(|blas| {
            let numbered = blas.numbered.clone();
            Opened::Blas(blas.routine(), numbered)
        })
    };
    match library {
        "openblas" => blas(open_openblas(file)),
        "blis" => blas(open_blis(file)),
        "mkl" => blas(open_mkl(file)),
        "libxsmm" => open_libxsmm(file).map(Opened::Small),
        _ => Err(LoadError::Unusable { path: file.to_owned(), why: format!("no library `{library}` has cores") }),
    }
}

/// Finds the files of libraries with cores; folders are asked for once.
pub(crate) fn files_of() -> impl FnMut(&Family) -> Vec<PathBuf> {
    let mut search = Search::default();
    move |family| search.files(family.stems)
}

/// Where libraries are looked for.
#[derive(Default)]
struct Search {
    /// Of `python3`: asked for once, by the first library that the other folders lack.
    python: Option<Vec<PathBuf>>,
}

/// So many files of a library are looked at: the same one often lies in many folders.
const MOST_FILES: usize = 4;

impl Search {
    /// Those that the user names, or else those of all folders, the most specific first.
    fn files(&mut self, stems: &[&str]) -> Vec<PathBuf> {
        let mut found = locate::candidates(&locate::named_folders(), stems);
        if found.is_empty() {
            found = locate::candidates(&locate::folders(), stems);
        }
        if found.is_empty() {
            found = locate::candidates(self.python.get_or_insert_with(locate::python_folders), stems);
        }
        found.truncate(MOST_FILES);
        found
    }

    /// The file that was the fastest where files and cores were tried, else the first that can be used.
    fn open<T>(&mut self, family: &Family, load: Load<T>) -> Result<T, Missing> {
        let files = self.files(family.stems);
        let files = cores::worth_opening(family, files).map_err(|reason| Missing { name: family.name, reason })?;
        first_usable(family.name, family.stems[family.stems.len() - 1], &files, load)
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
    let identity = Identity { path: Some(path.to_owned()), max_threads, ..Identity::built_in("onednn", &version) };
    Ok((identity, library))
}

fn open_openblas(path: &Path) -> Result<SharedBlas, LoadError> {
    let library = Library::open(path, Visibility::Local)?;
    // Builds that are meant to lie beside others of the same name give all of their symbols a prefix.
    let prefix = if library.has("scipy_cblas_sgemm") { "scipy_" } else { "" };
    let version = library.text(&format!("{prefix}openblas_get_config"))?;
    if version.contains("USE64BITINT") {
        return Err(LoadError::Interface { path: path.to_owned() });
    }
    let version = version.trim_start_matches("OpenBLAS").trim().to_owned();
    let core = library.text(&format!("{prefix}openblas_get_corename")).ok();
    assemble((&OPENBLAS, prefix), path, library, version, core, "openblas_set_num_threads")
}

fn open_blis(path: &Path) -> Result<SharedBlas, LoadError> {
    let library = Library::open(path, Visibility::Local)?;
    let version = library.text("bli_info_get_version_str")?;
    // What tells the core is known once the library has set itself up.
    let core = library.call("bli_init").and_then(|()| {
        let own = library.number("bli_arch_query_id")?;
        library.text_of("bli_arch_string", own)
    });
    let mut blas = assemble((&BLIS, ""), path, library, version, core.ok(), "bli_thread_set_num_threads")?;
    blas.numbered = blis_cores(library);
    Ok(blas)
}

/// Names of BLIS's cores by their numbers, which differ from version to version. The list ends with this one.
fn blis_cores(library: &Library) -> Vec<String> {
    const LAST: &str = "generic";
    const MOST: i32 = 64;
    let mut names = Vec::new();
    for number in 0..MOST {
        let Ok(name) = library.text_of("bli_arch_string", number) else { break };
        let is_last = name == LAST || name.is_empty();
        names.push(name);
        if is_last {
            break;
        }
    }
    names
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
    let core = library.mkl_processor().ok().map(|text| mkl_core(&text));
    let mut blas = assemble((&MKL, ""), path, library, version, core, "MKL_Set_Num_Threads")?;
    blas.openmp = openmp;
    blas.identity.max_threads = (layer == MKL_SEQUENTIAL).then_some(1);
    Ok(blas)
}

/// The short name among MKL's words: `AVX-512` of `Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512) enabled processors`.
fn mkl_core(text: &str) -> String {
    let short = text.split_once("(Intel(R) ").and_then(|(_, rest)| Some((rest.split_once(')')?.0, rest)));
    match short {
        Some((short, rest)) if rest.contains("with support") => format!("{short} and more"),
        Some((short, _)) => short.to_owned(),
        None => text.trim_end_matches(" enabled processors").to_owned(),
    }
}

fn open_libxsmm(path: &Path) -> Result<SmallRoutine, LoadError> {
    let library = Library::open(path, Visibility::Local)?;
    library.call("libxsmm_init")?;
    let functions = Libxsmm::of(library)?;
    own_symbol(path, library, "libxsmm_smmdispatch")?;
    // It does not tell its version; files are named after it.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let version = name.split_once(".so.").map_or("1", |(_, version)| version);
    let identity = Identity {
        path: Some(path.to_owned()),
        core: library.text("libxsmm_get_target_arch").ok(),
        core_choice: Some(cores::choice_for(&LIBXSMM, path)),
        ..Identity::built_in("libxsmm", version)
    };
    Ok(SmallRoutine { identity, maker: Maker::Libxsmm(functions) })
}

/// MKL's threading layer and, if it is Intel's, the OpenMP runtime, opened for MKL's layers to find.
fn mkl_threading(mkl: &Path) -> (i64, Option<&'static Library>) {
    let mut folders: Vec<PathBuf> = mkl.parent().map(Path::to_owned).into_iter().collect();
    folders.extend(locate::folders());
    let open = |stem| {
        let candidates = locate::candidates(&folders, &[stem]);
        candidates.iter().find_map(|path| Library::open(path, Visibility::Global).ok())
    };
    if let Some(intel) = open("libiomp5.so") {
        return (MKL_INTEL_THREADS, Some(intel));
    }
    match open("libgomp.so") {
        gnu @ Some(_) => (MKL_GNU_THREADS, gnu),
        None => (MKL_SEQUENTIAL, None),
    }
}

fn assemble(
    (family, prefix): (&Family, &str),
    path: &Path,
    library: &'static Library,
    version: String,
    core: Option<String>,
    set_threads: &str,
) -> Result<SharedBlas, LoadError> {
    let cblas = library.cblas(prefix)?;
    let set_threads = format!("{prefix}{set_threads}");
    for symbol in [&format!("{prefix}cblas_sgemm"), &format!("{prefix}cblas_dgemm"), &set_threads] {
        own_symbol(path, library, symbol)?;
    }
    let identity = Identity {
        path: Some(path.to_owned()),
        core: core.filter(|core| !core.is_empty()),
        core_choice: Some(cores::choice_for(family, path)),
        ..Identity::built_in(family.name, &version)
    };
    let (openmp, numbered, threads) = (None, Vec::new(), ThreadCount::default());
    Ok(SharedBlas { identity, library, cblas, set_threads, openmp, numbered, threads })
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
