//! Learning in a running gateway: requests read the beliefs before they plan, and report outcomes and verdicts afterwards.
//!
//! A request only reads the beliefs and leaves its record behind. One task learns from the records, one writes them to the
//! store, one exchanges what was learned with other replicas, and a thread writes the log. If one of them is full, slow or
//! broken, it drops work and counts that; no answer waits for it.

mod caller_feedback;
mod handle;
mod influence_cap;
mod inner;
mod learner;
mod marks;
mod not_learned;
mod pending_take_over;
mod prompt_ratios;
mod recent;
mod repeat_detector;
mod reversal_limiter;
mod samples;
mod schema_fit;
mod settings;
mod signals;
mod state_exchange;
mod story_writer;
mod windows;

pub use caller_feedback::{CallerFeedback, FeedbackError};
pub use handle::Learning;
pub use not_learned::NotLearned;
pub use settings::LearnSettings;

pub(super) use inner::LOST_AT;
pub(super) use prompt_ratios::PromptRatios;
pub(super) use repeat_detector::QuestionFingerprint;
pub(super) use signals::{AnswerSignal, of_ending, of_form, with_transcript};
