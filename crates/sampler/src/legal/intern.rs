//! Rows of words as numbers.

use super::LegalError;

/// States of one parameter beyond this are given up: some hundred megabytes of them.
const MAX_STATES: usize = 1 << 22;

/// Things by their hashes, numbered from 0; the things themselves are elsewhere.
pub(super) struct Numbers {
    /// Number of a thing plus one, and its hash.
    table: Vec<(u32, u32)>,
    pub(super) count: usize,
}

impl Numbers {
    pub(super) fn new() -> Self {
        Self { table: vec![(0, 0); 64], count: 0 }
    }

    /// The number of the thing that `is` tells among those of its hash, or the place of a new one.
    #[inline]
    pub(super) fn find(&self, hash: u32, is: impl Fn(usize) -> bool) -> Result<u32, usize> {
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.table[place] {
                (0, _) => return Err(place),
                (number, known) if known == hash && is(number as usize - 1) => return Ok(number - 1),
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Numbers a new thing, with its hash at its place.
    pub(super) fn insert(&mut self, place: usize, hash: u32) -> u32 {
        let number = self.count as u32;
        self.count += 1;
        self.table[place] = (number + 1, hash);
        if self.count * 2 > self.table.len() {
            let larger = vec![(0, 0); self.table.len() * 4];
            for entry in std::mem::replace(&mut self.table, larger).into_iter().filter(|entry| entry.0 != 0) {
                if let Err(place) = self.find(entry.1, |_| false) {
                    self.table[place] = entry;
                }
            }
        }
        number
    }
}

/// Numbers rows of words, equal ones alike, those behind a fault apart from the others.
pub(super) struct Interner {
    pub(super) columns: Vec<Vec<u64>>,
    pub(super) numbers: Numbers,
    /// By row, whether it is behind a fault; shorter where the others are not, so that spaces without faults pay nothing.
    pub(super) faulty: Vec<bool>,
}

impl Interner {
    pub(super) fn new(columns: usize) -> Self {
        Self { columns: vec![Vec::new(); columns], numbers: Numbers::new(), faulty: Vec::new() }
    }

    pub(super) fn intern(&mut self, rows: &[Vec<u64>], at: usize, faulty: bool) -> Result<u32, LegalError> {
        let hash = hash(rows.iter().map(|column| column[at])) as u32 ^ u32::from(faulty);
        let is_it = |row: usize| {
            rows.iter().zip(&self.columns).all(|(new, old)| new[at] == old[row])
                && self.faulty.get(row).is_some_and(|f| *f) == faulty
        };
        let place = match self.numbers.find(hash, is_it) {
            Ok(number) => return Ok(number),
            Err(place) => place,
        };
        let count = self.numbers.count;
        if count == MAX_STATES {
            return Err(LegalError::TooWide { limit: MAX_STATES });
        }
        for (column, row) in self.columns.iter_mut().zip(rows) {
            column.push(row[at]);
        }
        if faulty {
            self.faulty.resize(count, false);
            self.faulty.push(true);
        }
        Ok(self.numbers.insert(place, hash))
    }
}

/// A hash of words whose low bits are as good as its high ones.
pub(super) fn hash(words: impl Iterator<Item = u64>) -> u64 {
    let mixed = words.fold(0x243f_6a88_85a3_08d3_u64, |hash, word| {
        let wide = u128::from(hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (wide ^ wide >> 64) as u64
    });
    mixed ^ mixed >> 29
}
