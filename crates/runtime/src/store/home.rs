//! Where files are kept.

use std::path::{Path, PathBuf};

/// The directory of everything that Tilewright keeps: `profiles/`, `plans/`, `logs/`, and what devices record for each other, which
/// may be kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
    repository: Option<String>,
}

/// There is no place to keep files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no directory to keep files in: set TILEWRIGHT_HOME, XDG_CACHE_HOME or HOME")]
pub struct HomeError;

impl Home {
    /// A directory of the caller's choice; made when first written to.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), repository: None }
    }

    /// With a repository in another folder, or on the server of a `redis://` address.
    #[must_use]
    pub fn with_repository(mut self, place: &str) -> Self {
        self.repository = Some(place.to_owned());
        self
    }

    /// `TILEWRIGHT_HOME`, else `XDG_CACHE_HOME/tilewright`, else `HOME/.cache/tilewright` (on Windows
    /// `LOCALAPPDATA/tilewright`); `TILEWRIGHT_REPOSITORY` names another place for the repository.
    ///
    /// # Errors
    /// None of these is set.
    pub fn from_environment() -> Result<Self, HomeError> {
        Self::from_lookup(|name| std::env::var_os(name).map(PathBuf::from))
    }

    fn from_lookup(get: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, HomeError> {
        // The XDG specification has relative paths ignored; an empty one is as good as none.
        let set = |name| get(name).filter(|p| !p.as_os_str().is_empty());
        let absolute = |name| set(name).filter(|p| p.is_absolute());
        set("TILEWRIGHT_HOME")
            .or_else(|| absolute("XDG_CACHE_HOME").map(|p| p.join("tilewright")))
            .or_else(|| absolute("HOME").map(|p| p.join(".cache").join("tilewright")))
            .or_else(|| absolute("LOCALAPPDATA").map(|p| p.join("tilewright")))
            .map(|path| Self {
                path,
                repository: set("TILEWRIGHT_REPOSITORY").map(|p| p.to_string_lossy().into_owned()),
            })
            .ok_or(HomeError)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where profiles are kept.
    pub fn profiles(&self) -> PathBuf {
        self.path.join("profiles")
    }

    /// Where decided plans are kept.
    pub fn plans(&self) -> PathBuf {
        self.path.join("plans")
    }

    /// Where models are kept that were fitted on what other devices recorded.
    pub fn transferred(&self) -> PathBuf {
        self.path.join("transferred")
    }

    /// Where devices record for each other: a folder, or a `redis://` address.
    pub fn repository(&self) -> String {
        self.repository.clone().unwrap_or_else(|| self.path.join("repository").to_string_lossy().into_owned())
    }

    /// Where what compilers made of users' sources is kept, by the hash of what it was made of.
    pub fn built(&self) -> PathBuf {
        self.path.join("built")
    }

    /// Where campaign logs are kept.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }
}

/// A name made safe for a file: what is neither letter, digit, dot, dash nor equals sign becomes `_`.
pub(crate) fn file_name(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || ".-=".contains(c) { c } else { '_' };
    let name: String = text.chars().map(safe).collect();
    // Neither hidden nor a parent directory.
    name.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(vars: &[(&str, &str)]) -> Result<Home, HomeError> {
        Home::from_lookup(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| PathBuf::from(v)))
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let all = [("TILEWRIGHT_HOME", "here"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/me")];
        assert_eq!(home(&all).unwrap(), Home::at("here"));
        assert_eq!(home(&all[1..]).unwrap(), Home::at("/xdg/tilewright"));
        assert_eq!(home(&all[2..]).unwrap(), Home::at("/me/.cache/tilewright"));
        assert_eq!(
            home(&[("XDG_CACHE_HOME", "relative"), ("HOME", "/me")]).unwrap(),
            Home::at("/me/.cache/tilewright")
        );
        assert_eq!(home(&[("TILEWRIGHT_HOME", "")]), Err(HomeError));
    }

    #[test]
    fn the_repository_is_at_home_unless_it_is_named() {
        let here = home(&[("TILEWRIGHT_HOME", "here")]).unwrap();
        assert_eq!(Path::new(&here.repository()), Path::new("here").join("repository"));
        let named = home(&[("TILEWRIGHT_HOME", "here"), ("TILEWRIGHT_REPOSITORY", "redis://there")]).unwrap();
        assert_eq!((named.repository(), named), ("redis://there".into(), here.with_repository("redis://there")));
    }

    #[test]
    fn file_names_stay_in_their_directory() {
        assert_eq!(file_name("../../etc/passwd"), "_.._etc_passwd");
        assert_eq!(file_name("gemm.cpu"), "gemm.cpu");
        assert_eq!(file_name("replay:a b"), "replay_a_b");
    }
}
