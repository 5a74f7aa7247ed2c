//! The `tilewright` command.

mod args;
mod commands;
mod device;
mod failure;
mod fields;
mod interrupt;
mod output;
mod progress;
mod wiring;

use args::{Cli, Command};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use failure::{Failure, Kind};
use output::Output;
use std::io::Write;
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let level = ["warn", "info", "debug"][usize::from(cli.verbose).min(2)];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false).init();
    limit_threads();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, cli.json),
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    let wiring = Wiring::new(cli.repository.clone());
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
        Command::Data(command) => commands::data::run(command, output),
        Command::Search(args) => commands::search::run(args, &wiring, cli.seed, output),
        Command::Explain(args) => commands::linear::explain(args, &wiring, cli.seed, output),
        Command::Doctor(args) => commands::doctor::run(args, output),
        Command::Campaign(args) => commands::campaign::run(args, &wiring, cli.seed, output),
        Command::Worker(args) => commands::campaign::worker(args),
    }
}

/// What clap found wrong, in the form that was asked for; help and version are no errors.
fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|a| a == "--json");
    if !json || matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing is left to do if the terminal is gone.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { Kind::Usage.exit_code() } else { 0 });
    }
    let field = match error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand)) {
        Some(ContextValue::String(s)) => s.clone(),
        Some(ContextValue::Strings(s)) => s.join(" "),
        _ => String::new(),
    };
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    report(&Failure::new(Kind::Usage, &field, message), true)
}

fn report(failure: &Failure, json: bool) -> ExitCode {
    if json {
        // The exit code says the rest where nobody reads.
        let _ = writeln!(std::io::stdout(), "{:#}", failure.to_json());
    }
    output::note(format_args!("error: {failure}"));
    ExitCode::from(failure.kind.exit_code())
}
