//! Learning in a running gateway: what is believed before a plan is made, what came of it, and what is said of it after.
//!
//! A request only ever reads what is believed and leaves its story behind. One task learns from the stories, one keeps
//! them in the store, one exchanges what was learned with other replicas, and a thread writes the log. Whatever is full, slow
//! or broken among them drops and counts; no answer waits for any of it.

mod caller_feedback;
mod handle;
mod influence_cap;
mod inner;
mod learner;
mod lesson;
mod marks;
mod recent;
mod repeat_detector;
mod reversal_limiter;
mod schema_fit;
mod settings;
mod signals;
mod state_exchange;
mod story_writer;
mod windows;

pub use caller_feedback::{CallerFeedback, FeedbackError};
pub use handle::Learning;
pub use settings::LearnSettings;

pub(super) use inner::LOST_AT;
pub(super) use repeat_detector::QuestionFingerprint;
pub(super) use signals::{AnswerSignal, of_ending, of_form, with_transcript};
