//! The command line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::manage::{self, Keys};
use super::{books, check, health, probe, quote, replay, runtime_dir, serve, simulate};

/// Decides how much thinking each request deserves, and holds models to it.
#[derive(Debug, Parser)]
#[command(name = "stint", version)]
pub struct Command {
    /// The configuration; without it, the file that `STINT_CONFIG` names, else defaults.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve until SIGTERM or SIGINT, then finish what runs.
    Serve,
    /// Read the configuration and the model files that it names, and report every mistake in them.
    Check(check::Options),
    /// Make, list, limit, rotate and revoke keys, whether or not the server runs.
    #[command(subcommand)]
    Keys(Keys),
    /// Seal, verify, back up, restore and export the ledger.
    #[command(subcommand)]
    Ledger(books::Verb),
    /// Print what was used, as a table.
    Usage(books::UsageOptions),
    /// Find out by a few cheap calls what a model's upstream really does with budgets, and note it in the catalogue.
    Probe(probe::Options),
    /// Ask the running server what it would do with a question, and print the offers, the chosen one, and why.
    Plan(quote::Options),
    /// Compare policies on a made-up world in virtual time; with --config, on the configured models and accounts.
    Simulate(simulate::Options),
    /// Judge other policies by the decision log: what they would have reached, and whether that can be said at all.
    Replay(replay::Options),
    /// Ask the configured server whether it is ready; for health checks.
    Health,
}

/// Runs the command line to its end.
pub fn main() -> ExitCode {
    runtime_dir::provide();
    let command = Command::parse();
    let config = command.config.as_deref();
    match command.verb {
        Verb::Serve => serve::serve(config),
        Verb::Check(options) => check::check(config, &options),
        Verb::Ledger(verb) => books::ledger(config, verb),
        Verb::Usage(options) => books::usage(config, &options),
        Verb::Keys(verb) => manage::run(verb, config),
        Verb::Probe(options) => probe::probe(config, &options),
        Verb::Plan(options) => quote::plan(config, &options),
        Verb::Simulate(options) => simulate::run(config, &options),
        Verb::Replay(options) => replay::replay(config, &options),
        Verb::Health => health::health(config),
    }
}

/// Prints to a person, or to a pipe whose other end may have had enough.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Tells a person what went wrong, and the shell too.
#[expect(clippy::print_stderr, reason = "the command line's own words")]
pub(super) fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("stint: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}
