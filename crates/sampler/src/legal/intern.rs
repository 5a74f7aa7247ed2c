//! Rows of words as numbers.

use super::LegalError;

/// States of one parameter beyond this are given up: some hundred megabytes of them.
const MAX_STATES: usize = 1 << 22;

/// Numbers rows of words, equal ones alike, those behind a fault apart from the others.
pub(super) struct Interner {
    pub(super) columns: Vec<Vec<u64>>,
    pub(super) count: usize,
    /// By row, whether it is behind a fault; shorter where the others are not, so that spaces without faults pay nothing.
    pub(super) faulty: Vec<bool>,
    /// Number of a row plus one, and its tag.
    table: Vec<(u32, u32)>,
}

/// Some bits of a row's hash, and whether it is behind a fault.
fn tag(hash: u64, faulty: bool) -> u32 {
    (hash >> 32) as u32 & !1 | u32::from(faulty)
}

impl Interner {
    pub(super) fn new(columns: usize) -> Self {
        Self { columns: vec![Vec::new(); columns], count: 0, faulty: Vec::new(), table: vec![(0, 0); 64] }
    }

    pub(super) fn intern(&mut self, rows: &[Vec<u64>], at: usize, faulty: bool) -> Result<u32, LegalError> {
        let hash = hash(rows.iter().map(|column| column[at]));
        let tag = tag(hash, faulty);
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let (number, known) = self.table[place];
            if number == 0 {
                break;
            }
            let row = number as usize - 1;
            if known == tag && rows.iter().zip(&self.columns).all(|(new, old)| new[at] == old[row]) {
                return Ok(number - 1);
            }
            place = (place + 1) & mask;
        }
        if self.count == MAX_STATES {
            return Err(LegalError::TooWide { limit: MAX_STATES });
        }
        for (column, row) in self.columns.iter_mut().zip(rows) {
            column.push(row[at]);
        }
        if faulty {
            self.faulty.resize(self.count, false);
            self.faulty.push(true);
        }
        self.count += 1;
        self.table[place] = (self.count as u32, tag);
        if self.count * 2 > self.table.len() {
            self.grow();
        }
        Ok(self.count as u32 - 1)
    }

    fn grow(&mut self) {
        let size = self.table.len() * 4;
        self.table = vec![(0, 0); size];
        for row in 0..self.count {
            let hash = hash(self.columns.iter().map(|column| column[row]));
            let mut place = hash as usize & (size - 1);
            while self.table[place].0 != 0 {
                place = (place + 1) & (size - 1);
            }
            let faulty = self.faulty.get(row).copied().unwrap_or(false);
            self.table[place] = (row as u32 + 1, tag(hash, faulty));
        }
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
