//! Loads and stores: addresses, checks, and the way between memory and registers.

use super::shadow::{By, LANES, Touch, warps};
use super::survey::{Shape, first_of, shape};
use super::taint::Origin;
use super::warp::Warp;
use super::words::{Global, Own, Words, read, write};
use super::{Setting, Worker};
use crate::finding::{Fault, Hazard, Racer};
use crate::kernel::{Access, Address, Data, Order, Scope};
use crate::lanes::{FULL, Registers, WARP, store};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, REGION_BITS, Region, SHARED_WINDOW};
use crate::types::Space;
use crate::uses::Use;

/// Where an access goes.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Global(&'a Region),
    /// Memory with that many bytes.
    Shared(u64),
    Local(u64),
    Param(u64),
    Nowhere,
}

/// Some lanes of an access that fall into one place, with their offsets there. Lanes that do not take part hold the
/// offset of one that does.
pub(super) struct Group<'a> {
    pub(super) place: Place<'a>,
    pub(super) at: [u64; WARP],
    pub(super) mask: u32,
    /// What offsets count from.
    pub(super) base: u64,
    pub(super) shape: Shape,
}

/// An access while it is checked.
#[derive(Clone, Copy)]
pub(super) struct Checked<'v> {
    pub(super) pc: u32,
    pub(super) warp: usize,
    pub(super) space: Space,
    /// Bytes of a lane.
    pub(super) bytes: u64,
    /// A power of two that divides its offset.
    pub(super) align: u64,
    pub(super) touch: Touch,
    /// What a store writes, element by element, and bytes of one; empty where that is not known.
    pub(super) stored: &'v [[u64; WARP]],
    pub(super) element: u8,
    /// Loads of what nobody has written are kept in [`Worker::unwritten`] instead of reported.
    pub(super) is_kept: bool,
    /// Who sees an atomic or volatile access.
    pub(super) scope: Scope,
}

impl Checked<'_> {
    /// An access that must be aligned to its bytes.
    pub(super) fn new(pc: u32, warp: usize, space: Space, bytes: u64, touch: Touch) -> Self {
        let (scope, align) = (Scope::Device, bytes);
        Self { pc, warp, space, bytes, align, touch, stored: &[], element: 1, is_kept: false, scope }
    }
}

/// The addresses of a mask; other lanes get the first one's.
pub(super) fn addresses(registers: &Registers, address: Address, mask: u32) -> [u64; WARP] {
    let at = usize::from(address.slot);
    let mut out = [0; WARP];
    if address.wide {
        let (base, offset) = (&registers.doubles[at].0, address.offset as u64);
        for lane in 0..WARP {
            out[lane] = base[lane].wrapping_add(offset);
        }
    } else {
        let (base, offset) = (&registers.words[at].0, address.offset as u32);
        for lane in 0..WARP {
            out[lane] = u64::from(base[lane].wrapping_add(offset));
        }
    }
    if mask != FULL {
        let first = first_of(&out, mask);
        for (lane, a) in out.iter_mut().enumerate() {
            *a = if mask >> lane & 1 != 0 { *a } else { first };
        }
    }
    out
}

impl<'a> Setting<'a> {
    /// The place of an address and where the place begins.
    fn place(&self, space: Space, address: u64) -> (Place<'a>, u64) {
        let shared = Place::Shared(self.shared_bytes() as u64);
        let local = Place::Local(u64::from(self.kernel.local_bytes));
        let param = Place::Param(u64::from(self.kernel.param_bytes));
        let base = address >> REGION_BITS << REGION_BITS;
        match (space, base) {
            (Space::Shared, _) => (shared, 0),
            (Space::Local, _) => (local, 0),
            (Space::Param, PARAM_WINDOW) => (param, base),
            (Space::Param, _) => (param, 0),
            (Space::Generic, SHARED_WINDOW) => (shared, base),
            (Space::Generic, LOCAL_WINDOW) => (local, base),
            (Space::Generic, PARAM_WINDOW) => (param, base),
            _ => match self.memory.regions.get(((address >> REGION_BITS) as usize).wrapping_sub(1)) {
                Some(region) => (Place::Global(region), base),
                None => (Place::Nowhere, 0),
            },
        }
    }
}

