//! The `tilewright` command.

mod args;
mod commands;
mod cores;
mod described;
mod device;
mod failure;
mod fields;
mod interrupt;
mod output;
mod progress;
mod usage;
mod wiring;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;
use wiring::Wiring;

/// A pool of many thousand threads takes minutes to begin, and nothing here gains by it.
fn limit_threads() {
    const MOST: usize = 1024;
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse::<usize>().ok());
    if let Some(asked) = asked.filter(|n| *n > MOST) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        output::note(format_args!("RAYON_NUM_THREADS={asked} is beyond {MOST}: {cores} threads are used"));
        // Nothing has begun a pool yet.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(cores).build_global();
    }
}

fn main() -> ExitCode {
    let mut cli = match Cli::try_parse_from(arguments()) {
        Ok(cli) => cli,
        Err(said) => return begun_by_clap(&said),
    };
    let level = ["warn", "info", "debug"][usize::from(cli.verbose).min(2)];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false).init();
    let json = cli.json;
    cores::choose(&cli);
    interrupt::watch(&cli.command, move |failure| {
        report(failure, json);
    });
    limit_threads();
    match run(&mut cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, cli.json),
    }
}

fn run(cli: &mut Cli) -> Result<(), Failure> {
    let mut wiring = Wiring::new(cli.repository.clone());
    let described = described::find(&mut cli.command)?;
    if let Some((name, kernel)) = &described {
        wiring.kernels = wiring.kernels.with_described(name, kernel);
    }
    let cli = &*cli;
    let output = Output { json: cli.json };
    match &cli.command {
        Command::Tune(args) => commands::tune::run(args, &wiring, cli.seed, output),
        Command::Plan(args) => commands::plan::run(args, &wiring, cli.seed, output),
        Command::Run(args) => commands::run::run(args, &wiring, cli.seed, output),
        Command::Bench(args) => commands::bench::run(args, &wiring, cli.seed, output),
        Command::Space(args) => commands::space::run(args, &wiring, cli.seed, output),
        Command::Emit(args) => commands::emit::run(args, &wiring, output),
        Command::Count(args) => commands::count::run(args, &wiring, output),
        Command::Verify(args) => commands::verify::run(args, &wiring, cli.seed, output),
        Command::Model(command) => commands::model::run(command, cli.seed, output),
        Command::Select(command) => commands::select::run(command, cli.seed, output),
        Command::Transfer(command) => commands::transfer::run(command, cli.seed, output),
        Command::Repository(command) => commands::repository::run(command, output),
        Command::Export(args) => commands::export::run(args, &wiring, cli.seed, output),
        Command::Data(command) => commands::data::run(command, output),
        Command::Search(args) => commands::search::run(args, &wiring, cli.seed, output),
        Command::Explain(args) => commands::linear::explain(args, &wiring, cli.seed, output),
        Command::Doctor(args) => commands::doctor::run(args, output),
        Command::Kernel(command) => commands::kernel::run(command, described.as_ref(), output),
        Command::Campaign(args) => commands::campaign::run(args, &wiring, cli.seed, output),
        Command::Worker(args) => commands::campaign::worker(args),
        Command::BaselineProbe => cores::probe(),
    }
}

/// The arguments of the command line. `help` takes names of commands alone: that JSON is asked for is seen without it.
fn arguments() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.retain(|word| word != "--json");
    }
    words
}

/// Where clap answers, or refuses the words, nothing else is done.
fn begun_by_clap(said: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|a| a == "--json");
    let Err(failure) = usage::answer(said, Output { json }) else { return ExitCode::SUCCESS };
    if !said.use_stderr() || said.kind() == ErrorKind::MissingSubcommand {
        return report(&failure, json);
    }
    write_document(&failure, json);
    // As clap colours it on a terminal; nothing is left to do if that is gone.
    let _ = said.print();
    ExitCode::from(failure.kind.exit_code())
}

/// The document of an error, where one is wanted.
fn write_document(failure: &Failure, json: bool) {
    if json {
        // The exit code says the rest where nobody reads.
        let _ = output::document(&format!("{:#}\n", failure.to_json()), true);
    }
}

fn report(failure: &Failure, json: bool) -> ExitCode {
    write_document(failure, json);
    output::note(format_args!("error: {failure}"));
    ExitCode::from(failure.kind.exit_code())
}
