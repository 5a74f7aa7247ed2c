//! A product as callers describe it, what of it is refused, and the kernel that computes it.

/// `cublasStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Status {
    /// Done.
    Success = 0,
    /// A handle that was not made here.
    NotInitialized = 1,
    /// An argument that no call may have.
    InvalidValue = 7,
    /// The driver refuses the launch.
    ExecutionFailed = 13,
    /// Arguments that do not go together.
    NotSupported = 15,
}

/// The result of a call.
pub(crate) type Answer<T> = Result<T, Status>;

/// Refuses an argument, and says why.
pub(crate) fn refused<T>(why: &str) -> Answer<T> {
    eprintln!("fake cuBLAS: {why}");
    Err(Status::InvalidValue)
}

/// Element types that are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Real {
    F32,
    F64,
}

impl Real {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Of a `cudaDataType_t`.
    pub(crate) fn of(number: u32) -> Answer<Self> {
        match number {
            0 => Ok(Self::F32),
            1 => Ok(Self::F64),
            _ => refused(&format!("type {number} is neither CUDA_R_32F nor CUDA_R_64F")),
        }
    }
}

/// A product `C = alpha op(A) op(B) + beta C`, column by column. Sizes are as the caller gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Product {
    pub(crate) real: Real,
    pub(crate) trans: [u32; 2],
    /// m, n, k.
    pub(crate) sizes: [i64; 3],
    pub(crate) scalars: [f64; 2],
    /// Addresses of A, B and C.
    pub(crate) at: [u64; 3],
    /// Their leading dimensions.
    pub(crate) ld: [i64; 3],
}

impl Product {
    /// Exchanges two arguments, as a caller would who has their order wrong.
    pub(crate) fn swap(&mut self, which: &str) {
        match which {
            "m,n" => self.sizes.swap(0, 1),
            "a,b" => self.at.swap(0, 1),
            "lda,ldb" => self.ld.swap(0, 1),
            "transa,transb" => self.trans.swap(0, 1),
            "alpha,beta" => self.scalars.swap(0, 1),
            other => eprintln!("fake cuBLAS: FAKE_CUBLAS_SWAP={other} names no two arguments"),
        }
    }

    /// What the library refuses; whether there is anything to compute.
    pub(crate) fn check(&self) -> Answer<bool> {
        let [m, n, k] = self.sizes;
        if self.trans.iter().any(|t| *t > 2) {
            return refused(&format!("transpositions {:?}", self.trans));
        }
        if self.sizes.iter().any(|size| *size < 0) {
            return refused(&format!("sizes {:?}", self.sizes));
        }
        let [a, b] = self.trans.map(|t| t > 0);
        let stored = [if a { k } else { m }, if b { n } else { k }, m];
        if self.ld.iter().zip(stored).any(|(ld, rows)| *ld < rows.max(1)) {
            return refused(&format!("leading dimensions {:?} of matrices with {stored:?} rows", self.ld));
        }
        if m == 0 || n == 0 {
            return Ok(false);
        }
        let reads = k > 0 && self.scalars[0] != 0.0;
        if self.at[2] == 0 || (reads && self.at[..2].contains(&0)) {
            return refused(&format!("null among the matrices at {:x?}", self.at));
        }
        if self.at.iter().any(|at| at % self.real.bytes() != 0) {
            return refused(&format!("matrices at {:x?} are not aligned to their elements", self.at));
        }
        Ok(true)
    }

    /// Distances between rows and between columns of op(A) and op(B), in elements.
    pub(crate) fn strides(&self) -> [u64; 4] {
        let of = |trans: u32, ld: i64| if trans > 0 { [ld as u64, 1] } else { [1, ld as u64] };
        let ([a_row, a_column], [b_row, b_column]) = (of(self.trans[0], self.ld[0]), of(self.trans[1], self.ld[1]));
        [a_row, a_column, b_row, b_column]
    }
}

/// Columns that a grid has in its second dimension.
pub(crate) const COLUMNS: u32 = 65_535;

/// The entry of [`kernel`].
pub(crate) const ENTRY: &str = "fake_gemm";