impl<'a> Worker<'a> {
    pub(super) fn access(&mut self, w: usize, warp: &mut Warp, mask: u32, access: &Access, is_store: bool) {
        let touch = touch_of(access.order, is_store);
        if access.is_release {
            self.shadow.clocks.fence(w, access.scope);
        }
        let bytes = access.total();
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        if is_store {
            stored.extend(access.data.iter().flatten().map(|d| warp.registers.values(d.slot, d.bytes == 8)));
        }
        let element = access.bytes;
        let new = Checked::new(warp.pc, w, access.space, bytes, touch);
        let checked = Checked { stored: &stored, element, is_kept: !is_store, scope: access.scope, ..new };
        let (without, origin) = if is_store { warp.taints.stored(warp.pc, &access.data) } else { (0, None) };
        let at = addresses(&warp.registers, access.address, mask);
        let shape = self.shape(warp.pc, access.space, &at, mask, bytes);
        self.groups(checked, at, mask, shape, |worker, group, good| {
            let registers = &mut warp.registers;
            let mut moved = Moved { access, at: group.at, mask: good, is_store, without };
            if let Some(origin) = origin.as_ref().filter(|_| without & good != 0) {
                worker.pass_on(checked, group, origin, without & good);
            }
            match group.place {
                Place::Global(region) => moved.transfer(&mut Global(&region.words), registers),
                Place::Shared(_) => moved.transfer(&mut Own(&mut worker.shared), registers),
                Place::Local(bytes) => {
                    moved.at = std::array::from_fn(|lane| (w * WARP + lane) as u64 * bytes + group.at[lane]);
                    worker.check_local(checked, &moved, origin.as_ref());
                    moved.transfer(&mut Own(&mut worker.local), registers);
                }
                Place::Param(_) => moved.transfer(&mut Own(&mut worker.params), registers),
                Place::Nowhere => {}
            }
            let bad = group.mask & !good;
            if bad != 0 && !is_store {
                for data in access.data.iter().flatten() {
                    put(registers, *data, [u64::MAX >> 1; WARP], bad);
                }
            }
        });
        self.stored = stored;
        self.acquire(w, access.scope);
        for (lane, origin) in self.unwritten.drain(..) {
            warp.taints.load(&access.data, lane, &origin);
        }
    }

    /// Stores of values that nobody has written: reported in global memory, passed on in others.
    fn pass_on(&mut self, checked: Checked<'_>, group: &Group<'a>, origin: &Origin, lanes: u32) {
        match group.place {
            Place::Global(_) => self.report_origin(checked.warp, origin, lanes),
            Place::Shared(_) => {
                self.passed_on.insert(checked.pc, origin.clone());
                warps(lanes).for_each(|lane| self.shadow.unwrite(group.at[lane], checked.bytes));
            }
            _ => {}
        }
    }

    /// A load of memory that nobody has written.
    fn unwritten(&mut self, checked: Checked<'_>, lane: usize, address: u64, space: Space, store: Option<u32>) {
        let fault = Fault::Unwritten { space };
        if !checked.is_kept {
            return self.fault(checked.warp, checked.pc, lane, Some(address), fault);
        }
        let mut origin = match store.and_then(|pc| self.passed_on.get(&pc)) {
            Some(origin) => origin.clone(),
            None => Origin { pc: checked.pc, fault, addresses: [None; WARP] },
        };
        origin.addresses[lane] = Some(address);
        self.unwritten.push((lane, origin));
    }

