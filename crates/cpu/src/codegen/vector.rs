//! Instruction codes of one vector width and element type.
//!
//! 16- and 32-byte vectors use VEX encodings (AVX2 + FMA + F16C, 16 registers), 64-byte vectors EVEX
//! (AVX-512F, 32 registers, k-masks).

use iced_x86::{Code, Register};

use crate::scalar::Float;

/// Width of a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Width {
    X,
    Y,
    Z,
}

impl Width {
    pub(crate) const fn from_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            16 => Some(Self::X),
            32 => Some(Self::Y),
            64 => Some(Self::Z),
            _ => None,
        }
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::X => 16,
            Self::Y => 32,
            Self::Z => 64,
        }
    }

    /// Number of architectural registers of this width that the encodings reach.
    pub(crate) const fn registers(self) -> usize {
        match self {
            Self::X | Self::Y => 16,
            Self::Z => 32,
        }
    }
}

/// One vector type: width and element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Vector {
    pub(crate) width: Width,
    pub(crate) float: Float,
}

/// Chooses a code by width and element: `x32 x64, y32 y64, z32 z64`.
macro_rules! by_type {
    ($self:expr; $x32:ident $x64:ident, $y32:ident $y64:ident, $z32:ident $z64:ident) => {
        match ($self.width, $self.float) {
            (Width::X, Float::F32) => Code::$x32,
            (Width::X, Float::F64) => Code::$x64,
            (Width::Y, Float::F32) => Code::$y32,
            (Width::Y, Float::F64) => Code::$y64,
            (Width::Z, Float::F32) => Code::$z32,
            (Width::Z, Float::F64) => Code::$z64,
        }
    };
}

impl Vector {
    /// Elements per register.
    pub(crate) const fn lanes(self) -> usize {
        self.width.bytes() / self.float.bytes()
    }

    /// Register `i` at this width.
    pub(crate) fn reg(self, i: usize) -> Register {
        debug_assert!(i < self.width.registers());
        let base = match self.width {
            Width::X => Register::XMM0,
            Width::Y => Register::YMM0,
            Width::Z => Register::ZMM0,
        };
        base + i as u32
    }

    pub(crate) fn load(self) -> Code {
        by_type!(self; VEX_Vmovups_xmm_xmmm128 VEX_Vmovupd_xmm_xmmm128,
            VEX_Vmovups_ymm_ymmm256 VEX_Vmovupd_ymm_ymmm256,
            EVEX_Vmovups_zmm_k1z_zmmm512 EVEX_Vmovupd_zmm_k1z_zmmm512)
    }

    pub(crate) fn store(self) -> Code {
        by_type!(self; VEX_Vmovups_xmmm128_xmm VEX_Vmovupd_xmmm128_xmm,
            VEX_Vmovups_ymmm256_ymm VEX_Vmovupd_ymmm256_ymm,
            EVEX_Vmovups_zmmm512_k1z_zmm EVEX_Vmovupd_zmmm512_k1z_zmm)
    }

    /// Non-temporal store; needs a destination aligned to the vector.
    pub(crate) fn store_stream(self) -> Code {
        by_type!(self; VEX_Vmovntps_m128_xmm VEX_Vmovntpd_m128_xmm,
            VEX_Vmovntps_m256_ymm VEX_Vmovntpd_m256_ymm,
            EVEX_Vmovntps_m512_zmm EVEX_Vmovntpd_m512_zmm)
    }

    pub(crate) fn broadcast(self) -> Code {
        by_type!(self; VEX_Vbroadcastss_xmm_m32 VEX_Vmovddup_xmm_xmmm64,
            VEX_Vbroadcastss_ymm_m32 VEX_Vbroadcastsd_ymm_m64,
            EVEX_Vbroadcastss_zmm_k1z_xmmm32 EVEX_Vbroadcastsd_zmm_k1z_xmmm64)
    }

    /// `a += b * c`
    pub(crate) fn fma(self) -> Code {
        by_type!(self; VEX_Vfmadd231ps_xmm_xmm_xmmm128 VEX_Vfmadd231pd_xmm_xmm_xmmm128,
            VEX_Vfmadd231ps_ymm_ymm_ymmm256 VEX_Vfmadd231pd_ymm_ymm_ymmm256,
            EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er)
    }

    pub(crate) fn mul(self) -> Code {
        by_type!(self; VEX_Vmulps_xmm_xmm_xmmm128 VEX_Vmulpd_xmm_xmm_xmmm128,
            VEX_Vmulps_ymm_ymm_ymmm256 VEX_Vmulpd_ymm_ymm_ymmm256,
            EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er)
    }

    pub(crate) fn add(self) -> Code {
        by_type!(self; VEX_Vaddps_xmm_xmm_xmmm128 VEX_Vaddpd_xmm_xmm_xmmm128,
            VEX_Vaddps_ymm_ymm_ymmm256 VEX_Vaddpd_ymm_ymm_ymmm256,
            EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er)
    }

    pub(crate) fn sub(self) -> Code {
        by_type!(self; VEX_Vsubps_xmm_xmm_xmmm128 VEX_Vsubpd_xmm_xmm_xmmm128,
            VEX_Vsubps_ymm_ymm_ymmm256 VEX_Vsubpd_ymm_ymm_ymmm256,
            EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er)
    }

