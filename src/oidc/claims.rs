//! What a token's claims come to: an account, and a profile. Pure.

use serde_json::Value;

use stint_types::units::AccountId;

use super::account_name::{self, NamingValue};
use super::error::TokenError;
use super::settings::{IssuerSettings, TokenProfile};

/// Claims that are several words in one text (RFC 8693, and what is usual beside it).
const WORDS: [&str; 2] = ["scope", "scp"];

/// Who a token is.
#[derive(Debug, PartialEq)]
pub(super) struct TokenIdentity<'s> {
    pub(super) account: AccountId,
    pub(super) profile: &'s TokenProfile,
    /// In seconds since 1970; 0 where it does not say.
    pub(super) issued: u64,
    /// From when on it is refused, in seconds since 1970.
    pub(super) expires: u64,
}

/// Reads claims whose signature, issuer, audience and times were found to be right.
pub(super) fn identity<'s>(
    issuer: &'s IssuerSettings,
    claims: &Value,
) -> Result<TokenIdentity<'s>, TokenError> {
    for required in &issuer.required {
        if !values(claims, &required.claim).contains(&required.value) {
            return Err(TokenError::Requirement(required.claim.clone()));
        }
    }
    let seconds = |claim: &str| claims.get(claim).and_then(Value::as_f64);
    let expires = whole(seconds("exp").ok_or(TokenError::MissingClaim)?);
    Ok(TokenIdentity {
        account: account(issuer, claims)?,
        profile: profile(issuer, claims).ok_or(TokenError::NoProfile)?,
        issued: seconds("iat").map(whole).unwrap_or_default(),
        expires: expires.saturating_add(issuer.leeway.as_secs()),
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}

fn account(issuer: &IssuerSettings, claims: &Value) -> Result<AccountId, TokenError> {
    let mut parts = Vec::new();
    for claim in &issuer.account_claims {
        parts.push(match found(claims, claim) {
            Some(Value::String(text)) => NamingValue::Text(text.clone()),
            Some(Value::Number(number)) => NamingValue::Number(number.to_string()),
            _ => return Err(TokenError::Account(claim.clone())),
        });
    }
    let names = issuer.account_claims.join(", ");
    account_name::account(&issuer.tree, &parts).ok_or(TokenError::Account(names))
}

/// The first profile that fits.
fn profile<'s>(issuer: &'s IssuerSettings, claims: &Value) -> Option<&'s TokenProfile> {
    let profile_values = issuer.profile_claim.as_ref().map(|claim| values(claims, claim)).unwrap_or_default();
    issuer.profiles.iter().find(|profile| match &profile.when {
        Some(when) => when.iter().any(|value| profile_values.contains(value)),
        None => true,
    })
}

