//! Which devices and kernels there are: the only place that names backends.

use crate::args::{DeviceArgs, ModelKind};
use crate::device::{DeviceName, Opened};
use crate::failure::{Failure, Kind};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tilewright_calibration::WeightStore;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Erased, Measure, Problem};
use tilewright_core::space::Config;
use tilewright_cpu::CpuGemm;
use tilewright_perfmodel_linear::LinearModel;
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_runtime::plan::{Ranking, Sampling};
use tilewright_runtime::store::{Home, Profile, ProfileStore, checksum};
use tilewright_runtime::trainer::{MlpTrainer, OverLinear, Trainer, Trainers};
use tilewright_runtime::{Live, RuntimeError};
use tilewright_sampler::{Chained, Exact, Sampler, Settings};

/// A kernel, and the devices that it runs on.
struct Entry {
    kernel: Box<dyn AnyKernel>,
    runs_on: &'static [DeviceKind],
}

/// What ranks the configurations of a kernel.
pub(crate) struct Adviser<'w> {
    pub(crate) kernel: &'w dyn AnyKernel,
    /// None where nothing is known.
    pub(crate) predictor: Option<Box<dyn Predictor>>,
    /// What the predictor is asked about.
    pub(crate) ranking: Ranking,
    /// Checksum of the file that the predictor was read from.
    pub(crate) origin: Option<String>,
}

impl Adviser<'_> {
    /// Whether the predictor was fitted on measurements of the kernel.
    pub(crate) fn is_profile(&self) -> bool {
        self.predictor.as_ref().is_some_and(|p| p.kind() != ModelKind::Linear.name())
    }

    /// Draws configurations of it.
    pub(crate) fn sampler(&self) -> Box<dyn Sampler> {
        match self.ranking {
            Ranking::Everything => Box::new(Chained::new(self.kernel.space(), Settings::default())),
            Ranking::Sample(_) => Box::new(Exact::new()),
        }
    }
}

/// The kernels, found by the name of their computation on the command line and by the device.
pub(crate) struct Wiring {
    kernels: Vec<Entry>,
}

impl Wiring {
    pub(crate) fn new() -> Self {
        // The descriptions are constants of their crate; a test builds them.
        let six = tilewright_computations::kernels().unwrap_or_else(|e| unreachable!("the six computations: {e}"));
        let six = six.into_iter().map(|kernel| Entry { kernel, runs_on: &[DeviceKind::Cpu] });
        Self {
            kernels: vec![
                Entry { kernel: Box::new(Erased::new(CpuGemm::new())), runs_on: &[DeviceKind::Cpu] },
                Entry {
                    kernel: Box::new(Erased::new(SimtGemm::new())),
                    runs_on: &[DeviceKind::Cuda, DeviceKind::Emulator],
                },
            ]
            .into_iter()
            .chain(six)
            .collect(),
        }
    }

    /// The kernel that a computation has on the device, or a kernel by its own name.
    pub(crate) fn kernel(&self, name: &str, device: &DeviceArgs) -> Result<&dyn AnyKernel, Failure> {
        self.variant(name, None, DeviceName::of(device)?.kind())
    }

    /// All kernels that a computation has on a kind of device, or the one of this name.
    pub(crate) fn variants(&self, name: &str, on: DeviceKind) -> Result<Vec<&dyn AnyKernel>, Failure> {
        let mut found: Vec<&Entry> = self.kernels.iter().filter(|e| is_called(&*e.kernel, name)).collect();
        if found.is_empty() {
            let known: BTreeSet<String> = self.kernels.iter().map(|e| e.kernel.computation().to_string()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::new(Kind::Usage, "kernel", format!("unknown kernel {name:?}: {known}")));
        }
        let all = names(found.iter().map(|e| &*e.kernel));
        found.retain(|e| e.runs_on.contains(&on));
        if found.is_empty() {
            let kind = format!("{on:?}").to_lowercase();
            let message = format!("{all} has no code for a device of the kind {kind}");
            return Err(Failure::new(Kind::Usage, "device", message));
        }
        Ok(found.into_iter().map(|e| &*e.kernel).collect())
    }

    /// One of the kernels of a computation on a kind of device: the named one, or the first.
    pub(crate) fn variant(&self, name: &str, variant: Option<&str>, on: DeviceKind) -> Result<&dyn AnyKernel, Failure> {
        let found = self.variants(name, on)?;
        let Some(variant) = variant else { return Ok(found[0]) };
        let chosen = found.iter().find(|kernel| is_variant(**kernel, variant));
        chosen.copied().ok_or_else(|| {
            let (kind, known) = (format!("{on:?}").to_lowercase(), names(found.iter().copied()));
            let message = format!("unknown variant {variant:?} of {name} for {kind}: {known}");
            Failure::new(Kind::Usage, "variant", message)
        })
    }

