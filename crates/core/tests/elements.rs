//! Element types against independent arithmetic.

use proptest::prelude::*;
use rustc_apfloat::ieee::{BFloat, Double, Half};
use rustc_apfloat::{Float, FloatConvert};
use tilewright_core::buffer::{Buffer, BufferSpec, Expected, ExpectedBuffer, Role, View};
use tilewright_core::data::{Data, noise};
use tilewright_core::dtype::DType;
use tilewright_core::element::{Bf16, ElementError, F16, Tf32};
use tilewright_core::program::DeviceError;

/// Rounded by another library.
fn oracle<F: Float>(x: f64) -> u32
where
    Double: FloatConvert<F>,
{
    let mut exact = false;
    Double::from_bits(x.to_bits().into()).convert(&mut exact).value.to_bits() as u32
}

/// Rounded to ten bits of fraction by scaling in binary64, whose own rounding decides ties.
fn tensor32(x: f64) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-126);
    let unit = 2f64.powi(exponent - 10);
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded.abs() >= 2f64.powi(128) { f64::INFINITY.copysign(x) } else { rounded }
}

fn check(x: f64) {
    let (half, brain, tensor) = (F16::from_f64(x), Bf16::from_f64(x), Tf32::from_f64(x));
    assert_eq!(tensor.0 & 0x1fff, 0, "{x:e}: bits that the type does not have");
    if x.is_nan() {
        assert!(half.to_f64().is_nan() && brain.to_f64().is_nan() && tensor.to_f64().is_nan());
        return;
    }
    assert_eq!(u32::from(half.0), oracle::<Half>(x), "{x:e} in binary16");
    assert_eq!(u32::from(brain.0), oracle::<BFloat>(x), "{x:e} in bfloat16");
    assert_eq!(tensor.to_f64().to_bits(), tensor32(x).to_bits(), "{x:e} in tf32");
    assert_eq!(f32::from_bits(tensor.0).to_bits(), (tensor.to_f64() as f32).to_bits(), "a tf32 is a binary32");
}

#[test]
fn every_code_of_sixteen_bits_is_its_own_rounding() {
    let mut exact = false;
    for bits in 0..=u16::MAX {
        let (half, brain) = (F16(bits), Bf16(bits));
        assert_eq!(F16::from_f64(half.to_f64()), half, "{bits:#x}");
        assert_eq!(Bf16::from_f64(brain.to_f64()), brain, "{bits:#x}");
        let wide: Double = Half::from_bits(bits.into()).convert(&mut exact).value;
        assert!(half.to_f64().is_nan() || u128::from(half.to_f64().to_bits()) == wide.to_bits(), "{bits:#x}");
        assert_eq!(half.to_f64().is_nan(), Half::from_bits(bits.into()).is_nan(), "{bits:#x}");
        let single = f32::from_bits(u32::from(bits) << 16);
        assert!(single.is_nan() == brain.to_f64().is_nan() && (single.is_nan() || f64::from(single) == brain.to_f64()));
        // The codes between it and the next, and just beside the middle.
        for code in [half.to_f64(), brain.to_f64()] {
            let next = f64::from_bits(code.to_bits().wrapping_add(1 << 41));
            let middle = f64::midpoint(code, next);
            [code, middle, middle.next_up(), middle.next_down()].into_iter().for_each(check);
        }
    }
}

#[test]
fn single_numbers_are_rounded_as_wide_ones() {
    let mut state = 1u32;
    let mut words: Vec<u32> = (0..1_000_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state ^ state >> 15
        })
        .collect();
    for code in 0..=u16::MAX {
        let (half, brain) = (F16(code), Bf16(code));
        let (of_half, of_brain) = (half.to_f64() as f32, brain.to_f64() as f32);
        assert!(
            half.to_f32().to_bits() == of_half.to_bits() || half.to_f32().is_nan() && of_half.is_nan(),
            "{code:#x}"
        );
        assert!(brain.to_f32().to_bits() == of_brain.to_bits() || brain.to_f32().is_nan() && of_brain.is_nan());
        // The middles between codes and their neighbours, where ties are.
        for middle in [of_half.to_bits().wrapping_add(1 << 12), of_brain.to_bits().wrapping_add(1 << 15)] {
            words.extend([middle.wrapping_sub(1), middle, middle.wrapping_add(1), middle.wrapping_sub(1 << 11)]);
        }
        words.extend([of_half.to_bits(), of_brain.to_bits()]);
    }
    for word in words {
        let x = f32::from_bits(word);
        assert_eq!(F16::from_f32(x), F16::from_f64(x.into()), "{word:#x} {x:e}");
        assert_eq!(Bf16::from_f32(x), Bf16::from_f64(x.into()), "{word:#x} {x:e}");
    }
}

#[test]
fn edges_are_rounded_as_they_should() {
    for x in [0.0, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), 65_504.0, 65_519.0, 65_520.0, 3.4e38]
    {
        [x, -x, x.next_up(), x.next_down()].into_iter().for_each(check);
    }
    for power in -160..=130 {
        let one = 2f64.powi(power);
        [one, -one, one * 1.5, one.next_up(), one.next_down(), one * (1.0 + 2f64.powi(-11))]
            .into_iter()
            .for_each(check);
    }
    assert_eq!(F16::from_f64(f64::from_bits(0xfff0_0000_0000_0001)).0, 0xfe00, "a NaN with a distant payload");
    assert_eq!((F16::from_f64(2f64.powi(-25)).0, F16::from_f64(2f64.powi(-25).next_up()).0), (0, 1));
}

