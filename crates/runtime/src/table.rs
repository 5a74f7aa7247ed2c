//! Calling decided plans with next to no cost.
//!
//! A [`PlanTable`] maps a caller's own typed input to whatever was prepared for it. A [`HostPlan`] is a program ready
//! to run on the caller's own slices.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use tilewright_core::buffer::{Buffer, BufferSpec, View};
use tilewright_core::device::HostProgram;
use tilewright_core::dtype::DType;
use tilewright_core::program::{DeviceError, Program};

/// Hashes words by multiplying and folding. Inputs are a few integers that no adversary chooses, and a lookup is to
/// cost a few nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordHasher(u64);

/// The golden ratio times 2^64: an odd number without pattern.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl WordHasher {
    fn word(&mut self, word: u64) {
        // Both halves of the product, so that high bits of the word reach low bits of the hash.
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(MIX));
        self.0 = ((product >> 64) as u64 ^ product as u64).wrapping_add(MIX);
    }
}

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.word(rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, i: u8) {
        self.word(i.into());
    }

    fn write_u32(&mut self, i: u32) {
        self.word(i.into());
    }

    fn write_u64(&mut self, i: u64) {
        self.word(i);
    }

    fn write_usize(&mut self, i: usize) {
        self.word(i as u64);
    }

    fn write_isize(&mut self, i: isize) {
        self.word(i as u64);
    }
}

/// Prepared plans by input.
#[derive(Clone, Debug)]
pub struct PlanTable<K, P> {
    plans: HashMap<K, P, BuildHasherDefault<WordHasher>>,
}

impl<K: Hash + Eq, P> Default for PlanTable<K, P> {
    fn default() -> Self {
        Self { plans: HashMap::default() }
    }
}

impl<K: Hash + Eq, P> PlanTable<K, P> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The plan of an input.
    #[inline]
    pub fn get(&self, input: &K) -> Option<&P> {
        self.plans.get(input)
    }

    /// The plan of an input, to run.
    #[inline]
    pub fn get_mut(&mut self, input: &K) -> Option<&mut P> {
        self.plans.get_mut(input)
    }

    /// The plan of an input, prepared by `make` when it is met for the first time.
    ///
    /// # Errors
    /// What `make` reports; the next call tries again.
    pub fn get_or_make<E>(&mut self, input: K, make: impl FnOnce(&K) -> Result<P, E>) -> Result<&mut P, E> {
        use std::collections::hash_map::Entry;
        match self.plans.entry(input) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(place) => {
                let plan = make(place.key())?;
                Ok(place.insert(plan))
            }
        }
    }

    /// Keeps a plan; the one that it replaces.
    pub fn insert(&mut self, input: K, plan: P) -> Option<P> {
        self.plans.insert(input, plan)
    }

    /// Number of plans.
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }
}

/// A program of host code, ready to run on a caller's memory, with its workspace.
pub struct HostPlan {
    program: HostProgram,
    workspace: Buffer,
}

impl HostPlan {
    /// Takes a program over.
    ///
    /// # Errors
    /// Steps that are not for the host, or that reach beyond the workspace.
    pub fn new(program: &Program) -> Result<Self, DeviceError> {
        let program = HostProgram::new(program)?;
        let workspace = Buffer::zeroed(DType::I8, program.workspace());
        Ok(Self { program, workspace })
    }

    /// The buffers that a call takes, in order: names, element types, shortest lengths, and which of them it writes. None
    /// where whoever made the program did not say.
    pub fn buffers(&self) -> Option<&[BufferSpec]> {
        self.program.buffers()
    }

    /// Runs once, in place, on memory that the caller lends. Elements may lie at any address that suits their type.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] with the buffer that has another type, is too short, or is written and was lent to be read,
    /// or the scalar that the program was not made for: code for one value of a scalar has that value built in.
    #[inline]
    pub fn call(&mut self, buffers: &mut [View<'_>], scalars: &[f64]) -> Result<(), DeviceError> {
        self.program.run(buffers, scalars, &mut self.workspace)
    }
}

#[cfg(test)]
mod tests;
