//! A kernel's space with the names that its code and its models read, found once.

use tilewright_core::expr::Val;
use tilewright_core::feature::Feature;
use tilewright_core::space::{Name, ParamSpace, SpaceError, Values};

/// A space, the `S` sizes and `W` words that a configuration is made of, and the `F` names that models see.
#[derive(Debug)]
pub(crate) struct Described<const S: usize, const W: usize, const F: usize> {
    pub(crate) space: ParamSpace,
    sizes: [Name; S],
    words: [Name; W],
    features: [Name; F],
    feature_names: [&'static str; F],
    /// How many features, the last ones, are flags.
    flags: usize,
}

impl<const S: usize, const W: usize, const F: usize> Described<S, W, F> {
    /// The space of the kernel of this name, which is a constant of this crate that a test builds: what is wrong with it is a mistake
    /// of whoever wrote it.
    pub(crate) fn new(
        kernel: &str,
        space: Result<ParamSpace, SpaceError>,
        sizes: [&str; S],
        words: [&str; W],
        (features, flags): ([&'static str; F], usize),
    ) -> Self {
        let space = space.unwrap_or_else(|e| unreachable!("the space of {kernel}: {e}"));
        let name = |n: &str| space.name(n).unwrap_or_else(|| unreachable!("{kernel} defines no {n}"));
        let (sizes, words, names) = (sizes.map(name), words.map(name), features.map(name));
        Self { space, sizes, words, features: names, feature_names: features, flags }
    }

    /// The sizes of a point; `None` for one of another space.
    pub(crate) fn sizes(&self, at: &Values<'_>) -> Option<[usize; S]> {
        Some(at.ints::<u32, _>(self.sizes)?.map(|x| x as usize))
    }

    /// The words of a point; `None` for one of another space.
    pub(crate) fn words<'s>(&self, at: &Values<'s>) -> Option<[Val<'s>; W]> {
        at.read(self.words)
    }

    /// Sizes, then flags.
    pub(crate) fn feature_names(&self) -> Vec<Feature> {
        let (sizes, flags) = self.feature_names.split_at(F - self.flags);
        sizes.iter().map(|name| Feature::size(name)).chain(flags.iter().map(|name| Feature::flag(name))).collect()
    }

    /// NaN where a name has no value, which is nowhere at a legal point.
    pub(crate) fn features(&self, at: &Values<'_>, out: &mut Vec<f32>) {
        match at.ints::<u64, _>(self.features) {
            Some(values) => {
                let (sizes, flags) = values.split_at(F - self.flags);
                // A size of 0 is seen as 1.
                out.extend(sizes.iter().map(|&x| x.max(1) as f32).chain(flags.iter().map(|&x| x as f32)));
            }
            None => out.resize(out.len() + F, f32::NAN),
        }
    }
}
