//! `stint top`: what a running gateway does now, in a terminal; or once, as plain text.
//!
//! It asks the admin API for what the page is given. A thread of its own asks, so that a slow answer holds no key back.

mod columns;
mod controls;
mod plain;
mod rates;
mod screen;
mod snapshot;
mod source;
mod terminal;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::needed_sections::load_needed;
use super::output::{VerbResult, print_line};

use source::SnapshotSource;

/// How often the server may be asked.
const EVERY: std::ops::RangeInclusive<f64> = 0.2..=60.0;

/// What is watched, and how.
#[derive(Debug, Args)]
pub(super) struct TopOptions {
    /// Print it once as plain text, for scripts.
    #[arg(long)]
    once: bool,
    /// How often the server is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
    /// Where the admin API is, or the API where no key exists, where that is not this configuration's address. A key with a role
    /// stands in the environment variable `STINT_KEY`.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| EVERY.contains(seconds));
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("write seconds, {} to {}", EVERY.start(), EVERY.end()))
}

pub(super) fn top(file: Option<&Path>, options: &TopOptions) -> VerbResult {
    let (settings, _) = load_needed(file, &["server", "admin"])?;
    let source = SnapshotSource::new(&settings, options.url.as_deref())?;
    if options.once {
        print_line(&plain::text(&source.ask_once()?));
        return Ok(ExitCode::SUCCESS);
    }
    terminal::watch(source, options.every)?;
    Ok(ExitCode::SUCCESS)
}
