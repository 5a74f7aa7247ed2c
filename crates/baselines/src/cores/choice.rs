//! Trying the files and cores of a library, and choosing among them.

use super::candidates::{Family, Features};
use super::probe::{Failure, Rates};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Files that are nearly as fast as the fastest are as good: then the newest version is used, and the core that it takes by itself.
const AS_GOOD: f64 = 0.97;

/// Files and cores that come so close to the fastest are tried again, by turns so many times: where others use the machine, one look
/// differs from the next by more than what is called as good.
const CLOSE: f64 = 0.8;
const ROUNDS: usize = 3;

/// A library that is so much slower as installed than it can be is warned of.
const SLOW: f64 = 1.1;

/// The value of a library's variable, and the core that it is to run then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// `SkylakeX`.
    pub core: String,
    /// The same, or the number of that core in the library's list.
    pub value: String,
}

/// A file under a setting, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The library.
    pub file: PathBuf,
    /// None: as found, or as whoever started this process said.
    pub setting: Option<Setting>,
    /// What it did, or why it did nothing.
    pub outcome: Result<Rates, Failure>,
}

/// The files and cores of one library that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// `openblas`.
    pub library: String,
    /// What it reads: `OPENBLAS_CORETYPE`.
    pub variable: String,
    /// What whoever started this process wrote there; then no other setting is tried.
    pub asked: Option<String>,
    /// All attempts, those of a file one after another, as found first.
    pub attempts: Vec<Attempt>,
    /// The place of the best among them; none where no file can be used.
    pub chosen: Option<usize>,
}

/// Tries each file as found and under each core that the host can run and that the file does not take by itself.
pub(super) fn tried(
    family: &Family,
    files: &[PathBuf],
    host: &Features,
    asked: Option<String>,
    mut ask: impl FnMut(&Path, Option<&Setting>) -> Result<Rates, Failure>,
) -> Tried {
    let mut attempts = Vec::new();
    for file in files {
        let found = ask(file, None);
        let is_useless = matches!(found, Err(Failure::Refused(_)));
        let settings = match &found {
            _ if asked.is_some() || is_useless => Vec::new(),
            Ok(rates) => settings(family, host, Some(rates)),
            Err(_) => settings(family, host, None),
        };
        attempts.push(Attempt { file: file.clone(), setting: None, outcome: found });
        for setting in settings {
            let outcome = ask(file, Some(&setting)).and_then(|rates| honoured(family, &setting, rates));
            attempts.push(Attempt { file: file.clone(), setting: Some(setting), outcome });
        }
    }
    for _ in 0..ROUNDS {
        again(family, &mut attempts, &mut ask);
    }
    let chosen = best(&attempts);
    Tried { library: family.name.to_owned(), variable: family.variable.to_owned(), asked, attempts, chosen }
}

/// Those that may be the fastest are asked once more, and keep the better of their rates: others of this machine may have run beside the
/// first.
fn again(
    family: &Family,
    attempts: &mut [Attempt],
    ask: &mut impl FnMut(&Path, Option<&Setting>) -> Result<Rates, Failure>,
) {
    let score = |attempt: &Attempt| attempt.outcome.as_ref().map_or(0.0, Rates::score);
    let most = attempts.iter().map(score).fold(0.0, f64::max);
    for attempt in attempts.iter_mut().filter(|attempt| score(attempt) > CLOSE * most) {
        let Ok(first) = &mut attempt.outcome else { continue };
        let setting = attempt.setting.as_ref();
        let second = ask(&attempt.file, setting).and_then(|rates| match setting {
            Some(setting) => honoured(family, setting, rates),
            None => Ok(rates),
        });
        // What runs only sometimes is not used.
        match second {
            Ok(second) => {
                first.f32_gflops = first.f32_gflops.max(second.f32_gflops);
                first.f64_gflops = first.f64_gflops.max(second.f64_gflops);
            }
            Err(why) => attempt.outcome = Err(why),
        }
    }
}

/// The settings that are worth trying beside what a file does by itself. Without that, a numbered list is not known.
fn settings(family: &Family, host: &Features, found: Option<&Rates>) -> Vec<Setting> {
    let own = found.and_then(|rates| rates.core.as_deref()).filter(|_| family.says_core);
    let cores = family.cores_for(host).into_iter();
    let others = cores.filter(|core| !own.is_some_and(|own| own.eq_ignore_ascii_case(core)));
    let setting = |core: &str| {
        let value = if family.is_numbered {
            found?.numbered.iter().position(|name| name == core)?.to_string()
        } else {
            core.to_owned()
        };
        Some(Setting { core: core.to_owned(), value })
    };
    others.filter_map(setting).collect()
}

fn honoured(family: &Family, setting: &Setting, rates: Rates) -> Result<Rates, Failure> {
    match &rates.core {
        Some(core) if family.says_core && !core.eq_ignore_ascii_case(&setting.core) => {
            Err(Failure::NotHonoured(core.clone()))
        }
        _ => Ok(rates),
    }
}

