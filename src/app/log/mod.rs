//! The log, on standard error. Prompts, answers and keys never reach it: nothing that holds them is logged.

mod json;
mod queue;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Targets;

use crate::config::{LogFormat, LoggingSettings};
use crate::http;

use json::JsonLines;
pub(super) use queue::{LogQueue, dropped};
use text::TextFields;

/// Whose lines go without saying only above a level, by the word that names them. Those who compile shaders tell of every step, a few times
/// a token. The pool of a database that is gone warns at every attempt to reach it; the ledger tells of that once.
const QUIET_TARGETS: [(&str, &str, Level); 6] = [
    ("naga", "naga", Level::WARN),
    ("wgpu_core", "wgpu_core", Level::WARN),
    ("wgpu_hal", "wgpu_hal", Level::WARN),
    ("sqlx", "sqlx::pool", Level::ERROR),
    ("sqlx", "sqlx_core::pool", Level::ERROR),
    ("sqlx", "sqlx::postgres::notice", Level::ERROR),
];

/// Says what is logged from now on.
pub(super) struct LogFilterHandle(Box<dyn Fn(EnvFilter) + Send + Sync>);

impl LogFilterHandle {
    /// Logs what this says. How a line looks is settled at the start.
    pub(super) fn apply(&self, log: &LoggingSettings) {
        (self.0)(filter(log));
    }
}

/// Starts logging. The queue has what is not written yet.
///
/// # Errors
/// Where the system has no thread to write with.
pub(super) fn start(log: &LoggingSettings) -> io::Result<(LogFilterHandle, LogQueue)> {
    let terminal = io::stderr().is_terminal();
    let queue = LogQueue::start(io::stderr())?;
    // A log that nobody takes any more is no reason to fail, which complaining about it there would be.
    let builder = tracing_subscriber::fmt().log_internal_errors(false);
    let builder = builder.with_writer(queue.clone()).with_ansi(terminal);
    // Each fails only where a subscriber is set already, which then does the work, or is not the one that logs.
    let handle = LogFilterHandle(match log.format {
        LogFormat::Text => {
            let builder = builder.fmt_fields(TextFields).with_env_filter(filter(log)).with_filter_reloading();
            let handle = builder.reload_handle();
            let _ = builder.try_init();
            Box::new(move |filter| drop(handle.reload(filter)))
        }
        LogFormat::Json => {
            let builder = builder.event_format(JsonLines).with_env_filter(filter(log));
            let builder = builder.with_filter_reloading();
            let handle = builder.reload_handle();
            let _ = builder.try_init();
            Box::new(move |filter| drop(handle.reload(filter)))
        }
    });
    Ok((handle, queue))
}

fn filter(log: &LoggingSettings) -> EnvFilter {
    EnvFilter::try_new(directives(log)).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// What the operator wrote, and what goes without saying.
fn directives(log: &LoggingSettings) -> String {
    let targets = log.filter.parse::<Targets>().unwrap_or_default();
    let is_louder = |target: &str, most: Level| {
        [Level::INFO, Level::WARN].iter().any(|level| *level > most && targets.would_enable(target, level))
    };
    let loud =
        |(name, target, most): &&(&str, &str, Level)| !log.filter.contains(*name) && is_louder(target, *most);
    let quiet = QUIET_TARGETS.iter().filter(loud);
    let quiet = quiet.map(|(_, target, most)| format!("{target}={}", most.as_str().to_lowercase()));
    let silent = (!log.requests).then(|| format!("{}=off", http::ACCESS_LOG));
    let own = Some(log.filter.clone()).filter(|own| !own.is_empty());
    own.into_iter().chain(quiet).chain(silent).collect::<Vec<_>>().join(",")
}
