//! The quantities that cross module boundaries: tokens, money, prices, times, windows, ids; and which of the known words was
//! meant.
//!
//! A bare integer does not cross a boundary; every type here says its unit and how it rounds.

mod account;
mod amount;
mod bounded;
mod count;
mod episode;
mod id;
mod limit;
mod money;
mod nearest;
mod price;
mod priority;
mod rng;
mod timestamp;
mod tokens;
mod window;
mod zone;

pub use account::{AccountId, AccountIdError};
pub use amount::Amount;
pub use bounded::{Chance, Difficulty, Effort, Preference};
pub use count::Count;
pub use episode::{EpisodeId, EpisodeIdError};
pub use id::{ConversationId, RequestId};
pub use limit::{Facet, Holder, Limit, Unit};
pub use money::{Money, MoneyError};
pub use nearest::{nearest, nearest_within};
pub use price::Price;
pub use priority::Priority;
pub use rng::{SeededRng, mix64};
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use tokens::Tokens;
pub use window::Window;
pub use zone::{UnknownZone, Zone};
