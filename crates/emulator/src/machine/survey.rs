//! How the lanes of a memory access lie to each other.

use crate::counts::{Stride, Traffic};
use crate::lanes::{FULL, WARP};
use crate::types::Space;

/// Bytes that global memory moves at least.
const SECTOR: u64 = 32;
/// Banks of shared memory, four bytes wide.
const BANKS: usize = 32;

/// What an access is like, apart from where it begins. Loops repeat it, so the last one of every instruction is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The first executing lane's address.
    pub(super) first: u64,
    /// The least and greatest address, relative to the first one.
    pub(super) least: i64,
    pub(super) greatest: i64,
    /// All bits that are set in some distance from the first address.
    pub(super) low_bits: u64,
    /// One lane for each address.
    pub(super) distinct: u32,
    /// Lanes whose address no other lane has.
    pub(super) alone: u32,
    /// All lanes execute, each right behind the one before.
    pub(super) is_contiguous: bool,
    /// From lane to lane, in bytes.
    pub(super) step: i64,
    stride: Stride,
    is_regular: bool,
    transactions: u64,
    /// Bytes that the lanes touch together.
    distinct_bytes: u64,
}

impl Shape {
    pub(super) fn count(&self, traffic: &mut Traffic, lanes: u32, bytes: u64) {
        traffic.bytes += u64::from(lanes) * bytes;
        traffic.strides[self.stride as usize] += 1;
        traffic.irregular += u64::from(!self.is_regular);
        traffic.transactions += self.transactions;
        traffic.distinct_bytes += self.distinct_bytes;
    }
}

/// The last access of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// From the first executing lane to each.
    pub(super) distances: [u32; WARP],
    pub(super) mask: u32,
    /// Where in a sector, or in a word of shared memory, it began.
    phase: u64,
    pub(super) space: Space,
    pub(super) shape: Shape,
    ranges: Ranges,
    /// The lane of each cell of shared memory within the ranges, or that there are several; made when it is first needed.
    lanes: Vec<u8>,
}

impl Pattern {
    /// Whether an access that begins there, with the same distances, is like the last one.
    pub(super) fn begins_alike(&self, first: u64) -> bool {
        phase(self.space, first) == self.phase
    }

    /// What the lanes touch together, as distances from the first and bytes, and the lane of each cell in these ranges.
    pub(super) fn ranges(&mut self, bytes: u64, cell_shift: u32) -> (&[(i64, u64)], &[u8]) {
        if self.lanes.is_empty() {
            self.lanes = self.lanes_of_cells(bytes, cell_shift);
        }
        (self.ranges.all(), &self.lanes)
    }

    fn lanes_of_cells(&self, bytes: u64, cell_shift: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for &(from, length) in self.ranges.all() {
            let begin = out.len();
            out.resize(begin + (length >> cell_shift).max(1) as usize, u8::MAX);
            for (lane, distance) in self.distances.iter().enumerate() {
                let Ok(within) = u64::try_from(i64::from(*distance as i32) - from) else { continue };
                let cells = (within >> cell_shift) as usize..((within + bytes) >> cell_shift) as usize;
                for cell in out[begin..].get_mut(cells).into_iter().flatten() {
                    *cell = if *cell == u8::MAX { lane as u8 } else { super::shadow::LANES as u8 };
                }
            }
        }
        out
    }
}

/// Ranges of bytes that do not touch, as distances from an address and lengths.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    list: [(i64, u64); WARP],
    count: usize,
}

impl Ranges {
    /// Of accesses that begin at different distances, merged where they touch.
    fn of(distances: impl Iterator<Item = i64>, bytes: u64) -> Self {
        let (mut starts, mut lanes) = ([0i64; WARP], 0);
        for (to, distance) in starts.iter_mut().zip(distances) {
            *to = distance;
            lanes += 1;
        }
        starts[..lanes].sort_unstable();
        let mut out = Self { list: [(0, 0); WARP], count: 0 };
        for &start in &starts[..lanes] {
            let last = out.count.checked_sub(1).map(|i| &mut out.list[i]);
            match last.filter(|(at, length)| at.saturating_add_unsigned(*length) >= start) {
                Some((at, length)) => *length = start.abs_diff(*at) + bytes,
                None => {
                    out.list[out.count] = (start, bytes);
                    out.count += 1;
                }
            }
        }
        out
    }

    fn all(&self) -> &[(i64, u64)] {
        self.list.get(..self.count).unwrap_or(&[])
    }
}

/// What the transactions of an access depend on besides its distances: banks are alike, sectors begin at multiples.
fn phase(space: Space, first: u64) -> u64 {
    if space == Space::Shared { first % 4 } else { first % SECTOR }
}

/// The address of the first of some lanes.
pub(super) fn first_of(at: &[u64; WARP], lanes: u32) -> u64 {
    at[lanes.trailing_zeros() as usize & (WARP - 1)]
}

/// The shape of an access of at least one lane; lanes that do not execute hold the address of the first that does.
pub(super) fn shape(last: &mut Option<Box<Pattern>>, space: Space, at: &[u64; WARP], mask: u32, bytes: u64) -> Shape {
    let first = first_of(at, mask);
    let (mut distances, mut far) = ([0u32; WARP], 0);
    for lane in 0..WARP {
        let distance = at[lane].wrapping_sub(first);
        distances[lane] = distance as u32;
        far |= distance as i64 ^ i64::from(distance as i32);
    }
    let phase = phase(space, first);
    if let Some(known) = last
        && known.distances == distances
        && far == 0
        && (known.mask, known.phase, known.space) == (mask, phase, space)
    {
        return Shape { first, ..known.shape };
    }
    let (shape, ranges) = survey(space, at, mask, bytes);
    *last = (far == 0).then(|| Box::new(Pattern { distances, mask, phase, space, shape, ranges, lanes: Vec::new() }));
    shape
}

