//! A kernel with its sizes.

use crate::error::LoopError;
use crate::kernel::{Array, LoopKernel, Mapping, Place, Stmt, visit};
use crate::size::Sizes;
use std::collections::BTreeMap;
use tilewright_core::buffer::{Buffer, BufferSpec, Role, Workload};
use tilewright_core::dtype::DType;

/// Most elements of an array, and most iterations of a loop: generated code counts in 32 bits.
const MOST: i64 = i32::MAX as i64;

/// Most threads of a group.
const MOST_THREADS: i64 = 1024;

/// A kernel whose sizes are given and checked: every access is inside of its array.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    kernel: LoopKernel,
    sizes: Sizes,
    extents: BTreeMap<&'static str, i64>,
    shapes: BTreeMap<&'static str, Vec<i64>>,
}

impl Instance {
    /// Gives a kernel its sizes.
    ///
    /// # Errors
    /// A fault of the kernel ([`LoopKernel::check`]), a size that is missing or out of range, a quotient with a remainder, an
    /// index that leaves its array.
    pub fn new(kernel: LoopKernel, sizes: &Sizes) -> Result<Self, LoopError> {
        kernel.check()?;
        for (name, of) in &kernel.multiples {
            let value = crate::size::Size::Named(name).eval(name, sizes)?;
            if value % i64::from(*of) != 0 {
                return Err(LoopError::Indivisible { of: format!("size {name}"), value, by: i64::from(*of) });
            }
        }
        let within = |of: String, value: i64| {
            let range = (1..=MOST).contains(&value);
            if range { Ok(value) } else { Err(LoopError::Range { of, value, min: 1, max: MOST }) }
        };
        let mut extents = BTreeMap::new();
        for l in &kernel.loops {
            let of = format!("loop {}", l.index);
            extents.insert(l.index, within(of.clone(), l.extent.eval(&of, sizes)?)?);
        }
        let mut shapes = BTreeMap::new();
        for array in &kernel.arrays {
            let of = format!("array {}", array.name);
            let shape: Vec<i64> = array.shape.iter().map(|s| s.eval(&of, sizes)).collect::<Result<_, _>>()?;
            let len = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
            within(of.clone(), len.ok_or_else(|| LoopError::overflow(of))?)?;
            shapes.insert(array.name, shape);
        }
        let instance = Self { sizes: sizes.clone(), extents, shapes, kernel };
        instance.threads_fit()?;
        instance.bounds()?;
        Ok(instance)
    }

    fn threads_fit(&self) -> Result<(), LoopError> {
        let value = self.threads();
        if value > MOST_THREADS {
            return Err(LoopError::Range { of: "threads of a group".to_owned(), value, min: 1, max: MOST_THREADS });
        }
        Ok(())
    }

    fn bounds(&self) -> Result<(), LoopError> {
        let mut fault = Ok(());
        visit(&self.kernel.body, &mut |stmt| {
            let mut check = |array: &str, dim: usize, (low, high): (i64, i64)| {
                let extent = self.shapes.get(array).and_then(|s| s.get(dim)).copied().unwrap_or(0);
                if fault.is_ok() && (low < 0 || high >= extent) {
                    fault = Err(LoopError::Bounds { array: array.to_owned(), dim, low, high, extent });
                }
            };
            stmt.accesses(&mut |access, _| {
                access.at.iter().enumerate().for_each(|(d, a)| check(access.array, d, a.range(|i| self.extent(i))));
            });
            if let Stmt::Fetch { tile, from, origin, extents } = stmt {
                for (dim, (at, extent)) in origin.iter().zip(extents).enumerate() {
                    let (low, high) = at.range(|i| self.extent(i));
                    check(from, dim, (low, high + extent - 1));
                    check(tile, dim, (0, extent - 1));
                }
            }
        });
        fault
    }

    /// The kernel.
    pub fn kernel(&self) -> &LoopKernel {
        &self.kernel
    }

