//! Memory of the device: buffers with exact lengths, far apart.

use crate::machine::{LAUNCHES, Traces};
use crate::module::Module;
use crate::types::Space;
use crate::uses::Uses;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Each buffer has a region of the address space to itself, so that an address far out of bounds cannot fall into
/// another one.
pub(crate) const REGION_BITS: u32 = 36;
/// The first region that is no buffer's.
pub(crate) const MAX_BUFFERS: usize = 0x700;
/// Where generic addresses of shared memory begin.
pub(crate) const SHARED_WINDOW: u64 = 0x7f0 << REGION_BITS;
/// Where generic addresses of local memory begin.
pub(crate) const LOCAL_WINDOW: u64 = 0x7f1 << REGION_BITS;
/// Where generic addresses of parameters begin.
pub(crate) const PARAM_WINDOW: u64 = 0x7f2 << REGION_BITS;

/// What generic addresses of a space are above its own; `None` for a space that has none.
pub(crate) fn window(space: Space) -> Option<u64> {
    match space {
        Space::Global | Space::Const => Some(0),
        Space::Shared => Some(SHARED_WINDOW),
        Space::Local => Some(LOCAL_WINDOW),
        Space::Param => Some(PARAM_WINDOW),
        Space::Generic => None,
    }
}

/// A buffer of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) usize);

/// Memory cannot be had.
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A buffer is longer than a region.
    #[error("a buffer of {need} bytes: at most {have} are possible")]
    TooLong { need: u64, have: u64 },
    /// There are too many buffers.
    #[error("more than {limit} buffers")]
    TooMany { limit: usize },
    /// Data of another length than its buffer.
    #[error("{found} bytes for buffer {buffer:?} of {expected}")]
    Length { buffer: String, expected: usize, found: usize },
    /// The module has no such variable.
    #[error("the module has no variable {0:?}")]
    NoVariable(String),
}

/// Words that are hashed at a time.
const CHUNK: usize = 1024;

/// One buffer. Its words are atomic because blocks run on several threads; kernels order their accesses themselves.
#[derive(Debug, Default)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) words: Box<[AtomicU32]>,
    pub(crate) bytes: u64,
    pub(crate) read_only: bool,
    /// One bit per byte of a word, set when the byte is written; `None` where everything is.
    pub(crate) written: Option<Box<[AtomicU8]>>,
    /// Who accessed it in the last launches.
    pub(crate) traces: Option<Traces>,
    /// How launches that overlap use it.
    pub(crate) uses: Uses,
}

impl Region {
    pub(crate) fn describe(&self) -> String {
        format!("{:?} ({} bytes)", self.name, self.bytes)
    }

    /// Whether all bytes of a range within bounds have been written.
    pub(crate) fn is_written(&self, offset: u64, bytes: u64) -> bool {
        let Some(written) = &self.written else { return true };
        (offset..offset + bytes).all(|at| {
            let word = written.get((at / 4) as usize);
            word.is_none_or(|w| w.load(Ordering::Relaxed) >> (at % 4) & 1 != 0)
        })
    }

    /// Replaces a range within bounds by bytes of their number in the range, and tells whether one of them was another, or not
    /// written; nobody else may be writing.
    fn replace(&mut self, range: Range<u64>, byte: impl Fn(u64) -> u8) -> bool {
        let bytes = range.end.saturating_sub(range.start);
        let mut changes = !self.is_written(range.start, bytes);
        for index in range.start / 4..range.end.div_ceil(4) {
            let Some(word) = self.words.get_mut(index as usize) else { continue };
            let before = *word.get_mut();
            let mut bytes = before.to_le_bytes();
            for (i, place) in bytes.iter_mut().enumerate() {
                let at = index * 4 + i as u64;
                if range.contains(&at) {
                    *place = byte(at - range.start);
                }
            }
            *word.get_mut() = u32::from_le_bytes(bytes);
            changes |= *word.get_mut() != before;
        }
        self.set_written(range.start, bytes);
        changes
    }

    /// Has a hash see everything of it that a kernel can: its length, its contents, and which bytes are written.
    fn seen_by(&self, hash: &mut blake3::Hasher) {
        hash.update(&self.bytes.to_le_bytes()).update(&[self.read_only.into(), self.written.is_some().into()]);
        let mut held = [0; CHUNK];
        for words in self.words.chunks(CHUNK) {
            held.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
            hash.update(bytemuck::cast_slice(&held[..words.len()]));
        }
        let mut held = [0; CHUNK];
        for bits in self.written.iter().flat_map(|written| written.chunks(CHUNK)) {
            held.iter_mut().zip(bits).for_each(|(to, bits)| *to = bits.load(Ordering::Relaxed));
            hash.update(&held[..bits.len()]);
        }
    }

