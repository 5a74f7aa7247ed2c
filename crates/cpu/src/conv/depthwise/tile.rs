//! Tiles of sums in registers, and what goes into them and out of them.

use super::blueprint::Blueprint;
use super::driver::Parts;
use super::registers::Register;
use std::ops::Range;

/// Most lanes of a vector.
const MOST: usize = 16;

/// Where the elements of a tap lie.
pub(super) struct Tap<T> {
    /// Of the first output.
    from: *const T,
    /// Elements to the next output's.
    step: usize,
}

/// Where filters lie.
pub(super) struct Filters<T> {
    pub(super) from: *const T,
    /// Elements from tap to tap.
    pub(super) step: usize,
}

/// The sums of `Q` outputs, from the `first` that taps know of, of `V` vectors `at` so many elements from where they lie. Filters are
/// vectors, or the `SAME` number for all lanes. Of vectors that are not `WHOLE` so many lanes are there.
///
/// # Safety
/// Elements of all taps and filters must be readable, and the host must have the vectors.
#[inline(always)]
pub(super) unsafe fn sums<X: Register, const Q: usize, const V: usize, const WHOLE: bool, const SAME: bool>(
    taps: &[Tap<X::Element>],
    filters: &Filters<X::Element>,
    (first, at): (usize, usize),
    some: usize,
) -> [[X; V]; Q] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut sums = [[X::all(X::Element::default()); V]; Q];
        let mut filter = filters.from;
        for tap in taps {
            let mut from = tap.from.wrapping_add(first * tap.step + at);
            let mut factors = [X::all(X::Element::default()); V];
            for (v, factor) in factors.iter_mut().enumerate() {
                *factor = if SAME { X::all(*filter) } else { X::read(filter.wrapping_add(v * X::COUNT)) };
            }
            for line in &mut sums {
                for v in 0..V {
                    let at = from.wrapping_add(v * X::COUNT);
                    let x = if WHOLE { X::read(at) } else { X::read_some(at, some) };
                    line[v] = line[v].plus_product(x, factors[v]);
                }
                from = from.wrapping_add(tap.step);
            }
            filter = filter.wrapping_add(filters.step);
        }
        sums
    }
}

impl Blueprint {
    /// The taps of rows that were brought together.
    pub(super) fn staged_taps<T>(&self, rows: *const T, taps: &mut Vec<Tap<T>>) {
        let step = self.of.step[0] * self.pitch;
        taps.extend(self.taps.iter().map(|tap| Tap { from: rows.wrapping_add(*tap), step }));
    }

    /// The taps of one column of a row, or of all columns whose taps are within the image. In the padding there are zeros.
    pub(super) fn taps_of<T>(
        &self,
        row: usize,
        column: Option<usize>,
        (from, zeros): (*const T, *const T),
        taps: &mut Vec<Tap<T>>,
    ) {
        let of = &self.of;
        taps.clear();
        taps.extend(of.taps.iter().map(|tap| {
            let place = inside(row * of.step[0] + tap.at[0], of.origin[0], of.rows.count).and_then(|row| {
                let column = match column {
                    None => tap.at[1] as isize + of.origin[1],
                    Some(q) => inside(q * of.step[1] + tap.at[1], of.origin[1], of.columns.count)? as isize,
                };
                Some((row * of.rows.stride) as isize + column * of.columns.stride as isize)
            });
            let step = if column.is_none() { of.step[1] * of.columns.stride } else { 0 };
            place.map_or(Tap { from: zeros, step: 0 }, |place| Tap { from: from.wrapping_offset(place), step })
        }));
    }
}

