//! `Backend`: the trait of anything that generates.
//!
//! A call says which part of a generation to make, and the backend streams typed pieces. It knows nothing of budgets
//! beyond the limits in the call, of money, or of callers. Dropping a generation cancels it.

mod behavior;
mod embedding;
mod failure;
pub mod fleet;
pub mod local;
mod outage;
mod output_stats;
mod prefill;
pub mod remote;
pub mod scripted;
mod shown_by;
mod speed;
mod tool_calls;
mod unavailable;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde_json::Value;

use stint_types::catalog::{EnforcementClass, ImageTokens, ModelConditions};
use stint_types::chat::{
    AnswerNote, EmbeddingRequest, ProviderMembers, Request, SignedThought, SigningDomain, ToolCallDelta,
};
use stint_types::units::Tokens;

pub use behavior::{BehaviorObservation, BehaviorTracker, TargetBehavior, Turns};
pub use embedding::{EmbeddedText, EmbeddingResult, EmbeddingVector};
pub use failure::{
    ENGINE_RESTARTING, FIRST_BYTE_TIMEOUT, Failure, Fault, NO_ANSWER, REQUEST_TOO_LARGE, Retry,
    UPSTREAM_RATE_LIMITED, UnsupportedFeature, UpstreamErrorCode, UpstreamReason,
};
pub use outage::TargetOutage;
pub use output_stats::{OutputStats, weighted_characters};
pub use shown_by::ShownBy;
pub use unavailable::UnavailableBackend;

/// The pieces of one generation, the last of them a [`Piece::End`]. Dropping it cancels the generation.
pub type Generation = Pin<Box<dyn Stream<Item = Result<Piece, Failure>> + Send>>;

/// Something that generates.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Starts a generation. Resolves when it was accepted, which may be before the first piece; a call that
    /// was never sent says so in its failure.
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>>;

    /// Why its model cannot think for this request, though it does else; nothing where it can, and where it never thinks.
    fn thinking_ruled_out(&self, _: &Request) -> Option<&'static str> {
        None
    }

    /// Makes vectors of texts.
    fn embed(&self, _: Arc<EmbeddingRequest>) -> BoxFuture<'_, Result<EmbeddingResult, Failure>> {
        let failure = Failure::incapable(UnsupportedFeature::Service, "this model makes no embeddings");
        Box::pin(async move { Err(failure) })
    }

    /// An upper bound of the prompt's tokens; exact where the backend has the model's tokenizer.
    fn prompt_tokens(&self, request: &Request) -> Tokens;

    /// What an image costs the model at most.
    fn images(&self) -> ImageTokens {
        ImageTokens::default()
    }

    /// Whether [`prompt_tokens`](Backend::prompt_tokens) is exact.
    fn counts_exactly(&self) -> bool {
        false
    }

    /// The prompt's tokens as the upstream's tokenizer counts them, which may take a free call. `None` if the upstream
    /// cannot count.
    fn count_prompt(&self, request: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        let counted = self.counts_exactly().then(|| self.prompt_tokens(&request));
        Box::pin(std::future::ready(counted))
    }

    /// How fast it is now, as measured by itself.
    fn conditions(&self) -> ModelConditions;

    /// How many calls it works on at once, others waiting, where that is known.
    fn places(&self) -> Option<u32> {
        None
    }

    /// Whether its model is in memory now, where that may change: one that is not is loaded by the next call.
    fn is_loaded(&self) -> Option<bool> {
        None
    }

    /// Why it takes no calls now, where it knows that itself. It is asked before every call, and gets none meanwhile.
    fn outage(&self) -> Option<TargetOutage> {
        None
    }

    /// A prompt that has at most so many tokens had so many, as its upstream reported.
    fn record_prompt_tokens(&self, told: Tokens, most: Tokens) {
        let _ = (told, most);
    }

    /// Takes one of the retries that there may be, for a call that is made again within an answer; false where none is left.
    fn take_retry(&self) -> bool {
        true
    }

    /// How it writes, learned from its finished answers.
    fn output_stats(&self) -> OutputStats {
        OutputStats::default()
    }

    /// Who can verify what it signs; nothing if it signs nothing.
    fn origin(&self) -> Option<SigningDomain> {
        None
    }

    /// How it is known to treat the limits it is sent.
    fn behavior(&self) -> TargetBehavior {
        TargetBehavior::default()
    }

    /// The context of its server, once that has reported it.
    fn context(&self) -> Option<Tokens> {
        None
    }

    /// Records what a call has shown of its [behavior](Backend::behavior).
    fn observe(&self, _: BehaviorObservation) {}

    /// How many requests since the last call of this were sent once more, because their connection was lost before anybody
    /// seems to have read them.
    fn take_resent(&self) -> u64 {
        0
    }

    /// How many answers since the last call of this reported that nothing is left of the upstream's rate limit.
    fn take_exhausted_rate_limits(&self) -> u64 {
        0
    }
}

