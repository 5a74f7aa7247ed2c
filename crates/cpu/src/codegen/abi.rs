//! The one argument of generated code: a pointer to [`PanelArgs`], in the first integer register of
//! the System V calling convention.

use std::mem::offset_of;

/// What a generated panel routine reads. It computes `tiles` register tiles in a row; after each it
/// advances `v`, `s` and `c` by their steps (bytes).
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct PanelArgs {
    /// First element of the operand that is loaded as vectors. In the tile of a [turned edge](crate::blueprint::edge) that is the operand which
    /// other tiles broadcast.
    pub(crate) v: *const u8,
    /// First element of the operand that is broadcast.
    pub(crate) s: *const u8,
    /// First element of the C tile.
    pub(crate) c: *mut u8,
    /// Number of tiles, at least 1.
    pub(crate) tiles: usize,
    pub(crate) v_step: isize,
    pub(crate) s_step: isize,
    pub(crate) c_step: isize,
    /// Turns of the unrolled loop over k.
    pub(crate) k_main: usize,
    /// Single steps after them.
    pub(crate) k_tail: usize,
    /// Bytes from the panel of `s` that stays to the one that stays next (prefetch only).
    pub(crate) ahead: isize,
    /// Where the prefetch of the panel of `v` that stays next has got to, and its last step of k.
    pub(crate) next: *const u8,
    pub(crate) next_last: *const u8,
    /// Where the prefetch of the streaming operand's next block of k has got to, and its last step of k.
    pub(crate) far: *const u8,
    pub(crate) far_last: *const u8,
    /// Where the walk over memory that is packed later begins in this tile (prefetch only); moved on by each tile.
    pub(crate) walk: *const u8,
    /// Where a leading tile copies its panel of `v` to.
    pub(crate) packed: *mut u8,
    /// Bytes from the start of the gathered operand to its element at each step of k, for tiles that have one.
    pub(crate) table: *const i64,
    /// alpha and beta in the element type, in the low bytes.
    pub(crate) alpha: u64,
    pub(crate) beta: u64,
    /// Factors of the components of complex products: of those with a real part of `s`, and of those with an imaginary part, which
    /// are turned before.
    pub(crate) direct: [u64; 2],
    pub(crate) turned: [u64; 2],
    /// Bits of the numbers across vectors that a tile changes, where it does.
    pub(crate) flip: u64,
    /// Where a woven vector has its 16-bit numbers from: of two steps side by side, one of each by turns.
    pub(crate) weave: [u16; 32],
    /// Mask of the valid lanes in the last vector along `v` of these tiles (VEX widths; sign bits count).
    pub(crate) v_mask: [u32; 8],
}

/// Signature of a generated panel routine.
#[cfg(target_arch = "x86_64")]
pub(crate) type PanelFn = unsafe extern "sysv64" fn(*mut PanelArgs);

/// Byte offsets of the fields, as the generator addresses them.
pub(crate) mod at {
    use super::{PanelArgs, offset_of};

    macro_rules! offsets {
        ($($name:ident = $field:ident),* $(,)?) => {
            $(pub(crate) const $name: i64 = offset_of!(PanelArgs, $field) as i64;)*
        };
    }
    offsets!(
        V = v,
        S = s,
        C = c,
        TILES = tiles,
        V_STEP = v_step,
        S_STEP = s_step,
        C_STEP = c_step,
        K_MAIN = k_main,
        K_TAIL = k_tail,
        AHEAD = ahead,
        NEXT = next,
        NEXT_LAST = next_last,
        FAR = far,
        FAR_LAST = far_last,
        WALK = walk,
        PACKED = packed,
        TABLE = table,
        ALPHA = alpha,
        BETA = beta,
        DIRECT = direct,
        TURNED = turned,
        FLIP = flip,
        WEAVE = weave,
        V_MASK = v_mask
    );
}
