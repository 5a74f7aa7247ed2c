//! Defaults of complex products that are made of three real ones, and which products are better off with them.
//!
//! What is loaded as vectors is what four products load. What lies across them is copied with the sums of its parts, whatever the shape, so
//! that the long operand of a skinny product has vectors along it, even where it has to be turned for that.
//!
//! Figures are of a Zen 3, whose vectors are half a line, beside four products at their default.

use super::Choice;
use super::facts::{Facts, Family};
use crate::config::Axis;
use tilewright_core::device::DeviceSpec;
use tilewright_ops::gemm::GemmInput;

/// Columns beside which a skinny product takes three products, where its long operand is loaded as it lies, in elements of 8 bytes and of 16;
/// and where it is turned.
const ENOUGH: [usize; 2] = [8, 24];
const ENOUGH_TURNED: usize = 48;

/// Steps of a flat product that make up for the copy of what lies across vectors.
const ENOUGH_STEPS: usize = 12;

/// How well three products suit an input that allows them: random large products took 0.83 to 0.88 of the time, flat ones 0.82 to 0.94, skinny
/// ones of many columns 0.8 to 0.9. Deep and medium ones, which seldom copy what they read once or twice, took 1.0 to 1.2 times as long.
pub(in super::super) fn suits(device: &DeviceSpec, input: &GemmInput) -> f64 {
    let f = Facts::of(device, input);
    let short = f.m.min(f.n);
    let gains = match f.family() {
        Family::Large | Family::Long => true,
        Family::Flat => short >= ENOUGH_TURNED && f.k >= ENOUGH_STEPS,
        Family::Skinny if f.is_turned() => short >= ENOUGH_TURNED,
        Family::Skinny => short >= ENOUGH[usize::from(f.es == 16)],
        Family::Deep | Family::Medium => false,
    };
    if gains { 1.0 } else { 0.0 }
}

impl Choice {
    /// The choice for four products as one for three, which come in pairs of vectors.
    pub(super) fn by_three_products(self, f: &Facts) -> Self {
        let tile = (2, if f.registers() > 16 { 8 } else { 4 });
        let choice = Self { tile, pack_s: true, k_l: 1, ..self };
        let copied = Self { pack_v: true, broadcast: false, k_s: 8, prefetch: 0, s_block: 512, ..choice.clone() };
        match f.family() {
            Family::Large | Family::Long => Self { u: f.panel_steps(tile), v_block: 64, ..copied },
            Family::Skinny if f.is_turned() => {
                let axis = if f.m >= f.n { Axis::M } else { Axis::N };
                let (v_block, broadcast) = if f.es == 16 { (32, true) } else { (64, false) };
                Self { axis, u: 512, v_block, broadcast, ..copied }
            }
            // Lines of several panels are copied at once.
            Family::Skinny if f.es == 16 => Self { u: 256, v_block: 128, broadcast: true, ..copied },
            Family::Flat => Self { broadcast: true, ..choice },
            Family::Skinny | Family::Deep | Family::Medium => choice,
        }
    }
}

impl Facts {
    /// Whether the long operand of a skinny product lies along k.
    fn is_turned(&self) -> bool {
        if self.m >= self.n { self.deep_a } else { self.deep_b }
    }

    /// Steps of a panel of vectors that fills the first-level cache, or three quarters of it where elements are of 16 bytes: what streams past it
    /// is half as large again for them.
    fn panel_steps(&self, tile: (usize, usize)) -> usize {
        let bytes = if self.es == 8 { self.l1 } else { 3 * self.l1 / 4 };
        bytes / (tile.0 * self.lanes * self.es)
    }
}