    pub(crate) fn set_written(&self, offset: u64, bytes: u64) {
        let Some(written) = &self.written else { return };
        for index in offset / 4..(offset + bytes).div_ceil(4) {
            let (first, end) = (offset.max(index * 4) - index * 4, (offset + bytes).min(index * 4 + 4) - index * 4);
            if let Some(word) = written.get(index as usize) {
                word.fetch_or(((1u16 << end) - (1 << first)) as u8, Ordering::Relaxed);
            }
        }
    }
}

/// The memory of an emulated device.
#[derive(Debug, Default)]
pub struct Memory {
    pub(crate) regions: Vec<Region>,
    /// Where the variables of a module lie, by the module's number.
    modules: HashMap<u64, Vec<BufferId>>,
    /// Regions that were given back.
    free: Vec<usize>,
    launches: u64,
    /// Atomic operations wider than a word take turns.
    pub(crate) turn: Mutex<()>,
}

impl Memory {
    /// No buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer with these contents. The name stands in findings.
    ///
    /// # Errors
    /// Too many or too long buffers.
    pub fn add(&mut self, name: &str, contents: &[u8]) -> Result<BufferId, MemoryError> {
        let id = self.reserve(name, contents.len(), false)?;
        self.write_part(id, 0, contents);
        Ok(id)
    }

    /// A buffer whose bytes nobody has written: loads of them are findings until a kernel stores there. They read as a
    /// pattern.
    ///
    /// # Errors
    /// Too many or too long buffers.
    pub fn add_unwritten(&mut self, name: &str, bytes: usize) -> Result<BufferId, MemoryError> {
        let id = self.reserve(name, bytes, false)?;
        self.regions[id.0].words.iter().for_each(|w| w.store(UNWRITTEN, Ordering::Relaxed));
        self.forget(id);
        Ok(id)
    }

    /// All bytes of a buffer count as unwritten again; their contents stay.
    pub fn forget(&mut self, id: BufferId) {
        if let Some(region) = self.regions.get_mut(id.0) {
            region.written = Some(region.words.iter().map(|_| AtomicU8::new(0)).collect());
        }
    }

    fn reserve(&mut self, name: &str, bytes: usize, read_only: bool) -> Result<BufferId, MemoryError> {
        let have = 1 << REGION_BITS;
        if bytes as u64 > have {
            return Err(MemoryError::TooLong { need: bytes as u64, have });
        }
        let words = (0..bytes.div_ceil(4)).map(|_| AtomicU32::new(0)).collect();
        let region = Region { name: name.into(), words, bytes: bytes as u64, read_only, ..Region::default() };
        if let Some(id) = self.free.pop() {
            self.regions[id] = region;
            return Ok(BufferId(id));
        }
        if self.regions.len() >= MAX_BUFFERS {
            return Err(MemoryError::TooMany { limit: MAX_BUFFERS });
        }
        self.regions.push(region);
        Ok(BufferId(self.regions.len() - 1))
    }

    /// Gives a buffer back. Its number, and with it its address, may become another's.
    pub fn remove(&mut self, id: BufferId) {
        if self.regions.get(id.0).is_some() && !self.free.contains(&id.0) {
            let (name, words) = ("freed".into(), Box::default());
            self.regions[id.0] = Region { name, words, bytes: 0, read_only: true, ..Region::default() };
            self.free.push(id.0);
        }
    }

    /// The buffer that an address lies in, or whose end it is, and how far in.
    pub fn locate(&self, address: u64) -> Option<(BufferId, u64)> {
        let id = usize::try_from((address >> REGION_BITS).checked_sub(1)?).ok()?;
        let offset = address & ((1 << REGION_BITS) - 1);
        self.regions.get(id).filter(|r| offset <= r.bytes).map(|_| (BufferId(id), offset))
    }

    /// The address of a buffer: a multiple of 256, as on a device.
    pub fn address(&self, id: BufferId) -> u64 {
        (id.0 as u64 + 1) << REGION_BITS
    }

    /// The length of a buffer in bytes; zero for a buffer of another memory.
    pub fn len(&self, id: BufferId) -> u64 {
        self.regions.get(id.0).map_or(0, |r| r.bytes)
    }

    /// Whether there are no buffers.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Replaces the contents of a buffer.
    ///
    /// # Errors
    /// Data of another length.
    pub fn write(&mut self, id: BufferId, contents: &[u8]) -> Result<(), MemoryError> {
        let (buffer, expected) = match self.regions.get(id.0) {
            Some(r) => (r.name.clone(), r.bytes as usize),
            None => (format!("{id:?}"), 0),
        };
        if expected != contents.len() {
            return Err(MemoryError::Length { buffer, expected, found: contents.len() });
        }
        self.regions[id.0].written = None;
        self.write_part(id, 0, contents);
        Ok(())
    }

