//! Learning in a running gateway: what is believed before a plan is made, what came of it, and what is said of it after.
//!
//! A request only ever reads what is believed and leaves its story behind. One task learns from the stories, one keeps
//! them in the store, one exchanges what was learned with other replicas, and a thread writes the log. Whatever is full, slow
//! or broken among them drops and counts; no answer waits for any of it.

mod changes;
mod clerk;
mod exchange;
mod feedback;
mod fits;
mod handle;
mod learner;
mod lesson;
mod marks;
mod recall;
mod recent;
mod settings;
mod signals;
mod sway;
mod tale;
mod windows;

pub use feedback::{FeedbackError, Opinion};
pub use handle::Learning;
pub use settings::LearnSettings;

pub(super) use recall::Asked;
pub(super) use signals::{listened, of_ending, of_form};
pub(super) use tale::{Close, Grounds};

/// Where an outcome may be lost.
const STORE: &str = "store";
const LEARNER: &str = "learner";
const LOG: &str = "log";
pub(super) const LOST_AT: [&str; 3] = [STORE, LEARNER, LOG];
