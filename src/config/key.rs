//! `[[key]]` and `[keys]`: who may call, and where they may call from.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::tenant::{KeyHash, Tenant, TenantLimit, hash_key};
use crate::units::{Amount, Money, Tokens, Window};

use super::mistake::Wrong;
use super::reader::Section;

const WINDOWS: [(&str, Window); 6] = [
    ("minute", Window::Minute),
    ("hour", Window::Hour),
    ("day", Window::Day),
    ("week", Window::Week),
    ("month", Window::Month),
    ("total", Window::Total),
];

/// Every declared key; a first key, where one is made, stands beside them.
pub(super) fn tenants(root: &Section<'_>, first_key: Option<&PathBuf>) -> Vec<Tenant> {
    let mut tenants: Vec<Tenant> = Vec::new();
    for section in root.sections("key") {
        let Some(tenant) = tenant(&section) else { continue };
        if first_key.is_some() && *tenant.name == *Tenant::FIRST {
            let what = format!("\"{}\" is the name of the key that [keys] generate makes", Tenant::FIRST);
            section.wrong("name", Wrong::new(what, "give this one another name"));
        }
        for other in &tenants {
            if other.name == tenant.name {
                let what = format!("a second key \"{}\"", tenant.name);
                section.wrong("name", Wrong::new(what, "give each a name of its own: it is its account"));
            }
            if other.key == tenant.key {
                let what = format!("the hash of \"{}\" too", other.name);
                section.wrong("hash", Wrong::new(what, "make each a key of its own, with `stint keys new`"));
            }
        }
        tenants.push(tenant);
    }
    tenants
}

/// `[keys] generate`: where the first start writes a key. `STINT_FIRST_KEY` goes before it.
pub(super) fn first_key(root: &Section<'_>) -> Option<PathBuf> {
    let keys = root.section("keys");
    let from_env = keys.document().variable("STINT_FIRST_KEY", |text| Ok(PathBuf::from(text)));
    let from_file = keys.path("generate");
    from_env.or(from_file)
}

/// Without keys only this machine may call: on any other address everyone could spend the operator's money.
pub(super) fn check_open(
    root: &Section<'_>,
    listen: SocketAddr,
    tenants: &[Tenant],
    first_key: Option<&PathBuf>,
) {
    if listen.ip().is_loopback() || !tenants.is_empty() || first_key.is_some() {
        return;
    }
    let what = format!("{listen} would be open to everyone who reaches it");
    let remedy = "add a [[key]] (`stint keys new` makes one), or let the first start make one with \
                  [keys] generate = \"first-key\", or listen on 127.0.0.1";
    root.wrong("server", Wrong::new(what, remedy));
}

fn tenant(section: &Section<'_>) -> Option<Tenant> {
    let name = section.need::<String>("name", "name its owner; spending is counted under that name");
    let hash = section.need::<String>(
        "hash",
        "write what `stint keys new` printed, \"sha256:…\"; the key itself stays with its owner",
    );
    let key = hash.map(|hash| hash.parse::<KeyHash>());
    if let Some(Err(error)) = &key {
        section
            .wrong("hash", Wrong::new(error.to_string(), "`stint keys new` makes a key and prints its hash"));
    }
    if key == Some(Ok(hash_key(""))) {
        let remedy = "`stint keys new` makes a key and prints its hash";
        section.wrong("hash", Wrong::new("the hash of nothing, not of a key", remedy));
    }
    let limits = limits(section);
    Some(Tenant { name: name?.into(), key: Some(key?.ok()?), limits })
}

fn limits(section: &Section<'_>) -> Vec<TenantLimit> {
    let mut limits: Vec<TenantLimit> = Vec::new();
    for one in section.sections("limits") {
        let window = one.word("per", &WINDOWS);
        if !one.has("per") {
            one.wrong("per", Wrong::new("missing", "write \"day\", \"month\", \"total\" or another window"));
        }
        let amounts = [
            one.get::<Money>("money").map(Amount::Money),
            one.get::<Tokens>("thinking").map(Amount::Thinking),
        ];
        let one_amount = one.has("money") != one.has("thinking");
        if !one_amount {
            one.wrong_here(Wrong::new(
                "not one limit",
                "write either money = \"20\" or thinking = 100000 into each",
            ));
        }
        let Some((window, max)) = window.zip(amounts.into_iter().flatten().next()) else { continue };
        let limit = TenantLimit { window, max };
        if limits.iter().any(|other| other.name() == limit.name()) {
            let what = format!("a second limit of {} per {window}", max.unit().word());
            one.wrong_here(Wrong::new(what, "keep one of them"));
        }
        limits.push(limit);
    }
    limits
}
