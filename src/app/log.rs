//! The log, on standard error. Prompts, answers and keys never reach it: nothing that holds them is logged.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Starts logging.
pub(super) fn start(log: &Log) {
    let terminal = std::io::stderr().is_terminal();
    let filter = EnvFilter::try_new(&log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(terminal);
    // Fails only where a subscriber is set already, which then does the work.
    let _ = match log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