/// The shape, and what the lanes touch together.
pub(super) fn survey(space: Space, at: &[u64; WARP], mask: u32, bytes: u64) -> (Shape, Ranges) {
    let first = first_of(at, mask);
    let regular = if mask == FULL { regular_step(at) } else { None };
    let (step, is_regular) = match regular {
        Some(step) => (step, true),
        None => frequent_step(at, mask),
    };
    let distance = |a: &u64| a.wrapping_sub(first) as i64;
    let is_new = |lane: &usize| mask >> lane & 1 != 0 && !(0..*lane).any(|l| mask >> l & 1 != 0 && at[l] == at[*lane]);
    let distinct = (0..WARP).filter(is_new).fold(0, |m, lane| m | 1 << lane);
    let again = mask & !distinct;
    let is_alone = |lane: &usize| !super::shadow::warps(again).any(|l| l != *lane && at[l] == at[*lane]);
    let alone = if again == 0 {
        distinct
    } else {
        super::shadow::warps(distinct).filter(is_alone).fold(0, |m, lane| m | 1 << lane)
    };
    let ranges = Ranges::of(super::shadow::warps(distinct).map(|lane| distance(&at[lane])), bytes);
    let shape = Shape {
        first,
        least: at.iter().map(distance).min().unwrap_or(0),
        greatest: at.iter().map(distance).max().unwrap_or(0),
        low_bits: at.iter().fold(0, |bits, a| bits | a.wrapping_sub(first)),
        distinct,
        alone,
        is_contiguous: regular == Some(bytes as i64),
        step,
        stride: Stride::of(step, bytes),
        is_regular,
        transactions: match space {
            Space::Global | Space::Const | Space::Generic => sectors(at, mask, bytes, regular),
            Space::Shared => passes(at, mask, bytes, regular),
            Space::Local | Space::Param => 1,
        },
        distinct_bytes: ranges.all().iter().map(|(_, length)| length).sum(),
    };
    (shape, ranges)
}

/// The step from lane to lane where all lanes have the same.
fn regular_step(at: &[u64; WARP]) -> Option<i64> {
    let step = at[1].wrapping_sub(at[0]);
    let mut differs = 0;
    for i in 1..WARP {
        differs |= at[i].wrapping_sub(at[i - 1]) ^ step;
    }
    (differs == 0).then_some(step as i64)
}

/// The most frequent step between neighbouring lanes that both execute, the smaller one of two; zero where there are no
/// neighbours. And whether it is the only one.
fn frequent_step(at: &[u64; WARP], mask: u32) -> (i64, bool) {
    let mut steps = [(0i64, 0u32); WARP];
    let mut kinds = 0;
    for i in 1..WARP {
        if mask >> (i - 1) & 3 != 3 {
            continue;
        }
        let step = at[i].wrapping_sub(at[i - 1]) as i64;
        match steps[..kinds].iter_mut().find(|(s, _)| *s == step) {
            Some((_, count)) => *count += 1,
            None => {
                steps[kinds] = (step, 1);
                kinds += 1;
            }
        }
    }
    let best = steps[..kinds].iter().min_by_key(|(step, count)| (u32::MAX - count, step.unsigned_abs(), *step));
    (best.map_or(0, |(step, _)| *step), kinds <= 1)
}

/// Executing lanes' numbers of units of `unit` bytes, each once. An access covers the units from its first to its last.
fn distinct(at: &[u64], mask: u32, bytes: u64, unit: u64, out: &mut Vec<u64>) {
    out.clear();
    for (lane, &address) in at.iter().enumerate() {
        if mask >> lane & 1 != 0 {
            for u in address / unit..=address.wrapping_add(bytes - 1) / unit {
                if out.last() != Some(&u) {
                    out.push(u);
                }
            }
        }
    }
    if !out.is_sorted() {
        out.sort_unstable();
    }
    out.dedup();
}

fn sectors(at: &[u64; WARP], mask: u32, bytes: u64, regular: Option<i64>) -> u64 {
    match regular {
        Some(0) => (at[0] + bytes - 1) / SECTOR - at[0] / SECTOR + 1,
        Some(step) if step as u64 == bytes => {
            (at[0].wrapping_add(WARP as u64 * bytes - 1) / SECTOR).wrapping_sub(at[0] / SECTOR) + 1
        }
        _ => {
            let mut units = Vec::with_capacity(2 * WARP);
            distinct(at, mask, bytes, SECTOR, &mut units);
            units.len() as u64
        }
    }
}

/// Passes over the banks. Accesses of 8 bytes go by half warps, of 16 bytes by quarters; a word that several lanes want
/// costs one.
fn passes(at: &[u64; WARP], mask: u32, bytes: u64, regular: Option<i64>) -> u64 {
    let parts = (bytes as usize / 4).clamp(1, 4);
    match regular {
        Some(0) => return 1,
        Some(step) if step as u64 == bytes => return parts as u64,
        _ => {}
    }
    let lanes = WARP / parts;
    let mut words = Vec::with_capacity(2 * WARP);
    let mut total = 0;
    for part in 0..parts {
        let mask = mask >> (part * lanes) & (FULL >> (WARP - lanes));
        distinct(&at[part * lanes..(part + 1) * lanes], mask, bytes, 4, &mut words);
        let mut banks = [0u8; BANKS];
        for word in &words {
            banks[*word as usize % BANKS] += 1;
        }
        total += u64::from(banks.iter().copied().max().unwrap_or(0));
    }
    total.max(1)
}
