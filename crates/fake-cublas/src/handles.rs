//! Handles and what they stand for. Nothing here is unsafe: pointers end in [`exports`](crate::exports).

use crate::numbers::{Data, Numbers};
use crate::product::{Answer, Product, Status, refused};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Memory that a call may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Workspace {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

impl Workspace {
    /// Refuses what the library refuses: bytes nowhere, or not aligned to so many.
    pub(crate) fn check(self, align: u64) -> Answer<Self> {
        let Self { at, bytes } = self;
        if bytes > 0 && (at == 0 || at % align != 0) {
            return refused(&format!("a workspace of {bytes} bytes at {at:#x}, aligned to less than {align}"));
        }
        Ok(self)
    }
}

/// `cublasLtMatmulDesc_t`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    pub(crate) compute: u32,
    pub(crate) scale: u32,
    pub(crate) trans: [u32; 2],
}

/// `cublasLtMatrixLayout_t`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) data: Data,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    pub(crate) ld: i64,
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    /// `cublasHandle_t`.
    Blas {
        stream: u64,
        workspace: Workspace,
    },
    /// `cublasLtHandle_t`.
    Light,
    Description(Description),
    Layout(Layout),
    /// `cublasLtMatmulPreference_t`: the most bytes of a workspace.
    Preference(u64),
}

static KNOWN: LazyLock<Mutex<HashMap<u64, Object>>> = LazyLock::new(Mutex::default);

fn known() -> MutexGuard<'static, HashMap<u64, Object>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps an object; its handle looks like an address and is nobody's null.
pub(crate) fn make(object: Object) -> u64 {
    let mut known = known();
    let handle = 0x4000 + 32 * known.len() as u64;
    known.insert(handle, object);
    handle
}

/// What a handle stands for.
pub(crate) fn get(handle: u64) -> Answer<Object> {
    known().get(&handle).copied().ok_or(Status::NotInitialized)
}

/// Changes what a handle stands for.
pub(crate) fn change(handle: u64, how: impl FnOnce(&mut Object) -> Answer<()>) -> Answer<()> {
    how(known().get_mut(&handle).ok_or(Status::NotInitialized)?)
}

pub(crate) fn description(handle: u64) -> Answer<Description> {
    match get(handle) {
        Ok(Object::Description(description)) => Ok(description),
        other => refused(&format!("{other:?} is no description of a product")),
    }
}

pub(crate) fn layout(handle: u64) -> Answer<Layout> {
    match get(handle) {
        Ok(Object::Layout(layout)) => Ok(layout),
        other => refused(&format!("{other:?} is no layout")),
    }
}

/// The product that a description and the layouts of A, B, C and D describe, at no addresses yet.
pub(crate) fn described(description: Description, [a, b, c, d]: [Layout; 4]) -> Answer<Product> {
    let scale = Data::of(description.scale)?;
    let numbers = Numbers::of(description.compute, scale, [a, b, c, d].map(|layout| layout.data))?;
    let turned = |layout: Layout, trans: u32| match trans {
        0 => [layout.rows, layout.columns],
        _ => [layout.columns, layout.rows],
    };
    let ([m, k], [k_of_b, n]) = (turned(a, description.trans[0]), turned(b, description.trans[1]));
    let outputs = [c, d].map(|layout| [layout.rows, layout.columns]);
    if k != k_of_b || outputs != [[m, n]; 2] || c.ld != d.ld {
        return refused(&format!("{m} x {k} times {k_of_b} x {n} into {c:?} and {d:?}"));
    }
    let (sizes, ld) = ([m, n, k], [a.ld, b.ld, c.ld]);
    Ok(Product { numbers, trans: description.trans, sizes, scalars: [0.0; 2], at: [0; 3], ld })
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Description = Description { compute: 68, scale: 0, trans: [1, 0] };

    fn layout(rows: i64, columns: i64, ld: i64) -> Layout {
        Layout { data: Data::F32, rows, columns, ld }
    }

    #[test]
    fn layouts_and_descriptions_go_together() {
        let (a, b, c) = (layout(5, 3, 6), layout(5, 4, 5), layout(3, 4, 3));
        let product = described(F32, [a, b, c, c]).unwrap();
        assert_eq!((product.sizes, product.ld, product.trans), ([3, 4, 5], [6, 5, 3], [1, 0]));
        let refused = |description, layouts| described(description, layouts).unwrap_err();
        assert_eq!(refused(Description { trans: [0, 0], ..F32 }, [a, b, c, c]), Status::InvalidValue);
        assert_eq!(refused(F32, [b, a, c, c]), Status::InvalidValue);
        assert_eq!(refused(F32, [a, b, layout(4, 3, 4), c]), Status::InvalidValue);
        assert_eq!(refused(Description { compute: 70, ..F32 }, [a, b, c, c]), Status::NotSupported);
        // TF32 is another compute type.
        assert_ne!(described(Description { compute: 77, ..F32 }, [a, b, c, c]).unwrap().numbers, product.numbers);
        assert_eq!(refused(Description { scale: 1, compute: 70, ..F32 }, [a, b, c, c]), Status::NotSupported);
        assert_eq!(refused(Description { scale: 99, ..F32 }, [a, b, c, c]), Status::InvalidValue);
    }

    #[test]
    fn handles_are_those_that_were_made() {
        let light = make(Object::Light);
        assert!(matches!(get(light), Ok(Object::Light)));
        assert_eq!(
            (get(7).unwrap_err(), description(light).unwrap_err()),
            (Status::NotInitialized, Status::InvalidValue)
        );
        assert_eq!(Workspace { at: 0x1000, bytes: 5 }.check(256), Ok(Workspace { at: 0x1000, bytes: 5 }));
        assert_eq!(Workspace { at: 0x1010, bytes: 5 }.check(256), Err(Status::InvalidValue));
    }
}
