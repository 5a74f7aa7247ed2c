//! What clap says in the place of a command: help, the version, or what is wrong with the words; in the form that was asked for.

use crate::args::Cli;
use crate::failure::{Failure, Kind};
use crate::output::{Output, unless_closed};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::json;

/// Gives help or the version; of words that are wrong, the failure.
pub(crate) fn answer(said: &clap::Error, output: Output) -> Result<(), Failure> {
    let text = said.render().to_string();
    match said.kind() {
        ErrorKind::DisplayHelp if output.json => output.answer(&json!({ "help": text }), String::new),
        ErrorKind::DisplayVersion if output.json => {
            output.answer(&json!({ "version": env!("CARGO_PKG_VERSION") }), String::new)
        }
        // Coloured where it is a terminal.
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            unless_closed(said.print()).map_err(|e| Failure::new(Kind::Other, "stdout", e))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(missing(&text)),
        ErrorKind::MissingSubcommand => Err(missing(&Cli::command().render_help().to_string())),
        _ => Err(failure(said, &text)),
    }
}

fn missing(help: &str) -> Failure {
    Failure::new(Kind::Usage, "command", "a command is missing").with_hint(help.trim_end())
}

/// The first paragraph says what is wrong; tips and the usage are the hint.
fn failure(said: &clap::Error, text: &str) -> Failure {
    let field = match said.get(ContextKind::InvalidArg).or_else(|| said.get(ContextKind::InvalidSubcommand)) {
        Some(ContextValue::String(s)) => s.clone(),
        Some(ContextValue::Strings(s)) => s.join(" "),
        _ => String::new(),
    };
    let text = text.trim_start_matches("error: ").trim_end();
    let (message, hint) = text.split_once("\n\n").unwrap_or((text, ""));
    Failure::new(Kind::Usage, &field, message).with_hint(hint)
}
