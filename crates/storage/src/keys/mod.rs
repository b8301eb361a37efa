//! The store of keys and of the terms of accounts: the tables `keys`, `key_secrets`, `key_scopes`, `account_terms`,
//! `account_limits` and `keys_version` of either database, and the audit log in `admin_changes` and `admin_changes_head`.

pub(crate) mod audit_rows;
mod key_rows;
mod named_account;
mod store;
mod terms_rows;

pub(crate) use named_account::has_account;

pub(super) use store::SqlKeyStore;
