//! `stint health`: asks the configured server whether it is ready, as a container's health check does.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::local_listener::LocalListener;
use super::needed_sections::load_needed;
use super::output::{VerbResult, print_line};

/// How long connecting and answering may take, each.
const TIMEOUT: Duration = Duration::from_secs(3);
/// A status line is shorter than this.
const ANSWER_MAX: u64 = 4096;

/// Why it is not ready.
#[derive(Debug, thiserror::Error)]
enum HealthError {
    #[error(
        "no server answers at {0}, where this configuration has it; start it with `stint serve`, or name the \
         configuration that it runs with by --config"
    )]
    Unreachable(SocketAddr, #[source] io::Error),
    #[error("the server at {0} is not ready: it says \"{1}\"; its log says why")]
    NotReady(SocketAddr, String),
}

/// What is asked.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct HealthOptions {
    /// Ask only whether it runs, not whether it can serve: restarting it mends no upstream and no database.
    #[arg(long)]
    alive: bool,
}

pub(super) fn health(file: Option<&Path>, options: HealthOptions) -> VerbResult {
    let (settings, _) = load_needed(file, &["server"])?;
    let listener = LocalListener::monitoring(&settings);
    let address = listener.address();
    let (page, word) = if options.alive { ("/healthz", "alive") } else { ("/readyz", "ready") };
    match request_status(listener, page) {
        Ok(status) if status.contains(" 200 ") => {
            print_line(word);
            Ok(ExitCode::SUCCESS)
        }
        Ok(status) => Err(HealthError::NotReady(address, status).into()),
        Err(error) => Err(HealthError::Unreachable(address, error).into()),
    }
}

fn request_status(listener: LocalListener<'_>, page: &str) -> io::Result<String> {
    let address = listener.address();
    let request = format!("GET {page} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let answer = listener.ask(request.as_bytes(), TIMEOUT, ANSWER_MAX)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
