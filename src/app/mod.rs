//! Wiring: settings in, a running server out; and the verbs of the command line.

mod alerts;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;
mod ask;
mod auto_trials;
mod backends;
mod build;
mod certificates;
mod check;
mod clock_watch;
mod command;
mod config_cli;
mod config_snapshot;
mod curve;
mod directory;
#[cfg(feature = "local")]
mod engine_counters;
mod engine_limits;
#[cfg(feature = "local")]
mod engine_log;
#[cfg(feature = "local")]
mod engines;
#[cfg(not(feature = "local"))]
#[path = "without_engines.rs"]
mod engines;
mod error;
mod first_key;
mod health;
mod init;
mod keys_cli;
mod ledger_cli;
mod ledger_monitor;
mod ledger_place;
mod local_listener;
mod local_model_report;
mod log;
mod model_fleet;
mod model_registry;
mod models_cli;
mod needed_sections;
mod open_files;
mod output;
mod plan_cli;
mod price_refresh;
mod probe;
mod recipe_ranges;
mod refresh;
mod reload;
mod reload_handle;
mod replay;
mod retired_fleets;
#[cfg(unix)]
mod runtime_dir;
mod seal;
mod serve;
mod server_call;
mod shared_state;
mod shell;
mod signals;
mod simulate;
mod top;
mod whole_file;

pub use build::{App, RunningServer, build};
pub use command::{Cli, main};
pub use error::{BuildError, ModelError};
pub use reload::ConfigSource;
pub use reload_handle::ReloadHandle;
