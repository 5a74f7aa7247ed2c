//! What blocks order among each other.
//!
//! What a warp did before a fence is published by its next atomic or volatile write, at the place that it writes to; who
//! then reads that place by an atomic or volatile access knows all that was published there, and what the publishers knew.
//! Barriers hand both on within a block. This is how PTX orders accesses by fences and relaxed operations on one location,
//! with three things left out: the fence behind the read is not asked for, since the programming guide's own sum of partial
//! sums has none; a write publishes to every later reader of the place, whatever value that one sees; and the lanes of a
//! warp count as one.

use super::Worker;
use super::shadow::MAX_WARPS;
use crate::kernel::Scope;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Of each warp of a block, the stamp before which everything is published, counted from the block's first stamp.
pub(super) type Cover = [u32; MAX_WARPS];

/// What was published in a launch, by place.
#[derive(Debug, Default)]
pub(crate) struct Fences(Mutex<Places>);

type Places = HashMap<u64, Vec<Release>>;

/// What a write published.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Release {
    /// What warps of a block did: for its own threads, and for those of other blocks.
    Of(u64, Arc<[Cover; 2]>),
    /// What the writer had learned.
    Learned(Seen),
}

/// The first so many releases of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    place: u64,
    count: usize,
}

/// What a warp has learned.
#[derive(Debug)]
struct Lesson {
    warp: usize,
    /// Its stamp at that time: what a barrier ordered before another warp, that one knows too.
    stamp: u32,
    scope: Scope,
    seen: Seen,
    /// By block, once somebody asks.
    covers: OnceCell<HashMap<u64, [Cover; 2]>>,
}

/// What a block has learned of others, and of itself.
#[derive(Debug, Default)]
pub(super) struct Lessons {
    all: Vec<Lesson>,
    /// Places that the current access reads.
    pub(super) read: Vec<u64>,
}

impl Lessons {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.read.clear();
    }
}

/// Newest releases of a place among which a new one is looked for: whoever polls or counts publishes the same again.
const RECENT: usize = 16;

fn add(releases: &mut Vec<Release>, new: Release) {
    if !releases.iter().rev().take(RECENT).any(|known| *known == new) {
        releases.push(new);
    }
}

/// All that some releases say, by block.
fn covers(places: &Places, seen: Seen) -> HashMap<u64, [Cover; 2]> {
    let mut out: HashMap<u64, [Cover; 2]> = HashMap::new();
    let mut done: HashMap<u64, usize> = HashMap::new();
    let mut open = vec![seen];
    while let Some(Seen { place, count }) = open.pop() {
        let from = done.get(&place).copied().unwrap_or(0);
        if from >= count {
            continue;
        }
        done.insert(place, count);
        for release in places.get(&place).and_then(|all| all.get(from..count)).unwrap_or_default() {
            match release {
                Release::Learned(seen) => open.push(*seen),
                Release::Of(block, covers) => {
                    let known = out.entry(*block).or_default();
                    for (known, new) in known.iter_mut().flatten().zip(covers.iter().flatten()) {
                        *known = (*known).max(*new);
                    }
                }
            }
        }
    }
    out
}

impl Worker<'_> {
    /// What a warp's write to some places publishes.
    pub(super) fn release(&mut self, warp: usize, scope: Scope, places: &[u64]) {
        let clocks = &self.shadow.clocks;
        let mut cover = clocks.cover(warp);
        if scope == Scope::Block {
            cover[1] = Cover::default();
        }
        let has_cover = cover.iter().flatten().any(|stamp| *stamp > 0);
        let is_wide = |lesson: &&Lesson| scope == Scope::Device && lesson.scope == Scope::Device;
        let learned: Vec<Seen> = self.lessons_of(warp).filter(is_wide).map(|lesson| lesson.seen).collect();
        if !has_cover && learned.is_empty() {
            return;
        }
        let (own, block) = (Arc::new(cover), self.numbered_block());
        let mut all = self.setting.fences.0.lock().unwrap_or_else(PoisonError::into_inner);
        for &place in places {
            let releases = all.entry(place).or_default();
            learned.iter().filter(|seen| seen.place != place).for_each(|seen| add(releases, Release::Learned(*seen)));
            if has_cover {
                add(releases, Release::Of(block, own.clone()));
            }
        }
    }

    /// A warp has read some places: those of the access that has just been made.
    pub(super) fn acquire(&mut self, warp: usize, scope: Scope) {
        if self.lessons.read.is_empty() {
            return;
        }
        let stamp = self.shadow.clocks.fine[warp];
        let all = self.setting.fences.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Lessons { all: lessons, read } = &mut self.lessons;
        for place in read.drain(..) {
            let count = all.get(&place).map_or(0, Vec::len);
            let seen = Seen { place, count };
            let is_last = |l: &&mut Lesson| (l.warp, l.scope, l.stamp, l.seen.place) == (warp, scope, stamp, place);
            match lessons.iter_mut().rev().find(is_last) {
                _ if count == 0 => {}
                Some(last) if last.seen == seen => {}
                Some(last) => (last.seen, last.covers) = (seen, OnceCell::new()),
                None => lessons.push(Lesson { warp, stamp, scope, seen, covers: OnceCell::new() }),
            }
        }
    }

    /// What a warp knows: what it learned itself, and what others did before a barrier.
    fn lessons_of(&self, warp: usize) -> impl Iterator<Item = &Lesson> {
        let known = &self.shadow.clocks.known[warp];
        self.lessons.all.iter().filter(move |l| l.warp == warp || known[l.warp] >= l.stamp)
    }

    /// Whether a warp knows that an access of a block is published: that of a warp at a stamp, or of any where it is not
    /// known. Without a block, of whatever blocks there are.
    pub(super) fn is_published(&self, warp: usize, block: Option<u64>, by: Option<usize>, stamp: u64) -> bool {
        let own = self.numbered_block();
        self.lessons_of(warp).any(|lesson| {
            let Some(block) = block else { return lesson.scope == Scope::Device };
            let width = usize::from(block != own);
            if width == 1 && lesson.scope == Scope::Block {
                return false;
            }
            let index = || {
                let all = self.setting.fences.0.lock().unwrap_or_else(PoisonError::into_inner);
                covers(&all, lesson.seen)
            };
            let Some(covers) = lesson.covers.get_or_init(index).get(&block) else { return false };
            let before = |stamps: &Cover| match by {
                Some(warp) => stamps.get(warp).copied().unwrap_or(0),
                None => stamps.iter().copied().max().unwrap_or(0),
            };
            stamp < u64::from(before(&covers[width]))
        })
    }
}
