//! What the paper states in numbers: nothing here is a count of ours.
//!
//! Figure 5 is a chart. Of its bars the text says that they go "from slightly below one hundred to slightly above four
//! hundred", and that there were "roughly three thousand cases to run" (sections 6.1 and 6.2).

use super::Guidelines;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// The element types, in the order of Table 2.
pub const TYPES: [DType; 4] = [DType::F32, DType::C32, DType::F64, DType::C64];

/// How the operands of the 16 versions of Figure 5 and Table 2 are stored: four for each type.
pub const LAYOUTS: [&str; 4] = ["nn", "nt", "tt", "tn"];

/// The other operations of BLAS, of complex matrices: conjugation goes with transposition, and the stencil has it as an option
/// (section 5.2.3). With them there are 26 operations, and read with and without two kinds of textures the paper's 78 variants.
pub const CONJUGATED: [&str; 5] = ["nc", "tc", "cn", "ct", "cc"];

/// All operations of a type.
pub fn operations(element: DType) -> impl Iterator<Item = &'static str> {
    LAYOUTS.into_iter().chain(CONJUGATED.into_iter().filter(move |_| element.is_complex()))
}

/// Guidelines of Table 1; of a type that the paper does not have, none.
pub fn table1(element: DType) -> Option<Guidelines> {
    let min_regs_reuse = match element {
        DType::F32 => 3.0,
        DType::C32 => 5.0,
        DType::F64 | DType::C64 => 2.0,
        _ => return None,
    };
    Some(Guidelines { min_threads: 512, min_blocks: 2, min_regs_reuse })
}

/// Register reuse of a thread that has `m` by `n` elements: the last block of Algorithm 3.
pub fn regs_reuse(element: DType, m: i64, n: i64) -> f64 {
    let (m, n) = (m as f64, n as f64);
    if element.is_complex() { (4.0 * m * n) / (2.0 * (m + n)) } else { (m * n) / (m + n) }
}

/// A row of Table 2: the fastest kernel of a type and layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Winner {
    /// Type of the elements.
    pub element: DType,
    /// `nn`, `nt`, `tt` or `tn`.
    pub layout: &'static str,
    /// `m_blk`, `n_blk`, `k_blk`.
    pub tile: [i64; 3],
    /// `m_dim`, `n_dim`.
    pub grid: [i64; 2],
    /// `m_dim_a`, `n_dim_a`.
    pub load_a: [i64; 2],
    /// `m_dim_b`, `n_dim_b`.
    pub load_b: [i64; 2],
}

impl Winner {
    /// Its parameters by name.
    pub fn config(&self) -> Config {
        let ([m, n, k], [m_dim, n_dim]) = (self.tile, self.grid);
        let ([m_dim_a, n_dim_a], [m_dim_b, n_dim_b]) = (self.load_a, self.load_b);
        let values = [
            ("n_dim", n_dim),
            ("m_dim", m_dim),
            ("k_blk", k),
            ("n_blk", n),
            ("m_blk", m),
            ("m_dim_a", m_dim_a),
            ("n_dim_a", n_dim_a),
            ("m_dim_b", m_dim_b),
            ("n_dim_b", n_dim_b),
        ];
        Config(values.map(|(name, v)| (name.to_owned(), Value::Int(v))).to_vec())
    }

    /// Elements of a thread along m and n.
    pub fn of_thread(&self) -> [i64; 2] {
        [self.tile[0] / self.grid[0], self.tile[1] / self.grid[1]]
    }
}

const fn row(element: DType, layout: &'static str, tile: [i64; 3], grids: [[i64; 2]; 3]) -> Winner {
    let [grid, load_a, load_b] = grids;
    Winner { element, layout, tile, grid, load_a, load_b }
}

/// Table 2.
#[rustfmt::skip]
pub const WINNERS: [Winner; 16] = [
    row(DType::F32, "nn", [96, 96, 16], [[16, 16], [32, 8], [8, 32]]),
    row(DType::F32, "nt", [96, 96, 16], [[16, 16], [32, 8], [32, 8]]),
    row(DType::F32, "tt", [96, 96, 16], [[16, 16], [16, 16], [32, 8]]),
    row(DType::F32, "tn", [96, 96, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::C32, "nn", [64, 64, 16], [[16, 16], [32, 8], [16, 16]]),
    row(DType::C32, "nt", [64, 64, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::C32, "tt", [64, 64, 16], [[16, 16], [16, 16], [32, 8]]),
    row(DType::C32, "tn", [64, 64, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::F64, "nn", [64, 64, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::F64, "nt", [64, 64, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::F64, "tt", [64, 64, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::F64, "tn", [64, 64, 16], [[16, 16], [16, 16], [16, 16]]),
    row(DType::C64, "nn", [24, 16, 8], [[8, 8], [8, 8], [8, 8]]),
    row(DType::C64, "nt", [16, 24, 8], [[8, 8], [8, 8], [8, 8]]),
    row(DType::C64, "tt", [16, 24, 8], [[8, 8], [4, 16], [8, 8]]),
    row(DType::C64, "tn", [24, 16, 8], [[8, 8], [8, 8], [8, 8]]),
];
