//! The command line: its arguments, and which verb each command runs. Only `main` calls it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::error::new_causes;
use super::keys_cli::{self, KeysCommand};
use super::models_cli::{self, ModelsCommand};
use super::server_call::harmless;
use super::{
    ask, check, config_cli, curve, health, init, ledger_cli, output, plan_cli, probe, replay, serve, shell,
    simulate, top,
};

/// Decides how much thinking each request deserves, and holds models to it.
#[derive(Debug, Parser)]
#[command(name = "stint", version)]
pub struct Cli {
    /// The configuration file. Default: the one in `STINT_CONFIG`, else built-in defaults.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve until SIGTERM or SIGINT, then finish running requests.
    Serve,
    /// Write a first configuration for the model servers on this machine, or for those that are named.
    Init(init::InitOptions),
    /// Read the configuration and the model files that it names, and report every mistake in them.
    Check(check::CheckOptions),
    /// Print the settings in force, and where each comes from.
    #[command(subcommand)]
    Config(config_cli::ConfigCommand),
    /// Ask the running server, and print thought and answer as they stream.
    Ask(ask::AskOptions),
    /// Watch what the running server does: requests, thoughts filling their budgets, backends, money. `q` ends it.
    Top(top::TopOptions),
    /// Make, list, limit, rotate and revoke keys, whether or not the server runs.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Look into model files, and fetch them.
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Seal, verify, back up, restore and export the ledger.
    #[command(subcommand)]
    Ledger(ledger_cli::LedgerCommand),
    /// Print what was used, as a table.
    Usage(ledger_cli::UsageOptions),
    /// Find out by a few cheap calls what a model's upstream really does with budgets, and record it in the catalogue.
    Probe(probe::ProbeOptions),
    /// Ask the running server what it would do with a question, and print the offers, the chosen one, and why.
    Plan(plan_cli::PlanOptions),
    /// Measure on your own tasks how often a model is right under rising thinking budgets, through the running server.
    Curve(curve::CurveOptions),
    /// Compare policies on a made-up world in virtual time; with --config, on the configured models and accounts.
    Simulate(simulate::SimulateOptions),
    /// Estimate from the decision log what other policies would have reached, and say where that cannot be known.
    Replay(replay::ReplayOptions),
    /// Ask the configured server whether it is ready; for health checks.
    Health(health::HealthOptions),
    /// Print completions of the command line for a shell.
    Completions(shell::CompletionsOptions),
    /// Print the manual page, or write those of all commands.
    Man(shell::ManOptions),
}

/// Runs the command line to its end.
pub fn main() -> ExitCode {
    #[cfg(unix)]
    super::runtime_dir::provide();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    super::allocator::bound_free_memory();
    let command = Cli::parse();
    let config = command.config.as_deref();
    let ended = match command.command {
        CliCommand::Serve => serve::serve(config),
        CliCommand::Init(options) => init::init(config, &options),
        CliCommand::Config(verb) => config_cli::run(config, &verb),
        CliCommand::Ask(options) => ask::ask(config, &options),
        CliCommand::Top(options) => top::top(config, &options),
        CliCommand::Check(options) => check::check(config, &options),
        CliCommand::Models(verb) => models_cli::run(&verb),
        CliCommand::Ledger(verb) => ledger_cli::ledger(config, verb),
        CliCommand::Usage(options) => ledger_cli::usage(config, &options),
        CliCommand::Keys(verb) => keys_cli::run(verb, config),
        CliCommand::Probe(options) => probe::probe(config, &options),
        CliCommand::Plan(options) => plan_cli::plan(config, &options),
        CliCommand::Curve(options) => curve::curve(config, &options),
        CliCommand::Simulate(options) => simulate::run(config, &options),
        CliCommand::Replay(options) => replay::replay(config, &options),
        CliCommand::Health(options) => health::health(config, options),
        CliCommand::Completions(options) => shell::completions(&options),
        CliCommand::Man(options) => shell::man(&options),
    };
    ended.and_then(output::check_printed).unwrap_or_else(|error| fail(&*error))
}

/// Prints an error with its causes.
#[expect(clippy::print_stderr, reason = "the command line's own words")]
fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("stint: {}", harmless(&error.to_string()));
    for cause in new_causes(error) {
        eprintln!("  because: {}", harmless(&cause));
    }
    ExitCode::FAILURE
}
