//! Which sources are like the target.

use crate::device::number;
use crate::sources::Sources;
use tilewright_core::space::Config;

/// How fast a source counts less with its distance, in standard deviations of a feature.
const DECAY: f64 = 1.5;

/// For each source, the share of its cases to learn from: all of the nearest, fewer of those that are further in the logarithms of
/// all features that every source and the target have as positive numbers. All of every source where there are none.
pub(crate) fn shares(sources: &Sources, target: &Config) -> Vec<f64> {
    let count = sources.all().len();
    let mut squares = vec![0.0; count];
    let mut features = 0usize;
    for (name, _) in &target.0 {
        let log = |of: &Config| number(of, name).filter(|v| *v > 0.0).map(f64::ln);
        let all: Option<Vec<f64>> = sources.all().iter().map(|s| log(&s.features)).collect();
        let (Some(all), Some(own)) = (all, log(target)) else { continue };
        let n = count as f64 + 1.0;
        let mean = (all.iter().sum::<f64>() + own) / n;
        let spread = (all.iter().chain([&own]).map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        if spread > 1e-9 {
            features += 1;
            squares.iter_mut().zip(&all).for_each(|(s, v)| *s += ((v - own) / spread).powi(2));
        }
    }
    let distances: Vec<f64> = squares.iter().map(|s| (s / features.max(1) as f64).sqrt()).collect();
    let nearest = distances.iter().copied().fold(f64::INFINITY, f64::min);
    distances.iter().map(|d| (-DECAY * (d - nearest)).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Source;
    use tilewright_core::choice::ChoiceSet;
    use tilewright_core::feature::FeatureSchema;

    #[test]
    fn the_nearest_counts_most() {
        let source = |name: &str, cores: f64| Source {
            device: name.into(),
            features: Config(vec![("cores".into(), cores.into()), ("vendor".into(), "x".into())]),
            cases: ChoiceSet::new(FeatureSchema { input: Vec::new(), config: Vec::new() }),
        };
        let sources = Sources::new(vec![source("a", 10.0), source("b", 100.0), source("c", 1000.0)]).unwrap();
        let shares_of = |text: &str| shares(&sources, &Config::parse(text).unwrap());
        let near_b = shares_of("cores=150");
        assert!((near_b[1] - 1.0).abs() < 1e-12 && near_b[2] > near_b[0] && near_b[0] > 0.0, "{near_b:?}");
        assert_eq!(shares_of("vendor=x"), [1.0; 3]);
    }
}
