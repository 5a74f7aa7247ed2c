//! The set and its queries.

use super::blocks::{Block, blocks};
use super::build::build;
use super::diagram::Level;
use super::{Description, LegalError};
use rand::Rng;
use std::sync::Arc;
use tilewright_core::space::{BoundSpace, Config, Param, Point};

/// The legal points of a space, counted and numbered.
///
/// Points have numbers from 0 to [`LegalSet::count`], in the lexicographic order of the indices of the parameters taken
/// in [`LegalSet::order`]; the same description gives the same numbers. All queries take time in the number of
/// parameters, not of points.
///
/// A point is illegal where a part of the constraints is false, an error where no part is false and one has no value (a
/// division by zero, an overflow), and else legal. Parts are what `and` joins, the links of a chained comparison, and what
/// `not (.. or ..)` denies; each is evaluated as Python would. A space with a point that is an error is refused.
///
/// ```
/// use tilewright_core::space::Param;
/// use tilewright_sampler::{Description, LegalSet};
///
/// let set = LegalSet::new(
///     &Description::new()
///         .param(Param::ints("x", [16, 32, 64]))
///         .param(Param::ints("y", 1..=8))
///         .constraint("x * y <= 128 and x % y == 0")?
///         .closure("not the last", ["y"], |[y]: [i64; 1]| y != 8),
/// )?;
/// assert_eq!((set.cartesian(), set.count()), (24, 8));
/// let point = set.point(5).expect("one of eight");
/// assert_eq!(set.index_of(&point), Some(5));
/// assert!(!set.contains(&[0, 2]), "16 % 3 != 0");
/// # Ok::<(), tilewright_sampler::LegalError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LegalSet {
    params: Arc<[Param]>,
    pub(super) levels: Arc<[Level]>,
    /// The levels again, several at a time.
    blocks: Arc<[Block]>,
    /// Parameters of one value that are no level, and its index.
    pub(super) fixed: Vec<(usize, u16)>,
    count: u64,
}

impl LegalSet {
    /// Builds the set of a description.
    ///
    /// # Errors
    /// A parameter without values or with too many, two of one name, a constraint on an unknown name, a point that is an
    /// error, more than 2^64 points, constraints that link too much to be followed. A set without points is none; see [`super::Conflict`].
    pub fn new(description: &Description) -> Result<Self, LegalError> {
        build(description)
    }

    /// The legal points of a kernel's space for one device and input.
    ///
    /// # Errors
    /// As [`LegalSet::new`].
    pub fn of(space: &BoundSpace) -> Result<Self, LegalError> {
        build(&Description::from(space))
    }

    pub(super) fn empty(params: &[Param]) -> Self {
        Self::of_levels(params, Vec::new(), Vec::new(), 0)
    }

    pub(super) fn of_levels(params: &[Param], levels: Vec<Level>, fixed: Vec<(usize, u16)>, count: u64) -> Self {
        let blocks = blocks(&levels).into();
        Self { params: params.into(), levels: levels.into(), blocks, fixed, count }
    }

    /// The parameters, in index order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Number of legal points.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing is legal.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of points, legal or not.
    pub fn cartesian(&self) -> u128 {
        self.params.iter().fold(1, |n: u128, p| n.saturating_mul(p.values.len() as u128))
    }

    /// The parameters with a choice, by their position in the space, in the order that numbers count: the first one
    /// changes slowest.
    pub fn order(&self) -> Vec<usize> {
        self.levels.iter().map(|level| level.param).collect()
    }

    /// Nodes of the diagram.
    pub fn nodes(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    /// Bytes that the diagram takes.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(Level::bytes).sum::<usize>() + self.blocks.iter().map(Block::bytes).sum::<usize>()
    }

    /// Whether a point is legal; one of another space is not.
    #[inline]
    pub fn contains(&self, point: &[u16]) -> bool {
        self.index_of(point).is_some()
    }

    /// The number of a point, if it is legal.
    #[inline]
    pub fn index_of(&self, point: &[u16]) -> Option<u64> {
        if point.len() != self.params.len() || self.count == 0 || self.fixed.iter().any(|&(p, v)| point[p] != v) {
            return None;
        }
        let mut number = 0;
        let mut node = 0;
        for level in self.levels.iter() {
            let (before, child) = level.follow(node, point[level.param])?;
            number += before;
            node = child;
        }
        Some(number)
    }

    /// The point of a number, if there are as many.
    pub fn point(&self, number: u64) -> Option<Point> {
        let mut out = vec![0; self.params.len()];
        self.write_point(number, &mut out).then_some(Point(out))
    }

    /// Writes the point of a number into a slice of one index per parameter. False, and nothing written, if there is no
    /// such point or the slice has another length.
    #[inline]
    pub fn write_point(&self, number: u64, out: &mut [u16]) -> bool {
        if number >= self.count || out.len() != self.params.len() {
            return false;
        }
        for &(param, value) in &self.fixed {
            out[param] = value;
        }
        let (mut node, mut left) = (0, number);
        for block in self.blocks.iter() {
            (node, left) = block.locate(node, left, out);
        }
        true
    }

    /// The configuration of a point, by name.
    ///
    /// # Panics
    /// If an index is beyond its parameter's values: points come from this space.
    pub fn config(&self, point: &[u16]) -> Config {
        let pair = |(p, &i): (&Param, &u16)| (p.name.clone(), p.values[usize::from(i)].clone());
        Config(self.params.iter().zip(point).map(pair).collect())
    }

    /// A legal point, each with the same probability; none of an empty set. Nothing is ever rejected.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<Point> {
        let mut out = vec![0; self.params.len()];
        self.sample_into(rng, &mut out).then_some(Point(out))
    }

    /// [`LegalSet::sample`] into a slice, without allocating. False, and nothing written, where there is no point.
    #[inline]
    pub fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [u16]) -> bool {
        self.count > 0 && self.write_point(rng.random_range(0..self.count), out)
    }
}
