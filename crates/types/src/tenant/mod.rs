//! Who is asking: keys as their hashes, what each may name, and what its account may spend.
//!
//! Declared keys come from the configuration, others from a store behind a trait; the directory of both keeps the
//! live table. What was spent is the ledger's matter.

mod access;
mod audit_entry;
mod audited;
mod changes;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod declared;
mod directory;
mod editor;
mod error;
mod export;
mod feedback_trust;
mod id;
mod import;
mod key;
mod keys;
mod limit;
mod memory;
mod record;
mod role;
mod snapshot;
mod store;
mod terms;
#[cfg(test)]
mod tests;
mod token_accounts;

pub use access::KeyAccess;
pub use audit_entry::{AuditEntry, AuditHash, AuditRecord, chained};
pub use changes::KeyPatch;
pub use declared::DeclaredTenants;
pub use directory::{DeclarationNumber, Directory, TermsChange, TermsListener};
pub use editor::{DirectoryEditor, EditorAuthority};
pub use error::KeyChangeError;
pub use export::to_toml;
pub use feedback_trust::FeedbackTrust;
pub use id::{InvalidKeyId, KeyId};
pub use import::ImportSummary;
pub use key::{KEY_MAX, KeyError, KeyHash, NewKey, SecretToken, hash_key};
pub use keys::{KeyLookup, KeyTableError, Tenant};
pub use limit::{LimitSelector, TenantLimit};
pub use memory::MemoryKeyStore;
pub use record::{KeyRecord, KeyStoreChange, KeyStoreState, RetiredSecret, StoreVersion};
pub use role::AdminRole;
pub use snapshot::{DirectorySnapshot, ListedKey, RecordSource};
pub use store::{KeyStore, KeyStoreError};
pub use terms::{AccountTerms, InvalidPercent, Percent, TermsPatch};
pub use token_accounts::{TokenAccount, TokenAccountError, TokenAccountUse, TokenOrder};
