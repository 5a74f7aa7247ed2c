//! How places in memory fall into the sets of a first-level cache.

use crate::LINE;

/// Bytes of a page: a processor prefetches within one, and the lines of each way of a first-level cache are one.
pub(crate) const PAGE: usize = 4096;

/// Bytes from so many to the nearest multiple of `period`.
pub(crate) fn off(bytes: usize, period: usize) -> usize {
    (bytes % period).min(period - bytes % period)
}

/// Whether vectors of so many bytes are half a line: two loads take one, and tiles of an odd number of vectors share one.
pub(crate) fn is_half_line(bytes: usize) -> bool {
    2 * bytes == LINE
}

/// Whether steps so many bytes apart, more than a line, lie less than a quarter of a line off a multiple of `period`, so that they crowd few sets of
/// a first-level cache where that is half a page or a page.
pub(crate) fn is_about(pitch: usize, period: usize) -> bool {
    pitch > LINE && off(pitch, period) < LINE / 4
}

/// Ways of a first-level cache of so many bytes.
pub(crate) fn ways(l1: usize) -> usize {
    (l1 / PAGE).max(1)
}

/// Whether so many rows or columns, `pitch` bytes apart, all fall into one set of a first-level cache of `l1` bytes, and are more than it holds.
pub(crate) fn share_a_set(count: usize, pitch: usize, l1: usize) -> bool {
    count > ways(l1) && is_one_set(pitch, ways(l1))
}

/// Whether as many rows as a first-level cache has ways, so far apart, fall into one set of it.
pub(crate) fn is_one_set(pitch: usize, ways: usize) -> bool {
    is_shared(pitch, PAGE, ways)
}

/// Rows so many bytes apart of which a first-level cache of `l1` bytes holds a line each: those whose distance is a multiple of a large power
/// of two fall into few of its sets.
pub(crate) fn side_by_side(pitch: usize, l1: usize) -> usize {
    let ways = ways(l1);
    let apart =
        [PAGE, PAGE / 2, PAGE / 4, PAGE / 8].into_iter().find(|apart| is_shared(pitch, *apart, ways)).unwrap_or(LINE);
    (l1 / apart).max(1)
}

/// Whether `ways` rows that are `pitch` bytes apart are less than a line off multiples of `apart`.
fn is_shared(pitch: usize, apart: usize, ways: usize) -> bool {
    off(pitch, apart) * ways < LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_share_a_set_where_they_are_more_than_its_ways() {
        let of = |count, pitch| share_a_set(count, pitch, 32 << 10);
        assert_eq!([of(8, 4096), of(9, 4096), of(9, 2048), of(9, 4096 + 64)], [false, true, false, false]);
        assert_eq!([16, 32, 64].map(is_half_line), [false, true, false]);
    }

    #[test]
    fn steps_about_half_a_page_apart_crowd_few_sets() {
        let about =
            |pitches: &[usize], period| pitches.iter().map(|pitch| is_about(*pitch, period)).collect::<Vec<_>>();
        assert_eq!(about(&[2044, 2048, 2063, 4096, 6140], PAGE / 2), [true; 5]);
        assert_eq!(about(&[4, 60, 1024, 2064, 4080], PAGE / 2), [false; 5]);
        assert_eq!(about(&[4088, 4096, 8200, 2048, 6144], PAGE), [true, true, true, false, false]);
    }

    #[test]
    fn rows_pages_apart_are_as_many_as_ways() {
        let of = |pitch| side_by_side(pitch, 48 << 10);
        assert_eq!([of(4096), of(8192), of(2048), of(1024), of(1536)], [12, 12, 24, 48, 96]);
        // A few bytes off a page is as a page; a line off it, or rows line by line, use the whole cache.
        assert_eq!([of(4096 + 64), of(4096 + 4), of(64)], [768, 12, 768]);
        assert_eq!(side_by_side(4096, 1 << 10), 1);
    }
}
