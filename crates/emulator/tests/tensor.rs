//! How `mma` rounds: sums that are exact until the end, and sums that are cut off as tensor cores do, against fixed-point
//! arithmetic on the bits of the operands.

mod fixture;
#[path = "fixture/fragments.rs"]
mod fragments;

use fragments::{SHAPES, Shape};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_emulator::{Behaviour, MmaRounding, Schedule};

const TRUNCATED: Behaviour = Behaviour { mma: MmaRounding::Truncated, schedule: Schedule::Lockstep };

/// A format: bits behind the leading one, bits of the exponent, and zeros behind both.
#[derive(Clone, Copy)]
struct Format(u32, u32, u32);

const HALF: Format = Format(10, 5, 0);
const BRAIN: Format = Format(7, 8, 0);
const TF32: Format = Format(10, 8, 13);
const SINGLE: Format = Format(23, 8, 0);

impl Format {
    fn of(word: &str) -> Self {
        match word {
            "f16" => HALF,
            "bf16" => BRAIN,
            "tf32" => TF32,
            _ => SINGLE,
        }
    }

    fn infinity(self) -> u64 {
        ((1 << self.1) - 1) << self.0
    }

    fn bias(self) -> i32 {
        (1 << (self.1 - 1)) - 1
    }

    /// A finite number as an integer times a power of two, and its exponent: that of the least normal one if it is smaller.
    fn parts(self, bits: u64) -> (i128, i32, i32) {
        let bits = bits >> self.2;
        let (fraction, field) = (bits & ((1 << self.0) - 1), (bits >> self.0 & ((1 << self.1) - 1)) as i32);
        let significand = if field == 0 { fraction } else { fraction | 1 << self.0 } as i128;
        let exponent = field.max(1) - self.bias();
        let is_negative = bits >> (self.0 + self.1) & 1 != 0;
        (if is_negative { -significand } else { significand }, exponent - self.0 as i32, exponent)
    }

    fn value(self, bits: u64) -> f64 {
        let (significand, scale, _) = self.parts(bits);
        significand as f64 * f64::powi(2.0, scale)
    }

    /// A random number whose exponent is at most so far from that of one; sometimes a zero, sometimes a subnormal number.
    fn random(self, dice: &mut ChaCha8Rng, spread: i32) -> u64 {
        let (sign, fraction) = (dice.random_range(0..2u64), dice.random_range(0..1u64 << self.0));
        let field = match dice.random_range(0..20) {
            0 => return sign << (self.0 + self.1) << self.2,
            1 => 0,
            _ => (self.bias() + dice.random_range(-spread..=spread)) as u64,
        };
        (sign << (self.0 + self.1) | field << self.0 | fraction) << self.2
    }

    /// The bits of an integer times a power of two; beyond the format it is infinite.
    fn rounded(self, x: i128, scale: i32, to_nearest: bool) -> u64 {
        let (magnitude, sign) = (x.unsigned_abs(), u64::from(x < 0) << (self.0 + self.1));
        let least = 1 - self.bias() - self.0 as i32;
        let length = 128 - magnitude.leading_zeros() as i32;
        let drop = (length - self.0 as i32 - 1).max(least - scale);
        let mut kept = if drop > 127 {
            0
        } else if drop > 0 {
            magnitude >> drop
        } else {
            magnitude << -drop
        };
        if to_nearest && (1..127).contains(&drop) {
            let (rest, half) = (magnitude & ((1 << drop) - 1), 1 << (drop - 1));
            kept += u128::from(rest > half || rest == half && kept & 1 != 0);
        }
        // The significand carries into the exponent, as it must.
        let exponent = (scale + drop - least) as u128;
        let bits = if kept == 0 { 0 } else { kept + (exponent << self.0) };
        sign | (bits.min(self.infinity().into()) as u64)
    }
}

/// One element as a tensor core makes it: so many products at a time, so many bits behind the 24th.
fn cut_off(factor: Format, sum: Format, (products, extra): (usize, i32), a: &[u64], b: &[u64], c: u64) -> u64 {
    a.chunks(products).zip(b.chunks(products)).fold(c, |c, (a, b)| {
        if c == sum.infinity() || c == sum.infinity() | 1 << (sum.0 + sum.1) {
            return c;
        }
        let term = |(a, b): (&u64, &u64)| {
            let [(a, p, e), (b, q, f)] = [*a, *b].map(|x| factor.parts(x));
            (a * b, p + q, e + f)
        };
        // The accumulator is aligned as a binary32, in which every half is normal.
        let widened = (sum.value(c) as f32).to_bits().into();
        let terms: Vec<_> = a.iter().zip(b).map(term).chain([SINGLE.parts(widened)]).filter(|t| t.0 != 0).collect();
        let Some(largest) = terms.iter().map(|t| t.2).max() else { return 0 };
        let unit = largest - 23 - extra;
        let aligned = |(x, scale, _): &(i128, i32, i32)| match scale - unit {
            up @ 0.. => x << up,
            down => x.signum() * (x.abs() >> (-down).min(127)),
        };
        sum.rounded(terms.iter().map(aligned).sum(), unit, sum.0 == HALF.0)
    })
}

