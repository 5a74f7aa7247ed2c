//! Instruction codes of vectors of any width: AVX2's encodings, or those of AVX-512, which reach 32 registers, masks and
//! broadcasts from memory at every width.

use iced_x86::{Code, Register};

use crate::codegen::vector::Width;
use crate::scalar::Float;

/// What the host can encode, and the element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Isa {
    pub(super) float: Float,
    /// Whether AVX-512's encodings are used.
    pub(super) evex: bool,
}

/// Register `i` at a width.
pub(super) fn reg(width: Width, i: usize) -> Register {
    let base = match width {
        Width::X => Register::XMM0,
        Width::Y => Register::YMM0,
        Width::Z => Register::ZMM0,
    };
    base + i as u32
}

/// Chooses a code by encoding, width and element: VEX `x32 x64 y32 y64`, EVEX `x32 x64 y32 y64 z32 z64`.
macro_rules! by_type {
    ($isa:expr, $width:expr; $x32:ident $x64:ident $y32:ident $y64:ident,
     $ex32:ident $ex64:ident $ey32:ident $ey64:ident $z32:ident $z64:ident) => {
        match ($width, $isa.float, $isa.evex) {
            (Width::X, Float::F32, false) => Code::$x32,
            (Width::X, Float::F64, false) => Code::$x64,
            (Width::Y, Float::F32, false) => Code::$y32,
            (Width::Y, Float::F64, false) => Code::$y64,
            (Width::X, Float::F32, true) => Code::$ex32,
            (Width::X, Float::F64, true) => Code::$ex64,
            (Width::Y, Float::F32, true) => Code::$ey32,
            (Width::Y, Float::F64, true) => Code::$ey64,
            (Width::Z, Float::F32, _) => Code::$z32,
            (Width::Z, Float::F64, _) => Code::$z64,
        }
    };
}

impl Isa {
    /// Registers that the encodings reach.
    pub(super) const fn registers(self) -> usize {
        if self.evex { 32 } else { 16 }
    }

    pub(super) const fn lanes(self, width: Width) -> usize {
        width.bytes() / self.float.bytes()
    }

    pub(super) fn load(self, width: Width) -> Code {
        by_type!(self, width;
            VEX_Vmovups_xmm_xmmm128 VEX_Vmovupd_xmm_xmmm128 VEX_Vmovups_ymm_ymmm256 VEX_Vmovupd_ymm_ymmm256,
            EVEX_Vmovups_xmm_k1z_xmmm128 EVEX_Vmovupd_xmm_k1z_xmmm128
            EVEX_Vmovups_ymm_k1z_ymmm256 EVEX_Vmovupd_ymm_k1z_ymmm256
            EVEX_Vmovups_zmm_k1z_zmmm512 EVEX_Vmovupd_zmm_k1z_zmmm512)
    }

    pub(super) fn store(self, width: Width) -> Code {
        by_type!(self, width;
            VEX_Vmovups_xmmm128_xmm VEX_Vmovupd_xmmm128_xmm VEX_Vmovups_ymmm256_ymm VEX_Vmovupd_ymmm256_ymm,
            EVEX_Vmovups_xmmm128_k1z_xmm EVEX_Vmovupd_xmmm128_k1z_xmm
            EVEX_Vmovups_ymmm256_k1z_ymm EVEX_Vmovupd_ymmm256_k1z_ymm
            EVEX_Vmovups_zmmm512_k1z_zmm EVEX_Vmovupd_zmmm512_k1z_zmm)
    }

    pub(super) fn broadcast(self, width: Width) -> Code {
        by_type!(self, width;
            VEX_Vbroadcastss_xmm_m32 VEX_Vmovddup_xmm_xmmm64 VEX_Vbroadcastss_ymm_m32 VEX_Vbroadcastsd_ymm_m64,
            EVEX_Vbroadcastss_xmm_k1z_xmmm32 EVEX_Vmovddup_xmm_k1z_xmmm64
            EVEX_Vbroadcastss_ymm_k1z_xmmm32 EVEX_Vbroadcastsd_ymm_k1z_xmmm64
            EVEX_Vbroadcastss_zmm_k1z_xmmm32 EVEX_Vbroadcastsd_zmm_k1z_xmmm64)
    }

