//! The page of the admin API: what the gateway does now, in pictures.
//!
//! Its files are in the binary and load nothing from elsewhere. Its numbers are those of the metrics, of the ledger and of the
//! requests that are remembered anyway: nothing is counted for it.

mod assets;
mod curves;
mod decisions;
mod episodes;
mod history;
mod link;
mod money;
mod now;
mod open_guard;
mod parts;
mod playground;
mod requests;
mod routes;
mod series;
mod state;
mod thinking;

pub use history::PageHistory;
pub use link::PageLink;
pub(super) use parts::part;
pub(super) use playground::ask;
pub use routes::open_page;
pub(super) use routes::page_routes;
pub use state::PageState;