    /// Loads of local memory that nobody has written. Structures are copied with their padding, so that only an element
    /// counts of which no word was written.
    fn check_local(&mut self, checked: Checked<'_>, moved: &Moved<'_>, stored: Option<&Origin>) {
        let (access, block) = (moved.access, self.blocks);
        let each = u64::from(access.bytes);
        for lane in warps(moved.mask) {
            for k in 0..access.data.len() as u64 {
                let at = moved.at[lane] + k * each;
                let words = (at / 4) as usize..(at + each).div_ceil(4) as usize;
                let first = words.start;
                let Some(written) = self.local_written.get_mut(words) else { continue };
                if moved.is_store {
                    let passed = stored.filter(|_| moved.without >> lane & 1 != 0);
                    written.fill(if passed.is_some() { 0 } else { block });
                    passed.map(|origin| self.passed_locally.insert(first, origin.clone()));
                } else if written.iter().all(|w| *w != block) && !access.is_argument {
                    let address = moved.at[lane] % u64::from(self.setting.kernel.local_bytes.max(1));
                    let fault = Fault::Unwritten { space: Space::Local };
                    let new = || Origin { pc: checked.pc, fault, addresses: [Some(address); WARP] };
                    let origin = self.passed_locally.get(&first).cloned().unwrap_or_else(new);
                    self.unwritten.push((lane, origin));
                }
            }
        }
    }

    /// The shape of an access, which is counted.
    pub(super) fn shape(&mut self, pc: u32, space: Space, at: &[u64; WARP], mask: u32, bytes: u64) -> Shape {
        // A generic address counts by where it points, which is one place for all but odd kernels.
        let space = match (space, at[0] >> REGION_BITS << REGION_BITS) {
            (Space::Generic, SHARED_WINDOW) => Space::Shared,
            (Space::Generic, LOCAL_WINDOW) => Space::Local,
            _ => space,
        };
        let shape = shape(&mut self.patterns[pc as usize], space, at, mask, bytes);
        shape.count(&mut self.counters[pc as usize].traffic, mask.count_ones(), bytes);
        shape
    }

