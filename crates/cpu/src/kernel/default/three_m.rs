//! Defaults of complex products that are made of three real ones, and which products are better off with them.
//!
//! What is loaded as vectors is what four products load. What lies across them is copied with the sums of its parts, whatever the shape, so
//! that the long operand of a skinny product has vectors along it, even where it has to be turned for that.
//!
//! Figures are of one thread beside four products at their default: of a Zen 3 where vectors are half a line, of a Zen 4, which multiplies the halves of
//! a line one after the other, where they are a line. Nobody has measured others.

use super::Choice;
use super::facts::{Facts, Family};
use crate::config::Axis;
use tilewright_core::device::DeviceSpec;
use tilewright_ops::gemm::GemmInput;

/// Columns beside which a skinny product takes three products where its long operand is loaded as it lies, in elements of 8 bytes and of 16:
/// beside fewer it waits for memory either way.
const COLUMNS: [usize; 2] = [8, 24];

/// The same where the long operand is turned, which takes as long as some 16 columns, and the least sides of a flat product.
const MANY_COLUMNS: usize = 48;

/// Rows or columns of a large product that are too few for a copy of vectors of a line.
const FEW: usize = 256;

/// Steps of a flat product that make up for the copy of what lies across vectors of half a line, and of a line.
const FLAT_STEPS: [usize; 2] = [12, 6];

/// Columns beside which a skinny product takes three products past vectors of a line that are loaded as they lie, and sides of a deep one in c64.
const FEW_COLUMNS: usize = 4;
const DEEP_SIDES: usize = 20;

/// How well three products suit an input that allows them.
///
/// Past vectors of half a line random large products took 0.83 to 0.88 of the time, flat ones 0.82 to 0.94, skinny ones of many columns 0.8 to
/// 0.9; deep and medium ones, which seldom copy what they read once or twice, took 1.0 to 1.2 times as long.
pub(in super::super) fn suits(device: &DeviceSpec, input: &GemmInput) -> f64 {
    let f = Facts::of(device, input);
    let gains = if f.registers() > 16 { f.gains_by_whole_lines() } else { f.gains_by_half_lines() };
    if gains { 1.0 } else { 0.0 }
}

impl Choice {
    /// The choice for three products, which come in pairs of vectors.
    pub(super) fn of_three_products(f: &Facts) -> Self {
        let choice = Self { pack_s: true, ..Self::blocked(f) };
        let choice = if f.registers() > 16 { choice.by_whole_lines(f) } else { choice.by_half_lines(f) };
        choice.divided(f)
    }

    /// Blocks of four products for tiles of three where there are few registers, and a vector is half a line at most. Such a tile has three quarters
    /// of the registers for sums: two vectors, and the sums of their parts, by four elements.
    fn by_half_lines(self, f: &Facts) -> Self {
        let choice = Self { tile: (2, 4), ..self };
        let copied = choice.clone().past_copied_panels();
        match f.family() {
            Family::Large => Self { u: f.panel_steps(choice.tile), v_block: 64, ..copied },
            Family::Skinny if f.is_turned() => copied.turned(f),
            // Lines of several panels are copied at once: 2560 x 32 to 128 x 2560 nn took 0.81 to 0.83 of the time, panel by panel 1.0 to 1.14.
            Family::Skinny if f.es == 16 => Self { u: 256, v_block: 128, broadcast: true, ..copied },
            // 896 x 896 x 32 took 0.82 of the time with the panel across vectors staying, 0.88 with the other.
            Family::Flat => Self { broadcast: true, ..choice },
            Family::Skinny | Family::Deep | Family::Medium | Family::Long => choice,
        }
    }

    /// The same where there are more registers. Four vectors by four elements take 12 loads a step where two by eight take 18 for as many
    /// multiply-adds: on a Zen 4, which splits vectors of a line, squares of 512 to 2048 nt took 0.85 to 0.88 of the time, flat products 0.7 to 0.8.
    fn by_whole_lines(self, f: &Facts) -> Self {
        let choice = Self { tile: (4, 4), ..self };
        let copied = choice.clone().past_copied_panels();
        // Vectors that few columns read are loaded where they lie, and what comes next is asked for: random products of up to 256 columns took 0.9
        // to 0.99 of the time that they took by copies, of up to 64 columns in c64 0.79 to 0.9.
        let in_place =
            |choice: Self| Self { pack_v: false, broadcast: false, u: 96, v_block: 256, k_s: 8, prefetch: 8, ..choice };
        match f.family() {
            Family::Large if f.is_loaded(choice.axis) && f.m.min(f.n) <= FEW => in_place(choice),
            Family::Large => Self { u: f.panel_steps(choice.tile), v_block: 64, ..copied },
            Family::Skinny if f.is_turned() => copied.turned(f),
            Family::Skinny => in_place(choice),
            // By vectors that stay 896 x 896 x 32, 1500 x 700 x 24 and 300 x 3000 x 48 nt took 0.9 to 0.99 of the time, by blocks of one tile of
            // vectors 1.04 to 1.12.
            Family::Flat => Self { broadcast: false, v_block: 256, ..choice },
            Family::Deep | Family::Medium | Family::Long => choice,
        }
    }

    /// Both operands copied, and panels of vectors staying while a block of the other operand, which the second-level cache or the one behind it
    /// holds, streams past each: of 256, 512 and 1024 elements across 512 were best.
    fn past_copied_panels(self) -> Self {
        Self { pack_v: true, broadcast: false, k_s: 8, prefetch: 0, s_block: 512, ..self }
    }

    /// The long operand of a skinny product turned as it is copied. On a Zen 3 2560 x 32 to 128 x 2560 tn took 0.76 to 0.95 of the time by blocks
    /// of 512 steps, in c64 with the other panel staying.
    fn turned(self, f: &Facts) -> Self {
        let (v_block, broadcast) = if f.es == 16 { (32, true) } else { (64, false) };
        Self { axis: f.long_axis(), u: 512, v_block, broadcast, ..self }
    }
}

impl Facts {
    fn gains_by_half_lines(&self) -> bool {
        let short = self.m.min(self.n);
        match self.family() {
            Family::Large => true,
            Family::Flat => short >= MANY_COLUMNS && self.k >= FLAT_STEPS[0],
            Family::Skinny if self.is_turned() => short >= MANY_COLUMNS,
            Family::Skinny => short >= COLUMNS[usize::from(self.es == 16)],
            Family::Deep | Family::Medium | Family::Long => false,
        }
    }

    /// The same past vectors of a line: random large and flat products took 0.73 to 0.85 of the time, on two threads too, flat ones of 6 to 20 steps
    /// 0.74 to 0.95, skinny ones of at least four columns that are loaded as they lie 0.67 to 1.0. Deep and medium ones gain where vectors can be
    /// loaded as they lie, in c64, whose multiply-adds hide the copy of the other side twice as well: 0.81 to 1.06; in c32 they took 0.9 to 1.5
    /// times as long.
    fn gains_by_whole_lines(&self) -> bool {
        let short = self.m.min(self.n);
        let is_loaded = self.es == 16 && (self.is_loaded(Axis::M) || self.is_loaded(Axis::N));
        match self.family() {
            Family::Large => true,
            Family::Flat => self.k >= FLAT_STEPS[1],
            Family::Skinny if self.is_turned() => short >= MANY_COLUMNS,
            Family::Skinny => short >= FEW_COLUMNS,
            Family::Deep => short >= MANY_COLUMNS || (is_loaded && short >= DEEP_SIDES),
            Family::Medium => is_loaded,
            Family::Long => false,
        }
    }

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
