//! Spaces of GPU GEMM kernels, written with core's rules.

use tilewright_core::space::{BoundSpace, Param, ParamSpace, RuleGroup, SpaceError, Symbols};

use RuleGroup::{Hardware, Implementation};

/// The GEMM of ISAAC's generator, every parameter a power of two between 1 and 16 as in the paper's Table 1: A not
/// transposed, B transposed, both column-major, elements of `bytes` bytes.
pub(crate) fn isaac_gemm() -> Result<ParamSpace, SpaceError> {
    // In the order in which rules decide them.
    let names = ["vec", "bm", "bn", "kl", "a0", "a1", "b0", "b1", "ms", "ns", "u", "us", "ks", "kg"];
    let builder = names.into_iter().fold(ParamSpace::builder(), |b, name| b.param(Param::ints(name, [1, 2, 4, 8, 16])));
    builder
        .define("m_l", "bm * ms")
        .define("n_l", "bn * ns")
        .define("threads", "bm * bn * kl")
        .define("r", "u * ks * kl")
        .rule("vector", Hardware, "vec * bytes <= 16", "the widest load")
        .rule("tile", Implementation, "ms % vec == 0 and ns % vec == 0", "registers are loaded as vectors")
        .rule("unroll", Implementation, "u % us == 0", "the unrolled loop has no tail")
        .rule("warp", Hardware, "threads % 32 == 0", "whole warps")
        .rule("threads", Hardware, "threads <= 1024", "threads of a block")
        .rule("load_a", Implementation, "a0 * a1 == threads", "every thread loads its share of A")
        .rule("load_b", Implementation, "b0 * b1 == threads", "every thread loads its share of B")
        .rule("tile_a", Implementation, "r % a1 == 0 and m_l % (a0 * vec) == 0", "the loads cover A's tile")
        .rule("tile_b", Implementation, "r % b1 == 0 and n_l % (b0 * vec) == 0", "the loads cover B's tile")
        .rule(
            "shared",
            Hardware,
            "max(bytes * m_l * n_l * kl if kl > 1 else 0, 2 * bytes * r * (m_l + n_l), bytes * m_l * bn) <= shared",
            "shared memory of a block",
        )
        .build()
}

/// [`isaac_gemm`] for binary32 on a device with 48 KiB of shared memory a block.
pub(crate) fn isaac_gemm_f32() -> Result<(ParamSpace, BoundSpace), SpaceError> {
    let space = isaac_gemm()?;
    let bound = space.bind(&Symbols::new().with("bytes", 4).with("shared", 48 * 1024))?;
    Ok((space, bound))
}

/// A GEMM in the manner of CLBlast's: work-group tiles, threads reshaped for the loads of A and B, vectors.
pub(crate) fn work_group_gemm() -> Result<(ParamSpace, BoundSpace), SpaceError> {
    let space = ParamSpace::builder()
        .param(Param::ints("mwg", [16, 32, 64, 128]))
        .param(Param::ints("nwg", [16, 32, 64, 128]))
        .param(Param::ints("kwg", [16, 32]))
        .param(Param::ints("mdimc", [8, 16, 32]))
        .param(Param::ints("ndimc", [8, 16, 32]))
        .param(Param::ints("mdima", [8, 16, 32]))
        .param(Param::ints("ndimb", [8, 16, 32]))
        .param(Param::ints("kwi", [2, 8]))
        .param(Param::ints("vwm", [1, 2, 4, 8]))
        .param(Param::ints("vwn", [1, 2, 4, 8]))
        .param(Param::ints("strm", [0, 1]))
        .param(Param::ints("strn", [0, 1]))
        .param(Param::ints("sa", [0, 1]))
        .param(Param::ints("sb", [0, 1]))
        .rule("unroll", Implementation, "kwg % kwi == 0", "the inner loop has no tail")
        .rule("threads_m", Implementation, "mwg % (mdimc * vwm) == 0", "threads cover the tile")
        .rule("threads_n", Implementation, "nwg % (ndimc * vwn) == 0", "threads cover the tile")
        .rule("load_a", Implementation, "mwg % (mdima * vwm) == 0", "loads cover the tile of A")
        .rule("load_b", Implementation, "nwg % (ndimb * vwn) == 0", "loads cover the tile of B")
        .rule("depth_a", Implementation, "kwg % (mdimc * ndimc // mdima) == 0", "loads of A cover the depth")
        .rule("depth_b", Implementation, "kwg % (mdimc * ndimc // ndimb) == 0", "loads of B cover the depth")
        .rule("threads", Hardware, "mdimc * ndimc <= 1024", "threads of a group")
        .rule("local", Hardware, "(sa * mwg + sb * nwg) * kwg * 4 <= 48 * 1024", "local memory of a group")
        .build()?;
    let bound = space.bind(&Symbols::new())?;
    Ok((space, bound))
}
