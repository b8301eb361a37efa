//! The terms of one choice: what it may take and how that is enforced. The gateway states them.

use stint_types::catalog::{ContinuationLimit, EnforcementClass, LimitedBy};
use stint_types::chat::{CacheTtl, CompletionKind};
use stint_types::units::Tokens;

/// Whether an answer may come in one piece: then all that it may take is set aside, and nobody reads it while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeAnswer {
    /// It comes as a stream.
    Never,
    /// It may: its limit is small.
    Always,
    /// It may, where enough streams show how its target does: it is expected to be short, and may become long.
    WhileMeasured,
}

/// What one choice may take and how it is held.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceTerms {
    /// How the budgets are held.
    pub class: EnforcementClass,
    /// How an answer is asked for after a thought that was stopped from outside, where that can be.
    pub resume: Option<EnforcementClass>,
    /// The thinking budget t.
    pub thinking: Tokens,
    /// The most that the answer may take.
    pub solution: Tokens,
    /// True if the answer may take besides what its thought leaves: both stand under one limit.
    pub answer_takes_rest: bool,
    /// Who set that limit.
    pub solution_by: LimitedBy,
    /// Whether the answer may come in one piece.
    pub whole: WholeAnswer,
    /// Whether an upstream that needs no limit is sent one.
    pub tells_limit: bool,
    /// The least limit that the upstream takes: one below it is raised there and held here.
    pub output_min: Tokens,
    /// What is set aside for tags, hand-off and end of text.
    pub overhead: Tokens,
    /// The effort word to send, for the class `effort`.
    pub effort: Option<String>,
    /// Where a thought is cut that shows, though its upstream was taken to hide it; nothing if nobody stated a limit. For
    /// the class `effort`.
    pub visible_max: Option<Tokens>,
    /// True if somebody limits thinking tokens: then no more is read than was set aside, though no answer may come of it.
    pub limits_thoughts: bool,
    /// How far the answer may go in further calls, where money alone limits the first one.
    pub continuation: Option<ContinuationLimit>,
    /// True if an answer that came out empty may be tried again.
    pub rescue: bool,
    /// The word for the least effort, for that second try.
    pub effort_least: Option<String>,
    /// An upper bound of the prompt's tokens, until the backend reports how many they are.
    pub prompt: Tokens,
    /// True if reading costs nothing, so that a thought may be read again whatever its length.
    pub has_free_input: bool,
    /// The longest that its caller wants any of the prompt kept in the provider's cache.
    pub cache_ttl: CacheTtl,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// What is wanted: a text that goes on keeps the blank that it goes on with.
    pub kind: CompletionKind,
}

impl ChoiceTerms {
    /// False if what a call writes unseen is no thought: the model has none, or was told to have none.
    pub(super) fn may_think_unseen(&self) -> bool {
        let is_asked = self.effort.as_deref().is_some_and(|word| word != "none");
        self.thinking > Tokens::ZERO || self.rescue || is_asked
    }
}
