//! `[[issuer]]`: who else may call, with tokens that somebody else signs.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;

use crate::oidc::{Algorithm, ClaimRequirement, IssuerSettings, KeySource, TokenProfile};
use stint_types::catalog::Catalog;
use stint_types::tenant::{LimitSelector, Tenant, TenantLimit};
use stint_types::units::AccountId;

use super::reader::Section;
use super::{account, key};

/// Signatures alone: anyone who can check a code with a shared secret can make one.
const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// What nearly all issuers sign with.
const USUAL: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// Every issuer. Its tree of accounts has no key in it.
pub(super) fn issuers(root: &Section<'_>, catalog: &Catalog, tenants: &[Tenant]) -> Vec<IssuerSettings> {
    let mut issuers: Vec<IssuerSettings> = Vec::new();
    for section in root.sections("issuer") {
        let Some(issuer) = issuer(&section, catalog) else { continue };
        check_tree(&section, &issuer.tree, tenants);
        for other in &issuers {
            if other.keys.issuer == issuer.keys.issuer {
                section.reject("url", "a second issuer of that address", "give them one section");
            }
            if other.tree.contains(&issuer.tree) || issuer.tree.contains(&other.tree) {
                let what = format!("in the tree of another issuer, \"{}\"", other.tree);
                section.reject("account_prefix", what, "give each issuer a tree of its own");
            }
        }
        issuers.push(issuer);
    }
    issuers
}

fn issuer(section: &Section<'_>, catalog: &Catalog) -> Option<IssuerSettings> {
    let issuer = address(section, "url");
    if issuer.is_none() && !section.has("url") {
        section.reject("url", "missing", "write the issuer as its tokens name it (iss)");
    }
    let stated = address(section, "jwks_url").and_then(|text| text.parse::<Url>().ok());
    let hour = Duration::from_secs(3_600);
    let refresh = section.within("refresh", Duration::from_secs(1)..=24 * hour).unwrap_or(hour);
    let keep = section.within("keep", Duration::ZERO..=30 * 24 * hour).unwrap_or(24 * hour);
    let audiences = section.get_or("audiences", Vec::<String>::new());
    if audiences.is_empty() {
        let remedy = "write what its tokens for this gateway have in aud: others are for other services";
        section.reject("audiences", "missing", remedy);
    }
    let algorithms = section.words("algorithms", &ALGORITHMS);
    let prefix =
        section.require::<String>("account_prefix", "name the tree of its callers' accounts, like \"staff\"");
    let tree = prefix.and_then(|prefix| account::path(section, "account_prefix", &prefix));
    let required = section.section("require").entries::<String>().into_iter();
    let profile_claim = section.get::<String>("profile_claim");
    let settings = IssuerSettings {
        keys: KeySource { issuer: String::new(), jwks_url: stated, refresh, keep },
        audiences,
        algorithms: if algorithms.is_empty() { USUAL.to_vec() } else { algorithms },
        leeway: section
            .within("leeway", Duration::ZERO..=Duration::from_secs(300))
            .unwrap_or(Duration::from_secs(30)),
        tree: AccountId::new(""),
        account_claims: account_claims(section),
        required: required.map(|(claim, value)| ClaimRequirement { claim, value }).collect(),
        profiles: profiles(section, catalog, profile_claim.is_some()),
        profile_claim,
        accounts_max: section.within("accounts_max", 1..=1_000_000).unwrap_or(10_000),
    };
    let keys = KeySource { issuer: issuer?, ..settings.keys };
    Some(IssuerSettings { keys, tree: tree?, ..settings })
}

/// An address that can be trusted to be the issuer's.
fn address(section: &Section<'_>, key: &'static str) -> Option<String> {
    let text = section.get::<String>(key)?;
    let url = text.parse::<Url>().ok().filter(Url::has_host);
    let is_whole = url.as_ref().is_some_and(|url| url.query().is_none() && url.fragment().is_none());
    let is_here = |url: &Url| {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let is_safe = |url: &Url| url.scheme() == "https" || (url.scheme() == "http" && is_here(url));
    if is_whole && url.as_ref().is_some_and(is_safe) {
        return Some(text);
    }
    let remedy = "write it like \"https://login.example.com/realms/acme\"; with http only on this machine, since \
                  anyone who could change its answers could be anybody";
    section.reject(key, "no address of an issuer", remedy);
    None
}

fn account_claims(section: &Section<'_>) -> Vec<String> {
    let claims = section.get_or("account_claims", vec!["sub".to_owned()]);
    if claims.is_empty() || claims.len() > 4 {
        let remedy = "name one to four, like [\"sub\"], or [\"org_id\", \"sub\"] for an account of each organisation above them";
        section.reject("account_claims", format!("{} claims", claims.len()), remedy);
    }
    claims
}

fn check_tree(section: &Section<'_>, tree: &AccountId, tenants: &[Tenant]) {
    let anonymous = Tenant::anonymous().account;
    if [Tenant::FIRST, anonymous.as_str()].contains(&tree.as_str()) {
        section.reject("account_prefix", "the account of other callers", "choose another name");
    }
    for tenant in tenants.iter().filter(|tenant| tree.contains(&tenant.account)) {
        let what = format!("the key \"{}\" is in this tree", tenant.account);
        section.reject(
            "account_prefix",
            what,
            "choose another name: a token must not be able to take a key's account",
        );
    }
}

fn profiles(section: &Section<'_>, catalog: &Catalog, has_claim: bool) -> Vec<TokenProfile> {
    let mut profiles: Vec<TokenProfile> = Vec::new();
    for one in section.sections("profile") {
        let Some(profile) = profile(&one, catalog) else { continue };
        if profile.when.is_some() && !has_claim {
            one.reject("when", "without a claim to look into", "name it in profile_claim of the issuer");
        }
        if profiles.iter().any(|other| other.when.is_none()) {
            one.reject_section("behind one that is for everybody", "put the one without `when` last");
        }
        if profiles.iter().any(|other| other.name == profile.name) {
            one.reject("name", "a second profile of that name", "give each a name of its own");
        }
        profiles.push(profile);
    }
    if !section.has_items("profile") {
        let remedy = "write at least one [[issuer.profile]] with a name: it says what its callers may";
        section.reject("profile", "missing", remedy);
    }
    profiles
}

fn profile(one: &Section<'_>, catalog: &Catalog) -> Option<TokenProfile> {
    let name = one.require::<String>("name", "give it a name");
    let when = one.get::<Vec<String>>("when");
    if when.as_ref().is_some_and(Vec::is_empty) {
        one.reject(
            "when",
            "an empty list",
            "write the values of profile_claim that it is for, or leave it out for everybody",
        );
    }
    let (access, priority) = (key::access(one, catalog), key::priority(one));
    let limits = account::limits(one, catalog);
    if limits.iter().any(|limit| !is_whole(limit)) {
        let remedy = "put a limit on a model, a tag or each user on an [[account]] above all of them: what an account that comes \
                      with a token spent under such a limit is not known after a restart";
        one.reject("limits", "a limit on some requests alone", remedy);
    }
    let warn_at = account::warn_at(one);
    Some(TokenProfile { name: name?.into(), when, access, priority, limits, warn_at })
}

fn is_whole(limit: &TenantLimit) -> bool {
    limit.scope == LimitSelector::All
}
