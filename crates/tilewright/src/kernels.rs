//! The kernels that Tilewright brings, by the names of their computations.

use crate::error::Error;
use std::collections::BTreeSet;
use std::sync::Arc;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::Language;
use tilewright_cpu::{CpuAmx, CpuAxpy, CpuConv, CpuDepthwise, CpuDot, CpuGemm, CpuSmall, CpuWinograd};
use tilewright_ptxgen::bacugen::BacugenGemm;
use tilewright_ptxgen::conv::{DirectConv, SimtConv, WinogradConv};
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::mma::MmaGemm;
use tilewright_user::UserKernel;

/// A kernel, and the kinds of devices that it has code for.
#[derive(Clone)]
struct Entry {
    kernel: Arc<dyn AnyKernel>,
    runs_on: &'static [DeviceKind],
    /// The file that describes it, as it was named.
    file: Option<String>,
}

/// Kernels by the names of their computations and their own, and by the devices that they run on.
#[derive(Clone)]
pub struct Kernels {
    generated: Vec<Entry>,
    libraries: Libraries,
}

/// The kernels that the libraries of a machine have of a computation on a device.
pub type Libraries = fn(computation: &str, device: &DeviceSpec) -> Vec<Arc<dyn AnyKernel>>;

impl Default for Kernels {
    fn default() -> Self {
        // The descriptions are constants of their crate; a test builds them.
        let six = tilewright_computations::kernels().unwrap_or_else(|e| unreachable!("the six computations: {e}"));
        let six =
            six.into_iter().map(|kernel| Entry { kernel: kernel.into(), runs_on: &[DeviceKind::Cpu], file: None });
        let own = [
            Entry { kernel: Arc::new(Erased::new(CpuGemm::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuSmall::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuDot::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuAxpy::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuGemm::complex())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuGemm::three_m())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuGemm::narrow())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuAmx::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry {
                kernel: Arc::new(Erased::new(SimtGemm::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                file: None,
            },
            Entry {
                kernel: Arc::new(Erased::new(MmaGemm::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                file: None,
            },
            Entry {
                kernel: Arc::new(Erased::new(BacugenGemm::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                file: None,
            },
            Entry { kernel: Arc::new(Erased::new(CpuConv::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuWinograd::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry { kernel: Arc::new(Erased::new(CpuDepthwise::new())), runs_on: &[DeviceKind::Cpu], file: None },
            Entry {
                kernel: Arc::new(Erased::new(SimtConv::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                file: None,
            },
            Entry {
                kernel: Arc::new(Erased::new(WinogradConv::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                file: None,
            },
            Entry {
                kernel: Arc::new(Erased::new(DirectConv::new())),
                runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                file: None,
            },
        ];
        Self { generated: own.into_iter().chain(six).collect(), libraries: tilewright_baselines::kernels }
    }
}

impl Kernels {
    /// With a kernel that a file describes, found by the file's name as it was written.
    #[must_use]
    pub fn with_described(mut self, file: &str, kernel: &UserKernel) -> Self {
        let is_host = matches!(kernel.language(), Some(Language::C | Language::Cpp));
        let runs_on: &[DeviceKind] =
            if is_host { &[DeviceKind::Cpu] } else { &[DeviceKind::Cuda, DeviceKind::Emulator] };
        self.generated.push(Entry { kernel: kernel.erased(), runs_on, file: Some(file.to_owned()) });
        self
    }

    /// All kernels that a computation has on a kind of device, or the one of this name, with or without its version.
    ///
    /// # Errors
    /// No kernel and no computation has the name, or none of them has code for the device.
    pub fn variants(&self, name: &str, on: DeviceKind) -> Result<Vec<&Arc<dyn AnyKernel>>, Error> {
        let mut found: Vec<&Entry> = self.generated.iter().filter(|e| e.is_called(name)).collect();
        if found.is_empty() {
            let known: BTreeSet<String> = self.generated.iter().map(|e| e.kernel.computation().to_string()).collect();
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

    /// Finds the routines of libraries by another way.
    #[must_use]
    pub fn with_libraries(mut self, libraries: Libraries) -> Self {
        self.libraries = libraries;
        self
    }

    /// The routines of libraries found on this machine for a computation, or the one of this name, as kernels.
    pub fn libraries(&self, name: &str, device: &DeviceSpec) -> Vec<Arc<dyn AnyKernel>> {
        let computation = name.split_once('.').map_or(name, |(computation, _)| computation);
        let mut found = (self.libraries)(computation, device);
        found.retain(|kernel| is_called(&**kernel, name));
        found
    }

    /// The kernels that compete on a device for the inputs of a computation, or the one of this name. Routines of libraries come
    /// last, where they are asked for or the name is one's own.
    ///
    /// # Errors
    /// As [`Kernels::variants`].
    pub fn competing(
        &self,
        name: &str,
        device: &DeviceSpec,
        with_libraries: bool,
    ) -> Result<Vec<Arc<dyn AnyKernel>>, Error> {
        let generated = self.variants(name, device.kind);
        if generated.is_ok() && !with_libraries {
            return Ok(generated?.into_iter().cloned().collect());
        }
        let libraries = self.libraries(name, device);
        if libraries.is_empty() || (!with_libraries && !libraries.iter().all(|kernel| is_variant(&**kernel, name))) {
            return Ok(generated?.into_iter().cloned().collect());
        }
        Ok(generated.unwrap_or_default().into_iter().cloned().chain(libraries).collect())
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

impl Entry {
    fn is_called(&self, name: &str) -> bool {
        self.file.as_deref() == Some(name) || is_called(&*self.kernel, name)
    }
}

/// Whether a kernel goes by this name: its computation's, or its own.
fn is_called(kernel: &dyn AnyKernel, name: &str) -> bool {
    kernel.computation().as_str() == name || is_variant(kernel, name)
}

/// The one of these kernels that has the name, with or without the version.
///
/// # Errors
/// None of them has it.
pub fn named<'k>(kernels: &'k [Arc<dyn AnyKernel>], name: &str) -> Result<&'k Arc<dyn AnyKernel>, Error> {
    let found = kernels.iter().find(|kernel| is_variant(&***kernel, name));
    found.ok_or_else(|| Error::UnknownKernel { name: name.to_owned(), known: names(kernels.iter()) })
}

/// Whether this is a kernel's own name, with or without the version.
fn is_variant(kernel: &dyn AnyKernel, name: &str) -> bool {
    let id = kernel.id();
    let family = id.as_str().rsplit_once('.').map(|(family, _)| family);
    id.as_str() == name || family == Some(name)
}
