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

/// Those who compile shaders tell of every step, a few times a token: only who names them hears less than warnings of them.
const SHADER_TARGETS: [&str; 3] = ["naga", "wgpu_core", "wgpu_hal"];

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
    let said = log.filter.parse::<Targets>().unwrap_or_default();
    let is_named = |target: &str| log.filter.contains(target);
    let loud = |target: &&&str| said.would_enable(target, &Level::INFO) && !is_named(target);
    let quiet = SHADER_TARGETS.iter().filter(loud).map(|target| format!("{target}=warn"));
    let silent = (!log.requests).then(|| format!("{}=off", http::ACCESS_LOG));
    let own = Some(log.filter.clone()).filter(|own| !own.is_empty());
    own.into_iter().chain(quiet).chain(silent).collect::<Vec<_>>().join(",")
}