/// The formats of the factors and of the sums, where these are not integers and not binary64.
fn formats(shape: &Shape) -> Option<[Format; 2]> {
    let words: Vec<&str> = shape.op.split('.').collect();
    let [.., sum, a, _, _] = words[..] else { return None };
    matches!(a, "f16" | "bf16" | "tf32").then(|| [a, sum].map(Format::of))
}

/// Random matrices of a shape, and for every element of D its row of A, its column of B and its place.
fn random(shape: &Shape, [factor, sum]: [Format; 2], spread: i32, dice: &mut ChaCha8Rng) -> [Vec<u64>; 3] {
    let [m, n, k] = shape.size;
    let a = (0..m * k).map(|_| factor.random(dice, spread)).collect();
    let b = (0..k * n).map(|_| factor.random(dice, spread)).collect();
    [a, b, (0..m * n).map(|_| sum.random(dice, spread)).collect()]
}

fn line(shape: &Shape, [a, b, _]: &[Vec<u64>; 3], at: usize) -> [Vec<u64>; 2] {
    let [_, n, k] = shape.size;
    [a[at / n * k..][..k].to_vec(), (0..k).map(|x| b[x * n + at % n]).collect()]
}

#[test]
fn cut_off_sums_are_those_of_the_least_exact_tensor_core() {
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    for shape in &SHAPES {
        let Some([factor, sum]) = formats(shape) else { continue };
        for (target, spread) in [("sm_75", 6), ("sm_80", 2), ("sm_80", 6), ("sm_90", 12)] {
            let core = match (target, shape.op.contains("tf32")) {
                ("sm_75", _) => (4, 0),
                (_, true) => (4, 1),
                _ => (8, 1),
            };
            let matrices = random(shape, [factor, sum], spread, &mut dice);
            let found = shape.run((target, TRUNCATED), [&matrices[0], &matrices[1], &matrices[2]]);
            for (at, found) in found.into_iter().enumerate() {
                let [a, b] = line(shape, &matrices, at);
                let expected = cut_off(factor, sum, core, &a, &b, matrices[2][at]);
                assert_eq!(found, expected, "{} on {target}, element {at}: {a:x?} {b:x?}", shape.op);
            }
        }
    }
}

#[test]
fn exact_sums_are_rounded_once() {
    let mut dice = ChaCha8Rng::seed_from_u64(2);
    for shape in &SHAPES {
        let Some([factor, sum]) = formats(shape) else { continue };
        let matrices = random(shape, [factor, sum], 5, &mut dice);
        let [exact, cut] = [Behaviour::default(), TRUNCATED]
            .map(|on| shape.run(("sm_80", on), [&matrices[0], &matrices[1], &matrices[2]]));
        let (mut differ, mut below) = (0, 0);
        for (at, (exact, cut)) in exact.into_iter().zip(cut).enumerate() {
            let [a, b] = line(shape, &matrices, at);
            // Ten bits of exponents on either side: the sum of products fits into binary64 but for the last bits.
            let products = a.iter().zip(&b).map(|(a, b)| factor.value(*a) * factor.value(*b));
            let plain = products.sum::<f64>() + sum.value(matrices[2][at]);
            let [exact, cut] = [exact, cut].map(|bits| sum.value(bits));
            let ulp = f64::powi(2.0, plain.abs().log2().floor() as i32 - sum.0 as i32);
            assert!((exact - plain).abs() <= 0.5001 * ulp, "{}: {exact}, expected {plain}", shape.op);
            differ += usize::from(exact != cut);
            below += usize::from(cut.abs() < exact.abs());
        }
        let [m, n, _] = shape.size;
        // Halves are rounded to nearest at the end: what was cut off before seldom shows.
        assert!(sum.0 == HALF.0 || (differ > m * n / 4 && below > differ / 2), "{}: {differ} {below}", shape.op);
    }
}

#[test]
fn integers_and_binary64_are_the_same_in_both_ways() {
    let mut dice = ChaCha8Rng::seed_from_u64(3);
    for shape in SHAPES.iter().filter(|shape| formats(shape).is_none()) {
        let [m, n, k] = shape.size;
        let mut numbers = |count: usize, encode: fn(i64) -> u64| -> Vec<u64> {
            (0..count).map(|_| encode(dice.random_range(-100..100)) ^ dice.random_range(0..2)).collect()
        };
        let matrices = [numbers(m * k, shape.encode), numbers(k * n, shape.encode), numbers(m * n, shape.encode_sum)];
        let [a, b, c] = &matrices;
        let [exact, cut] = [Behaviour::default(), TRUNCATED].map(|on| shape.run(("sm_80", on), [a, b, c]));
        assert_eq!(exact, cut, "{}", shape.op);
    }
}
