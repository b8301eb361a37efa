//! The settings of learning.

use std::time::Duration;

use stint_decide::learn;
use stint_sessions::history::DecisionLogSettings;

/// How a gateway learns.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnSettings {
    /// False if nothing is learned, kept or logged.
    pub enabled: bool,
    /// How fast is learned and forgotten.
    pub beliefs: learn::Settings,
    /// The decision log, where there is one.
    pub log: Option<DecisionLogSettings>,
    /// How long the story of a request is kept, and feedback on it is taken.
    pub keep: Duration,
    /// How many stories are kept at most, in all gateways that share them; beyond it the oldest go.
    pub stories_max: u32,
    /// How often what was learned is saved, and what other replicas have learned is taken in.
    pub save_every: Duration,
    /// What one account's words on answers may weigh within an hour, a plain word being 1, and as much its signs, where there may
    /// be others. The words of keys that are trusted are not bounded by it.
    pub feedback_max: u32,
    /// How soon the same question must come again to count as a sign that its answer did not please; zero counts none.
    pub asked_again: Duration,
}

impl Default for LearnSettings {
    fn default() -> LearnSettings {
        LearnSettings {
            enabled: true,
            beliefs: learn::Settings::default(),
            log: None,
            keep: Duration::from_secs(7 * 24 * 3600),
            stories_max: 1_000_000,
            save_every: Duration::from_secs(30),
            feedback_max: 200,
            asked_again: Duration::from_secs(120),
        }
    }
}

impl LearnSettings {
    /// How long after a process last spoke it is taken for gone.
    pub(super) fn gone_after(&self) -> Duration {
        const LEAST: Duration = Duration::from_secs(60);
        (self.save_every * 10).max(LEAST)
    }
}
