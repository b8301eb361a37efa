//! Agents: episodes, tool budgets, the tracker, stored responses and conversations.
//!
//! Everything here but the stores is pure: given how an episode stands it says what a step may do, and what of its answer
//! may pass. It asks no clock and rolls no dice. What was spent is counted by the ledger alone; what a client sends of a
//! run's history may only tighten it.

mod arguments;
mod chain;
mod choice;
#[cfg(test)]
pub(crate) mod conformance;
pub mod conversations;
mod dead_end;
mod history;
mod memory;
mod nearby;
mod object;
mod pass;
mod pressure;
mod reading;
mod regime;
mod room;
mod settings;
mod standing;
mod step;
mod store;
pub mod stored;
mod terms;
mod tracker;
mod trim;
mod turns;
mod view;

pub use chain::{Chain, Link};
pub use choice::without_tools;
pub use dead_end::DeadEnd;
pub use history::{History, TooLong};
pub use memory::MemoryEpisodes;
pub use nearby::NearbyEpisodes;
pub use pass::Pass;
pub use pressure::pressure;
pub use reading::Reading;
pub use regime::Regime;
pub use room::Room;
pub use settings::{Regimes, Settings, Words};
pub use standing::{Standing, Use};
pub use step::{Asked, Finality, Next, RouteTurns, Spent, Step, Wait, next};
pub use store::{Course, Ending, Episode, Episodes, EpisodesError, Extension, LastStep, Twin};
pub use terms::{ToolTerms, Tools};
pub use trim::{Trim, Trimmed};
pub use turns::{Run, TurnCap, Turns};

#[cfg(test)]
mod tests;
