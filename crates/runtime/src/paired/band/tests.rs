use super::*;
use std::cell::Cell;

/// Seeded normal noise.
struct Noise(Cell<u64>);

impl Noise {
    fn uniform(&self) -> f64 {
        let mut z = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(z);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON
    }

    fn normal(&self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn band(truth: &[f64], rounds: usize, noise: f64, seed: u64) -> Band {
    let dice = Noise(Cell::new(seed));
    let visits = |time: &f64| (0..rounds).map(|_| time * (noise * dice.normal()).exp()).collect();
    let costs: Vec<Vec<f64>> = truth.iter().map(visits).collect();
    Band::of(&costs.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn is_in(band: &Band, at: usize) -> bool {
    band.members(band.within(0.01, 0.03)).iter().any(|(member, _)| *member == at)
}

#[test]
fn without_noise_the_band_is_the_margin() {
    let found = band(&[1.009, 1.0, 1.011, 1.0], 5, 0.0, 0);
    assert_eq!((found.chance, found.within(0.01, 0.03)), (0.0, 0.01));
    let members = found.members(0.01);
    assert_eq!(members.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 1, 3]);
    assert!((members[0].1 - 1.009).abs() < 1e-12 && members[1].1 == 1.0);
}

#[test]
fn one_within_half_the_margin_of_the_best_stays_in_with_95_percent() {
    for (noise, rounds) in [(0.003, 11), (0.01, 11), (0.02, 33)] {
        for others in [1, 5, 23] {
            let truth = [&[1.005][..], &vec![1.0; others]].concat();
            let inside = (0..200).filter(|seed| is_in(&band(&truth, rounds, noise, *seed), 0)).count();
            assert!(inside >= 190, "{inside} of 200, noise {noise}, {rounds} rounds, {others} others");
        }
    }
}

#[test]
fn the_estimate_of_chance_is_about_right() {
    for rounds in [2, 3, 4, 5, 11, 33] {
        let mut all: Vec<f64> = (0..99).map(|seed| band(&[1.0; 12], rounds, 0.01, seed).chance).collect();
        let sigma = median_interval(&mut all).median / largest(11) / OF_MEDIAN * (rounds as f64).sqrt();
        let truth = 0.01 * std::f64::consts::SQRT_2;
        assert!((0.8..1.5).contains(&(sigma / truth)), "{rounds} rounds: {:.2} of it", sigma / truth);
    }
}

#[test]
fn one_round_tells_no_noise_and_the_band_is_as_wide_as_it_gets() {
    let found = band(&[1.02, 1.0, 1.04], 1, 0.0, 0);
    assert!(found.chance.is_infinite() && found.within(0.01, 0.03) == 0.03);
    assert_eq!(found.members(0.03).len(), 2);
}

#[test]
fn who_left_early_or_failed_is_no_member() {
    let found = Band::of(&[&[1.0, 1.0, 1.0], &[], &[0.9]]);
    assert_eq!((found.relative, found.chance), (vec![Some(1.0), None, None], 0.0));
    assert_eq!(Band::of(&[&[], &[]]).members(1.0), []);
    assert_eq!(Band::of(&[]).members(1.0), []);
}

#[test]
fn the_width_has_its_limits() {
    let chance = |chance| Band { relative: Vec::new(), chance }.within(0.01, 0.03);
    assert_eq!([chance(0.0), chance(0.005), chance(0.02), chance(0.5)], [0.01, 0.01, 0.025, 0.03]);
    // Who asks for no band gets none.
    assert_eq!(Band { relative: Vec::new(), chance: 0.1 }.within(0.0, 0.0), 0.0);
}
