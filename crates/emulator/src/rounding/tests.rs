//! Against definitions, and against a library that does it bit by bit.

use super::*;
use proptest::prelude::*;
use rustc_apfloat::FloatConvert;
use rustc_apfloat::ieee::{BFloat, Half, Single};

const ROUNDS: [Round; 5] = [Round::Nearest, Round::Zero, Round::Down, Round::Up, Round::Away];

fn library<F: rustc_apfloat::Float>(x: f64, round: Round) -> u32
where
    Double: FloatConvert<F>,
{
    let mut loses = false;
    let narrow: StatusAnd<F> = double(x).convert_r(direction(round), &mut loses);
    narrow.value.to_bits() as u32
}

fn same(found: u32, expected: u32, format: Format) {
    let nan = |bits: u32| bits & ((1 << (format.width - 1)) - 1) > format.infinity;
    assert!(found == expected || (nan(found) && nan(expected)), "{found:x}, expected {expected:x}");
}

fn check_narrow(x: f64) {
    for round in ROUNDS {
        same(narrow(x, HALF, round), library::<Half>(x, round), HALF);
        same(narrow(x, BFLOAT, round), library::<BFloat>(x, round), BFLOAT);
        same(narrow(x, SINGLE, round), library::<Single>(x, round), SINGLE);
    }
}

#[test]
fn edges_of_narrow_formats() {
    let edges = [0.0, 65504.0, 65519.9, 65520.0, 6.0e-8, 2.98e-8, 2.9802322387695312e-8, 1e-45, 7e-46, 3.4e38, 3.5e38];
    for x in edges.into_iter().chain([f64::INFINITY, f64::NAN, f64::MAX, f64::MIN_POSITIVE, 5e-324]) {
        check_narrow(x);
        check_narrow(-x);
    }
}

#[test]
fn every_half_survives_the_way_there_and_back() {
    for bits in 0..=u16::MAX {
        same(narrow(half(bits), HALF, Round::Nearest), u32::from(bits), HALF);
        same(narrow(bfloat(bits), BFLOAT, Round::Nearest), u32::from(bits), BFLOAT);
    }
}

#[test]
fn integers_beyond_the_mantissa() {
    let x = (1i128 << 60) + 1;
    assert_eq!(from_integer(x, Round::Up), (1u64 << 60) as f64 + 256.0);
    assert_eq!(from_integer(x, Round::Zero), (1u64 << 60) as f64);
    assert_eq!(from_integer(-x, Round::Down), -((1u64 << 60) as f64) - 256.0);
    // Half a unit of binary32 and a little: rounding twice to nearest would lose it.
    let x = (1i128 << 60) + (1 << 36) + 1;
    assert_eq!(single(from_integer_odd(x), Round::Nearest), ((1u64 << 60) + (1 << 37)) as f32);
}

fn any_single() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("a number", |x| !x.is_nan())
}

proptest! {
    #[test]
    fn narrow_formats(bits in any::<u64>(), near in any_single()) {
        check_narrow(f64::from_bits(bits));
        check_narrow(f64::from(near) * (1.0 + 2f64.powi(-26)));
    }

    #[test]
    fn sums_and_products_in_all_directions(a in any_single(), b in any_single(), c in any_single(), scale in -40..40i32) {
        // Close exponents are where rounding happens.
        let near = a * 2f32.powi(scale);
        let lib = |x: f32| rustc_apfloat::ieee::Single::from_bits(u128::from(x.to_bits()));
        for round in ROUNDS.into_iter().filter(|r| *r != Round::Away) {
            let d = direction(round);
            same(a.add_in(near, round).to_bits(), lib(a).add_r(lib(near), d).value.to_bits() as u32, SINGLE);
            same(a.mul_in(b, round).to_bits(), lib(a).mul_r(lib(b), d).value.to_bits() as u32, SINGLE);
            same(a.div_in(b, round).to_bits(), lib(a).div_r(lib(b), d).value.to_bits() as u32, SINGLE);
            let fused = lib(a).mul_add_r(lib(b), lib(c), d).value.to_bits() as u32;
            same(a.fma_in(b, c, round).to_bits(), fused, SINGLE);
        }
    }

    #[test]
    fn roots_are_bounded_by_their_neighbours(x in 1e-300f64..1e300) {
        let [down, up] = [Round::Down, Round::Up].map(|round| x.sqrt_in(round));
        prop_assert!((-down).mul_add(down, x) >= 0.0 && (-up).mul_add(up, x) <= 0.0);
        prop_assert!(down == up || down.next_up() == up);
        let y = x as f32;
        let [down, up] = [Round::Down, Round::Up].map(|round| f64::from(y.sqrt_in(round)));
        prop_assert!(down * down <= f64::from(y) && up * up >= f64::from(y));
    }
}
