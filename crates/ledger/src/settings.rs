//! The settings of the ledger, and the statistics that an operator sees.

use std::time::Duration;

use crate::journal::OutageStatus;

/// The limits of the ledger's own machinery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many entries may wait for the journal before new dispatches are refused.
    pub pending_max: usize,
    /// How many jobs one commit takes at most.
    pub batch_max: usize,
    /// How long a dispatch or an extension waits for its commit.
    pub dispatch_max: Duration,
    /// How long one commit may run before new dispatches are refused.
    pub stall_max: Duration,
    /// How long the first retry of a failed commit waits; each later one waits twice as long.
    pub retry_min: Duration,
    /// How long a retry waits at most.
    pub retry_max: Duration,
    /// How long an episode that is not used is kept in memory; later it is read from the journal again.
    pub episode_idle: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            pending_max: 8192,
            batch_max: 512,
            dispatch_max: Duration::from_secs(5),
            stall_max: Duration::from_secs(2),
            retry_min: Duration::from_millis(10),
            retry_max: Duration::from_secs(1),
            episode_idle: Duration::from_secs(3600),
        }
    }
}

/// The state of the way to the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerStats {
    /// Resolutions that are not journalled yet.
    pub pending: usize,
    /// Dispatched reservations that are not resolved.
    pub unresolved: usize,
    /// Commits made.
    pub commits: u64,
    /// Entries in them.
    pub entries: u64,
    /// Commits that failed.
    pub failures: u64,
    /// How long the last commit took.
    pub last_commit: Duration,
    /// True if new dispatches are refused.
    pub stalled: bool,
    /// Since when the database does not work, and why.
    pub outage: Option<OutageStatus>,
}
