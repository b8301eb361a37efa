//! `loader upstream SCENARIO --listen ADDRESS` and `loader drive SCENARIO --target ADDRESS`.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use loader::LoadError;
use loader::drive::{self, Target};
use loader::scenario::{Arrival, Scenario};
use loader::upstream;

/// Load for a gateway: a scripted upstream that costs next to nothing, and callers that measure.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Answers as the scenario's `[upstream]` says, until it is stopped.
    Upstream {
        /// A file of load-tests/scenarios/load.
        scenario: PathBuf,
        /// Where to listen.
        #[arg(long, default_value = "127.0.0.1:3030")]
        listen: SocketAddr,
    },
    /// Asks as the scenario's `[load]` says, and reports. Ends with 1 where an answer was not what it should have been.
    Drive(Drive),
}

#[derive(Debug, clap::Args)]
struct Drive {
    /// A file of load-tests/scenarios/load.
    scenario: PathBuf,
    /// The gateway's address, or the upstream's own to know what is to be taken off.
    #[arg(long, default_value = "127.0.0.1:8080")]
    target: SocketAddr,
    /// Where its API begins.
    #[arg(long, default_value = "/v1")]
    base: String,
    /// The model to ask for.
    #[arg(long, default_value = "m")]
    model: String,
    /// The key to show.
    #[arg(long, default_value = "sk-load")]
    key: String,
    /// Seconds to measure, in place of the scenario's.
    #[arg(long)]
    seconds: Option<f64>,
    /// Seconds before that are not measured, in place of the scenario's.
    #[arg(long)]
    warm_up: Option<f64>,
    /// This many callers, each of whom asks again when it has its answer, in place of the scenario's arrivals.
    #[arg(long, conflicts_with = "per_second")]
    connections: Option<usize>,
    /// So many requests a second, whatever becomes of them, in place of the scenario's arrivals.
    #[arg(long)]
    per_second: Option<f64>,
    /// The gateway's process: its processor time, memory and descriptors are watched, with its children's.
    #[arg(long)]
    pid: Vec<u32>,
    /// Where to write the report as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Upstream { scenario, listen } => Scenario::read(&scenario)
            .and_then(|scenario| block_on(upstream::serve(scenario.upstream, listen)))
            .map(|()| ExitCode::SUCCESS),
        Verb::Drive(options) => options.run(),
    };
    done.unwrap_or_else(|error| {
        show_error(&error);
        ExitCode::FAILURE
    })
}

impl Drive {
    fn run(self) -> Result<ExitCode, LoadError> {
        let mut scenario = Scenario::read(&self.scenario)?;
        self.change(&mut scenario);
        let expected = scenario.upstream.words();
        let target = Target {
            address: self.target,
            base: self.base,
            model: self.model,
            key: self.key,
            processes: self.pid,
        };
        let report = block_on(drive::run(&scenario, target, expected))?;
        show(&report.to_string());
        if let Some(path) = &self.json {
            write(path, &serde_json::to_string_pretty(&report)?)?;
        }
        Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn change(&self, scenario: &mut Scenario) {
        let load = &mut scenario.load;
        load.seconds = self.seconds.unwrap_or(load.seconds);
        load.warm_up = self.warm_up.unwrap_or(load.warm_up);
        if let Some(connections) = self.connections {
            load.arrival = Arrival::Closed { connections };
        }
        if let Some(per_second) = self.per_second {
            let connections = load.arrival.connections().max(drive::OPEN_CONNECTIONS);
            load.arrival = Arrival::Open { per_second, connections };
        }
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, LoadError>>) -> Result<T, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

fn write(path: &Path, text: &str) -> Result<(), LoadError> {
    std::fs::write(path, text).map_err(|source| LoadError::file(path, source))
}

#[expect(clippy::print_stdout, reason = "this is what who runs it reads")]
fn show(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "who runs it reads there what is wrong")]
fn show_error(error: &LoadError) {
    eprintln!("loader: {error}");
}
