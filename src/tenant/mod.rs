//! Who is asking: keys as their hashes, what each may name, and what its account may spend.
//!
//! Declared keys come from the configuration, others from a store behind a trait; the directory of both keeps the
//! live table. What was spent is the ledger's matter.

mod access;
mod book;
mod changes;
#[cfg(test)]
pub(crate) mod conformance;
mod declared;
mod directory;
mod error;
mod export;
mod id;
mod import;
mod key;
mod keys;
mod limit;
mod memory;
mod record;
mod store;
mod terms;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use book::{Book, Listed, Source};
pub use changes::KeyPatch;
pub use declared::Declared;
pub use directory::{Announce, Directory};
pub use error::KeyRefused;
pub use export::to_toml;
pub use id::{KeyId, NotAKeyId};
pub use import::Imported;
pub use key::{KeyError, KeyHash, NewKey, Token, hash_key};
pub use keys::{Keys, KeysError, Tenant};
pub use limit::{Scope, TenantLimit};
pub use memory::MemoryKeyStore;
pub use record::{Change, KeyRecord, Retired, Stored, Version};
pub use store::{KeyStore, KeyStoreError};
pub use terms::{NotAPercent, Percent, Terms, TermsPatch};
