//! The quantities that cross module boundaries: tokens, money, prices, times, windows, ids; and which of the known words was
//! meant.
//!
//! A bare integer does not cross a boundary; every type here says its unit and how it rounds.

mod account;
mod amount;
mod count;
mod dice;
mod episode;
mod id;
mod limit;
mod money;
mod nearest;
mod price;
mod priority;
mod share;
mod timestamp;
mod tokens;
mod window;
mod zone;

pub use account::{AccountId, AccountIdError};
pub use amount::Amount;
pub use count::Count;
pub use dice::{Dice, mixed};
pub use episode::{EpisodeId, EpisodeIdError};
pub use id::{ConversationId, RequestId};
pub use limit::{Facet, Holder, Limit, Unit};
pub use money::{Money, MoneyError};
pub use nearest::{near, nearest};
pub use price::Price;
pub use priority::Priority;
pub use share::{Chance, Difficulty, Effort, Preference};
pub use timestamp::{NotAMoment, Timestamp};
pub use tokens::Tokens;
pub use window::Window;
pub use zone::{UnknownZone, Zone};
