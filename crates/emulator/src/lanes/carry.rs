//! Addition and subtraction with the carry flag, which lies in a predicate.

use super::integer::Double;
use super::lane::{Lane, Raw, store};
use super::{LaneOp, WARP};
use crate::types::Ty;

/// The predicate that holds the flag, and what an instruction does with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) slot: u16,
    pub(crate) is_read: bool,
    pub(crate) is_written: bool,
}

trait Carry: Raw + Lane<Raw = Self> {
    fn add(self, b: Self, carry: bool) -> (Self, bool);
    fn sub(self, b: Self, borrow: bool) -> (Self, bool);
}

macro_rules! carry_of {
    ($T:ty) => {
        impl Carry for $T {
            fn add(self, b: Self, carry: bool) -> (Self, bool) {
                let (sum, first) = self.overflowing_add(b);
                let (sum, second) = sum.overflowing_add(carry.into());
                (sum, first | second)
            }
            fn sub(self, b: Self, borrow: bool) -> (Self, bool) {
                let (rest, first) = self.overflowing_sub(b);
                let (rest, second) = rest.overflowing_sub(borrow.into());
                (rest, first | second)
            }
        }
    };
}

carry_of!(u32);
carry_of!(u64);

fn of<T: Carry>(
    sources: usize,
    flag: Flag,
    f: impl Fn(T, T, T, bool) -> (T, bool) + Send + Sync + 'static,
) -> Option<LaneOp> {
    let run = move |r: &mut super::Registers, s: &super::Slots, mask: u32| {
        let flags = if flag.is_read { r.predicates[usize::from(flag.slot)] } else { 0 };
        let [a, b, c, _] = s.from;
        // Without a third source this is a register that happens to be there.
        let c = if sources == 3 { c } else { a };
        let (a, b, c) = (T::lanes(r, a), T::lanes(r, b), T::lanes(r, c));
        let mut out = [T::default(); WARP];
        let mut carries = 0;
        for i in 0..WARP {
            let (value, carry) = f(a[i], b[i], c[i], flags >> i & 1 != 0);
            out[i] = value;
            carries |= u32::from(carry) << i;
        }
        store(r, s.d, out, mask);
        if flag.is_written {
            r.set_predicate(flag.slot, carries, mask);
        }
    };
    Some(LaneOp::new(T::TY, vec![T::TY; sources], run))
}

/// `add`, `sub`, `mad.lo`, `mad.hi` with carry in or out.
pub(crate) fn carry(name: &str, ty: Ty, flag: Flag) -> Option<LaneOp> {
    macro_rules! of_width {
        ($U:ty, $S:ty) => {
            match name {
                "add" => of(2, flag, |a: $U, b, _, carry| a.add(b, carry)),
                "sub" => of(2, flag, |a: $U, b, _, carry| a.sub(b, carry)),
                "mad.lo" => of(3, flag, |a: $U, b, c, carry| a.wrapping_mul(b).add(c, carry)),
                "mad.hi" if ty.is_signed() => {
                    of(3, flag, |a: $U, b, c, carry| ((a as $S).high(b as $S) as $U).add(c, carry))
                }
                "mad.hi" => of(3, flag, |a: $U, b, c, carry| a.high(b).add(c, carry)),
                _ => None,
            }
        };
    }
    match ty {
        Ty::U32 | Ty::S32 | Ty::B32 => of_width!(u32, i32),
        Ty::U64 | Ty::S64 | Ty::B64 => of_width!(u64, i64),
        _ => None,
    }
}