    /// Sorts lanes by place, checks each group, and hands it on with the lanes that may go ahead.
    pub(super) fn groups(
        &mut self,
        checked: Checked<'_>,
        at: [u64; WARP],
        mask: u32,
        shape: Shape,
        mut then: impl FnMut(&mut Self, &Group<'a>, u32),
    ) {
        let setting = self.setting;
        let end = |distance: i64| shape.first.wrapping_add(distance as u64) >> REGION_BITS;
        let one_space = matches!(checked.space, Space::Shared | Space::Local | Space::Param);
        if one_space || end(shape.least) == end(shape.greatest) {
            let (place, base) = setting.place(checked.space, shape.first);
            let group = Group { place, at: relative(&at, base), mask, base, shape };
            let good = self.check(checked, &group);
            self.mark(checked, &group, good);
            return then(self, &group, good);
        }
        let mut rest = mask;
        while rest != 0 {
            let first = at[rest.trailing_zeros() as usize];
            let (place, base) = setting.place(checked.space, first);
            let mine = warps(rest).filter(|i| at[*i] >> REGION_BITS == first >> REGION_BITS);
            let mine = mine.fold(0u32, |m, i| m | 1 << i);
            let lane_or_first = |i: usize| if mine >> i & 1 != 0 { at[i] } else { first };
            let at: [u64; WARP] = std::array::from_fn(lane_or_first);
            let (shape, _) = super::survey::survey(checked.space, &at, mine, checked.bytes);
            let group = Group { place, at: relative(&at, base), mask: mine, base, shape };
            let good = self.check(checked, &group);
            self.mark(checked, &group, good);
            then(self, &group, good);
            rest &= !mine;
        }
    }

    /// Takes note of the bytes that lanes touch, where that is asked for.
    fn mark(&mut self, checked: Checked<'_>, group: &Group<'a>, good: u32) {
        if let (Some(footprints), Place::Global(region)) = (&mut self.footprints, group.place) {
            let buffer = ((group.base >> REGION_BITS) as usize).wrapping_sub(1);
            let marks = footprints.entry((checked.pc, buffer)).or_default();
            super::footprint::mark(marks, group, good, checked.bytes, region.bytes);
        }
    }

    /// The lanes of a group that access what they may.
    fn check(&mut self, checked: Checked<'_>, group: &Group<'a>) -> u32 {
        let length = match group.place {
            Place::Global(region) => region.bytes,
            Place::Shared(bytes) | Place::Local(bytes) | Place::Param(bytes) => bytes,
            Place::Nowhere => 0,
        };
        let last = length.checked_sub(checked.bytes);
        let first = group.shape.first.wrapping_sub(group.base);
        let is_in = |distance: i64| {
            let offset = first.checked_add_signed(distance);
            last.is_some_and(|last| offset.is_some_and(|offset| offset <= last))
        };
        let misaligned = (first | group.shape.low_bits) & (checked.align - 1) != 0;
        let mut good = group.mask;
        if misaligned || !is_in(group.shape.least) || !is_in(group.shape.greatest) {
            good = self.check_lanes(checked, group, last);
        }
        if good & !group.shape.distinct != 0 {
            self.check_clash(checked, group, good);
        }
        match group.place {
            Place::Global(region) => self.check_global(checked, group, region, good),
            Place::Shared(_) => {
                self.check_shared(checked, group, good);
                good
            }
            _ => good,
        }
    }

    /// Lane by lane, where not all may go ahead. `last` is the greatest offset that is within bounds.
    fn check_lanes(&mut self, checked: Checked<'_>, group: &Group<'a>, last: Option<u64>) -> u32 {
        let (space, bytes) = (checked.space, checked.bytes);
        let mut good = group.mask;
        for lane in warps(group.mask) {
            let offset = group.at[lane];
            let fault = if offset & (checked.align - 1) != 0 {
                Fault::Misaligned { space, bytes }
            } else if last.is_none_or(|last| offset > last) {
                let buffer = if let Place::Global(region) = group.place { Some(region.describe()) } else { None };
                Fault::OutOfBounds { space, bytes, buffer }
            } else {
                continue;
            };
            good &= !(1 << lane);
            let address = offset.wrapping_add(group.base);
            self.fault(checked.warp, checked.pc, lane, Some(address), fault);
        }
        good
    }

    fn check_global(&mut self, checked: Checked<'_>, group: &Group<'a>, region: &Region, good: u32) -> u32 {
        let stores = matches!(checked.touch, Touch::Write | Touch::Atomic);
        if region.read_only && checked.touch == Touch::Write {
            let lane = good.trailing_zeros() as usize;
            if good != 0 {
                let address = group.at[lane].wrapping_add(group.base);
                let fault = Fault::ReadOnly { buffer: region.describe() };
                self.fault(checked.warp, checked.pc, lane, Some(address), fault);
            }
            return 0;
        }
        let writes = matches!(checked.touch, Touch::Write | Touch::VolatileWrite | Touch::Atomic);
        let how = if writes { Use::Written } else { Use::Read };
        let early = good & !self.waited[checked.warp];
        if early != 0 && region.uses.is_early(how) {
            let lane = early.trailing_zeros() as usize;
            let address = group.at[lane].wrapping_add(group.base);
            let fault = Fault::Early { buffer: region.describe() };
            self.fault(checked.warp, checked.pc, lane, Some(address), fault);
        }
        if good != 0 {
            region.uses.note(how);
        }
        self.watch(checked, group, region, good);
        if region.written.is_some() {
            for lane in warps(good) {
                let offset = group.at[lane];
                if checked.touch != Touch::Write && !region.is_written(offset, checked.bytes) {
                    self.unwritten(checked, lane, offset.wrapping_add(group.base), Space::Global, None);
                }
                if stores {
                    region.set_written(offset, checked.bytes);
                }
            }
        }
        good
    }

    fn check_shared(&mut self, checked: Checked<'_>, group: &Group<'a>, good: u32) {
        let by = By { warp: checked.warp, pc: checked.pc, touch: checked.touch };
        if group.shape.is_contiguous && good == FULL {
            let shift = checked.bytes.trailing_zeros() - self.shadow.cell_shift();
            let bytes = WARP as u64 * checked.bytes;
            if self.shadow.touch_in_order(by, group.at[0], bytes, (0u32..).map(|cell| cell >> shift)) {
                return;
            }
        }
        for lane in warps(good & group.shape.distinct) {
            let is_alone = group.shape.alone >> lane & 1 != 0;
            let at = group.at[lane];
            if let Some(seen) = self.shadow.touch(by, if is_alone { lane as u32 } else { LANES }, at, checked.bytes) {
                let is_race = matches!(seen.fault, Fault::Race { .. }) && checked.touch == Touch::Write;
                if matches!(seen.fault, Fault::Unwritten { .. }) {
                    // Several lanes may read one address.
                    let same = warps(good).filter(|l| group.at[*l] == at);
                    same.for_each(|lane| self.unwritten(checked, lane, seen.at, Space::Shared, seen.first));
                } else if !(is_race && checked.stands(&Own(&mut self.shared), at, lane)) {
                    self.seen(checked.warp, checked.pc, lane, seen);
                }
            }
        }
    }

    /// Lanes that store different values to one address: which one stays is not defined.
    fn check_clash(&mut self, checked: Checked<'_>, group: &Group<'a>, good: u32) {
        let is_plain = matches!(checked.touch, Touch::Write | Touch::VolatileWrite);
        let space = match group.place {
            Place::Global(_) => Space::Global,
            Place::Shared(_) => Space::Shared,
            _ => return,
        };
        if let Some((lane, first)) = checked.clash(&group.at, good, group.shape.distinct).filter(|_| is_plain) {
            let fault = Fault::Race { space, second: Hazard::WriteAfterWrite, first: Racer::Lane(first as u8) };
            self.fault(checked.warp, checked.pc, lane, Some(group.at[lane].wrapping_add(group.base)), fault);
        }
    }
}

fn touch_of(order: Order, is_store: bool) -> Touch {
    match (order, is_store) {
        (Order::Weak, false) => Touch::Read,
        (Order::Weak, true) => Touch::Write,
        (Order::Volatile, false) => Touch::VolatileRead,
        (Order::Volatile, true) => Touch::VolatileWrite,
        (Order::Strong, false) => Touch::AtomicRead,
        (Order::Strong, true) => Touch::Atomic,
    }
}

/// Offsets from where a place begins.
#[inline(always)]
fn relative(at: &[u64; WARP], base: u64) -> [u64; WARP] {
    let mut out = [0; WARP];
    for lane in 0..WARP {
        out[lane] = at[lane].wrapping_sub(base);
    }
    out
}

/// Lanes of an access whose offsets have been checked.
struct Moved<'a> {
    access: &'a Access,
    at: [u64; WARP],
    mask: u32,
    is_store: bool,
    /// Lanes that store values that nobody has written.
    without: u32,
}

