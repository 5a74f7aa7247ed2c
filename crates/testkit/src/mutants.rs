//! Broken texts: what a reader of foreign files must refuse, or read, but never panic on.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The variable that sets how many mutants there are of each text, for long runs.
const COUNT: &str = "TILEWRIGHT_MUTANTS";

/// Bytes that mean something to most formats, or to none.
const BYTES: &[u8] = b"\0 \n,.:;!%$[]{}()+-*/<>=\"'\\0179eExX_\x7f\xff\xc3";

/// Words that readers stumble over.
const WORDS: [&str; 14] = [
    "0",
    "-1",
    "1e308",
    "1e999",
    "NaN",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775808",
    "0.1",
];

/// Puts mutants of valid texts to a reader: bytes and tokens changed, doubled, moved, cut off, one to four at a time.
///
/// `count` mutants of each text are read, or as many as the variable `TILEWRIGHT_MUTANTS` says; `words` are put in beside
/// words that all readers stumble over. The same mutants in every run.
///
/// # Panics
/// If `read` does, with the mutant.
pub fn mutants(texts: &[&str], words: &[&str], count: usize, read: &dyn Fn(&[u8])) {
    let count = std::env::var(COUNT).ok().and_then(|n| n.parse().ok()).unwrap_or(count);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for text in texts {
        for number in 0..count {
            let mut mutant = text.as_bytes().to_vec();
            for _ in 0..=number % 4 {
                mutate(&mut mutant, words, &mut dice);
            }
            if catch_unwind(AssertUnwindSafe(|| read(&mutant))).is_err() {
                panic!("mutant {number}:\n{}", String::from_utf8_lossy(&mutant));
            }
        }
    }
}

/// A generator of its own: mutants must stay what they are when a dependency changes.
struct Dice(u64);

impl Dice {
    /// 0 to `end`, without it; 0 where nothing is.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * end as u64) >> 32) as usize
    }
}

fn mutate(text: &mut Vec<u8>, words: &[&str], dice: &mut Dice) {
    if text.is_empty() {
        text.push(BYTES[dice.below(BYTES.len())]);
        return;
    }
    let at = dice.below(text.len());
    match dice.below(9) {
        0 => text[at] = BYTES[dice.below(BYTES.len())],
        1 => drop(text.remove(at)),
        2 => text.insert(at, BYTES[dice.below(BYTES.len())]),
        3 => text[at] ^= 1 << dice.below(8),
        4 => text.truncate(at),
        kind => {
            let tokens = tokens(text);
            let one = tokens[dice.below(tokens.len())].clone();
            let other = tokens[dice.below(tokens.len())].clone();
            let new = match kind {
                5 => Vec::new(),
                6 => text[other].to_vec(),
                7 => [&text[one.clone()], &text[one.clone()]].concat(),
                _ => {
                    let pick = dice.below(WORDS.len() + words.len());
                    words.get(pick).copied().unwrap_or_else(|| WORDS[pick - words.len()]).as_bytes().to_vec()
                }
            };
            text.splice(one, new);
        }
    }
}

/// Runs of letters and digits, and every other byte alone.
fn tokens(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        match out.last_mut() {
            Some(last) if last.end == at && word(byte) && word(text[at - 1]) => last.end = at + 1,
            _ => out.push(at..at + 1),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn mutants_differ_repeat_and_report_who_panics() {
        let seen = RefCell::new(Vec::new());
        mutants(&["[16, 32]", "x % 4 == 0"], &["range"], 200, &|bytes| seen.borrow_mut().push(bytes.to_vec()));
        let first = seen.take();
        mutants(&["[16, 32]", "x % 4 == 0"], &["range"], 200, &|bytes| seen.borrow_mut().push(bytes.to_vec()));
        assert_eq!(first, seen.take());
        assert_eq!(first.len(), 400);
        assert!(first.iter().any(|m| m.windows(5).any(|w| w == b"range")));
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert!(distinct.len() > 300, "{}", distinct.len());
        let fails = || mutants(&["[16, 32]"], &[], 200, &|bytes| assert!(!bytes.contains(&b'{')));
        let message = catch_unwind(fails).unwrap_err();
        assert!(message.downcast_ref::<String>().is_some_and(|m| m.contains('{')));
    }
}