/// The kernel: one thread for each element of C, whose sum is of one chain of fused multiply-adds.
pub(crate) fn kernel(real: Real) -> String {
    let (ty, zero) = match real {
        Real::F32 => ("f32", "0f00000000"),
        Real::F64 => ("f64", "0d0000000000000000"),
    };
    let bytes = real.bytes();
    format!(
        ".version 6.0
.target sm_50
.address_size 64
.visible .entry {ENTRY}(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 m, .param .u32 n, .param .u32 k,
    .param .u64 ar, .param .u64 ac, .param .u64 br, .param .u64 bc, .param .u64 ldc, .param .{ty} alpha, .param .{ty} beta)
{{
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<16>; .reg .{ty} %x<8>;
    ld.param.u32 %r1, [m]; ld.param.u32 %r2, [n]; ld.param.u32 %r3, [k];
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;
    mad.lo.u32 %r7, %r4, %r5, %r6;
    mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
    mad.lo.u32 %r10, %r9, {COLUMNS}, %r8;
    setp.ge.u32 %p1, %r7, %r1; @%p1 bra done;
    setp.ge.u32 %p1, %r10, %r2; @%p1 bra done;
    cvt.u64.u32 %rd1, %r7; cvt.u64.u32 %rd2, %r10;
    ld.param.u64 %rd3, [a]; cvta.to.global.u64 %rd3, %rd3;
    ld.param.u64 %rd4, [b]; cvta.to.global.u64 %rd4, %rd4;
    ld.param.u64 %rd5, [c]; cvta.to.global.u64 %rd5, %rd5;
    ld.param.u64 %rd6, [ar]; ld.param.u64 %rd7, [ac]; ld.param.u64 %rd8, [br]; ld.param.u64 %rd9, [bc];
    ld.param.u64 %rd10, [ldc];
    mul.lo.u64 %rd6, %rd6, {bytes}; mul.lo.u64 %rd7, %rd7, {bytes};
    mul.lo.u64 %rd8, %rd8, {bytes}; mul.lo.u64 %rd9, %rd9, {bytes};
    mul.lo.u64 %rd11, %rd1, %rd6; add.u64 %rd3, %rd3, %rd11;
    mul.lo.u64 %rd11, %rd2, %rd9; add.u64 %rd4, %rd4, %rd11;
    mul.lo.u64 %rd11, %rd2, %rd10; add.u64 %rd11, %rd11, %rd1; mul.lo.u64 %rd11, %rd11, {bytes};
    add.u64 %rd5, %rd5, %rd11;
    ld.param.{ty} %x1, [alpha]; ld.param.{ty} %x2, [beta];
    mov.{ty} %x3, {zero};
    setp.eq.{ty} %p2, %x1, {zero}; @%p2 bra summed;
    mov.u32 %r11, 0;
next:
    setp.ge.u32 %p1, %r11, %r3; @%p1 bra summed;
    ld.global.{ty} %x4, [%rd3]; ld.global.{ty} %x5, [%rd4];
    fma.rn.{ty} %x3, %x4, %x5, %x3;
    add.u64 %rd3, %rd3, %rd7; add.u64 %rd4, %rd4, %rd8; add.u32 %r11, %r11, 1;
    bra next;
summed:
    mul.rn.{ty} %x3, %x3, %x1;
    setp.eq.{ty} %p2, %x2, {zero}; @%p2 bra write;
    ld.global.{ty} %x6, [%rd5];
    fma.rn.{ty} %x3, %x6, %x2, %x3;
write:
    st.global.{ty} [%rd5], %x3;
done:
    ret;
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product() -> Product {
        let (sizes, ld) = ([3, 4, 5], [3, 5, 3]);
        Product { real: Real::F32, trans: [0, 0], sizes, scalars: [1.0, 0.0], at: [256, 512, 768], ld }
    }

    #[test]
    fn what_the_library_refuses_is_refused() {
        assert_eq!(product().check(), Ok(true));
        let wrong = |change: fn(&mut Product)| {
            let mut product = product();
            change(&mut product);
            product.check()
        };
        let refused = Err(Status::InvalidValue);
        assert_eq!(wrong(|p| p.trans = [3, 0]), refused);
        assert_eq!(wrong(|p| p.sizes = [3, -1, 5]), refused);
        for at in 0..3 {
            let mut product = product();
            product.ld[at] -= 1;
            assert_eq!(product.check(), refused, "leading dimension {at}");
            let mut product = Product { ld: [8; 3], ..product };
            product.at[at] = 0;
            assert_eq!(product.check(), refused, "matrix {at}");
            product.at[at] = 258;
            assert_eq!(product.check(), refused, "alignment {at}");
        }
        // A transposed matrix is stored by its other side.
        assert_eq!(wrong(|p| (p.trans, p.ld) = ([1, 1], [5, 4, 3])), Ok(true));
        assert_eq!(wrong(|p| p.trans = [1, 1]), refused);
        // Nothing to compute, and nothing to read.
        assert_eq!(wrong(|p| (p.sizes, p.at) = ([0, 4, 5], [0; 3])), Ok(false));
        assert_eq!(wrong(|p| (p.sizes, p.at) = ([3, 4, 0], [0, 0, 768])), Ok(true));
        for which in ["m,n", "a,b", "lda,ldb", "alpha,beta"] {
            let mut swapped = product();
            swapped.swap(which);
            assert_ne!(swapped, product(), "{which}");
        }
    }

    #[test]
    fn strides_follow_the_transpositions() {
        let strides = |trans| Product { trans, ..product() }.strides();
        assert_eq!((strides([0, 0]), strides([1, 2])), ([1, 3, 1, 5], [3, 1, 5, 1]));
    }
}
