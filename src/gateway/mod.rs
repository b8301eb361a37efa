//! The life of one request, and the only module that sees every step of it:
//! request → demand → plan → reserve → execute (think, then solve) → settle → learn.
//!
//! `admit` ends with a reserved request, `run` with an outcome, `finish` with a receipt; `lifecycle` joins them. `episodes`
//! manages the runs of agents that requests are steps of. `feedback` learns from outcomes and from callers. `request` and
//! `state` hold what all of these read: one request, and the gateway. They name no stage.

mod admit;
mod canary_feedback;
mod counting;
mod embedding;
mod episodes;
mod feedback;
mod finish;
mod handle;
mod key_scope;
mod lifecycle;
mod managed_episodes;
mod precheck;
mod request;
mod run;
mod settings;
mod spent;
mod state;
mod zero_metrics;

pub use admit::{LevelSource, ModelLevels, QuoteDetails, QuoteEvidence, RequestQuote};
pub use counting::PromptCount;
pub use embedding::EmbeddingOutcome;
pub use episodes::{EpisodeManager, EpisodeSnapshot, EpisodeView};
pub use feedback::{CallerFeedback, FeedbackError, LearnSettings, Learning, NotLearned};
pub use handle::{Gateway, Readiness};
pub use request::{
    AnsweringModel, Chooser, Denial, RequestObserver, RequestReceipt, RequestRefusal, RequestStage,
    RequestTask, RequestUpdate, SHUTTING_DOWN, SettledChoice, VoteTally,
};
pub use settings::Settings;
pub use state::{GatewayParts, LiveAttemptView, LiveRequestView, PaceStatus};
