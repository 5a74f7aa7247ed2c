//! Floating-point keys as unsigned integers of the same order.

use bytemuck::Pod;

/// An unsigned integer that keys are sorted as.
pub(super) trait Bits: Copy + Ord + Default + Send + Sync + 'static {
    /// Bytes of it.
    const BYTES: usize;
    /// The byte with this number, the lowest first.
    fn byte(self, number: usize) -> usize;
}

macro_rules! integer {
    ($t:ty) => {
        impl Bits for $t {
            const BYTES: usize = size_of::<$t>();
            #[inline(always)]
            fn byte(self, number: usize) -> usize {
                (self >> (8 * number)) as usize & 0xff
            }
        }
    };
}
integer!(u32);
integer!(u64);

/// A floating-point key.
pub(super) trait Key: Pod + Send + Sync {
    type Bits: Bits;
    /// Negative numbers with all bits turned, the others with the sign bit set: IEEE 754's total order.
    fn ordered(self) -> Self::Bits;
    fn restored(bits: Self::Bits) -> Self;
}

macro_rules! float {
    ($t:ty, $u:ty, $i:ty) => {
        impl Key for $t {
            type Bits = $u;
            #[inline(always)]
            fn ordered(self) -> $u {
                let bits = self.to_bits();
                let negative = (bits as $i >> (<$u>::BITS - 1)) as $u;
                bits ^ (negative | 1 << (<$u>::BITS - 1))
            }
            #[inline(always)]
            fn restored(bits: $u) -> $t {
                let positive = (bits as $i >> (<$u>::BITS - 1)) as $u;
                <$t>::from_bits(bits ^ (!positive | 1 << (<$u>::BITS - 1)))
            }
        }
    };
}
float!(f32, u32, i32);
float!(f64, u64, i64);

#[inline(always)]
pub(super) fn encode<K: Key>(keys: &[K], bits: &mut [K::Bits]) {
    for (key, bits) in keys.iter().zip(bits) {
        *bits = key.ordered();
    }
}

#[inline(always)]
pub(super) fn decode<K: Key>(bits: &[K::Bits], keys: &mut [K]) {
    for (bits, key) in bits.iter().zip(keys) {
        *key = K::restored(*bits);
    }
}
