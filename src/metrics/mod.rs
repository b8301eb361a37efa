//! What Prometheus sees: every series of the design, named, explained and bounded in its labels.
//!
//! Labels are names from the configuration or words of an enumeration, never a key, a prompt or free text;
//! a caller's unknown name is counted as `other`.

mod agents;
mod backends;
mod begin;
mod buckets;
mod config;
mod kept;
mod learned;
mod ledger;
mod maker;
mod money;
mod requests;
mod rollout;
mod thinking;
mod tools;
mod votes;

use prometheus::{Encoder, Registry, TextEncoder};

use maker::Maker;

pub use agents::Agents;
pub use backends::Backends;
pub use config::Config;
pub use kept::Kept;
pub use learned::Learned;
pub use ledger::LedgerSeries;
pub use money::Money;
pub use requests::Requests;
pub use rollout::Rollout;
pub use thinking::Thinking;
pub use tools::{ToolCalls, ToolDecision};
pub use votes::Votes;

/// The label of what is not known by name.
pub const OTHER: &str = "other";

/// Every series. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// How requests go.
    pub requests: Requests,
    /// What is kept of answers.
    pub kept: Kept,
    /// What budgets are given and used.
    pub thinking: Thinking,
    /// What is reserved, spent and left.
    pub money: Money,
    /// What the models' backends do.
    pub backends: Backends,
    /// How the ledger keeps up.
    pub ledger: LedgerSeries,
    /// What is learned.
    pub learning: Learned,
    /// What votes, cascades and second opinions come to.
    pub votes: Votes,
    /// What becomes of the tool calls of runs with limits.
    pub tools: ToolCalls,
    /// How steps of agents find their runs.
    pub agents: Agents,
    /// What is watched before it is switched on, and what money counts for.
    pub rollout: Rollout,
    /// Whether what the operator wrote is in force.
    pub config: Config,
}

/// A series could not be registered: its name is taken or malformed.
#[derive(Debug, thiserror::Error)]
#[error("metrics could not be set up: {0}")]
pub struct MetricsError(#[from] prometheus::Error);

impl Metrics {
    /// A registry of its own with every series in it.
    ///
    /// # Errors
    /// Never, unless two series share a name.
    pub fn new() -> Result<Metrics, MetricsError> {
        let registry = Registry::new();
        let make = Maker(&registry);
        let (requests, kept) = (Requests::new(&make)?, Kept::new(&make)?);
        let (thinking, money) = (Thinking::new(&make)?, Money::new(&make)?);
        let (backends, ledger) = (Backends::new(&make)?, LedgerSeries::new(&make)?);
        let (learning, votes, rollout) = (Learned::new(&make)?, Votes::new(&make)?, Rollout::new(&make)?);
        let (tools, agents) = (ToolCalls::new(&make)?, Agents::new(&make)?);
        let config = Config::new(&make)?;
        Ok(Metrics {
            requests,
            kept,
            thinking,
            money,
            backends,
            ledger,
            learning,
            votes,
            tools,
            agents,
            rollout,
            config,
            registry,
        })
    }

    /// All series in Prometheus' text format 0.0.4.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        // Encoding fails only on a family without a name, and every family above has one.
        let encoded = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        debug_assert!(encoded.is_ok(), "every series has a name");
        String::from_utf8_lossy(&text).into_owned()
    }
}