proptest! {
    #[test]
    fn roundings_are_those_of_another_library(bits in any::<u64>(), single in any::<f32>(), small in -40f64..40.0) {
        check(f64::from_bits(bits));
        check(f64::from(single));
        check(small.exp2());
    }

    #[test]
    fn what_is_set_is_got(re in -100f64..100.0, im in -100f64..100.0, i in 0usize..5) {
        for dtype in DType::ALL {
            let mut buffer = Buffer::zeroed(dtype, 5);
            buffer.set(i, (re, im)).unwrap();
            let (a, b) = buffer.get(i).unwrap();
            let bound = dtype.unit_roundoff() * 100.0 + if dtype.is_integer() { 0.5 } else { 0.0 };
            prop_assert!((a - re).abs() <= bound, "{dtype}: {re} became {a}");
            let imaginary = if dtype.is_complex() { im } else { 0.0 };
            prop_assert!((b - imaginary).abs() <= bound);
            // A rounded number is its own rounding, and nothing else was touched.
            buffer.set(i, (a, b)).unwrap();
            prop_assert_eq!(buffer.get(i), Some((a, b)));
            prop_assert!((0..5).filter(|j| *j != i).all(|j| buffer.get(j) == Some((0.0, 0.0))));
            prop_assert_eq!(View::from(&buffer).get(i), Some((a, b)));
        }
    }
}

#[test]
fn elements_that_are_not_there_are_told() {
    for dtype in DType::ALL {
        let mut buffer = Buffer::zeroed(dtype, 3);
        for i in [3, 4, usize::MAX] {
            assert_eq!(buffer.get(i), None);
            assert_eq!(buffer.set(i, (1.0, 0.0)), Err(ElementError::Beyond { index: i, len: 3 }));
        }
        assert_eq!(View::from(&buffer).set(0, (1.0, 0.0)), Err(ElementError::ReadOnly));
        View::from(&mut buffer).set(2, (1.0, 0.0)).unwrap();
        assert_eq!(buffer.get(2), Some((1.0, 0.0)));
    }
}

#[test]
fn integers_are_rounded_and_saturate() {
    let mut buffer = Buffer::zeroed(DType::I8, 1);
    for (x, stored) in [(2.5, 2.0), (3.5, 4.0), (-0.6, -1.0), (1e9, 127.0), (-1e9, -128.0), (f64::NAN, 0.0)] {
        buffer.set(0, (x, 0.0)).unwrap();
        assert_eq!(buffer.get(0), Some((stored, 0.0)), "{x}");
    }
}

#[test]
fn noise_is_of_its_type() {
    for dtype in DType::ALL {
        let noise = noise(dtype, 1000, 7);
        let parts: Vec<f64> = (0..noise.components()).map(|i| noise.component(i)).collect();
        assert_eq!(parts.len(), if dtype.is_complex() { 2000 } else { 1000 });
        let most = if dtype.is_integer() { 128.0 } else { 1.0 };
        assert!(parts.iter().all(|x| x.abs() <= most), "{dtype}");
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        assert!(mean.abs() < 0.1 * most, "{dtype}: {mean}");
        assert!(parts.windows(2).filter(|w| w[0] == w[1]).count() < 20, "{dtype}");
    }
}

#[test]
fn complex_results_are_compared_by_component() {
    let mut buffer = Buffer::zeroed(DType::C32, 2);
    buffer.set(1, (1.0, -2.0)).unwrap();
    let expected = |values: Vec<f64>| Expected {
        buffers: vec![ExpectedBuffer { index: 0, bounds: vec![0.0; values.len()], values }],
    };
    assert!(expected(vec![0.0, 0.0, 1.0, -2.0]).compare(std::slice::from_ref(&buffer)).is_right());
    let wrong = expected(vec![0.0, 0.0, 1.0, 2.0]).compare(&[buffer]);
    assert_eq!((wrong.wrong, wrong.first.map(|m| m.index)), (1, Some(3)));
}

#[test]
fn typed_slices_are_views_of_their_type() {
    let halves = [F16::from_f64(0.5), F16::from_f64(-2.0)];
    let view = View::from(&halves[..]);
    assert_eq!((view.dtype(), view.get(1)), (DType::F16, Some((-2.0, 0.0))));
    let mut pairs = [[0f32; 2]; 3];
    View::from(&mut pairs[..]).set(1, (3.0, 4.0)).unwrap();
    assert_eq!(pairs[1], [3.0, 4.0]);
    let words = [0x3c00u16; 4];
    assert_eq!(View::reading(DType::F16, &words).unwrap().get(3), Some((1.0, 0.0)));
    assert!(View::reading(DType::C32, &[0f32; 3]).is_err() && View::reading(DType::F32, &words).is_err());
    assert_eq!("s8".parse(), Ok(DType::I8));
    assert_eq!("tf32".parse(), Ok(DType::Tf32));
}

/// Memory that is not there is an error before anything is touched.
#[test]
fn buffers_beyond_memory_are_refused() {
    for len in [usize::MAX, usize::MAX / 16] {
        let refused = Buffer::try_zeroed(DType::F64, len).unwrap_err();
        assert!(matches!(refused, DeviceError::OutOfMemory { need, have: None } if need >= 1 << 60), "{refused}");
    }
    let some = noise(DType::F32, 1000, 1);
    assert_eq!(some.try_clone().unwrap().bytes(), some.bytes());
    let specs = vec![BufferSpec { name: "x", dtype: DType::F64, len: usize::MAX / 16, role: Role::In }];
    assert!(matches!(
        Data::Noise { specs, scalars: Vec::new(), seed: 1 }.buffers(),
        Err(DeviceError::OutOfMemory { .. })
    ));
}