    /// Opens the device of a command. Once: it may be a process with its own share of a device's memory.
    pub(crate) fn open(&self, args: &DeviceArgs) -> Result<Opened, Failure> {
        Ok(Live::new(DeviceName::of(args)?.open(args.threads)?))
    }

    /// Opens a device that has a clock.
    pub(crate) fn measure(&self, args: &DeviceArgs) -> Result<Opened, Failure> {
        DeviceName::of(args)?.expect_clock()?;
        self.open(args)
    }

    /// The facts of a device.
    pub(crate) fn spec(&self, args: &DeviceArgs) -> Result<Arc<DeviceSpec>, Failure> {
        Ok(self.open(args)?.spec().clone())
    }

    /// Fixes device and input, and refuses what would not fit into memory before anything is allocated.
    pub(crate) fn problem(
        &self,
        kernel: &dyn AnyKernel,
        spec: &Arc<DeviceSpec>,
        words: &Config,
    ) -> Result<Box<dyn Problem>, Failure> {
        let problem = kernel.problem(spec, words)?;
        let need = problem.work().bytes;
        match spec.fact("memory_bytes") {
            Some(have) if need > have as f64 => Err(Failure::new(
                Kind::Input,
                "m n k",
                format!("the operands take {need:.0} bytes; this device has {have}"),
            )),
            _ => Ok(problem),
        }
    }

    /// The kinds of models that profiles may hold. Only what is fitted over the linear model needs the weights of the device.
    pub(crate) fn trainers(&self, kind: &str, spec: &DeviceSpec) -> Result<Trainers, Failure> {
        let standard = Trainers::standard();
        if kind != OverLinear::reading(MlpTrainer).kind() {
            return Ok(standard);
        }
        Ok(standard.with(OverLinear::new(MlpTrainer, WeightStore::new(&home()?).load(spec, None)?)))
    }

    /// What ranks the configurations of a kernel: the model that is asked for; else a profile; else, where the kernel was never
    /// measured on this device, the device's linear model.
    pub(crate) fn adviser<'w>(
        &self,
        (model, named): (Option<ModelKind>, Option<&Path>),
        kernel: &'w dyn AnyKernel,
        spec: &DeviceSpec,
        words: &Config,
    ) -> Result<Adviser<'w>, Failure> {
        let by = |predictor: Box<dyn Predictor>, origin: String| {
            let ranking =
                if predictor.is_costly() { Ranking::Sample(Sampling::default()) } else { Ranking::Everything };
            Adviser { kernel, predictor: Some(predictor), ranking, origin: Some(origin) }
        };
        let weights = WeightStore::new(&home()?);
        let linear = |model: LinearModel, file: &Path| -> Result<Adviser<'w>, Failure> {
            Ok(by(Box::new(model), checksum(file).map_err(RuntimeError::from)?))
        };
        if model == Some(ModelKind::Linear) {
            let stored = weights.path(spec);
            return linear(weights.load(spec, named)?, named.unwrap_or(&stored));
        }
        if let Some((predictor, origin)) = self.profile(named, kernel, spec, words)? {
            return Ok(by(predictor, origin));
        }
        if model.is_some() {
            let name = kernel.computation();
            let message = format!("no profile of {} for this device: `tilewright tune {name}` makes one", kernel.id());
            return Err(Failure { detail: Some("no-profile"), ..Failure::new(Kind::Input, "model", message) });
        }
        match weights.find(spec)? {
            Some(model) => linear(model, &weights.path(spec)),
            None => Ok(Adviser { kernel, predictor: None, ranking: Ranking::Everything, origin: None }),
        }
    }

    /// The named profile, or the stored one that fits kernel, device and input best, with the checksum of its file; none if none
    /// is stored.
    pub(crate) fn profile(
        &self,
        named: Option<&Path>,
        kernel: &dyn AnyKernel,
        spec: &DeviceSpec,
        words: &Config,
    ) -> Result<Option<(Box<dyn Predictor>, String)>, Failure> {
        let schema = kernel.schema();
        let found = match named {
            Some(path) => Some((path.to_path_buf(), Profile::read(path).map_err(RuntimeError::from)?)),
            None => {
                let store = ProfileStore::new(home()?.profiles());
                store.find(&kernel.id(), spec, words).map_err(RuntimeError::from)?
            }
        };
        let Some((path, profile)) = found else { return Ok(None) };
        profile.expect(&path, &kernel.id(), spec, &schema).map_err(RuntimeError::from)?;
        let named = |e| Failure { field: path.display().to_string(), ..Failure::from(RuntimeError::from(e)) };
        let predictor = Trainers::standard().load(&profile, &schema).map_err(named)?;
        Ok(Some((predictor, checksum(&path).map_err(RuntimeError::from)?)))
    }
}

fn names<'k>(kernels: impl Iterator<Item = &'k dyn AnyKernel>) -> String {
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

/// Where profiles, plans and logs are kept.
pub(crate) fn home() -> Result<Home, Failure> {
    Home::from_environment().map_err(|e| RuntimeError::from(e).into())
}
