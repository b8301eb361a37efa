//! How many files the process may have open: every connection is one.

use crate::config::Settings;

/// What is open beside connections: the database, the log, models, the runtime's own.
const OTHER_FILES: usize = 64;

/// Where the system sets no bound, or one beyond reason.
#[cfg(unix)]
const OPEN_FILES_MAX: u64 = 1 << 20;

/// Raises the limit to the most that the system allows this process. Programs often start with 1024 for the sake of old ones.
#[cfg(unix)]
pub(super) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(OPEN_FILES_MAX).min(OPEN_FILES_MAX);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        tracing::warn!(%error, ?current, wanted, "the limit on open files could not be raised");
    }
}

/// There is no such limit here.
#[cfg(not(unix))]
pub(super) fn raise_limit() {}

/// What is to be said where the system allows fewer open files than the settings may need.
pub(super) fn shortage(settings: &Settings) -> Option<String> {
    let needed = files_needed(settings.http.connections_max, settings.gateway.flights_max);
    let allowed = files_allowed().filter(|allowed| *allowed < needed)?;
    Some(format!(
        "this process may have {allowed} files open, and [server] connections_max and [gateway] flights_max may need {needed}: \
         raise the limit (ulimit -Hn, LimitNOFILE of systemd, --ulimit nofile of Docker), or lower the two"
    ))
}

/// One for each connection of a caller, one for each request that is with an upstream.
fn files_needed(connections_max: usize, flights_max: usize) -> u64 {
    let needed = connections_max.saturating_add(flights_max).saturating_add(OTHER_FILES);
    u64::try_from(needed).unwrap_or(u64::MAX)
}

/// The most that the system allows; nothing where it sets no bound.
#[cfg(unix)]
fn files_allowed() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

#[cfg(not(unix))]
fn files_allowed() -> Option<u64> {
    None
}
