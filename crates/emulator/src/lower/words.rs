//! The modifiers of an instruction, taken one by one.

use crate::rounding::Round;
use crate::types::{self, Space, Ty};

pub(super) struct Words<'a> {
    left: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub(super) fn new(modifiers: &[&'a str]) -> Self {
        // How an access is cached changes nothing here.
        let hints = |word: &&&str| word.starts_with("L1::") || word.starts_with("L2::");
        Self { left: modifiers.iter().filter(|word| !hints(word)).copied().collect() }
    }

    /// Takes a word if it is there.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let at = self.left.iter().position(|w| *w == word);
        at.map(|i| self.left.remove(i)).is_some()
    }

    /// Takes the first of some words that is there; what it stands for.
    pub(super) fn pick<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        words.iter().find(|(word, _)| self.take(word)).map(|(_, meaning)| *meaning)
    }

    /// Takes the first of some words.
    pub(super) fn one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().find(|w| self.take(w)).copied()
    }

    /// Takes the last word if it names a type.
    pub(super) fn ty(&mut self) -> Option<Ty> {
        let ty = self.left.last().and_then(|w| Ty::parse(w))?;
        self.left.pop();
        Some(ty)
    }

    /// Takes the first word.
    pub(super) fn first(&mut self) -> Option<&'a str> {
        if self.left.is_empty() { None } else { Some(self.left.remove(0)) }
    }

    pub(super) fn space(&mut self) -> Option<Space> {
        let at = self.left.iter().position(|w| types::space(w).is_some())?;
        types::space(self.left.remove(at))
    }

    /// The rounding of a result, if one is named.
    pub(super) fn round(&mut self) -> Option<Round> {
        use Round::{Away, Down, Nearest, Up, Zero};
        self.pick(&[("rn", Nearest), ("rz", Zero), ("rm", Down), ("rp", Up), ("rna", Away)])
    }

    /// Drops words that change nothing here.
    pub(super) fn ignore(&mut self, words: &[&str]) {
        for word in words {
            while self.take(word) {}
        }
    }

    /// A name with all words that are left.
    pub(super) fn joined(&mut self, name: &str) -> String {
        [name].into_iter().chain(self.left.drain(..)).collect::<Vec<_>>().join(".")
    }

    pub(super) fn clear(&mut self) {
        self.left.clear();
    }

    /// A word that nobody took.
    pub(super) fn left(&self) -> Option<&'a str> {
        self.left.first().copied()
    }
}
