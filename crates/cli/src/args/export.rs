//! The words of `export`.

use super::numbers::{duration, whole};
use super::{DeviceArgs, ModelKind};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::time::Duration;
use tilewright::export::Target;

#[derive(Clone, Debug, Args)]
pub(crate) struct ExportArgs {
    /// A kernel by its name, such as gemm.cpu, or by its description, such as stencil.json; of a computation, its first one for the device.
    pub kernel: String,
    /// Fields that all inputs share, as key=value: for gemm dtype=f32 layout=nn. The artefact speaks of such inputs only, and its
    /// code does not ask for them.
    #[arg(value_name = "FIELDS")]
    pub fixed: Vec<String>,
    /// What is written: json, which `plan --profile` reads; c, a header of C99; rust, one file; cuda, the header for host and device
    /// code with a dispatch at compile time.
    #[arg(long, value_name = "F", value_parser = PossibleValuesParser::new(Target::ALL.map(Target::name)))]
    pub format: String,
    /// Where it goes; standard output unless given.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// How many drawn inputs the tree is grown on; a third as many judge it.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, 10_000), default_value_t = 48)]
    pub inputs: u32,
    /// Time for planning, timing and judging, for example 60s, 2m.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "60s")]
    pub budget: Duration,
    /// The most leaves of the tree. It chooses among at most four times as many configurations, since few are legal everywhere.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = whole::<u32>(1, 64), default_value_t = 8)]
    pub leaves: u32,
    /// The profile to plan with; the stored one of this kernel and device unless given.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// What predicts, as for `plan`.
    #[arg(long, value_enum)]
    pub model: Option<ModelKind>,
}