fn best(attempts: &[Attempt]) -> Option<usize> {
    let scored = || attempts.iter().enumerate().filter_map(|(at, attempt)| Some((at, attempt.outcome.as_ref().ok()?)));
    let most = scored().map(|(_, rates)| rates.score()).max_by(f64::total_cmp)?;
    let good = scored().filter(|(_, rates)| rates.score() >= AS_GOOD * most);
    let order = |at: usize, rates: &Rates| (numbers(&rates.version), attempts[at].setting.is_none());
    let better = |x: &(usize, &Rates), y: &(usize, &Rates)| {
        order(x.0, x.1).cmp(&order(y.0, y.1)).then(x.1.score().total_cmp(&y.1.score()))
    };
    good.max_by(better).map(|(at, _)| at)
}

/// The first number with dots in a version: `0.3.34` of `0.3.34.0.0 DYNAMIC_ARCH`.
fn numbers(version: &str) -> Vec<u64> {
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let word = version.split_whitespace().find(is_number).unwrap_or_default();
    word.split('.').map_while(|part| part.parse().ok()).collect()
}

impl Tried {
    /// The file and the setting that are used.
    pub fn best(&self) -> Option<&Attempt> {
        self.attempts.get(self.chosen?)
    }

    /// The variable and its value, where the choice needs it.
    pub(crate) fn needs(&self) -> Option<(&str, &str)> {
        let setting = self.best()?.setting.as_ref()?;
        Some((&self.variable, &setting.value))
    }

    /// Why no file can be used.
    pub(crate) fn why_none(&self) -> String {
        let by = self.asked.as_ref().map_or(String::new(), |asked| format!(" with {}={asked}", self.variable));
        let said = |attempt: &Attempt| {
            let why = attempt.outcome.as_ref().err()?;
            Some(format!("{}{by}: {why}", attempt.file.display()))
        };
        let found = self.attempts.iter().filter(|attempt| attempt.setting.is_none());
        found.filter_map(said).collect::<Vec<_>>().join("; ")
    }

    /// What whoever installed the library should know: each file that runs well below its best as it is, and what mends it.
    pub fn warnings(&self) -> Vec<String> {
        let found = self.attempts.iter().filter(|attempt| attempt.setting.is_none());
        found.filter_map(|found| self.warning(found)).collect()
    }

    fn warning(&self, found: &Attempt) -> Option<String> {
        let of_file = self.attempts.iter().filter(|a| a.file == found.file && a.setting.is_some());
        let rated = of_file.filter_map(|a| Some((a.setting.as_ref()?, a.outcome.as_ref().ok()?)));
        let (setting, best) = rated.max_by(|x, y| x.1.score().total_cmp(&y.1.score()))?;
        let mended = format!("{}={}", self.variable, setting.value);
        let named = if setting.value == setting.core { mended } else { format!("{mended} ({})", setting.core) };
        let name = |rates: &Rates| {
            let version = rates.version.split_whitespace().next().unwrap_or_default();
            format!("{} {version} ({})", self.library, found.file.display())
        };
        match &found.outcome {
            Ok(rates) if best.score() > SLOW * rates.score() => {
                // Of equal gains the last is told.
                let gains = [("f64", rates.f64_gflops, best.f64_gflops), ("f32", rates.f32_gflops, best.f32_gflops)];
                let (dtype, now, then) = gains.into_iter().max_by(|x, y| (x.2 / x.1).total_cmp(&(y.2 / y.1)))?;
                let core =
                    rates.core.as_ref().map_or("the core that it takes".to_owned(), |core| format!("its {core} core"));
                Some(format!(
                    "{} runs {core} as installed: {now:.0} GFLOP/s ({dtype}) of {then:.0} with {named}",
                    name(rates)
                ))
            }
            Ok(_) => None,
            Err(why) => Some(format!("{} does not run as installed ({why}), but does with {named}", name(best))),
        }
    }

    /// One line for each attempt.
    pub fn lines(&self) -> Vec<String> {
        let one = |(at, attempt): (usize, &Attempt)| {
            let how = match (&attempt.setting, &self.asked) {
                (Some(setting), _) if setting.core == setting.value => format!("{}={}", self.variable, setting.value),
                (Some(setting), _) => format!("{}={} ({})", self.variable, setting.value, setting.core),
                (None, Some(asked)) => format!("{}={asked}", self.variable),
                (None, None) => "as found".to_owned(),
            };
            let did = match &attempt.outcome {
                Ok(rates) => {
                    let core = rates.core.as_deref().unwrap_or("a core that it does not name");
                    let (single, double) = (rates.f32_gflops, rates.f64_gflops);
                    let used = if self.chosen == Some(at) { "; used" } else { "" };
                    format!("{core}, {single:.1} GFLOP/s in f32 and {double:.1} in f64{used}")
                }
                Err(why) => why.to_string(),
            };
            format!("{} {}, {how}: {did}", self.library, attempt.file.display())
        };
        self.attempts.iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