/// One call of a backend.
#[derive(Debug, Clone)]
pub struct BackendCall {
    /// What is asked.
    pub request: Arc<Request>,
    /// How its thinking is held.
    pub class: EnforcementClass,
    /// Which part of it.
    pub part: GenerationPart,
    /// Fixes the draw, for this choice.
    pub seed: u64,
    /// True if it may think unseen, where its upstream hides thoughts.
    pub hidden: bool,
    /// True if its answer is wanted in one piece: nobody reads it while it is written, and nothing would break it off. A target
    /// that [can](TargetBehavior::answers_whole) is asked for it so.
    pub whole: bool,
    /// True if somebody stated a limit on the answer. Elsewhere an upstream that needs no limit is sent none, whatever
    /// the part says; limits on a thought alone are always sent.
    pub tells_limit: bool,
    /// The caller's word for how hard to think, where it is not known what it comes to in tokens and the part has none.
    pub effort: Option<String>,
    /// The word for the least effort, for an answer that is asked for without a thought where nothing else turns thinking off.
    pub effort_least: Option<String>,
}

impl BackendCall {
    /// The same call of a model that does not think: one answer, as its server makes it.
    #[must_use]
    pub fn unthought(self) -> BackendCall {
        let part = match &self.part {
            // What was planned for a thought may go to the answer. A caller that allows the answer less enforces that
            // itself.
            GenerationPart::Thought { thinking, solution } | GenerationPart::Whole { thinking, solution } => {
                GenerationPart::Whole { thinking: Tokens::ZERO, solution: *thinking + *solution }
            }
            GenerationPart::Solution { solution, .. } => {
                GenerationPart::Whole { thinking: Tokens::ZERO, solution: *solution }
            }
            GenerationPart::Total { .. } => self.part.clone(),
        };
        BackendCall { part, ..self }
    }

    /// A call that is not made: its prompt is to be counted.
    pub fn for_counting(request: &Arc<Request>) -> BackendCall {
        let part = GenerationPart::Whole { thinking: Tokens::ZERO, solution: Tokens(1) };
        let (seed, hidden, whole, tells_limit) = (0, false, false, true);
        let (request, class, effort, effort_least) = (request.clone(), EnforcementClass::Native, None, None);
        BackendCall { request, class, part, seed, hidden, whole, tells_limit, effort, effort_least }
    }

    /// True if its limit is the thought's alone, which is always sent.
    pub fn limits_thought_alone(&self) -> bool {
        self.class == EnforcementClass::Continue && matches!(self.part, GenerationPart::Thought { .. })
    }

    /// The limit on an answer, where an upstream that needs none is sent one.
    pub fn stated_limit(&self, limit: Tokens) -> Option<Tokens> {
        self.tells_limit.then_some(limit)
    }

    /// True if it thinks unseen, as far as its class tells: a native budget is held by upstreams that show their thoughts
    /// too.
    pub fn hides_thinking(&self) -> bool {
        self.hidden && self.class == EnforcementClass::Effort
    }
}

/// Which part of a generation to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GenerationPart {
    /// Thought and answer in one go; the backend holds both budgets and closes the thought itself (classes
    /// `inline` and `native`).
    Whole {
        /// The thinking budget.
        thinking: Tokens,
        /// The solution budget.
        solution: Tokens,
    },
    /// The thought, `thinking` tokens at most and at least 1, where the backend can hold that; else it is cut from
    /// outside. A backend that cannot stop where the thought closes by itself goes on into the answer (classes
    /// `continue` and `turn`, first phase).
    Thought {
        /// The thinking budget.
        thinking: Tokens,
        /// The solution budget, for an answer that follows at once.
        solution: Tokens,
    },
    /// Only the answer, after a thought that is closed by now: resumed from it (class `continue`), or in a new turn
    /// without thinking (class `turn`).
    Solution {
        /// The thought so far, without tags. It is shared, since it may be long, and the call made again.
        thought: Arc<Thought>,
        /// What was already written of the answer, which goes on from there; usually nothing.
        answer: String,
        /// The solution budget.
        solution: Tokens,
    },
    /// Both under one limit (class `effort`).
    Total {
        /// The word of the model's effort scale, if it has one.
        effort: Option<String>,
        /// The limit of everything written.
        tokens: Tokens,
    },
}

impl GenerationPart {
    /// The most that it may write, tags and hand-off aside.
    pub fn tokens_max(&self) -> Tokens {
        match self {
            GenerationPart::Whole { thinking, solution } => {
                EnforcementClass::native_max(*thinking) + *solution
            }
            GenerationPart::Thought { thinking, solution } => *thinking + *solution,
            GenerationPart::Solution { solution, .. } => *solution,
            GenerationPart::Total { tokens, .. } => *tokens,
        }
    }