    /// The first or the second of each pair of neighbours, of 128-bit lanes of two registers by turns.
    pub(crate) fn halves_of_pairs(self, second: bool) -> (Code, Option<i32>) {
        let code = match (self.width, self.float) {
            (_, Float::F64) => return (self.unpack(8, second), None),
            (Width::X, Float::F32) => Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8,
            (Width::Y, Float::F32) => Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8,
            (Width::Z, Float::F32) => Code::EVEX_Vshufps_zmm_k1z_zmm_zmmm512b32_imm8,
        };
        (code, Some(if second { 0b11_01_11_01 } else { 0b10_00_10_00 }))
    }

    /// Sum of 32-bit integers.
    pub(crate) fn add_integers(self) -> Code {
        match self.width {
            Width::X => Code::VEX_Vpaddd_xmm_xmm_xmmm128,
            Width::Y => Code::VEX_Vpaddd_ymm_ymm_ymmm256,
            Width::Z => Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
        }
    }

    /// Sums of the products of pairs of 16-bit integers.
    pub(crate) fn multiply_pairs(self) -> Code {
        match self.width {
            Width::X => Code::VEX_Vpmaddwd_xmm_xmm_xmmm128,
            Width::Y => Code::VEX_Vpmaddwd_ymm_ymm_ymmm256,
            Width::Z => Code::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512,
        }
    }

    /// One element in all places, of so many bytes: a number, or a pair of components.
    pub(crate) fn broadcast_of(self, bytes: usize) -> Code {
        match (self.width, bytes) {
            (Width::X, 16) => Code::VEX_Vmovups_xmm_xmmm128,
            (Width::Y, 16) => Code::VEX_Vbroadcastf128_ymm_m128,
            (Width::Z, 16) => Code::EVEX_Vbroadcastf32x4_zmm_k1z_m128,
            (width, 8) => Self { width, float: Float::F64 }.broadcast(),
            (width, _) => Self { width, float: Float::F32 }.broadcast(),
        }
    }

    /// Exchanges the two of each pair of neighbours, as its constant says.
    pub(crate) fn exchange(self) -> (Code, i32) {
        let code = by_type!(self; VEX_Vpermilps_xmm_xmmm128_imm8 VEX_Vpermilpd_xmm_xmmm128_imm8,
            VEX_Vpermilps_ymm_ymmm256_imm8 VEX_Vpermilpd_ymm_ymmm256_imm8,
            EVEX_Vpermilps_zmm_k1z_zmmm512b32_imm8 EVEX_Vpermilpd_zmm_k1z_zmmm512b64_imm8);
        // Of four places each, or of two.
        (code, if self.float == Float::F32 { 0b10_11_00_01 } else { 0b01_01_01_01 })
    }

    /// Sums of neighbours, of 128-bit lanes of two registers by turns; there is none of the widest.
    pub(crate) fn add_pairs(self) -> Code {
        match (self.width, self.float) {
            (Width::X, Float::F32) => Code::VEX_Vhaddps_xmm_xmm_xmmm128,
            (Width::X, Float::F64) => Code::VEX_Vhaddpd_xmm_xmm_xmmm128,
            (_, Float::F32) => Code::VEX_Vhaddps_ymm_ymm_ymmm256,
            (_, Float::F64) => Code::VEX_Vhaddpd_ymm_ymm_ymmm256,
        }
    }

    /// Exclusive or; the element type does not matter. AVX-512F has only the integer form.
    pub(crate) fn xor(self) -> Code {
        match self.width {
            Width::X => Code::VEX_Vxorps_xmm_xmm_xmmm128,
            Width::Y => Code::VEX_Vxorps_ymm_ymm_ymmm256,
            Width::Z => Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
        }
    }

    /// Masked load of the VEX widths; the mask is a vector register.
    pub(crate) fn mask_load(self) -> Code {
        by_type!(self; VEX_Vmaskmovps_xmm_xmm_m128 VEX_Vmaskmovpd_xmm_xmm_m128,
            VEX_Vmaskmovps_ymm_ymm_m256 VEX_Vmaskmovpd_ymm_ymm_m256,
            EVEX_Vmovups_zmm_k1z_zmmm512 EVEX_Vmovupd_zmm_k1z_zmmm512)
    }

    /// Interleaves the low or the high halves of 128-bit lanes, in elements of 4 or 8 bytes.
    pub(crate) fn unpack(self, bytes: usize, high: bool) -> Code {
        match (self.width, bytes, high) {
            (Width::X, 4, false) => Code::VEX_Vunpcklps_xmm_xmm_xmmm128,
            (Width::X, 4, true) => Code::VEX_Vunpckhps_xmm_xmm_xmmm128,
            (Width::X, _, false) => Code::VEX_Vunpcklpd_xmm_xmm_xmmm128,
            (Width::X, _, true) => Code::VEX_Vunpckhpd_xmm_xmm_xmmm128,
            (Width::Y, 4, false) => Code::VEX_Vunpcklps_ymm_ymm_ymmm256,
            (Width::Y, 4, true) => Code::VEX_Vunpckhps_ymm_ymm_ymmm256,
            (Width::Y, _, false) => Code::VEX_Vunpcklpd_ymm_ymm_ymmm256,
            (Width::Y, _, true) => Code::VEX_Vunpckhpd_ymm_ymm_ymmm256,
            (Width::Z, 4, false) => Code::EVEX_Vunpcklps_zmm_k1z_zmm_zmmm512b32,
            (Width::Z, 4, true) => Code::EVEX_Vunpckhps_zmm_k1z_zmm_zmmm512b32,
            (Width::Z, _, false) => Code::EVEX_Vunpcklpd_zmm_k1z_zmm_zmmm512b64,
            (Width::Z, _, true) => Code::EVEX_Vunpckhpd_zmm_k1z_zmm_zmmm512b64,
        }
    }
}
