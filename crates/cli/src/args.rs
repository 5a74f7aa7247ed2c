//! The command line as clap reads it. Its words are a contract that others script against.

mod counting;
mod data;
mod export;
mod model;
mod numbers;
mod repository;
mod selection;

pub(crate) use counting::CountArgs;
pub(crate) use data::{DataCommand, DataExportArgs, ExportFormat};
pub(crate) use export::ExportArgs;
pub(crate) use model::{ModelArgs, ModelCommand, ModelKind};
pub(crate) use repository::RepositoryCommand;
pub(crate) use selection::{
    SelectArgs, SelectCommand, SelectMethod, TransferArgs, TransferCommand, TransferDfs, TransferLearner,
};

use numbers::{duration, real, whole};

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use tilewright_bench_suite::campaign::STAGE_NAMES;

/// Input-aware, architecture-adaptive kernel auto-tuning.
///
/// KERNEL is a computation, such as gemm or spmv, or one of its kernels by name, such as gemm.cpu; a name that is not known is
/// answered with those that are; or a kernel of your own by the file that describes it, FILE.json. INPUT is key=value fields, for example: m=2560 n=16 k=2560 dtype=f32 layout=nn
#[derive(Debug, Parser)]
#[command(name = "tilewright", version, max_term_width = 120)]
pub(crate) struct Cli {
    /// Exactly one JSON document on standard output, also for an error.
    #[arg(long, global = true)]
    pub json: bool,
    /// Seed of everything random; the same seed gives the same choices.
    #[arg(long, global = true, default_value_t = 0, allow_negative_numbers = true, value_name = "N",
        value_parser = whole::<u64>(0, u64::MAX))]
    pub seed: u64,
    /// Where devices record for each other, and learn from each other: a folder, or `redis://HOST[:PORT][/DATABASE]`. Unless given,
    /// TILEWRIGHT_REPOSITORY, else a folder beside the stored profiles.
    #[arg(long, global = true, value_name = "STORE")]
    pub repository: Option<String>,
    /// Say more on standard error; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sample, measure, fit, save a profile. Resumes an interrupted run.
    Tune(TuneArgs),
    /// The best configuration for an input: model search, the top k timed again, verified, cached.
    Plan(PlanArgs),
    /// Run once against the reference, timed beside the baselines.
    Run(RunArgs),
    /// A table of tasks beside every baseline found, interleaved in one run.
    Bench(BenchArgs),
    /// The legal space of a kernel for an input.
    Space(SpaceArgs),
    /// The generated code of a GPU kernel for a target.
    Emit(EmitArgs),
    /// Symbolic operation counts of a GPU kernel, and their values for an input.
    Count(CountArgs),
    /// Random legal configurations on odd inputs, checked against the reference.
    Verify(VerifyArgs),
    /// Fit and score predictors on recorded measurements.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Choose among variants and configurations, judged on recorded measurements.
    #[command(subcommand)]
    Select(SelectCommand),
    /// Choose on a device that ran nothing, from what other devices recorded.
    #[command(subcommand)]
    Transfer(TransferCommand),
    /// Training data of many devices and machines, in a folder or on a Redis server.
    #[command(subcommand)]
    Repository(RepositoryCommand),
    /// The tuned answer as an artefact without Tilewright: a small decision tree with its measured regret and a fallback.
    Export(ExportArgs),
    /// Look at datasets, import recordings of other tuners, and write theirs.
    #[command(subcommand)]
    Data(DataCommand),
    /// Search recorded measurements with a strategy, and tell how close to the optimum it comes.
    Search(SearchArgs),
    /// Why a configuration would be chosen for an input, and what it was chosen from; for a kernel of the linear model's library,
    /// which operations cost what share of its time.
    Explain(ExplainArgs),
    /// What this machine has: devices, measured peaks, baselines, stored profiles.
    Doctor(DeviceArgs),
    /// Everything worth measuring on a device, within a time; another run on the same folder goes on where this one stopped.
    Campaign(CampaignArgs),
    /// Look at a kernel that a file describes.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// The process of a device; started by others.
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// The process that opens one library to time it; started by others.
    #[command(hide = true)]
    BaselineProbe,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Read a description and its source, compile a configuration, and say what is there or what is wrong, with its place.
    Check {
        /// The description: Kernel Tuner's T1 JSON.
        #[arg(value_name = "FILE.json")]
        file: String,
        #[command(flatten)]
        device: DeviceArgs,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CampaignArgs {
    /// The computation whose kernels are measured, or one of them by its name.
    #[arg(default_value = "gemm")]
    pub kernel: String,
    /// The device: cuda:N, cpu, or emulator:sm_XX for a rehearsal. Several of one model, separated by commas, share the
    /// collecting; an emulator that is named twice is two devices.
    #[arg(long, value_name = "D")]
    pub device: String,
    /// How many minutes this run may take.
    #[arg(long, value_name = "N", default_value_t = 9.0, allow_negative_numbers = true, value_parser = real)]
    pub minutes: f64,
    /// The folder of the results.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only these stages, separated by commas; all that are unfinished unless given. The table is table4 for gemm, table5 for conv,
    /// and tasks for other computations.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(STAGE_NAMES))]
    pub stages: Vec<String>,
    /// Small inputs and few of them, to try the machinery; an emulated device is never asked for more.
    #[arg(long)]
    pub rehearsal: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The device: cpu, cuda:N, or emulator:sm_XX.
    #[arg(long, value_name = "D")]
    pub device: String,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Draw the costs of a kernel of the linear model's library as stacked bars.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Which device, with how many threads.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DeviceArgs {
    /// The device: cpu, cuda:N, or emulator:sm_XX, which checks results and never times. Unless named, cuda:0 if there is one
    /// and no --threads, else cpu. An emulator's name may go on with what hardware may choose: `:mma=truncated` cuts sums of
    /// matrix instructions off as tensor cores do, `:schedule=SEED` draws the order in which warps run.
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    /// Threads of the cpu device, or of the host that emulates; all cores unless given.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u16>(1, 1024))]
    pub threads: Option<u16>,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TuneArgs {
    /// The computation whose kernels are tuned, or one of them by its name.
    pub kernel: String,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Time for sampling and measuring, for example 60s, 2m, 500ms.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "90s")]
    pub budget: Duration,
    /// Stop after this many measurements, if that comes before the end of the budget.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX))]
    pub samples: Option<u64>,
    /// Tune for one element type only, such as f32.
    #[arg(long, value_name = "T")]
    pub dtype: Option<String>,
    /// Another field that all inputs share, such as accuracy=3m; may be given several times.
    #[arg(long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// The kind of model that is fitted: mlp, or mlp-over-linear, which corrects the linear model of this device.
    #[arg(long, value_name = "KIND", default_value = "mlp")]
    pub model: String,
    /// Where the profile goes; where there are several kernels, the first one's, and the others' beside it with their names in its own.
    /// Beside the other stored profiles unless given.
    #[arg(long, value_name = "PROFILE")]
    pub out: Option<PathBuf>,
    /// Also time the routines of libraries found on this machine, so that plans can choose among them and the generated kernels.
    #[arg(long)]
    pub with_libraries: bool,
    /// The kernel that a plan which times nothing leaves for another only where it expects clearly more of that than was ever expected in
    /// vain: a routine of a library that you ran before, such as gemm.cublaslt. Plans need --with-libraries, too; a later campaign without
    /// this forgets it.
    #[arg(long, value_name = "KERNEL")]
    pub incumbent: Option<String>,
    /// Forget an interrupted run instead of resuming it.
    #[arg(long)]
    pub fresh: bool,
    /// Skip the closing table of held-out inputs.
    #[arg(long)]
    pub no_table: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlanArgs {
    /// A computation such as gemm or spmv, whose kernels compete; or one kernel by its name, such as gemm.cpu.
    pub kernel: String,
    /// What it is computed on, as key=value fields: for gemm m=64 n=64 k=64, for spmv matrix=FILE.
    #[arg(value_name = "INPUT")]
    pub input: Vec<String>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The profile to predict with; the stored one of this kernel and device unless given. With `--model linear` a file of weights. An
    /// artefact that `export --format json` wrote names configurations, in its order.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// What predicts: a profile that `tune` made (mlp), or the weights of this device that `model fit --model linear` made, which
    /// need no measurement of the kernel (linear). The profile unless given; where there is none, the weights.
    #[arg(long, value_enum)]
    pub model: Option<ModelKind>,
    /// How many configurations the linear model is asked about, drawn at random, before the neighbours of the best; 10000 unless
    /// given.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, 10_000_000))]
    pub candidates: Option<u32>,
    /// How many of the model's best are timed again; 20 unless given. An answer of the plan cache that timed fewer is looked for
    /// again. 0 times nothing: the selector's first kernel, the model's first choice.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = whole::<u32>(0, 10_000))]
    pub top: Option<u32>,
    /// Time for measuring candidates: without a profile, for tuning this very input; with one, for refining its answer
    /// by local search. An answer of the plan cache that had less is looked for again.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub budget: Option<Duration>,
    /// What searches by measuring; refine unless given. A name that is not known is answered with those that are.
    #[arg(long, value_name = "S")]
    pub strategy: Option<String>,
    /// End when the strategy's bound promises that the best is within this share of the optimum's performance; 0.05 unless given.
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = real)]
    pub epsilon: Option<f64>,
    /// The probability that the promise is wrong, at most; 0.1 unless given.
    #[arg(long, value_name = "A", allow_negative_numbers = true, value_parser = real)]
    pub alpha: Option<f64>,
    /// Let routines of libraries that are found on this machine compete with generated kernels.
    #[arg(long)]
    pub with_libraries: bool,
    /// Where this device has no selector and others have recorded: first time all kernels on so many drawn inputs, the most informative
    /// first, up to two seconds a kernel. Later plans know them too.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = whole::<u32>(1, 40))]
    pub shots: Option<u32>,
    /// Ignore a cached answer, and replace it.
    #[arg(long)]
    pub fresh: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// A computation such as gemm or spmv, whose kernels are timed beside each other; or one kernel by its name, such as gemm.cpu.
    pub kernel: String,
    /// What it is computed on, as key=value fields: for gemm m=64 n=64 k=64, for spmv matrix=FILE.
    #[arg(value_name = "INPUT")]
    pub input: Vec<String>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Parameters as k=v,k=v; the best known plan fills in what is not named.
    #[arg(long, value_name = "K=V,...")]
    pub config: Option<String>,
    /// What to compare with: all baselines that are found, none, or names separated by commas.
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub baselines: String,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct BenchArgs {
    /// A computation such as gemm or spmv, whose kernels compete; or one kernel by its name, such as gemm.cpu.
    pub kernel: String,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// A task set; unless given isaac-table4 for gemm, isaac-table5 for conv, and representative for other computations. gemm has
    /// squares, edges, small, small-batch and deepbench too, and conv deepbench.
    #[arg(long, value_name = "SET")]
    pub tasks: Option<String>,
    /// Element type, such as f32; the computation's usual one unless given.
    #[arg(long, value_name = "T")]
    pub dtype: Option<String>,
    /// Another field that all inputs share, such as out=f32; may be given several times.
    #[arg(long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// What to compare with: all baselines that are found, none, or names separated by commas.
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub baselines: String,
    /// Time that finding plans may take, all tasks together. With 0s nothing is timed: the plans are those of the profile that there
    /// is, or the defaults.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "300s")]
    pub budget: Duration,
    /// The profile to predict with. With `--model linear` a file of weights.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// What predicts, as for `plan`; without a profile and this, one is made first.
    #[arg(long, value_enum)]
    pub model: Option<ModelKind>,
    /// Also write the table as a Markdown file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SpaceArgs {
    /// The computation, or one of its kernels by name; bacugen is the GEMM stencil of BACUGen's paper.
    #[arg(required_unless_present = "t1")]
    pub kernel: Option<String>,
    /// What it is computed on, as key=value fields: for gemm m=64 n=64 k=64, for spmv matrix=FILE.
    #[arg(value_name = "INPUT")]
    pub input: Vec<String>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The space of a Kernel Tuner description (T1 JSON) instead of a kernel's.
    #[arg(long, value_name = "FILE")]
    pub t1: Option<PathBuf>,
    /// Device constants for bacugen: a name such as sm_90 or fermi-s2050, or a JSON file.
    #[arg(long, value_name = "F")]
    pub device_spec: Option<String>,
    /// Guidelines for bacugen, k=v,...: min_threads, min_blocks, min_regs_reuse.
    #[arg(long, value_name = "K=V,...")]
    pub guidelines: Option<String>,
    /// Draw this many legal points by every sampler: acceptance, points a second, distance from uniform.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(0, u32::MAX.into()))]
    pub sample: Option<u32>,
    /// Write every legal configuration to a CSV file.
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// Count which rules reject.
    #[arg(long)]
    pub why: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EmitArgs {
    /// The computation, such as gemm, or one of its kernels by name.
    pub kernel: String,
    /// What it is computed on, as key=value fields: for gemm m=64 n=64 k=64, for spmv matrix=FILE.
    #[arg(value_name = "INPUT")]
    pub input: Vec<String>,
    /// What the code is for, for example sm_90.
    #[arg(long, value_name = "SM")]
    pub target: String,
    /// Which of the computation's kernels, by its own name. Unless given: of those that take the input the one that suits it best.
    #[arg(long, value_name = "V")]
    pub variant: Option<String>,
    /// Parameters as k=v,k=v; the kernel's default plan fills in what is not named. Unless given: the plan that was last made
    /// for this input on a GPU of the target, or else the default.
    #[arg(long, value_name = "K=V,...")]
    pub config: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The computation, such as gemm, or one of its kernels by name.
    pub kernel: String,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Which of the computation's kernels, by its own name; all that the device has, in turns, unless given.
    #[arg(long, value_name = "V")]
    pub variant: Option<String>,
    /// Element type, such as f32; every one unless given.
    #[arg(long, value_name = "T")]
    pub dtype: Option<String>,
    /// Another field that all inputs share, such as accuracy=3m; may be given several times.
    #[arg(long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// How many random (input, configuration) pairs.
    #[arg(long, value_name = "N", default_value_t = 200, allow_negative_numbers = true, value_parser = whole::<u32>(1, u32::MAX.into()))]
    pub cases: u32,
    /// Also write the cases as JUnit XML, for continuous integration.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArgs {
    /// The computation or kernel, on a live device; none for a recording, as `--device replay:FILE`: a CSV with its sidecar, or a
    /// recording of another tuner, as `data describe` reads them.
    pub kernel: Option<String>,
    /// What it is computed on, as key=value fields: for gemm m=64 n=64 k=64, for spmv matrix=FILE.
    #[arg(value_name = "INPUT")]
    pub input: Vec<String>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The profile to predict with, for the strategies that ask a model; the stored one unless given.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// The strategy, or several separated by commas to compare; auto is what the project recommends.
    #[arg(long, value_name = "S", default_value = "auto", value_delimiter = ',')]
    pub strategy: Vec<String>,
    /// Numbers of evaluations after which the best is looked at; the last ends the search. Without it, strategies that
    /// stop by themselves do, and the others end at 400.
    #[arg(long, value_name = "N,...", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<u64>(0, u64::MAX))]
    pub budget: Vec<u64>,
    /// End at this much time, on a recording at this much recorded time, of compiling and running.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub time: Option<Duration>,
    /// Searches with different seeds.
    #[arg(long, value_name = "R", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u32>(1, 1_000_000))]
    pub repeats: u32,
    /// Points of a recording that are looked up at a time; a live device decides itself.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u32>(1, 65_536))]
    pub batch: u32,
    /// Recordings of the same kernel on other devices to begin from, in any format that `data describe` reads. Parameters are
    /// matched by their names; those with one value may be missing on either side.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub warm_start: Vec<PathBuf>,
    /// How far below the optimum's performance the best found may be.
    #[arg(long, value_name = "E", default_value_t = 0.05, allow_negative_numbers = true, value_parser = real)]
    pub epsilon: f64,
    /// With what probability it may be further: strategies that stop by themselves do below it.
    #[arg(long, value_name = "A", default_value_t = 0.1, allow_negative_numbers = true, value_parser = real)]
    pub alpha: f64,
    /// Recordings of other kernels or devices that the learned stopping rule is fitted on, instead of its built-in summary.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub prior: Vec<PathBuf>,
    /// Also stop as the tolerances say over a grid of epsilon and alpha, as in figures 3 and 4 of Vuduc et al.
    #[arg(long)]
    pub grid: bool,
    /// Draw the convergence as an SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Also give the fraction of the optimum of every repeat.
    #[arg(long)]
    pub each: bool,
}

/// The word on the command line.
pub(crate) fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |word| word.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