    /// Sets bytes of a buffer to a value; bytes beyond its end are left out. Tells whether that changed anything.
    pub fn fill(&mut self, id: BufferId, offset: u64, bytes: u64, value: u8) -> bool {
        let Some(region) = self.regions.get_mut(id.0) else { return false };
        let end = offset.saturating_add(bytes).min(region.bytes);
        region.replace(offset..end, |_| value)
    }

    /// Replaces some bytes of a buffer; those beyond its end are left out. Tells whether that changed anything.
    pub fn write_part(&mut self, id: BufferId, offset: u64, contents: &[u8]) -> bool {
        let Some(region) = self.regions.get_mut(id.0) else { return false };
        let end = offset.saturating_add(contents.len() as u64).min(region.bytes);
        region.replace(offset..end, |at| contents[at as usize])
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes).sum()
    }

    /// A hash of everything that a kernel can see. Where it is the same, a kernel does the same, unless its blocks depend on their order.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        self.regions.iter().for_each(|region| region.seen_by(&mut hash));
        hash.finalize().into()
    }

    /// Some bytes of a buffer; those beyond its end are left out.
    pub fn read_part(&self, id: BufferId, offset: u64, bytes: u64) -> Vec<u8> {
        let Some(region) = self.regions.get(id.0) else { return Vec::new() };
        let end = offset.saturating_add(bytes).min(region.bytes);
        if offset >= end {
            return Vec::new();
        }
        let words = &region.words[(offset / 4) as usize..(end as usize).div_ceil(4)];
        let mut all = vec![0; 4 * words.len()];
        for (to, word) in all.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        all.drain(..(offset % 4) as usize);
        all.truncate((end - offset) as usize);
        all
    }

    /// The contents of a buffer; nothing for a buffer of another memory.
    pub fn read(&self, id: BufferId) -> Vec<u8> {
        self.read_part(id, 0, self.len(id))
    }

    /// The buffers of a module's variables, made when they are first asked for.
    pub(crate) fn variables(&mut self, module: &Module) -> Result<Vec<BufferId>, MemoryError> {
        if let Some(ids) = self.modules.get(&module.number) {
            return Ok(ids.clone());
        }
        let mut ids = Vec::new();
        for variable in &module.variables {
            let id = self.reserve(&variable.name, variable.contents.len(), variable.read_only)?;
            self.write_part(id, 0, &variable.contents);
            ids.push(id);
        }
        for (variable, id) in module.variables.iter().zip(&ids) {
            for (at, target, offset) in &variable.addresses {
                let address = ids.get(*target).map_or(0, |id| self.address(*id)).wrapping_add(*offset as u64);
                for (i, half) in [address as u32, (address >> 32) as u32].into_iter().enumerate() {
                    if let Some(word) = self.regions[id.0].words.get(at / 4 + i) {
                        word.store(half, Ordering::Relaxed);
                    }
                }
            }
        }
        self.modules.insert(module.number, ids.clone());
        Ok(ids)
    }

    /// The buffer of a module's `.global` or `.const` variable, to set it before a launch or read it after.
    ///
    /// # Errors
    /// There is no such variable, or no memory for it.
    pub fn variable(&mut self, module: &Module, name: &str) -> Result<BufferId, MemoryError> {
        let ids = self.variables(module)?;
        let at = module.variables.iter().position(|v| v.name == name);
        at.map(|i| ids[i]).ok_or_else(|| MemoryError::NoVariable(name.into()))
    }

    /// A launch begins that watches cells of so many bytes, perhaps before the one before it has ended; its number among the last ones,
    /// from one.
    pub(crate) fn begin_launch(&mut self, cell_bytes: u32, overlaps: bool) -> u64 {
        self.launches += 1;
        let number = self.launches % LAUNCHES;
        for region in self.regions.iter_mut().filter(|r| !r.read_only) {
            region.uses.begin_launch(overlaps);
            let cells = region.bytes.div_ceil(u64::from(cell_bytes.max(1))) as usize;
            let is_new = region.traces.as_ref().is_none_or(|traces| traces.cells() < cells);
            if is_new || number == 0 {
                region.traces = Traces::new(cells);
            }
        }
        self.launches += u64::from(number == 0);
        number.max(1)
    }

    /// Holds the turn for an operation of several words.
    pub(crate) fn take_turn(&self) -> std::sync::MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What unwritten memory reads as: a NaN in every format.
pub(crate) const UNWRITTEN: u32 = 0x7fff_ffff;
