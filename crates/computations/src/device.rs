//! Local devices: an instruction set and a number of threads.

use crate::isa::Isa;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tilewright_core::device::DeviceSpec;
use tilewright_threads as threads;

/// One way to use this host. Work given to it runs with its instruction set and on its threads.
#[derive(Clone, Copy)]
pub struct Device {
    isa: Isa,
    threads: usize,
}

/// The threads of a device could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{threads} threads could not be started: {message}")]
pub struct NoThreads {
    /// How many were asked for.
    pub threads: usize,
    /// What the system says.
    pub message: String,
}

impl Device {
    /// One thread.
    pub fn single(isa: Isa) -> Self {
        Self { isa, threads: 1 }
    }

    /// Several threads.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn with_threads(isa: Isa, threads: usize) -> Result<Self, NoThreads> {
        threads::ensure(threads).map_err(|e| NoThreads { threads, message: e.to_string() })?;
        Ok(Self { isa, threads: threads.max(1) })
    }

    /// As the facts of a device say: its `threads`, and its `isa` or else the widest instruction set for its `vec_max`, as far as
    /// this host has it.
    ///
    /// # Errors
    /// As [`Device::with_threads`].
    pub fn of(spec: &DeviceSpec) -> Result<Self, NoThreads> {
        let threads = spec.fact("threads").and_then(|t| usize::try_from(t).ok()).unwrap_or(1);
        Self::with_threads(Isa::of(spec), threads)
    }

    /// The facts of this host as this device uses it.
    pub fn spec(&self, host: &DeviceSpec) -> DeviceSpec {
        let mut spec = host.clone();
        spec.driver = self.isa.name().to_owned();
        spec.facts.insert("threads".into(), i64::try_from(self.threads).unwrap_or(i64::MAX));
        spec.facts.insert(Isa::FACT.into(), self.isa.fact());
        spec
    }

    /// Every instruction set of this host with each of these numbers of threads.
    ///
    /// # Errors
    /// As [`Device::with_threads`].
    pub fn local(threads: &[usize]) -> Result<Vec<Self>, NoThreads> {
        let of = |&count| Isa::detected().into_iter().map(move |isa| Self::with_threads(isa, count));
        threads.iter().flat_map(of).collect()
    }

    /// `avx2-t1`: the instruction set and the number of threads.
    pub fn name(&self) -> String {
        format!("{}-t{}", self.isa.name(), self.threads)
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` once on every thread, with the number of the thread.
    pub fn spmd<R: Send>(&self, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        threads::collect(self.threads, work)
    }

    /// Gives each thread one part. Parts beyond the number of threads are dealt round.
    pub fn each<P: Send>(&self, parts: Vec<P>, work: impl Fn(P) + Sync) {
        if self.threads < 2 || parts.len() < 2 {
            return parts.into_iter().for_each(work);
        }
        let slots: Vec<Mutex<Option<P>>> = parts.into_iter().map(|p| Mutex::new(Some(p))).collect();
        threads::run(self.threads, &|thread| {
            for slot in slots.iter().skip(thread).step_by(self.threads) {
                let part = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                part.into_iter().for_each(&work);
            }
        });
    }

    /// Cuts a slice at the ends of consecutive ranges that begin at 0, and gives each thread one part with its range.
    pub(crate) fn each_range<T: Send>(
        &self,
        ranges: Vec<Range<usize>>,
        of: &mut [T],
        work: impl Fn(Range<usize>, &mut [T]) + Sync,
    ) {
        let parts = cut(of, &ranges);
        self.each(ranges.into_iter().zip(parts).collect(), |(range, part)| work(range, part));
    }

    /// `0..length` in one range a thread, of equal length up to the multiple.
    pub fn ranges(&self, length: usize, multiple: usize) -> Vec<Range<usize>> {
        let share = length.div_ceil(self.threads).next_multiple_of(multiple.max(1));
        (0..self.threads).map(|t| (t * share).min(length)..((t + 1) * share).min(length)).collect()
    }

    /// Rows in one range a thread with about the same number of entries; `starts` has one element more than rows.
    pub fn balanced(&self, starts: &[u32]) -> Vec<Range<usize>> {
        let rows = starts.len().saturating_sub(1);
        let total = starts.last().copied().unwrap_or(0) as usize;
        // An entry and a row both cost something.
        let weight = |row: usize| starts[row] as usize + row;
        let cut = |t: usize| {
            let goal = (total + rows) * t / self.threads;
            let (mut low, mut high) = (0, rows);
            while low < high {
                let middle = low.midpoint(high);
                if weight(middle) < goal { low = middle + 1 } else { high = middle }
            }
            if t == self.threads { rows } else { low }
        };
        (0..self.threads).map(|t| cut(t)..cut(t + 1)).collect()
    }
}

/// Cuts a slice at the ends of consecutive ranges that begin at 0.
pub(crate) fn cut<'a, T>(mut rest: &'a mut [T], ranges: &[Range<usize>]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (part, tail) = rest.split_at_mut(range.len());
        parts.push(part);
        rest = tail;
    }
    parts
}
