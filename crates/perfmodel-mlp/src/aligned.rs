//! A buffer that starts on a cache line, so that no SIMD load of a panel straddles two lines.

/// Bytes of a cache line, and of the widest SIMD vector.
const LINE: usize = 64;

/// Zeroed floats whose first element lies on a cache line.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    floats: Vec<f32>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    pub(crate) fn zeroed(len: usize) -> Self {
        let floats = vec![0.0f32; len + LINE / size_of::<f32>()];
        // The offset may be refused (`usize::MAX`) by contract; an unaligned buffer is then still correct.
        let start = floats.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
        Self { floats, start, len }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.floats[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_has_its_length() {
        for len in [0, 1, 7, 4096] {
            let mut buffer = AlignedBuffer::zeroed(len);
            let slice = buffer.as_mut_slice();
            assert_eq!(slice.len(), len);
            assert_eq!(slice.as_ptr() as usize % LINE, 0);
        }
    }
}