    /// `a += b * c`
    pub(super) fn fma(self, width: Width) -> Code {
        by_type!(self, width;
            VEX_Vfmadd231ps_xmm_xmm_xmmm128 VEX_Vfmadd231pd_xmm_xmm_xmmm128
            VEX_Vfmadd231ps_ymm_ymm_ymmm256 VEX_Vfmadd231pd_ymm_ymm_ymmm256,
            EVEX_Vfmadd231ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vfmadd231pd_xmm_k1z_xmm_xmmm128b64
            EVEX_Vfmadd231ps_ymm_k1z_ymm_ymmm256b32 EVEX_Vfmadd231pd_ymm_k1z_ymm_ymmm256b64
            EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er)
    }

    pub(super) fn mul(self, width: Width) -> Code {
        by_type!(self, width;
            VEX_Vmulps_xmm_xmm_xmmm128 VEX_Vmulpd_xmm_xmm_xmmm128 VEX_Vmulps_ymm_ymm_ymmm256 VEX_Vmulpd_ymm_ymm_ymmm256,
            EVEX_Vmulps_xmm_k1z_xmm_xmmm128b32 EVEX_Vmulpd_xmm_k1z_xmm_xmmm128b64
            EVEX_Vmulps_ymm_k1z_ymm_ymmm256b32 EVEX_Vmulpd_ymm_k1z_ymm_ymmm256b64
            EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er)
    }

    pub(super) fn add(self, width: Width) -> Code {
        by_type!(self, width;
            VEX_Vaddps_xmm_xmm_xmmm128 VEX_Vaddpd_xmm_xmm_xmmm128 VEX_Vaddps_ymm_ymm_ymmm256 VEX_Vaddpd_ymm_ymm_ymmm256,
            EVEX_Vaddps_xmm_k1z_xmm_xmmm128b32 EVEX_Vaddpd_xmm_k1z_xmm_xmmm128b64
            EVEX_Vaddps_ymm_k1z_ymm_ymmm256b32 EVEX_Vaddpd_ymm_k1z_ymm_ymmm256b64
            EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er)
    }

    /// Exclusive or; the element type does not matter. AVX-512F has only the integer form.
    pub(super) fn xor(self, width: Width) -> Code {
        match (width, self.evex) {
            (Width::X, false) => Code::VEX_Vxorps_xmm_xmm_xmmm128,
            (Width::Y, false) => Code::VEX_Vxorps_ymm_ymm_ymmm256,
            (Width::X, true) => Code::EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32,
            (Width::Y, true) => Code::EVEX_Vpxord_ymm_k1z_ymm_ymmm256b32,
            (Width::Z, _) => Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
        }
    }

    /// AVX's masked load; the mask is a vector register. None where masks are registers of their own.
    pub(super) fn mask_load(self, width: Width) -> Option<Code> {
        Some(match (width, self.float) {
            _ if self.evex => return None,
            (Width::X, Float::F32) => Code::VEX_Vmaskmovps_xmm_xmm_m128,
            (Width::X, Float::F64) => Code::VEX_Vmaskmovpd_xmm_xmm_m128,
            (_, Float::F32) => Code::VEX_Vmaskmovps_ymm_ymm_m256,
            (_, Float::F64) => Code::VEX_Vmaskmovpd_ymm_ymm_m256,
        })
    }

