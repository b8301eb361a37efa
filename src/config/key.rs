//! `[[key]]` and `[keys]`: who may call, and where they may call from.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use toml::de::DeValue;

use stint_types::catalog::Catalog;
use stint_types::tenant::{AdminRole, FeedbackTrust, KeyAccess, KeyHash, Tenant, hash_key};
use stint_types::units::{Priority, Timestamp};

use super::account::DeclaredAccounts;
use super::reader::{FromValue, Section, ValueError, ValueShape, suggest};

const PRIORITIES: [(&str, Priority); 2] =
    [("interactive", Priority::Interactive), ("batch", Priority::Batch)];

const TRUSTS: [(&str, FeedbackTrust); 2] =
    [("bounded", FeedbackTrust::Bounded), ("trusted", FeedbackTrust::Trusted)];

/// Every declared key with the terms of its account; a first key, where one is made, stands beside them.
pub(super) fn tenants(
    root: &Section<'_>,
    accounts: &mut DeclaredAccounts<'_>,
    catalog: &Catalog,
    first_key: Option<&PathBuf>,
) -> Vec<Tenant> {
    let mut tenants: Vec<Tenant> = Vec::new();
    let (mut names, mut owners) = (HashSet::new(), HashMap::new());
    for section in root.sections("key") {
        let Some(tenant) = tenant(&section, accounts, catalog) else { continue };
        if first_key.is_some() && tenant.account.as_str() == Tenant::FIRST {
            let what = format!("\"{}\" is the name of the key that [keys] generate makes", Tenant::FIRST);
            section.reject("name", what, "give this one another name");
        }
        if !names.insert(tenant.account.clone()) {
            let what = format!("a second key \"{}\"", tenant.account);
            section.reject("name", what, "give each a name of its own: it is its account");
        }
        for hash in [tenant.key, tenant.second].into_iter().flatten() {
            if let Some(other) = owners.insert(hash, tenant.account.clone()) {
                let what = format!("the hash of \"{other}\" too");
                section.reject("hash", what, "make each a key of its own, with `stint keys new`");
            }
        }
        tenants.push(tenant);
    }
    tenants
}

/// `[keys]`: where the first start writes a key, which `STINT_FIRST_KEY` overrides, and whether nobody is served
/// without one.
pub(super) fn keys(root: &Section<'_>) -> (Option<PathBuf>, bool) {
    let keys = root.section("keys");
    let from_env = keys.document().env_value("STINT_FIRST_KEY", |text| Ok(PathBuf::from(text)));
    let from_file = keys.path("generate");
    let first_key = from_env.or(from_file);
    // Its key is read, or made, once the rest is found to be right.
    first_key.iter().for_each(|file| keys.document().files.track(file));
    (first_key, keys.get_or("required", false))
}

/// Without keys only this machine may call: on any other address everyone could spend the operator's money.
pub(super) fn check_open(root: &Section<'_>, listen: SocketAddr, has_keys: bool) {
    if listen.ip().is_loopback() || has_keys {
        return;
    }
    let what = format!("{listen} would be open to everyone who reaches it");
    let remedy = "add a [[key]] (`stint keys new` makes one), or let the first start make one with \
                  [keys] generate = \"first-key\", or serve only keys that `stint keys create` makes with \
                  [keys] required = true, or listen on 127.0.0.1";
    root.reject("server", what, remedy);
}

fn tenant(section: &Section<'_>, accounts: &mut DeclaredAccounts<'_>, catalog: &Catalog) -> Option<Tenant> {
    let account = accounts.add_key(section);
    let access = access(section, catalog);
    let access = KeyAccess { role: role(section, access.role), ..access };
    let expires = section.get::<Timestamp>("expires_at");
    if expires.is_some_and(|expires| expires <= Timestamp::now()) {
        let remedy = "give it a later moment, or take the key out";
        section.warn("expires_at", "past, so that the key is not accepted", remedy);
    }
    let priority = priority(section);
    let feedback = section.word("feedback", &TRUSTS).unwrap_or_default();
    let remedy = "write what `stint keys new` printed, \"sha256:…\"; the key itself stays with its owner";
    let hashes = section.require::<KeyHashes>("hash", remedy);
    let KeyHashes(key, second) = hashes?;
    Some(Tenant { second, access, expires, priority, feedback, ..Tenant::new(account?, key) })
}

/// The models and routes that it may name, and its role.
pub(super) fn access(section: &Section<'_>, catalog: &Catalog) -> KeyAccess {
    KeyAccess {
        models: names(section, "models", |name| catalog.models.contains_key(name), catalog.models.keys()),
        routes: names(section, "routes", |name| catalog.routes.contains_key(name), catalog.routes.keys()),
        role: section.word("role", &AdminRole::WORDS),
    }
}

/// Who goes first where requests wait.
pub(super) fn priority(section: &Section<'_>) -> Priority {
    section.word("priority", &PRIORITIES).unwrap_or_default()
}

/// What it may on the admin API: `role`, or the older `admin = true`, which is everything.
fn role(section: &Section<'_>, role: Option<AdminRole>) -> Option<AdminRole> {
    let is_admin = section.get::<bool>("admin");
    if section.has("role") && is_admin.is_some() {
        section.reject("admin", "beside role", "keep role: \"all\" is what admin = true was");
    }
    role.or(is_admin.and_then(|is_admin| is_admin.then_some(AdminRole::All)))
}

/// The hash of a key, or of two while one is replaced by the other.
struct KeyHashes(KeyHash, Option<KeyHash>);

impl FromValue for KeyHashes {
    fn from_value(value: &DeValue<'_>) -> Result<KeyHashes, ValueError> {
        if !matches!(value, DeValue::Array(_)) {
            return String::from_value(value).and_then(|text| hash(&text)).map(|hash| KeyHashes(hash, None));
        }
        let texts = Vec::<String>::from_value(value)?;
        let hashes = texts.iter().map(|text| hash(text)).collect::<Result<Vec<_>, _>>()?;
        match hashes[..] {
            [one] => Ok(KeyHashes(one, None)),
            [one, other] if one != other => Ok(KeyHashes(one, Some(other))),
            [_, _] => Err(ValueError::new("one hash twice", "keep it once")),
            _ => {
                let remedy = "write one, or two while one key is replaced by another";
                Err(ValueError::new(format!("{} hashes", hashes.len()), remedy))
            }
        }
    }

    fn shape() -> ValueShape {
        ValueShape::Either(Box::new(ValueShape::Text), Box::new(Vec::<String>::shape()))
    }
}

fn hash(text: &str) -> Result<KeyHash, ValueError> {
    let remedy = "`stint keys new` makes a key and prints its hash";
    match text.parse::<KeyHash>() {
        Ok(hash) if hash == hash_key("") => Err(ValueError::new("the hash of nothing, not of a key", remedy)),
        Ok(hash) => Ok(hash),
        Err(error) => Err(ValueError::new(error.to_string(), remedy)),
    }
}

/// Names that the catalog has, each once.
fn names<'n>(
    section: &Section<'_>,
    key: &'static str,
    known: impl Fn(&str) -> bool,
    all: impl Iterator<Item = &'n Arc<str>>,
) -> Vec<Arc<str>> {
    let names = section.get_or(key, Vec::<String>::new());
    let all: Vec<&str> = all.map(AsRef::as_ref).collect();
    for name in names.iter().filter(|name| !known(name)) {
        let what = format!("there is no \"{name}\" among the {key}");
        let remedy = suggest(name, all.iter().copied(), || format!("these are there: {}", all.join(", ")));
        section.reject(key, what, remedy);
    }
    names.into_iter().map(Into::into).collect()
}
