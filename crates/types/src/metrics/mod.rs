//! What Prometheus sees: every series of the design, named, explained and bounded in its labels.
//!
//! Labels are names from the configuration or words of an enumeration, never a key, a prompt or free text;
//! a caller's unknown name is counted as `other`.

mod backends;
mod buckets;
mod config;
mod description;
mod engines;
mod episodes;
mod factory;
mod guardrails;
mod learning;
mod ledger;
mod money;
mod process;
mod requests;
mod rollout;
mod server;
mod storage;
mod thinking;
mod tokens;
mod tools;
mod traces;
mod votes;
mod zero_metrics;

use std::cell::RefCell;

pub use prometheus::IntCounter;
use prometheus::{Encoder, Registry, TextEncoder};

use factory::MetricFactory;

pub use backends::BackendMetrics;
pub use config::ConfigMetrics;
pub use description::{SeriesDescription, SeriesKind, SeriesUnit};
pub use engines::EngineMetrics;
pub use episodes::EpisodeMetrics;
pub use guardrails::GuardrailMetrics;
pub use learning::LearningMetrics;
pub use ledger::LedgerMetrics;
pub use money::MoneyMetrics;
pub use requests::RequestMetrics;
pub use rollout::RolloutMetrics;
pub use server::ServerMetrics;
pub use storage::StorageMetrics;
pub use thinking::ThinkingMetrics;
pub use tokens::TokenMetrics;
pub use tools::{ToolCallMetrics, ToolDecision};
pub use traces::TraceMetrics;
pub use votes::VoteMetrics;

/// The label of what is not known by name.
pub const OTHER: &str = "other";

/// Every series. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    descriptions: Vec<SeriesDescription>,
    /// What becomes of traces.
    pub traces: TraceMetrics,
    /// What runs, what it answers, and how its runtime stands.
    pub server: ServerMetrics,
    /// How requests go.
    pub requests: RequestMetrics,
    /// What is kept of answers.
    pub storage: StorageMetrics,
    /// What budgets are given and used.
    pub thinking: ThinkingMetrics,
    /// What is reserved, spent and left.
    pub money: MoneyMetrics,
    /// What the models' backends do.
    pub backends: BackendMetrics,
    /// How the ledger keeps up.
    pub ledger: LedgerMetrics,
    /// What is learned.
    pub learning: LearningMetrics,
    /// What votes, cascades and second opinions come to.
    pub votes: VoteMetrics,
    /// What becomes of the tool calls of runs with limits.
    pub tools: ToolCallMetrics,
    /// How steps of agents find their runs.
    pub episodes: EpisodeMetrics,
    /// What is watched before it is switched on, and what money counts for.
    pub rollout: RolloutMetrics,
    /// What guardrails say.
    pub guardrails: GuardrailMetrics,
    /// What becomes of callers' tokens.
    pub tokens: TokenMetrics,
    /// Whether what the operator wrote is in force.
    pub config: ConfigMetrics,
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
        let (registry, described) = (Registry::new(), RefCell::default());
        let make = MetricFactory::new(&registry, &described);
        let metrics = Metrics {
            requests: RequestMetrics::new(&make.about("Requests"))?,
            thinking: ThinkingMetrics::new(&make.about("Thoughts and answers"))?,
            money: MoneyMetrics::new(&make.about("Money"))?,
            backends: BackendMetrics::new(&make.about("Backends"))?,
            ledger: LedgerMetrics::new(&make.about("Ledger"))?,
            config: ConfigMetrics::new(&make.about("Configuration"))?,
            guardrails: GuardrailMetrics::new(&make.about("Guardrails"))?,
            tokens: TokenMetrics::new(&make.about("Tokens of issuers"))?,
            tools: ToolCallMetrics::new(&make.about("Tools"))?,
            episodes: EpisodeMetrics::new(&make.about("Runs of agents"))?,
            learning: LearningMetrics::new(&make.about("Learning"))?,
            votes: VoteMetrics::new(&make.about("Votes and cascades"))?,
            rollout: RolloutMetrics::new(&make.about("Rollout and pace"))?,
            storage: StorageMetrics::new(&make.about("What is kept"))?,
            traces: TraceMetrics::new(&make.about("Traces"))?,
            server: ServerMetrics::new(&make.about("Server"))?,
            registry: registry.clone(),
            descriptions: Vec::new(),
        };
        process::register(&make.about("Process"))?;
        Ok(Metrics { descriptions: described.into_inner(), ..metrics })
    }

    /// What each series is, those of one subject together.
    pub fn descriptions(&self) -> &[SeriesDescription] {
        &self.descriptions
    }

    /// All series in Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        let mut text = Vec::new();
        // Encoding fails only on a family without a name, and every family above has one.
        let encoded = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        debug_assert!(encoded.is_ok(), "every series has a name");
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    /// OB-05: a page of ten thousand series takes a moment, and requests count on meanwhile.
    #[test]
    fn ten_thousand_series_are_a_moment_in_which_requests_count_on() {
        let metrics = Metrics::new().unwrap();
        for number in 0..10_000 {
            metrics.money.spent.with_label_values(&["m", &format!("tenant-{number}")]).inc();
        }
        let is_over = AtomicBool::new(false);
        let (quickest, longest_wait) = std::thread::scope(|scope| {
            let counting = scope.spawn(|| {
                let mut waits = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    metrics.money.spent.with_label_values(&["m", "tenant-7"]).inc();
                    waits.push(began.elapsed());
                }
                waits.sort_unstable();
                waits[waits.len() * 99 / 100]
            });
            let render = |_| {
                let began = Instant::now();
                assert!(metrics.render().lines().count() > 10_000);
                began.elapsed()
            };
            let quickest = (0..5).map(render).min().unwrap();
            is_over.store(true, Ordering::Relaxed);
            (quickest, counting.join().unwrap())
        });
        // Built with optimizations it is a tenth of that.
        assert!(quickest < Duration::from_millis(500), "{quickest:?}");
        assert!(longest_wait < quickest / 20, "{longest_wait:?} of {quickest:?}");
    }
}
