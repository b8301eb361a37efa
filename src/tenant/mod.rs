//! Who is asking: keys as their hashes, and what each tenant may spend.
//!
//! Plain data and a lookup table. What was spent is the ledger's matter; where keys come from, the
//! configuration's.

mod key;
mod keys;
mod limit;
mod terms;

pub use key::{KeyError, KeyHash, NewKey, hash_key};
pub use keys::{Keys, KeysError, Tenant};
pub use limit::{Scope, TenantLimit};
pub use terms::{NotAPercent, Percent, Terms};
