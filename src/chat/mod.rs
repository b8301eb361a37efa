//! The canonical conversation: what every wire format is turned into, and what every backend is asked.
//!
//! Nothing here knows HTTP, money, or a provider.

mod budget;
mod embedding;
mod episode;
mod event;
mod message;
mod name;
mod reach;
mod request;
mod tools;

pub use budget::{Budget, Depth, Members};
pub use embedding::{Embedding, Inputs};
pub use episode::{EpisodeLimits, EpisodeRaise};
pub use event::{Event, Finish, ToolCallDelta, is_whole};
pub use message::{Keep, Maker, Message, Origin, Part, Role, Signed, ToolCall};
pub use name::short_name;
pub use reach::Reach;
pub use request::{Form, Request, Sampling, Tool};
pub use tools::{ToolCounts, ToolLimits};
