//! Wiring: settings in, a running server out; and the verbs of the command line.

mod alerts;
mod build;
mod check;
mod command;
mod config_snapshot;
mod directory;
mod engine_limits;
mod engines;
mod first_key;
mod health;
mod keys_cli;
mod ledger_cli;
mod log;
mod models;
mod plan_cli;
mod probe;
mod refresh;
mod reload;
mod replay;
mod runtime_dir;
mod seal;
mod serve;
mod shared_state;
mod simulate;

pub use build::{App, BuildError, RunningServer, build};
pub use command::{Cli, main};
pub use models::ModelError;
pub use reload::{ConfigSource, ReloadHandle};
