//! Addition and subtraction with the carry flag, which lies in predicate `e`. Bits of slot `f` say whether it is read and
//! whether it is written.

use super::lane::{Lane, Raw, store};
use super::{LaneFn, Registers, Slots, WARP};
use crate::types::Ty;

/// The instruction reads the flag.
pub(crate) const READS: u16 = 1;
/// The instruction writes the flag.
pub(crate) const WRITES: u16 = 2;

trait Carry: Raw {
    fn add(a: Self, b: Self, carry: bool) -> (Self, bool);
    fn sub(a: Self, b: Self, borrow: bool) -> (Self, bool);
    fn low(a: Self, b: Self) -> Self;
    fn high(a: Self, b: Self) -> Self;
}

macro_rules! carry_of {
    ($T:ty, $W:ty) => {
        impl Carry for $T {
            fn add(a: Self, b: Self, carry: bool) -> (Self, bool) {
                let (sum, first) = a.overflowing_add(b);
                let (sum, second) = sum.overflowing_add(<$T>::from(carry));
                (sum, first | second)
            }
            fn sub(a: Self, b: Self, borrow: bool) -> (Self, bool) {
                let (rest, first) = a.overflowing_sub(b);
                let (rest, second) = rest.overflowing_sub(<$T>::from(borrow));
                (rest, first | second)
            }
            fn low(a: Self, b: Self) -> Self {
                a.wrapping_mul(b)
            }
            fn high(a: Self, b: Self) -> Self {
                ((<$W>::from(a) * <$W>::from(b)) >> <$T>::BITS) as $T
            }
        }
    };
}

carry_of!(u32, u64);
carry_of!(u64, u128);

/// Signed high halves, from the unsigned ones.
fn signed_high<T: Carry + Lane<Raw = T>>(a: T, b: T, is_negative: impl Fn(T) -> bool) -> T {
    let mut high = T::high(a, b);
    if is_negative(a) {
        high = T::sub(high, b, false).0;
    }
    if is_negative(b) {
        high = T::sub(high, a, false).0;
    }
    high
}

fn run<T: Carry>(r: &mut Registers, s: &Slots, mask: u32, f: impl Fn(T, T, T, bool) -> (T, bool)) {
    let flags = if s.f & READS != 0 { r.predicates[usize::from(s.e)] } else { 0 };
    let (a, b, c) = (T::lanes(r, s.a), T::lanes(r, s.b), T::lanes(r, s.c));
    let mut out = [T::default(); WARP];
    let mut carries = 0;
    for i in 0..WARP {
        let (value, carry) = f(a[i], b[i], c[i], flags >> i & 1 != 0);
        out[i] = value;
        carries |= u32::from(carry) << i;
    }
    store(r, s.d, out, mask);
    if s.f & WRITES != 0 {
        let flags = &mut r.predicates[usize::from(s.e)];
        *flags = *flags & !mask | carries & mask;
    }
}

/// `add`, `sub`, `mad.lo`, `mad.hi` with carry in or out.
pub(crate) fn carry(name: &str, ty: Ty) -> Option<LaneFn> {
    macro_rules! op {
        ($T:ty, |$a:ident, $b:ident, $c:ident, $flag:ident| $e:expr) => {{
            fn lanes(r: &mut Registers, s: &Slots, mask: u32) {
                run::<$T>(r, s, mask, |$a, $b, $c, $flag| $e);
            }
            lanes as LaneFn
        }};
    }
    let wide = match ty {
        Ty::U32 | Ty::S32 | Ty::B32 => false,
        Ty::U64 | Ty::S64 | Ty::B64 => true,
        _ => return None,
    };
    Some(match (name, wide) {
        ("add", false) => op!(u32, |a, b, _c, flag| Carry::add(a, b, flag)),
        ("add", true) => op!(u64, |a, b, _c, flag| Carry::add(a, b, flag)),
        ("sub", false) => op!(u32, |a, b, _c, flag| Carry::sub(a, b, flag)),
        ("sub", true) => op!(u64, |a, b, _c, flag| Carry::sub(a, b, flag)),
        ("mad.lo", false) => op!(u32, |a, b, c, flag| Carry::add(Carry::low(a, b), c, flag)),
        ("mad.lo", true) => op!(u64, |a, b, c, flag| Carry::add(Carry::low(a, b), c, flag)),
        ("mad.hi", false) if ty == Ty::S32 => {
            op!(u32, |a, b, c, flag| Carry::add(signed_high(a, b, |x| x as i32 <= -1), c, flag))
        }
        ("mad.hi", true) if ty == Ty::S64 => {
            op!(u64, |a, b, c, flag| Carry::add(signed_high(a, b, |x| x as i64 <= -1), c, flag))
        }
        ("mad.hi", false) => op!(u32, |a, b, c, flag| Carry::add(Carry::high(a, b), c, flag)),
        ("mad.hi", true) => op!(u64, |a, b, c, flag| Carry::add(Carry::high(a, b), c, flag)),
        _ => return None,
    })
}
