//! The admin API: keys, accounts, episodes and reloads, on a listener of its own, for those who have the token or a key with the
//! scope. `app` builds its state and its router.

mod access;
mod accounts;
mod audit;
mod episodes;
mod guard;
mod keys;
mod page;
mod query;
mod read;
mod reload;
mod requests;
mod routes;
mod show;
mod state;
mod stored;
mod stored_content;
mod transfer;

pub use page::{PageHistory, PageLink, PageState, open_page};
pub use routes::{admin, admin_table};
pub use state::{AdminState, ImportFn, ReloadFn, ReloadOutcome, StatementFn};
pub use stored_content::StoredContent;
