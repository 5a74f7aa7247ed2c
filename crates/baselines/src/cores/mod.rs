//! Libraries at their best: which file and which core of each is the fastest on this host.
//!
//! OpenBLAS, BLIS, MKL and libxsmm hold code for many processors, take one when they are opened, and read a variable that overrules
//! them. What they take is often not the fastest that the host can run. [`choose`] tries each in a process of its own, since the
//! variable is read once and a core may crash, and sets the variables of this process before anything is opened.

mod candidates;
mod choice;
mod probe;
mod store;

pub use choice::{Attempt, Setting, Tried};
pub use probe::{Failure, ProbeCommand, Rates, answer};

pub(crate) use candidates::{BLIS, Family, LIBXSMM, MKL, OPENBLAS};

use crate::foreign::environment::set_variables;
use crate::inventory::CoreChoice;
use crate::libraries::files_of;
use candidates::{Features, families};
use probe::Request;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use store::{Key, Store};

/// Set to `as-found`, libraries are left as they are: nothing is tried.
pub const CORES_VARIABLE: &str = "TILEWRIGHT_BASELINE_CORES";

static CHOSEN: OnceLock<Cores> = OnceLock::new();

/// What was tried on this host.
#[derive(Debug)]
pub struct Cores {
    /// Each library that was found.
    pub tried: Vec<Tried>,
    /// What whoever asked should know: that variables could not be set, or results not be kept.
    pub notes: Vec<String>,
    /// Whether the variables are set.
    applied: bool,
}

/// The choice that was made in this process, if one was.
pub fn chosen() -> Option<&'static Cores> {
    CHOSEN.get()
}

/// Finds the fastest file and core of each library, from the file `kept` where it knows, else by probes, which `begin` is told of
/// with their libraries. Sets the variables that the choice needs. To be called before other threads run and before any
/// library is opened; the first choice of a process holds. None where the variable [`CORES_VARIABLE`] forbids it.
pub fn choose(command: &ProbeCommand, kept: Option<&Path>, mut begin: impl FnMut(&str)) -> Option<&'static Cores> {
    if env::var_os(CORES_VARIABLE).is_some_and(|value| value == "as-found") {
        return None;
    }
    Some(CHOSEN.get_or_init(|| {
        let mut store = kept.map(Store::read).unwrap_or_default();
        let host = Features::of_host();
        let mut files = files_of();
        let tries = families().into_iter().filter_map(|family| {
            let files = files(family);
            (!files.is_empty()).then(|| try_family(family, &files, &host, command, &mut store, &mut begin))
        });
        let tried: Vec<Tried> = tries.collect();
        let mut notes = Vec::new();
        if let Some(Err(why)) = kept.map(|path| store.write(path)) {
            notes.push(format!("which cores are the fastest is not remembered: {why}"));
        }
        let set = set_variables(tried.iter().filter_map(Tried::needs));
        if let Err(why) = &set {
            notes.push(format!("libraries run the cores that they take by themselves: {why}"));
        }
        Cores { tried, notes, applied: set.is_ok() }
    }))
}

fn try_family(
    family: &Family,
    files: &[PathBuf],
    host: &Features,
    command: &ProbeCommand,
    store: &mut Store,
    begin: &mut impl FnMut(&str),
) -> Tried {
    let asked = asked(family);
    let key = Key::of(family.name, &host.fingerprint(), asked.as_deref(), files);
    if let Some(known) = store.get(&key) {
        return known.clone();
    }
    begin(family.name);
    let tried = choice::tried(family, files, host, asked, |file, setting| {
        let request = Request { library: family.name.to_owned(), file: file.to_owned() };
        // As found means as whoever started this process said, too.
        let variables = setting.map(|setting| (family.variable, Some(setting.value.as_str())));
        probe::ask(command, &request, variables.as_slice())
    });
    store.put(key, &tried);
    tried
}

/// What whoever started this process wrote into a library's variable.
fn asked(family: &Family) -> Option<String> {
    env::var_os(family.variable).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// How a library that is opened here comes to its core.
pub(crate) fn choice_for(family: &Family, file: &Path) -> CoreChoice {
    let by = |value: &str| format!("{}={value}", family.variable);
    let Some(cores) = chosen() else {
        return asked(family).map_or(CoreChoice::AsFound, |value| CoreChoice::Asked(by(&value)));
    };
    let tried = cores.tried_of(family.name);
    let of_this = tried.and_then(|tried| Some((tried, tried.best().filter(|best| best.file == file)?)));
    match of_this {
        Some((Tried { asked: Some(value), .. }, _)) => CoreChoice::Asked(by(value)),
        Some((tried, best)) if cores.applied => {
            let by = best.setting.as_ref().map(|setting| by(&setting.value));
            CoreChoice::Fastest { tried: tried.attempts.len(), by }
        }
        _ => CoreChoice::AsFound,
    }
}

/// Those of a library's files that are worth opening here: the fastest, where files were tried; all that do by themselves, where the
/// variables could not be set.
///
/// # Errors
/// Files were tried and none can be used.
pub(crate) fn worth_opening(family: &Family, files: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let Some((cores, tried)) = chosen().and_then(|cores| Some((cores, cores.tried_of(family.name)?))) else {
        return Ok(files);
    };
    let as_found = tried.attempts.iter().filter(|attempt| attempt.setting.is_none() && attempt.outcome.is_ok());
    let usable: Vec<PathBuf> = match tried.best() {
        Some(best) if cores.applied => vec![best.file.clone()],
        _ => as_found.map(|attempt| attempt.file.clone()).collect(),
    };
    if usable.is_empty() { Err(tried.why_none()) } else { Ok(usable) }
}

impl Cores {
    pub(crate) fn tried_of(&self, library: &str) -> Option<&Tried> {
        self.tried.iter().find(|tried| tried.library == library)
    }
}
