//! What serves one model: *targets*, each a deployment with one credential.
//!
//! A fleet knows which of its targets may be asked now and which is best for a conversation, holds places on them,
//! lets requests wait for one in a bounded queue, and leaves a target alone that fails. It never tries again by
//! itself: only the flight knows the money, so the flight asks for another [`Seat`].

mod breaker;
mod cached;
mod choice;
mod conduct;
#[cfg(test)]
mod crowds;
mod ends;
#[expect(clippy::module_inception, reason = "the fleet itself, beside what it is made of")]
mod fleet;
mod lane;
mod latency;
mod limit;
mod line;
mod load;
mod measure;
mod poll;
mod queue;
mod retry;
mod roster;
mod seat;
mod served;
mod settings;
mod target;
mod trial;
mod waits;
mod watch;
mod window;

pub use breaker::{BreakerSettings, Cause};
pub use choice::Beginning;
pub use fleet::Fleet;
pub use limit::{ConcurrencySettings, Signal};
pub use load::Load;
pub use poll::{Page, Poller};
pub use retry::RetrySettings;
pub use roster::Standing;
pub use seat::Seat;
pub use settings::Settings;
pub use target::{Party, Target, Want};
