//! The life of one request, the only place that sees every step of it:
//! request → demand → plan → reserve → execute (think, then solve) → settle → learn.

mod about;
mod admit;
mod attempts;
mod books;
mod counting;
mod demotions;
mod embedding;
mod flight;
mod flying;
mod learning;
mod needs;
mod observe;
mod pacing;
mod receipt;
mod refusal;
mod rollout;
mod scope;
mod settings;

pub use admit::{Gateway, Parts};
pub use embedding::Vectors;
pub use flight::{Flight, Report};
pub use learning::{FeedbackError, LearnSettings, Learning, Opinion};
pub use pacing::Standing;
pub use receipt::{Receipt, Settled};
pub use refusal::Refusal;
pub use settings::Settings;
