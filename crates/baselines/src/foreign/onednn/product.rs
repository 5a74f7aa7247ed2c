//! Products of matrices by oneDNN's `matmul`.

use super::{Argument, CallError, OneDnn, Owned, Tensor, UNIMPLEMENTED, checked};
use std::ffi::{c_int, c_void};

/// What elements of a matrix are; the values are the library's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    F16 = 1,
    Bf16 = 2,
    F32 = 3,
    I32 = 4,
    I8 = 5,
}

impl ElementKind {
    const fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }
}

/// Source, weights and destination: `destination = source · weights`.
const ROLES: [c_int; 3] = [1, 33, 17];
const WRITTEN: usize = 2;

/// A product of three matrices, in this order: the first factor, the second, the result.
#[derive(Clone, Debug)]
pub(crate) struct ProductDescription {
    pub(crate) matrices: [(Tensor, ElementKind); 3],
    pub(crate) threads: usize,
}

/// A product, ready to run.
pub(crate) struct Product {
    library: &'static OneDnn,
    primitive: Owned,
    memories: [Owned; 3],
    /// Bytes from the first element of each matrix to behind its last.
    reaches: [usize; 3],
    threads: usize,
}

impl OneDnn {
    /// Makes the code of a product.
    pub(crate) fn product(&'static self, of: &ProductDescription) -> Result<Product, CallError> {
        let mut reaches = [0; 3];
        for (reach, (tensor, kind)) in reaches.iter_mut().zip(&of.matrices) {
            let elements = tensor.reach().ok_or(CallError { what: "matrices of nothing", status: 2 })?;
            *reach = elements * kind.bytes();
        }
        let _held = self.hold(of.threads);
        let descriptor = |at: usize| {
            let (tensor, kind) = &of.matrices[at];
            self.descriptor(tensor, *kind as c_int, false)
        };
        let all = [descriptor(0)?, descriptor(1)?, descriptor(2)?];
        let [a, b, c] = [&all[0], &all[1], &all[2]].map(|owned| owned.object);
        let none = std::ptr::null_mut();
        let chosen = Owned::new("a product", self.api.primitive_desc_destroy, |out| {
            // SAFETY: descriptors are alive, and bias and attributes may be null.
            unsafe { (self.api.matmul_primitive_desc_create)(out, self.engine, a, b, none, c, none) }
        })?;
        if self.is_reference(&chosen) {
            return Err(CallError { what: "other than its reference code", status: UNIMPLEMENTED });
        }
        let memory = |of| self.memory(of, std::ptr::null_mut());
        let primitive = self.primitive(&chosen)?;
        Ok(Product {
            library: self,
            primitive,
            memories: [memory(a)?, memory(b)?, memory(c)?],
            reaches,
            threads: of.threads,
        })
    }
}

impl Product {
    /// Runs on the bytes of the two factors and of the result.
    pub(crate) fn run(&self, factors: [&[u8]; 2], result: &mut [u8]) -> Result<(), CallError> {
        let library = self.library;
        let _held = library.hold(self.threads);
        let [a, b] = factors.map(|bytes| (bytes.as_ptr().cast_mut(), bytes.len()));
        let data = [a, b, (result.as_mut_ptr(), result.len())];
        for ((pointer, len), (memory, reach)) in data.into_iter().zip(self.memories.iter().zip(self.reaches)) {
            if len < reach {
                return Err(CallError { what: "a slice that is too short", status: 2 });
            }
            // SAFETY: the slice reaches as far as the descriptor. What is borrowed as read is only read: its role is an input's.
            let status = unsafe { (library.api.memory_set_data_handle)(memory.object, pointer.cast::<c_void>()) };
            checked("the caller's data", status)?;
        }
        let arguments = [0, 1, WRITTEN].map(|at| Argument { role: ROLES[at], memory: self.memories[at].object });
        library.execute("a product", &self.primitive, &arguments)?;
        // SAFETY: the stream is alive.
        checked("waiting", unsafe { (library.api.stream_wait)(library.stream) })
    }
}