/// What a claim has: itself, or each thing of a list.
fn values(claims: &Value, name: &str) -> Vec<String> {
    match found(claims, name) {
        Some(Value::String(text)) if WORDS.contains(&name) => {
            text.split_whitespace().map(str::to_owned).collect()
        }
        Some(Value::Array(list)) => list.iter().filter_map(text).collect(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// A claim of that name, or at that path: some issuers have roles inside of others, like `realm_access.roles`.
fn found<'v>(claims: &'v Value, name: &str) -> Option<&'v Value> {
    let at_path = || name.split('.').try_fold(claims, |inside, step| inside.get(step));
    claims.get(name).or_else(at_path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use stint_types::tenant::{KeyAccess, Percent};
    use stint_types::units::Priority;

    use super::super::settings::{ClaimRequirement, KeySource};
    use super::*;

    fn profile(name: &str, when: Option<&[&str]>) -> TokenProfile {
        TokenProfile {
            name: name.into(),
            when: when.map(|values| values.iter().map(|&value| value.to_owned()).collect()),
            access: KeyAccess::default(),
            priority: Priority::default(),
            limits: Vec::new(),
            warn_at: Percent::default(),
        }
    }

    fn issuer() -> IssuerSettings {
        IssuerSettings {
            keys: KeySource {
                issuer: "https://login.example.com".to_owned(),
                jwks_url: None,
                refresh: Duration::from_secs(60),
                keep: Duration::from_secs(60),
            },
            audiences: vec!["stint".to_owned()],
            algorithms: Vec::new(),
            leeway: Duration::from_secs(30),
            tree: AccountId::new("staff"),
            account_claims: vec!["sub".to_owned()],
            required: Vec::new(),
            profile_claim: Some("realm_access.roles".to_owned()),
            profiles: vec![profile("admin", Some(&["root", "ops"])), profile("user", Some(&["user"]))],
            accounts_max: 10,
        }
    }

    fn check(issuer: &IssuerSettings, claims: &Value, expected: Result<(&str, &str), &str>) {
        let mut claims = claims.clone();
        claims["exp"] = json!(1_000);
        let read = identity(issuer, &claims);
        let read = read.as_ref().map(|read| (read.account.as_str(), &*read.profile.name));
        assert_eq!(read.map_err(TokenError::as_str), expected, "{claims}");
    }

    #[test]
    fn the_first_profile_that_a_claim_fits_is_taken() {
        let roles = |roles: &[&str]| json!({ "sub": "alice", "realm_access": { "roles": roles } });
        check(&issuer(), &roles(&["user", "ops"]), Ok(("staff/alice", "admin")));
        check(&issuer(), &roles(&["user"]), Ok(("staff/alice", "user")));
        check(&issuer(), &roles(&["guest"]), Err("no_profile"));
        check(&issuer(), &json!({ "sub": "alice" }), Err("no_profile"));
        let mut open = issuer();
        open.profiles.push(profile("guest", None));
        check(&open, &json!({ "sub": "alice" }), Ok(("staff/alice", "guest")));
    }

    #[test]
    fn a_required_claim_has_its_value_alone_or_among_others() {
        let wants = |claim: &str, value: &str| {
            let required = vec![ClaimRequirement { claim: claim.to_owned(), value: value.to_owned() }];
            IssuerSettings { required, profiles: vec![profile("all", None)], ..issuer() }
        };
        let alice = Ok(("staff/alice", "all"));
        check(&wants("scope", "stint"), &json!({ "sub": "alice", "scope": "openid stint" }), alice);
        check(&wants("scope", "stint"), &json!({ "sub": "alice", "scope": "stinting" }), Err("requirement"));
        check(&wants("email_verified", "true"), &json!({ "sub": "alice", "email_verified": true }), alice);
        check(&wants("groups", "a"), &json!({ "sub": "alice", "groups": ["b", "a"] }), alice);
        // A text that the caller may choose is not taken apart.
        check(&wants("name", "admin"), &json!({ "sub": "alice", "name": "Bob admin" }), Err("requirement"));
        check(&wants("groups", "a"), &json!({ "sub": "alice" }), Err("requirement"));
    }

    #[test]
    fn an_account_is_named_by_texts_and_numbers_alone() {
        let all = IssuerSettings { profiles: vec![profile("all", None)], ..issuer() };
        check(&all, &json!({ "sub": "12" }), Ok(("staff/12", "all")));
        check(&all, &json!({ "sub": 12 }), Ok(("staff/%n12", "all")));
        for sub in [json!(null), json!(["alice"]), json!({ "a": 1 }), json!(""), json!(true)] {
            check(&all, &json!({ "sub": sub }), Err("account"));
        }
        let claims = vec!["org".to_owned(), "sub".to_owned()];
        let of_org = IssuerSettings { account_claims: claims, ..all };
        check(&of_org, &json!({ "org": "a/b", "sub": "c" }), Ok(("staff/a%2fb/c", "all")));
        check(&of_org, &json!({ "sub": "c" }), Err("account"));
    }
}
