//! The legal points of a space, held and numbered.

use tilewright_core::space::{BoundSpace, Param, Point};

/// Most points that a listing holds: 32 bytes each with 16 parameters.
pub const MAX_POINTS: usize = 1 << 24;

/// A space that is too large to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the space has more than {limit} legal points, the most that this strategy holds; use refine, random, local or early-stop"
)]
pub struct TooLarge {
    /// The most points that are held.
    pub limit: usize,
}

/// Every legal point of a space in lexicographic order, found by number and by indices.
///
/// Strategies that look around a point or rank all points need both ways; a listing is made once and shared by all
/// searches of the space.
#[derive(Clone, Debug)]
pub struct Listing {
    params: Vec<Param>,
    points: Vec<u16>,
    count: usize,
}

impl Listing {
    /// Walks the space.
    ///
    /// # Errors
    /// More than [`MAX_POINTS`] legal points.
    pub fn new(space: &BoundSpace) -> Result<Self, TooLarge> {
        let (mut points, mut count) = (Vec::new(), 0);
        space.for_each_legal(|point| {
            count += 1;
            if count <= MAX_POINTS {
                points.extend_from_slice(point);
            }
            count <= MAX_POINTS
        });
        if count > MAX_POINTS {
            return Err(TooLarge { limit: MAX_POINTS });
        }
        Ok(Self { params: space.params().to_vec(), points, count })
    }

    /// The parameters, in index order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Number of legal points.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing is legal.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The indices of a point.
    ///
    /// # Panics
    /// Beyond the last point.
    pub fn indices(&self, number: u32) -> &[u16] {
        let width = self.params.len();
        &self.points[number as usize * width..][..width]
    }

    /// A point.
    ///
    /// # Panics
    /// Beyond the last point.
    pub fn point(&self, number: u32) -> Point {
        Point::from(self.indices(number))
    }

    /// The number of a point; none if it is not legal.
    pub fn find(&self, point: &[u16]) -> Option<u32> {
        if point.len() != self.params.len() {
            return None;
        }
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.indices(middle as u32).cmp(point) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle as u32),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::space::{ParamSpace, RuleGroup, Symbols};

    #[test]
    fn points_are_found_both_ways() {
        let space = ParamSpace::builder()
            .param(Param::ints("a", [1, 2, 4, 8]))
            .param(Param::ints("b", [1, 2, 4]))
            .rule("r", RuleGroup::User, "a * b <= 8", "")
            .build()
            .unwrap();
        let space = space.bind(&Symbols::new()).unwrap();
        let listing = Listing::new(&space).unwrap();
        assert_eq!(listing.len() as u64, space.count_legal());
        for number in 0..listing.len() as u32 {
            assert_eq!(listing.find(listing.indices(number)), Some(number));
        }
        assert_eq!(listing.find(&[3, 2]), None);
        assert_eq!(listing.find(&[3]), None);
    }
}