impl Moved<'_> {
    /// Moves elements between memory and registers.
    fn transfer(&self, words: &mut impl Words, registers: &mut Registers) {
        for (k, data) in self.access.data.iter().enumerate().filter(|_| self.mask != 0) {
            let Some(data) = *data else { continue };
            let skip = k as u64 * u64::from(self.access.bytes);
            if self.is_store {
                let values = registers.values(data.slot, data.bytes == 8);
                for lane in warps(self.mask) {
                    write(words, self.at[lane] + skip, self.access.bytes, values[lane]);
                }
            } else {
                self.fetch(words, registers, data, skip);
            }
        }
    }

    fn fetch(&self, words: &impl Words, registers: &mut Registers, data: Data, skip: u64) {
        if self.access.bytes == 4 && data.bytes <= 4 {
            let mut out = [0; WARP];
            for lane in 0..WARP {
                out[lane] = words.word(((self.at[lane] + skip) >> 2) as usize);
            }
            return store(registers, data.slot, out, self.mask);
        }
        let bits = 64 - 8 * u32::from(self.access.bytes);
        let mut values = [0; WARP];
        for lane in 0..WARP {
            let raw = read(words, self.at[lane] + skip, self.access.bytes);
            values[lane] = if self.access.signed { ((raw << bits) as i64 >> bits) as u64 } else { raw };
        }
        put(registers, data, values, self.mask);
    }
}

/// Writes a value into a register, cut to its width.
pub(super) fn put(registers: &mut Registers, data: Data, values: [u64; WARP], mask: u32) {
    if data.bytes == 8 {
        return store(registers, data.slot, values, mask);
    }
    let kept = if data.bytes == 4 { u32::MAX } else { 0xffff };
    let mut words = [0u32; WARP];
    for lane in 0..WARP {
        words[lane] = values[lane] as u32 & kept;
    }
    store(registers, data.slot, words, mask);
}
