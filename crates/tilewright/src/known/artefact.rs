//! An exported artefact as the source of knowledge: the configurations that it names for an input, in its order.

use super::{Known, Source};
use crate::error::Error;
use std::path::Path;
use tilewright_core::device::DeviceSpec;
use tilewright_core::predictor::{BindError, Predictor, Scorer};
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::space::{Config, Point, Points};
use tilewright_export::Artefact;
use tilewright_files::read_file;
use tilewright_runtime::plan::Ranking;
use tilewright_runtime::store::{StoreError, StoreErrorKind, checksum};

/// The kind of predictor that an artefact is.
pub const ARTEFACT: &str = "artefact";

/// More than any artefact: a tree is small.
const MOST: u64 = 16 << 20;

/// The artefact that a file holds, by what it says of itself; none of other files.
///
/// # Errors
/// An artefact that cannot be read.
pub fn artefact(path: &Path) -> Result<Option<Artefact>, Error> {
    // What is no short text is no artefact; whoever reads it as something else says what is wrong with it.
    let text = read_file(path, MOST).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text.filter(|text| Artefact::is_one(text)) else { return Ok(None) };
    Artefact::read(&text).map(Some).map_err(Error::from)
}

/// What an artefact says of an input. Where only its last resort is left, against which a guideline of the kernel speaks, it names
/// nothing, and the kernel's default is taken.
///
/// # Errors
/// Another device or kernel, or an input that the artefact does not speak of.
pub(super) fn known<'k>(
    artefact: &Artefact,
    path: &Path,
    kernel: &'k dyn AnyKernel,
    device: &DeviceSpec,
    input: &Config,
) -> Result<Known<'k>, Error> {
    artefact.expect(kernel.id().as_str(), device)?;
    let choices = &artefact.contents().choices;
    let ranked = artefact.ranked(input)?;
    let point = |at: usize| choices[at].config.to_point(kernel.space().params(), None);
    let points = ranked.into_iter().map(point).collect::<Result<Vec<_>, _>>();
    // Of the same kernel and version, so that only a damaged file can say so.
    let points = points.map_err(|error| StoreError::new(path, StoreErrorKind::Corrupt(error.to_string())))?;
    let reason = "an exported artefact of this kernel on this device names configurations".to_owned();
    if points.is_empty() {
        let reason = format!("{reason}, none of which the guidelines of the kernel advise here");
        return Ok(Known { reason, ..Known::nothing(kernel) });
    }
    let predictor = Box::new(Named(points.clone()));
    let known = Known::by(kernel, (Source::Artefact, reason), predictor, Some(checksum(path)?));
    Ok(Known { ranking: Ranking::Listed(points), ..known })
}

/// Ranks the points of a list by their places in it, and all others behind them.
struct Named(Vec<Point>);

impl Predictor for Named {
    fn kind(&self) -> &str {
        ARTEFACT
    }

    fn is_calibrated(&self) -> bool {
        false
    }

    fn bind<'a>(&'a self, _: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        Ok(Box::new(Places(&self.0)))
    }
}

struct Places<'a>(&'a [Point]);

impl Scorer for Places<'_> {
    fn score(&self, points: Points<'_>, out: &mut [f32]) {
        for (point, out) in points.iter().zip(out) {
            *out = self.0.iter().position(|known| **known == *point).unwrap_or(self.0.len()) as f32;
        }
    }
}
