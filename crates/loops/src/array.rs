//! Arrays.

use crate::size::Size;
use tilewright_core::buffer::Role;
use tilewright_core::dtype::DType;

/// Which index of an array runs over neighbouring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last.
    RowMajor,
    /// The first.
    ColumnMajor,
}

/// Where an array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In device memory, for everybody; with what kernels do with it.
    Global(Role),
    /// In the memory of a group. Its extents are constants.
    Shared,
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name.
    pub name: &'static str,
    /// Element type: f32 or f64.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<Size>,
    /// How they lie in memory.
    pub order: Order,
    /// Where it lies.
    pub place: Place,
}

impl Array {
    /// A row-major array.
    pub fn new<S: Into<Size>>(
        name: &'static str,
        dtype: DType,
        shape: impl IntoIterator<Item = S>,
        role: Role,
    ) -> Self {
        let shape = shape.into_iter().map(Into::into).collect();
        Self { name, dtype, shape, order: Order::RowMajor, place: Place::Global(role) }
    }

    /// A row-major array that is only read.
    pub fn input<S: Into<Size>>(name: &'static str, dtype: DType, shape: impl IntoIterator<Item = S>) -> Self {
        Self::new(name, dtype, shape, Role::In)
    }

    /// A row-major array of which every element that is read was written by the kernel before.
    pub fn output<S: Into<Size>>(name: &'static str, dtype: DType, shape: impl IntoIterator<Item = S>) -> Self {
        Self::new(name, dtype, shape, Role::Out)
    }

    /// A row-major array in the memory of each group.
    pub fn shared(name: &'static str, dtype: DType, shape: impl IntoIterator<Item = i64>) -> Self {
        let shape = shape.into_iter().map(Size::from).collect();
        Self { name, dtype, shape, order: Order::RowMajor, place: Place::Shared }
    }

    /// The same with the first index over neighbouring elements.
    #[must_use]
    pub fn column_major(mut self) -> Self {
        self.order = Order::ColumnMajor;
        self
    }

    /// Elements from one index of a dimension to the next.
    pub fn stride(&self, dim: usize) -> Size {
        let inner = match self.order {
            Order::RowMajor => &self.shape[(dim + 1).min(self.shape.len())..],
            Order::ColumnMajor => &self.shape[..dim.min(self.shape.len())],
        };
        inner.iter().fold(Size::Const(1), |product, extent| product * extent.clone())
    }

    /// Number of elements.
    pub fn len(&self) -> Size {
        self.shape.iter().fold(Size::Const(1), |product, extent| product * extent.clone())
    }

    /// Whether it has no dimensions, and thus one element; never empty.
    pub fn is_empty(&self) -> bool {
        false
    }
}