impl Parts<'_> {
    /// Stores the lanes of a sum that there are, so many elements apart, with the bias already in them.
    ///
    /// # Safety
    /// The result must be writable there, the residual readable where there is one, and the host must have the vectors.
    #[inline(always)]
    pub(super) unsafe fn put<X: Register>(&self, mut sum: X, place: usize, (apart, count): (usize, usize)) {
        let finish = &self.call.finish;
        let result = self.call.result.cast::<X::Element>();
        let residual = finish.residual.cast::<X::Element>();
        // SAFETY: the caller's contract.
        unsafe {
            if apart != 1 && X::COUNT > 1 {
                let mut lanes = [X::Element::default(); MOST];
                sum.write(lanes.as_mut_ptr());
                for (lane, sum) in lanes.into_iter().enumerate().take(count.min(X::COUNT)) {
                    let place = place + lane * apart;
                    result.wrapping_add(place).write(finish.of(sum, place));
                }
                return;
            }
            let whole = count >= X::COUNT;
            if !residual.is_null() {
                let from = residual.wrapping_add(place);
                sum = sum.plus(if whole { X::read(from) } else { X::read_some(from, count) });
            }
            if finish.relu {
                sum = sum.positive();
            }
            let to = result.wrapping_add(place);
            if whole { sum.write(to) } else { sum.write_some(to, count) }
        }
    }

    /// Brings the rows that a block of outputs sees together, between zeros that are there; columns of the same remainder by the
    /// stride lie side by side.
    ///
    /// # Safety
    /// The rows must be as long as the blueprint says and writable, the image readable, and the host must have the vectors.
    #[inline(always)]
    pub(super) unsafe fn bring<X: Register>(
        &self,
        image: usize,
        group: usize,
        outputs: &Range<usize>,
        rows: *mut X::Element,
    ) {
        let (b, of) = (self.b, &self.b.of);
        let base = of.groups[group].gathered + image * of.images.stride;
        let from = self.call.gathered.cast::<X::Element>().wrapping_add(base);
        for r in 0..b.rows(outputs.len()) {
            let to = rows.wrapping_add(r * b.pitch);
            let Some(row) = inside(outputs.start * of.step[0] + r, of.origin[0], of.rows.count) else {
                // SAFETY: the caller's contract: a row. All bits of zero are 0.
                unsafe { to.write_bytes(0, b.pitch) };
                continue;
            };
            let from = from.wrapping_add(row * of.rows.stride);
            // SAFETY: the caller's contract: a row's columns of each remainder.
            unsafe {
                if of.step[1] == 2 && of.columns.stride == 1 {
                    self.pairs::<X>(from, to);
                } else {
                    for phase in 0..of.step[1] {
                        self.phase::<X>(from, phase, self.within(phase), to);
                    }
                }
            }
        }
    }

    /// Which columns of a phase are within the image: those that the `phase`-th first output sees, a stride apart.
    fn within(&self, phase: usize) -> Range<usize> {
        let (b, of) = (self.b, &self.b.of);
        let first = of.origin[1] + phase as isize;
        let up_to = |column: isize| (column.max(0) as usize).div_ceil(of.step[1]).min(b.phase);
        let left = up_to(-first);
        left..up_to(of.columns.count as isize - first).max(left)
    }

    /// Some columns of a phase of a row of an image.
    ///
    /// # Safety
    /// As for [`Parts::bring`]; the columns must be within the image.
    #[inline(always)]
    unsafe fn phase<X: Register>(
        &self,
        from: *const X::Element,
        phase: usize,
        columns: Range<usize>,
        to: *mut X::Element,
    ) {
        let of = &self.b.of;
        let first = of.origin[1] + (phase + columns.start * of.step[1]) as isize;
        let from = from.wrapping_offset(first * of.columns.stride as isize);
        let to = to.wrapping_add(phase * self.b.phase + columns.start);
        // SAFETY: the caller's contract: elements of a row of the image, and some of a row that is brought.
        unsafe {
            match of.step[1] * of.columns.stride {
                1 => copy::<X>(from, to, columns.len()),
                apart => gather(from, apart, to, columns.len()),
            }
        }
    }

    /// A row of an image of which outputs see every second column, which are neighbours.
    ///
    /// # Safety
    /// As for [`Parts::bring`].
    #[inline(always)]
    unsafe fn pairs<X: Register>(&self, from: *const X::Element, to: *mut X::Element) {
        let [even, odd] = [self.within(0), self.within(1)];
        let both = even.start.max(odd.start)..even.end.min(odd.end);
        let pair = from.wrapping_offset(self.b.of.origin[1]);
        let mut at = both.start;
        // SAFETY: the caller's contract: columns within the image, and their places in both phases.
        unsafe {
            while at < both.end {
                let (count, from) = (both.end - at, pair.wrapping_add(2 * at));
                let [even, odd] = [0, self.b.phase].map(|phase| to.wrapping_add(phase + at));
                if count >= X::COUNT {
                    let [x, y] = X::read(from).halves(X::read(from.wrapping_add(X::COUNT)));
                    x.write(even);
                    y.write(odd);
                } else {
                    let next = from.wrapping_add(X::COUNT);
                    let (first, more) = match (2 * count).checked_sub(X::COUNT) {
                        Some(more) => (X::read(from), X::read_some(next, more)),
                        None => (X::read_some(from, 2 * count), X::all(X::Element::default())),
                    };
                    let [x, y] = first.halves(more);
                    x.write_some(even, count);
                    y.write_some(odd, count);
                }
                at += X::COUNT;
            }
            // One or the other reaches further on each side.
            for (phase, columns) in [(0, even), (1, odd)] {
                self.phase::<X>(from, phase, columns.start..both.start.clamp(columns.start, columns.end), to);
                self.phase::<X>(from, phase, both.end.clamp(columns.start, columns.end)..columns.end, to);
            }
        }
    }
}

/// Copies elements that do not overlap.
///
/// # Safety
/// So many must be readable and writable, and the host must have the vectors.
#[inline(always)]
unsafe fn copy<X: Register>(from: *const X::Element, to: *mut X::Element, count: usize) {
    let mut i = 0;
    // SAFETY: the caller's contract.
    unsafe {
        while i + X::COUNT <= count {
            X::read(from.wrapping_add(i)).write(to.wrapping_add(i));
            i += X::COUNT;
        }
        if i < count {
            X::read_some(from.wrapping_add(i), count - i).write_some(to.wrapping_add(i), count - i);
        }
    }
}

/// Copies elements that are so many apart, one by one: the compiler would make instructions of it that gather them, which are slower.
///
/// # Safety
/// So many must be readable and writable.
#[inline(never)]
unsafe fn gather<T: Copy>(from: *const T, apart: usize, to: *mut T, count: usize) {
    for i in 0..count {
        // SAFETY: the caller's contract.
        unsafe { to.wrapping_add(i).write(*from.wrapping_add(i * apart)) };
    }
}

/// A row or a column of the image, `at` from where the padding begins.
fn inside(at: usize, origin: isize, count: usize) -> Option<usize> {
    usize::try_from(at as isize + origin).ok().filter(|at| *at < count)
}
