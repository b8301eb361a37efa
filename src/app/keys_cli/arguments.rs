//! The arguments of `stint keys`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::limit::{ExpiryArg, LimitArg};

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(in crate::app) enum KeysCommand {
    /// Make a key without storing it: it is shown this once, with the hash that goes into the configuration.
    New,
    /// Print the hash of a key that is read from standard input.
    Hash,
    /// Make and store a key; its secret is shown this once.
    Create {
        /// Whose key it is; spending is counted under this name.
        name: String,
        /// The account that it belongs to, like acme/research.
        #[arg(long, value_name = "PATH")]
        account: Option<String>,
        #[command(flatten)]
        terms: KeyArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List all keys.
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one key or account, and how its limits stand.
    Show {
        /// The key's id or path, like acme/alice; with --account, an account's path, like acme.
        who: String,
        /// WHO is the path of an account, which keys belong to, and not of a key.
        #[arg(long)]
        account: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Make a new secret for a key; it is shown this once.
    Rotate {
        /// Its id, or its path.
        key: String,
        /// How long the old secret is taken beside the new one, like 1h.
        #[arg(long, default_value = "0s")]
        grace: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// End a key, from the next request on and for good.
    Revoke {
        /// Its id, or its path.
        key: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete the responses and conversations that a key has stored, also if it was revoked. The books stay.
    Forget {
        /// The key's id; or a path, like acme/alice, for what all keys of that name have stored.
        who: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Replace the limits or scopes of a key. Each kind that is given replaces all of that kind: --limit removes all previous
    /// limits, unless --add keeps them; without it they stay.
    Limit {
        /// The key's id or path, like acme/alice; with --account, an account's path, like acme.
        who: String,
        /// WHO is the path of an account, which keys belong to, and not of a key.
        #[arg(long)]
        account: bool,
        /// Take all limits away.
        #[arg(long, conflicts_with = "limit")]
        unlimited: bool,
        /// Keep the limits of other kinds than those that are given.
        #[arg(long, requires = "limit")]
        add: bool,
        /// Let it name every model and route.
        #[arg(long, conflicts_with_all = ["model", "route"])]
        everything: bool,
        #[command(flatten)]
        terms: KeyArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Take over `[[key]]` and `[[account]]` sections from a file, or from standard input where it is "-".
    Import {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print all keys and accounts as the configuration writes them, with hashes only.
    Export,
}

/// What a key may do.
#[derive(Debug, Args)]
pub(in crate::app) struct KeyArgs {
    /// A limit, like money=20/month, requests=60/minute, concurrency=8 or money=5/day,model=NAME; once for each.
    #[arg(long, value_name = "LIMIT")]
    limit: Vec<LimitArg>,
    /// A model that it may name; once for each. All without it.
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// A route that it may name; once for each. All without it.
    #[arg(long, value_name = "NAME")]
    route: Vec<String>,
    /// It may use the admin API; with =false, it may not.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "YES")]
    admin: Option<bool>,
    /// What it may on the admin API: read, keys (and accounts), or all; or none.
    #[arg(long, value_name = "ROLE", conflicts_with = "admin", value_parser = ["read", "keys", "all", "none"])]
    role: Option<String>,
    /// Whether somebody waits for its answers, "interactive", or not, "batch": where there is no room, batch waits behind.
    #[arg(long, value_name = "WORD")]
    priority: Option<String>,
    /// From when on it is refused: a moment, or how long until then, like 30d; or never.
    #[arg(long, value_name = "WHEN")]
    expires: Option<ExpiryArg>,
    /// By whose calendar its days and months begin, like Europe/Berlin.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// From which percentage on a limit is announced.
    #[arg(long, value_name = "PERCENT")]
    warn_at: Option<u64>,
}

/// How the answer is printed.
#[derive(Debug, Clone, Copy, Args)]
pub(in crate::app) struct OutputArgs {
    /// Print JSON, as the admin API answers it.
    #[arg(long)]
    pub(super) json: bool,
}

impl KeyArgs {
    /// What is stated, as the admin API's members.
    pub(super) fn to_members(&self) -> Map<String, Value> {
        let limits: Vec<&Value> = self.limit.iter().map(|LimitArg(words)| words).collect();
        let members = [
            ("limits", (!limits.is_empty()).then(|| json!(limits))),
            ("models", (!self.model.is_empty()).then(|| json!(self.model))),
            ("routes", (!self.route.is_empty()).then(|| json!(self.route))),
            ("admin", self.admin.map(|may| json!(may))),
            ("role", self.role.as_ref().map(|word| if word == "none" { Value::Null } else { json!(word) })),
            ("priority", self.priority.as_ref().map(|word| json!(word))),
            ("expires_at", self.expires.map(|ExpiryArg(moment)| json!(moment))),
            ("time_zone", self.time_zone.as_ref().map(|zone| json!(zone))),
            ("warn_at", self.warn_at.map(|percent| json!(percent))),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}
