//! What programs of described kernels do: nothing says it symbolically, so somebody runs them and counts.

use crate::computation::InputOfUser;
use crate::inputs::Given;
use crate::kernel::{Inner, UserKernel};
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::operations::Operations;
use tilewright_core::program::Program;

/// Counts what programs do.
pub trait Counter: Send + Sync {
    /// How often a program on these data does what takes time on a device; `None` where that cannot be said.
    fn count(&self, device: &DeviceSpec, program: &Program, data: &Arc<Workload>) -> Option<Operations>;
}

/// A counter, and the data of the input that it counted last: a search asks about many configurations of one input.
pub(crate) struct Counted {
    counter: Box<dyn Counter>,
    data: Mutex<Option<(Given, Arc<Workload>)>>,
}

impl UserKernel {
    /// The same kernel, with counts by which a linear model predicts what was never measured.
    ///
    /// # Panics
    /// If the kernel is in use already.
    #[must_use]
    pub fn counted_by(mut self, counter: Box<dyn Counter>) -> Self {
        let Some(inner) = Arc::get_mut(&mut self.0) else { panic!("the counts of a kernel that is in use") };
        inner.counted = Some(Counted { counter, data: Mutex::new(None) });
        self
    }

    /// What a program of the kernel does for an input.
    pub(crate) fn count(&self, device: &DeviceSpec, input: &InputOfUser, program: &Program) -> Option<Operations> {
        let Inner { counted, text, .. } = &*self.0;
        let counted = counted.as_ref().filter(|_| !text.is_host() && device.kind != DeviceKind::Cpu)?;
        let data = {
            let mut known = counted.data.lock().unwrap_or_else(PoisonError::into_inner);
            match &*known {
                Some((of, data)) if *of == input.0 => data.clone(),
                _ => {
                    let data = Arc::new(self.workload(input, Filling::Real, 0));
                    *known = Some((input.0.clone(), data.clone()));
                    data
                }
            }
        };
        counted.counter.count(device, program, &data)
    }
}
