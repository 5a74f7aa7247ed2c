//! Which devices are like the target.

use crate::device::number;
use tilewright_core::space::Config;

/// How fast a source counts less with its distance, in standard deviations of a feature.
const DECAY: f64 = 1.5;

/// For each device, the share of its cases to learn from: all of the nearest, fewer of those that are further in the logarithms of
/// all features that every device and the target have as positive numbers. All of every device where there are none.
pub fn shares(devices: &[&Config], target: &Config) -> Vec<f64> {
    let count = devices.len();
    let mut squares = vec![0.0; count];
    let mut features = 0usize;
    for (name, _) in &target.0 {
        let log = |of: &Config| number(of, name).filter(|v| *v > 0.0).map(f64::ln);
        let all: Option<Vec<f64>> = devices.iter().map(|features| log(features)).collect();
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

    #[test]
    fn the_nearest_counts_most() {
        let devices = ["10", "100", "1000"].map(|cores| Config::parse(&format!("cores={cores},vendor=x")).unwrap());
        let shares_of = |text: &str| shares(&devices.each_ref(), &Config::parse(text).unwrap());
        let near_b = shares_of("cores=150");
        assert!((near_b[1] - 1.0).abs() < 1e-12 && near_b[2] > near_b[0] && near_b[0] > 0.0, "{near_b:?}");
        assert_eq!(shares_of("vendor=x"), [1.0; 3]);
    }
}
