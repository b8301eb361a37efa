//! The life of one request, the only place that sees every step of it:
//! request → demand → plan → reserve → execute (think, then solve) → settle → learn.

mod about;
mod admit;
mod aside;
mod attempts;
mod books;
mod cascade;
mod choosing;
mod consider;
mod considered;
mod counting;
mod demotions;
mod embedding;
mod episodes;
mod flight;
mod flying;
mod handle;
mod judge;
mod landing;
mod learning;
mod needs;
mod observe;
mod pacing;
mod probe;
mod quote;
mod receipt;
mod refusal;
mod refused;
mod reserve;
mod rollout;
mod scope;
mod settings;
mod together;
mod verifiers;
mod voting;

pub use embedding::Vectors;
pub use episodes::{Agents, Shown, Told};
pub use flight::{Flight, Report};
pub use handle::{Gateway, Parts};
pub use learning::{FeedbackError, LearnSettings, Learning, Opinion};
pub use pacing::Standing;
pub use quote::Quoted;
pub use receipt::{Chooser, Receipt, Settled, Tally};
pub use refusal::Refusal;
pub use settings::Settings;
