//! Where shared libraries may be: candidates in the order they are tried.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Colon-separated folders (or library files) that are searched before all others.
pub const PATH_VARIABLE: &str = "TILEWRIGHT_BLAS_PATH";

/// Where `scripts/baselines.sh` puts what it downloads, relative to the current folder or one above it.
const LOCAL_FOLDER: &str = "build/baselines";

const SYSTEM_FOLDERS: [&str; 9] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/opt/intel/oneapi/mkl/latest/lib",
    "/opt/intel/oneapi/compiler/latest/lib",
    "/opt/homebrew/lib",
];

/// What the user names, to be searched alone where it has what is looked for.
pub(crate) fn named_folders() -> Vec<PathBuf> {
    paths_of(PATH_VARIABLE)
}

/// Folders to search, first the most specific. Does not ask Python: see [`python_folders`].
pub(crate) fn folders() -> Vec<PathBuf> {
    let mut found = paths_of(PATH_VARIABLE);
    if let Ok(current) = env::current_dir() {
        for folder in current.ancestors() {
            found.push(folder.join(LOCAL_FOLDER).join("lib"));
            found.push(folder.join(LOCAL_FOLDER));
        }
    }
    found.extend(paths_of("LD_LIBRARY_PATH"));
    found.extend(
        ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(|root| Path::new(&root).join("lib")),
    );
    found.extend(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    found
}

/// The `lib` folders of the Python on the path, where `pip install mkl` puts its libraries, and that of its package of OpenBLAS. Starts an interpreter, so
/// it is asked only for what the other folders lack.
pub(crate) fn python_folders() -> Vec<PathBuf> {
    const SCRIPT: &str = "import site, sys, sysconfig\n\
        of_package = sysconfig.get_paths()['purelib'] + '/scipy_openblas32'\n\
        print(sys.prefix, sys.base_prefix, site.getuserbase(), of_package, sep='\\n')";
    python_paths(SCRIPT).map(|prefix| prefix.join("lib")).collect()
}

/// The paths that a script of Python prints, one a line.
pub(crate) fn python_paths(script: &str) -> impl Iterator<Item = PathBuf> {
    let output = Command::new("python3").args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let printed = output.ok().filter(|output| output.status.success()).map_or(Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&printed).lines().map(PathBuf::from).collect::<Vec<_>>().into_iter()
}

/// The files in `folders` whose names are one of `stems` (such as `libmkl_rt.so`) alone or followed by a version; of a folder those of
/// the first stem first, and of those the highest version. An entry of `folders` that is such a file itself counts too.
pub(crate) fn candidates(folders: &[PathBuf], stems: &[&str]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (folder, stem) in folders.iter().flat_map(|folder| stems.iter().map(move |stem| (folder, stem))) {
        let mut files: Vec<(Vec<u64>, PathBuf)> = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().filter_map(|entry| versioned(entry.path(), stem)).collect(),
            Err(_) => versioned(folder.clone(), stem).filter(|(_, path)| path.is_file()).into_iter().collect(),
        };
        files.sort_by(|x, y| y.cmp(x));
        for (_, path) in files {
            // several names may lead to one file
            let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if seen.insert(target) {
                found.push(path);
            }
        }
    }
    found
}

fn paths_of(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
}

fn versioned(path: PathBuf, stem: &str) -> Option<(Vec<u64>, PathBuf)> {
    let rest = path.file_name()?.to_str()?.strip_prefix(stem)?;
    if rest.is_empty() {
        return Some((Vec::new(), path));
    }
    let version = rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    Some((version, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, name: &str) {
        fs::write(folder.join(name), b"").unwrap();
    }

    #[test]
    fn highest_version_first_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libx.so.2", "libx.so.10", "libx.so", "libx.so.bak", "libx64.so.9", "libx.so.2.1"] {
            touch(folder.path(), name);
        }
        let found = candidates(&[folder.path().to_owned()], &["libx.so"]);
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["libx.so.10", "libx.so.2.1", "libx.so.2", "libx.so"]);
    }

    #[test]
    fn folders_keep_their_order_and_a_file_is_taken_as_it_is() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        touch(first.path(), "libx.so.1");
        touch(second.path(), "libx.so.2");
        let absent = first.path().join("libx.so.7");
        let file = second.path().join("libx.so.2");
        let found =
            candidates(&[absent, first.path().to_owned(), file.clone(), second.path().to_owned()], &["libx.so"]);
        assert_eq!(found, [first.path().join("libx.so.1"), file]);
    }
}
