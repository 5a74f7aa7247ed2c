//! The kernels that Tilewright brings, by the names of their computations.

use crate::error::Error;
use std::collections::BTreeSet;
use std::sync::Arc;
use tilewright_core::device::DeviceKind;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_cpu::CpuGemm;
use tilewright_ptxgen::gemm::SimtGemm;

/// A kernel, and the kinds of devices that it has code for.
#[derive(Clone)]
struct Entry {
    kernel: Arc<dyn AnyKernel>,
    runs_on: &'static [DeviceKind],
}

/// Kernels by the names of their computations and their own, and by the devices that they run on.
#[derive(Clone)]
pub struct Kernels(Vec<Entry>);

impl Default for Kernels {
    fn default() -> Self {
        // The descriptions are constants of their crate; a test builds them.
        let six = tilewright_computations::kernels().unwrap_or_else(|e| unreachable!("the six computations: {e}"));
        let six = six.into_iter().map(|kernel| Entry { kernel: kernel.into(), runs_on: &[DeviceKind::Cpu] });
        let gemm = [
            Entry { kernel: Arc::new(Erased::new(CpuGemm::new())), runs_on: &[DeviceKind::Cpu] },
            Entry {
                kernel: Arc::new(Erased::new(SimtGemm::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
            },
        ];
        Self(gemm.into_iter().chain(six).collect())
    }
}

impl Kernels {
    /// All kernels that a computation has on a kind of device, or the one of this name, with or without its version.
    ///
    /// # Errors
    /// No kernel and no computation has the name, or none of them has code for the device.
    pub fn variants(&self, name: &str, on: DeviceKind) -> Result<Vec<&Arc<dyn AnyKernel>>, Error> {
        let mut found: Vec<&Entry> = self.0.iter().filter(|e| is_called(&*e.kernel, name)).collect();
        if found.is_empty() {
            let known: BTreeSet<String> = self.0.iter().map(|e| e.kernel.computation().to_string()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownKernel { name: name.to_owned(), known });
        }
        let kernels = names(found.iter().map(|e| &e.kernel));
        found.retain(|e| e.runs_on.contains(&on));
        if found.is_empty() {
            return Err(Error::NoCode { kernels, on });
        }
        Ok(found.into_iter().map(|e| &e.kernel).collect())
    }

    /// One of the kernels of a computation on a kind of device: the named one, or the first.
    ///
    /// # Errors
    /// As [`Kernels::variants`], and a name that none of them has.
    pub fn variant(&self, name: &str, variant: Option<&str>, on: DeviceKind) -> Result<&Arc<dyn AnyKernel>, Error> {
        let found = self.variants(name, on)?;
        let Some(variant) = variant else { return Ok(found[0]) };
        let chosen = found.iter().find(|kernel| is_variant(&****kernel, variant));
        chosen.copied().ok_or_else(|| Error::UnknownVariant {
            name: name.to_owned(),
            variant: variant.to_owned(),
            on,
            known: names(found.into_iter()),
        })
    }
}

fn names<'k>(kernels: impl Iterator<Item = &'k Arc<dyn AnyKernel>>) -> String {
    kernels.map(|kernel| kernel.id().to_string()).collect::<Vec<_>>().join(", ")
}

/// Whether a kernel goes by this name: its computation's, or its own.
fn is_called(kernel: &dyn AnyKernel, name: &str) -> bool {
    kernel.computation().as_str() == name || is_variant(kernel, name)
}

/// Whether this is a kernel's own name, with or without the version.
fn is_variant(kernel: &dyn AnyKernel, name: &str) -> bool {
    let id = kernel.id();
    let family = id.as_str().rsplit_once('.').map(|(family, _)| family);
    id.as_str() == name || family == Some(name)
}
