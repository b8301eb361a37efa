//! What is known of a model: what it can do, what it costs, and what it is sent.

mod ability_guess;
mod capability;
mod conversation;
mod image_tokens;
mod members;
mod model;
mod off_peak;
mod tariff;

pub use ability_guess::AbilityGuess;
pub use capability::{Capability, EnforcementClass, Needs, Service};
pub use conversation::ConversationRules;
pub use image_tokens::{ImageDetail, ImageRule, ImageSize, ImageTokens};
pub use members::{MemberAction, MemberRules, UnknownMembers};
pub use model::{EFFORT_SHARES, EFFORT_WORDS, EffortLevel, GoesOn, HandOff, Model, Specialty, effort_rank};
pub use off_peak::OffPeak;
pub use tariff::{BilledCall, Prices, Rates, Tariff};
