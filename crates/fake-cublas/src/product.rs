//! A product as callers describe it, and what of it is refused.

use crate::numbers::{Data, Numbers};

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

/// A product `C = alpha op(A) op(B) + beta C`, column by column. Sizes are as the caller gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Product {
    pub(crate) numbers: Numbers,
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
        let [operand, output] = [self.numbers.operand, self.numbers.output].map(Data::bytes);
        if self.at.iter().zip([operand, operand, output]).any(|(at, bytes)| at % bytes != 0) {
            return refused(&format!("matrices at {:x?} are not aligned to their elements", self.at));
        }
        let [bytes, elements] = self.numbers.multiples();
        if self.at[..2].iter().any(|at| at % bytes != 0)
            || self.ld[..2].iter().any(|ld| !(*ld as u64).is_multiple_of(elements))
        {
            eprintln!("fake cuBLAS: matrices at {:x?} with leading dimensions {:?}", self.at, self.ld);
            return Err(Status::NotSupported);
        }
        Ok(true)
    }

    /// Which operands are conjugated.
    pub(crate) fn conjugated(&self) -> [bool; 2] {
        self.trans.map(|trans| trans == 2 && self.numbers.operand.is_complex())
    }

    /// Distances between rows and between columns of op(A) and op(B), in elements.
    pub(crate) fn strides(&self) -> [u64; 4] {
        let of = |trans: u32, ld: i64| if trans > 0 { [ld as u64, 1] } else { [1, ld as u64] };
        let ([a_row, a_column], [b_row, b_column]) = (of(self.trans[0], self.ld[0]), of(self.trans[1], self.ld[1]));
        [a_row, a_column, b_row, b_column]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product() -> Product {
        let (sizes, ld) = ([3, 4, 5], [3, 5, 3]);
        Product {
            numbers: Numbers::plain(Data::F32),
            trans: [0, 0],
            sizes,
            scalars: [1.0, 0.0],
            at: [256, 512, 768],
            ld,
        }
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