    /// The whole answer after a thought.
    pub fn after_thought(thought: impl Into<Arc<Thought>>, solution: Tokens) -> GenerationPart {
        GenerationPart::Solution { thought: thought.into(), answer: String::new(), solution }
    }
}

/// A thought to resume from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thought {
    /// Its tokens, where the backend reported them.
    pub ids: Vec<u32>,
    /// Its text.
    pub text: String,
    /// True if the model closed it itself; otherwise the hand-off goes in between.
    pub closed: bool,
}

/// A piece of a generation, with how many of the model's tokens it stands for. Text may be empty: a token
/// may end inside a character. Where tokens are not reported, `tokens` is 0 and usage says it at the end.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// More of the thought.
    Thought {
        /// What it says.
        text: String,
        /// How many tokens it is.
        tokens: Tokens,
        /// Which tokens, where known.
        ids: Vec<u32>,
    },
    /// More of the summary of a hidden thought. It is shown as the thought, and counts nothing: what
    /// was really thought only usage says.
    Summary(String),
    /// A tag of thinking that the model wrote itself; never shown.
    Tag {
        /// How many tokens it is.
        tokens: Tokens,
        /// What the tag says.
        edge: TagEdge,
    },
    /// The hand-off that the backend put in; never shown.
    HandOff {
        /// How many tokens it is.
        tokens: Tokens,
    },
    /// A part of the thought that its provider wants back as it is.
    Signed(SignedThought),
    /// More of the answer.
    Answer {
        /// Its text, with the blank before it. Code that shows the text drops the blank.
        text: String,
        /// How many tokens it is.
        tokens: Tokens,
    },
    /// The log probabilities of the answer's next tokens, in OpenAI's form; before the text of these tokens.
    Logprobs(Vec<Value>),
    /// What the upstream says of the answer besides its text; where it concerns text, before that.
    Note(AnswerNote),
    /// More of a tool call.
    ToolCall(ToolCallDelta),
    /// What the upstream says of the call as a whole.
    Remark(Remark),
    /// All that this part has shown as its thought was its answer: no thought was in the text.
    Unthought,
    /// The upstream's own count; the last one wins.
    Usage(TokenUsage),
    /// The end of this part.
    End(GenerationEnd),
}

impl Piece {
    /// About how many bytes its texts have.
    pub fn text_bytes(&self) -> usize {
        match self {
            Piece::Thought { text, .. } | Piece::Summary(text) | Piece::Answer { text, .. } => text.len(),
            Piece::Signed(thought) => thought.block.len(),
            Piece::ToolCall(call) => call.arguments.len(),
            Piece::Remark(Remark::StoppedBy(text) | Remark::Fingerprint(text)) => text.len(),
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Logprobs(_)
            | Piece::Note(_)
            | Piece::Remark(_)
            | Piece::Unthought
            | Piece::Usage(_)
            | Piece::End(_) => 0,
        }
    }
}

/// What an upstream says of a call as a whole. The model wrote none of it, so it counts nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Remark {
    /// The caller's stop text that ended the answer, if the upstream reports which.
    StoppedBy(Box<str>),
    /// So many thoughts that were sent back were dropped by the provider, since what stands before them is not what stood there
    /// when they were thought.
    ThoughtsDropped(u32),
    /// What the upstream calls the configuration that it runs the model in (OpenAI's `system_fingerprint`).
    Fingerprint(Box<str>),
    /// What the provider says of the answer in members that only its own API has. Of one call it comes once.
    Members(Box<ProviderMembers>),
}

/// Which side of a thought a tag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagEdge {
    /// The thought begins.
    Start,
    /// The thought is closed.
    End,
}

/// Why a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationEnd {
    /// The model ended its text; `tokens` counts the end-of-text token where it was generated.
    Stop {
        /// 1 where the end-of-text token is counted, else 0.
        tokens: Tokens,
    },
    /// The part's limit was reached.
    Limit,
    /// The model's own limit was reached: its context, or the most that its provider lets it write.
    ModelLimit,
    /// The upstream broke it off.
    BrokenOff,
    /// The model wants tools to be called.
    ToolCalls,
    /// The upstream withheld the answer.
    Filtered,
}

impl GenerationEnd {
    /// True if the model would have gone on.
    pub fn is_cut(self) -> bool {
        matches!(self, GenerationEnd::Limit | GenerationEnd::ModelLimit | GenerationEnd::BrokenOff)
    }
}

/// An upstream's own count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Everything read; 0 if it is not reported.
    pub prompt: Tokens,
    /// How much of it the provider's cache had.
    pub cache_read: Tokens,
    /// How much of it the provider put into its cache, where that has a price.
    pub cache_write: Tokens,
    /// How much of that for an hour, if the provider reports it separately.
    pub cache_hour: Option<Tokens>,
    /// Everything written.
    pub completion: Tokens,
    /// How much of it was thought, where the upstream says it.
    pub thinking: Option<Tokens>,
}