    /// The sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Iterations of a loop; 1 for an unknown one.
    pub fn extent(&self, index: &str) -> i64 {
        self.extents.get(index).copied().unwrap_or(1)
    }

    /// Extents of an array; none for an unknown one.
    pub fn shape(&self, array: &str) -> &[i64] {
        self.shapes.get(array).map_or(&[], Vec::as_slice)
    }

    /// Elements from one index of a dimension to the next.
    pub fn stride(&self, array: &Array, dim: usize) -> i64 {
        array.stride(dim).eval(array.name, &self.sizes).unwrap_or(0)
    }

    /// Elements of an array from its first to the one that an access reaches, as `(index, factor)` and a constant.
    pub fn offset(&self, array: &Array, at: &[crate::affine::Affine]) -> crate::affine::Affine {
        let dims = at.iter().enumerate();
        dims.fold(crate::affine::Affine::from(0), |sum, (d, a)| sum + a.clone() * self.stride(array, d))
    }

    fn along(&self, wanted: impl Fn(Mapping) -> Option<crate::kernel::Axis>) -> [i64; 3] {
        let mut out = [1; 3];
        for l in &self.kernel.loops {
            if let Some(axis) = wanted(l.mapping) {
                out[axis as usize] = self.extent(l.index);
            }
        }
        out
    }

    /// Groups along each axis.
    pub fn grid(&self) -> [i64; 3] {
        self.along(|m| if let Mapping::Group(axis) = m { Some(axis) } else { None })
    }

    /// Threads of a group along each axis.
    pub fn block(&self) -> [i64; 3] {
        self.along(|m| if let Mapping::Thread(axis) = m { Some(axis) } else { None })
    }

    /// Threads of a group.
    pub fn threads(&self) -> i64 {
        self.block().iter().product()
    }

    /// Groups of the grid.
    pub fn groups(&self) -> i64 {
        self.grid().iter().fold(1, |product, extent| product.saturating_mul(*extent))
    }

    /// The buffers of the arrays in device memory, in their order.
    pub fn buffers(&self) -> Vec<BufferSpec> {
        let spec = |(array, role): (&Array, Role)| {
            let len = self.shape(array.name).iter().product::<i64>();
            BufferSpec { name: array.name, dtype: array.dtype, len: usize::try_from(len).unwrap_or(0), role }
        };
        self.kernel.globals().map(spec).collect()
    }

    /// Data: reals in [-1, 1) that look random and follow from the seed; what is only written is poisoned with NaN.
    pub fn workload(&self, seed: u64) -> Workload {
        let specs = self.buffers();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let mut next = move || {
            // SplitMix64: enough for data, and core may depend on no generator.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 40) as f64 / f64::from(1u32 << 23) - 1.0
        };
        let buffers = specs.iter().map(|spec| {
            let mut buffer = Buffer::zeroed(spec.dtype, spec.len);
            let poisoned = spec.role == Role::Out;
            match spec.dtype {
                DType::F64 => buffer.as_mut_slice::<f64>().fill_with(|| if poisoned { f64::NAN } else { next() }),
                _ => buffer.as_mut_slice::<f32>().fill_with(|| if poisoned { f32::NAN } else { next() as f32 }),
            }
            buffer
        });
        Workload { buffers: buffers.collect(), specs, scalars: Vec::new() }
    }

    /// Bytes of shared memory of a group, and where each shared array begins in them, aligned to 16 bytes.
    pub fn shared_layout(&self) -> (i64, BTreeMap<&'static str, i64>) {
        let mut at = 0;
        let mut places = BTreeMap::new();
        for array in self.kernel.arrays.iter().filter(|a| a.place == Place::Shared) {
            places.insert(array.name, at);
            let bytes = self.shape(array.name).iter().product::<i64>() * array.dtype.size() as i64;
            at += (bytes + 15) / 16 * 16;
        }
        (at, places)
    }
}
