//! Defaults of complex products that are made of three real ones, and which products are better off with them.
//!
//! What is loaded as vectors is what four products load. What lies across them is copied with the sums of its parts, whatever the shape, so
//! that the long operand of a skinny product has vectors along it, even where it has to be turned for that.
//!
//! Figures are of a Zen 3, whose vectors are half a line, on one thread, beside four products at their default; nobody has measured others.

use super::Choice;
use super::facts::{Facts, Family};
use tilewright_core::device::DeviceSpec;
use tilewright_ops::gemm::GemmInput;

/// Columns beside which a skinny product takes three products where its long operand is loaded as it lies, in elements of 8 bytes and of 16:
/// beside fewer it waits for memory either way.
const COLUMNS: [usize; 2] = [8, 24];

/// The same where the long operand is turned, which takes as long as some 16 columns, and the least sides of a flat product.
const MANY_COLUMNS: usize = 48;

/// Steps of a flat product that make up for the copy of what lies across vectors.
const FLAT_STEPS: usize = 12;

/// How well three products suit an input that allows them: random large products took 0.83 to 0.88 of the time, flat ones 0.82 to 0.94, skinny
/// ones of many columns 0.8 to 0.9. Deep and medium ones, which seldom copy what they read once or twice, took 1.0 to 1.2 times as long.
pub(in super::super) fn suits(device: &DeviceSpec, input: &GemmInput) -> f64 {
    let f = Facts::of(device, input);
    let short = f.m.min(f.n);
    let gains = match f.family() {
        Family::Large => true,
        Family::Flat => short >= MANY_COLUMNS && f.k >= FLAT_STEPS,
        Family::Skinny if f.is_turned() => short >= MANY_COLUMNS,
        Family::Skinny => short >= COLUMNS[usize::from(f.es == 16)],
        Family::Deep | Family::Medium | Family::Long => false,
    };
    if gains { 1.0 } else { 0.0 }
}

impl Choice {
    /// The choice for three products, which come in pairs of vectors.
    pub(super) fn of_three_products(f: &Facts) -> Self {
        Self::blocked(f).by_three_products(f).divided(f)
    }

    /// Blocks of four products for tiles of three. Such a tile has three quarters of the registers for sums: two vectors, and the sums of
    /// their parts, by four elements or eight.
    fn by_three_products(self, f: &Facts) -> Self {
        let tile = (2, if f.registers() > 16 { 8 } else { 4 });
        let choice = Self { tile, pack_s: true, ..self };
        // A panel of vectors stays while a block of the other operand, which the second-level cache or the one behind it holds, streams past it: of
        // 256, 512 and 1024 elements across 512 were best.
        let copied = Self { pack_v: true, broadcast: false, k_s: 8, prefetch: 0, s_block: 512, ..choice.clone() };
        match f.family() {
            Family::Large => Self { u: f.panel_steps(tile), v_block: 64, ..copied },
            Family::Skinny if f.is_turned() => {
                // 2560 x 32 to 128 x 2560 tn took 0.76 to 0.95 of the time by blocks of 512 steps, in c64 with the other panel staying.
                let (v_block, broadcast) = if f.es == 16 { (32, true) } else { (64, false) };
                Self { axis: f.long_axis(), u: 512, v_block, broadcast, ..copied }
            }
            // Lines of several panels are copied at once: 2560 x 32 to 128 x 2560 nn took 0.81 to 0.83 of the time, panel by panel 1.0 to 1.14.
            Family::Skinny if f.es == 16 => Self { u: 256, v_block: 128, broadcast: true, ..copied },
            // 896 x 896 x 32 took 0.82 of the time with the panel across vectors staying, 0.88 with the other.
            Family::Flat => Self { broadcast: true, ..choice },
            Family::Skinny | Family::Deep | Family::Medium | Family::Long => choice,
        }
    }
}

impl Facts {
    /// Whether the long operand of a skinny product lies along k.
    fn is_turned(&self) -> bool {
        !self.is_loaded(self.long_axis())
    }

    /// Steps of a panel of vectors that fills the first-level cache, or three quarters of it where elements are of 16 bytes: what streams past it
    /// is half as large again for them.
    fn panel_steps(&self, tile: (usize, usize)) -> usize {
        let bytes = if self.es == 8 { self.l1 } else { 3 * self.l1 / 4 };
        bytes / (tile.0 * self.lanes * self.es)
    }
}
