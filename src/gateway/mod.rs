//! The life of one request, the only place that sees every step of it:
//! request → demand → plan → reserve → execute (think, then solve) → settle → learn.

mod admit;
mod counting;
mod embedding;
mod episodes;
mod feedback;
mod finish;
mod handle;
mod key_scope;
mod lifecycle;
mod managed_episodes;
mod request;
mod run;
mod settings;
mod state;
mod zero_metrics;

pub use admit::RequestQuote;
pub use counting::PromptCount;
pub use embedding::EmbeddingOutcome;
pub use episodes::{EpisodeManager, EpisodeSnapshot, EpisodeView};
pub use feedback::{CallerFeedback, FeedbackError, LearnSettings, Learning};
pub use handle::{Gateway, Readiness};
pub use request::observer::RequestObserver;
pub use request::receipt::{Chooser, RequestReceipt, SettledChoice, VoteTally};
pub use request::refusal::{Denial, RequestRefusal};
pub use request::task::{RequestTask, RequestUpdate};
pub use settings::Settings;
pub use state::pacing::PaceStatus;
pub use state::parts::GatewayParts;
