//! Tuning parameters of the CPU GEMM: the image of ISAAC's on a core with vector registers and caches.

use crate::kernel::space::Description;
use crate::scalar::Kind;
use tilewright_core::expr::Val;
use tilewright_core::space::Values;

/// The dimension that vectors run along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Axis {
    /// Rows of C, contiguous in column-major order.
    M,
    /// Columns of C: the transposed problem; tiles are transposed in registers when stored.
    N,
}

/// Which operand's panel stays in the first-level cache in the innermost two loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// The panel that is loaded as vectors stays, the broadcast one streams.
    Vector,
    /// The broadcast panel stays, the one that is loaded as vectors streams.
    Broadcast,
}

/// How C is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Store {
    /// Through the caches.
    Normal,
    /// Around them (non-temporal): no read for ownership. Only when C is written once and not read.
    Stream,
}

/// One value per tuning parameter. Sizes are in elements unless stated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GemmConfig {
    /// The dimension that vectors run along.
    pub(crate) axis: Axis,
    /// Register tile, rows of C.
    pub(crate) m_s: u32,
    /// Register tile, columns of C.
    pub(crate) n_s: u32,
    /// Cache tile, rows of C; rounded to whole register tiles.
    pub(crate) m_l: u32,
    /// Cache tile, columns of C; rounded to whole register tiles.
    pub(crate) n_l: u32,
    /// Cache tile, steps of k.
    pub(crate) u: u32,
    /// Unroll of the loop over k.
    pub(crate) k_s: u32,
    /// Independent accumulator sets that k is dealt to within a tile.
    pub(crate) k_l: u32,
    /// Slices of k that threads compute separately; their sum is formed in order.
    pub(crate) k_g: u32,
    /// Threads in all: `t_m * t_n * k_g`.
    pub(crate) t: u32,
    /// Threads along m.
    pub(crate) t_m: u32,
    /// Threads along n.
    pub(crate) t_n: u32,
    /// Whether panels of A are copied to be contiguous.
    pub(crate) pack_a: bool,
    /// Whether panels of B are copied to be contiguous.
    pub(crate) pack_b: bool,
    /// Vector width in bytes: 16, 32 or 64.
    pub(crate) vec: u32,
    /// Prefetch distance in steps of k; 0 is none.
    pub(crate) prefetch: u32,
    /// Which panel stays in the first-level cache.
    pub(crate) order: Order,
    /// How C is written.
    pub(crate) store: Store,
}

impl GemmConfig {
    /// The same configuration with the roles of rows and columns exchanged: what a configuration of the transposed
    /// problem is in terms of the problem itself, and back.
    #[must_use]
    fn transposed(&self) -> Self {
        let c = self.clone();
        Self {
            m_s: c.n_s,
            n_s: c.m_s,
            m_l: c.n_l,
            n_l: c.m_l,
            t_m: c.t_n,
            t_n: c.t_m,
            pack_a: c.pack_b,
            pack_b: c.pack_a,
            ..c
        }
    }

    /// The parameters of a point of the kernel's space, which are those of the problem that the kernel solves, in terms of the
    /// caller's: see the space's documentation. `None` for a point of another space than that of this kind.
    pub(crate) fn of(at: &Values<'_>, kind: Kind) -> Option<Self> {
        let names = Description::of(kind);
        let [m_s, n_s, m_l, n_l, u, k_s, k_l, k_g, t, t_m, t_n, pack_a, pack_b, vec, prefetch] =
            at.ints(names.sizes)?;
        let [axis, order, store] = at.read(names.words)?;
        let (pack_a, pack_b) = (pack_a == 1, pack_b == 1);
        let axis = if axis == Val::Str("n") { Axis::N } else { Axis::M };
        let order = if order == Val::Str("broadcast") { Order::Broadcast } else { Order::Vector };
        let store = if store == Val::Str("stream") { Store::Stream } else { Store::Normal };
        let config = Self {
            axis,
            m_s,
            n_s,
            m_l,
            n_l,
            u,
            k_s,
            k_l,
            k_g,
            t,
            t_m,
            t_n,
            pack_a,
            pack_b,
            vec,
            prefetch,
            order,
            store,
        };
        Some(if axis == Axis::N { config.transposed() } else { config })
    }
}