    /// Interleaves the low or the high halves of 128-bit lanes, in elements of 4 or 8 bytes.
    pub(super) fn unpack(self, width: Width, bytes: usize, high: bool) -> Code {
        match (self.evex, width, bytes, high) {
            (false, Width::X, 4, false) => Code::VEX_Vunpcklps_xmm_xmm_xmmm128,
            (false, Width::X, 4, true) => Code::VEX_Vunpckhps_xmm_xmm_xmmm128,
            (false, Width::X, _, false) => Code::VEX_Vunpcklpd_xmm_xmm_xmmm128,
            (false, Width::X, _, true) => Code::VEX_Vunpckhpd_xmm_xmm_xmmm128,
            (false, Width::Y, 4, false) => Code::VEX_Vunpcklps_ymm_ymm_ymmm256,
            (false, Width::Y, 4, true) => Code::VEX_Vunpckhps_ymm_ymm_ymmm256,
            (false, Width::Y, _, false) => Code::VEX_Vunpcklpd_ymm_ymm_ymmm256,
            (false, Width::Y, _, true) => Code::VEX_Vunpckhpd_ymm_ymm_ymmm256,
            (true, Width::X, 4, false) => Code::EVEX_Vunpcklps_xmm_k1z_xmm_xmmm128b32,
            (true, Width::X, 4, true) => Code::EVEX_Vunpckhps_xmm_k1z_xmm_xmmm128b32,
            (true, Width::X, _, false) => Code::EVEX_Vunpcklpd_xmm_k1z_xmm_xmmm128b64,
            (true, Width::X, _, true) => Code::EVEX_Vunpckhpd_xmm_k1z_xmm_xmmm128b64,
            (true, Width::Y, 4, false) => Code::EVEX_Vunpcklps_ymm_k1z_ymm_ymmm256b32,
            (true, Width::Y, 4, true) => Code::EVEX_Vunpckhps_ymm_k1z_ymm_ymmm256b32,
            (true, Width::Y, _, false) => Code::EVEX_Vunpcklpd_ymm_k1z_ymm_ymmm256b64,
            (true, Width::Y, _, true) => Code::EVEX_Vunpckhpd_ymm_k1z_ymm_ymmm256b64,
            (_, Width::Z, 4, false) => Code::EVEX_Vunpcklps_zmm_k1z_zmm_zmmm512b32,
            (_, Width::Z, 4, true) => Code::EVEX_Vunpckhps_zmm_k1z_zmm_zmmm512b32,
            (_, Width::Z, _, false) => Code::EVEX_Vunpcklpd_zmm_k1z_zmm_zmmm512b64,
            (_, Width::Z, _, true) => Code::EVEX_Vunpckhpd_zmm_k1z_zmm_zmmm512b64,
        }
    }

    /// Replaces a 128-bit lane by one from memory. There is none of a single lane.
    pub(super) fn insert(self, width: Width) -> Code {
        match (width, self.evex) {
            (Width::Z, _) => Code::EVEX_Vinsertf32x4_zmm_k1z_zmm_xmmm128_imm8,
            (_, true) => Code::EVEX_Vinsertf32x4_ymm_k1z_ymm_xmmm128_imm8,
            (_, false) => Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8,
        }
    }

    /// Takes a 128-bit lane out, to a register or to memory. There is none of a single lane.
    pub(super) fn extract(self, width: Width) -> Code {
        match (width, self.evex) {
            (Width::Z, _) => Code::EVEX_Vextractf32x4_xmmm128_k1z_zmm_imm8,
            (_, true) => Code::EVEX_Vextractf32x4_xmmm128_k1z_ymm_imm8,
            (_, false) => Code::VEX_Vextractf128_xmmm128_ymm_imm8,
        }
    }

    /// Load and store of the low `bytes` of a register: 16, 8 or 4.
    pub(super) fn moves(self, bytes: usize) -> (Code, Code) {
        match (bytes, self.evex) {
            (16, _) => (self.load(Width::X), self.store(Width::X)),
            (8, false) => (Code::VEX_Vmovsd_xmm_m64, Code::VEX_Vmovsd_m64_xmm),
            (8, true) => (Code::EVEX_Vmovsd_xmm_k1z_m64, Code::EVEX_Vmovsd_m64_k1_xmm),
            (_, false) => (Code::VEX_Vmovss_xmm_m32, Code::VEX_Vmovss_m32_xmm),
            (_, true) => (Code::EVEX_Vmovss_xmm_k1z_m32, Code::EVEX_Vmovss_m32_k1_xmm),
        }
    }

    /// Permutes the elements of 4 bytes of a register of 16.
    pub(super) fn permute(self) -> Code {
        if self.evex { Code::EVEX_Vpermilps_xmm_k1z_xmmm128b32_imm8 } else { Code::VEX_Vpermilps_xmm_xmmm128_imm8 }
    }
}
