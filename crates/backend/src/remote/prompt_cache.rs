//! Keeps accounts apart in the prompt cache of an upstream that all of them share.
//!
//! Who shares a cache learns by price and time what others have asked. So the members that tell an upstream which requests may
//! share are derived from the account: no caller can name another account's. What an upstream has no member for stays shared.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use stint_types::chat::Request;

use super::settings::Settings;

/// OpenAI's member: requests with the same one go where its beginning is cached.
pub const PROMPT_CACHE_KEY: &str = "prompt_cache_key";
/// The member of vLLM and `SGLang`: only requests with the same one share what is cached.
pub const CACHE_SALT: &str = "cache_salt";

/// So that nothing else that is derived from a credential is the same.
const PURPOSE: &[u8] = b"stint prompt cache 1";
/// How many bytes of the hash are sent: OpenAI takes 64 characters.
const BYTES: usize = 24;

/// Who shares what an upstream has cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PromptCacheSharing {
    /// The requests of one account.
    #[default]
    Account,
    /// All requests; what callers say of it is passed on as it is.
    Everyone,
}

/// How an upstream's cache is shared, and by which member it is told so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptCacheRules {
    /// Who shares it.
    pub sharing: PromptCacheSharing,
    /// What it is sent though the caller says nothing; none where it has no such member, or may refuse it.
    pub member: Option<&'static str>,
}

/// Puts the account into what a body says of the upstream's cache. Where nobody has a key, there is nobody to be kept apart.
pub(super) fn separate(body: &mut Value, request: &Request, settings: &Settings) {
    let (Value::Object(body), Some(owner)) = (body, &request.cache_owner) else { return };
    if settings.prompt_cache.sharing == PromptCacheSharing::Everyone {
        return;
    }
    for name in [PROMPT_CACHE_KEY, CACHE_SALT] {
        if settings.prompt_cache.member == Some(name) || body.contains_key(name) {
            let stated = body.get(name).map(Value::to_string).unwrap_or_default();
            body.insert(name.to_owned(), json!(derived(settings, owner, name, &stated)));
        }
    }
}

/// The same for an account and what it says, after every restart and on every replica: the secret is the credential, which is
/// known to the upstream and to nobody who asks through us. Without one it is the address, and what is derived is not secret.
fn derived(settings: &Settings, owner: &str, name: &str, stated: &str) -> String {
    let secret = settings.api_key.as_ref().map_or(settings.base_url.as_str(), |key| key.expose());
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        unreachable!("a key of any length will do");
    };
    for part in [PURPOSE, owner.as_bytes(), name.as_bytes(), stated.as_bytes()] {
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        mac.update(part);
    }
    let digest = mac.finalize().into_bytes();
    digest.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Secret;

    fn settings(member: Option<&'static str>, sharing: PromptCacheSharing) -> Settings {
        let api_key = Some(Secret::new("sk-upstream".to_owned()));
        Settings { api_key, prompt_cache: PromptCacheRules { sharing, member }, ..Settings::default() }
    }

    fn sent(owner: Option<&str>, body: &Value, settings: &Settings) -> Value {
        let request = Request { cache_owner: owner.map(Into::into), ..Request::new("m", Vec::new()) };
        let mut body = body.clone();
        separate(&mut body, &request, settings);
        body
    }

    #[test]
    fn two_accounts_never_share_and_one_always_does() {
        let own = settings(Some(CACHE_SALT), PromptCacheSharing::Account);
        let salt = |owner, stated: Value| sent(Some(owner), &stated, &own)[CACHE_SALT].clone();
        let plain = salt("acme", json!({}));
        assert_eq!(plain.as_str().map(str::len), Some(48));
        assert_eq!(plain, salt("acme", json!({})));
        let others = [
            salt("rival", json!({})),
            salt("acme", json!({ "cache_salt": "x" })),
            salt("rival", json!({ "cache_salt": plain })),
            salt("acm", json!({ "cache_salt": "e" })),
            salt("acme", json!({ "cache_salt": "\"x\"" })),
        ];
        for (at, one) in others.iter().enumerate() {
            assert!(*one != plain && !others[..at].contains(one), "{others:?}");
        }
    }

    #[test]
    fn another_credential_makes_other_values() {
        let own = settings(Some(CACHE_SALT), PromptCacheSharing::Account);
        let other = Settings { api_key: Some(Secret::new("sk-other".to_owned())), ..own.clone() };
        let body = json!({});
        assert_ne!(sent(Some("a"), &body, &own), sent(Some("a"), &body, &other));
    }

    #[test]
    fn a_member_that_an_upstream_may_not_take_is_only_sent_where_its_caller_says_it() {
        let unsure = settings(None, PromptCacheSharing::Account);
        assert_eq!(sent(Some("a"), &json!({}), &unsure), json!({}));
        let stated = sent(Some("a"), &json!({ "prompt_cache_key": "k" }), &unsure);
        assert_ne!(stated["prompt_cache_key"], "k");
    }

    #[test]
    fn nothing_changes_where_there_are_no_keys_or_the_operator_shares() {
        let (own, shared) = (PromptCacheSharing::Account, PromptCacheSharing::Everyone);
        for (owner, sharing) in [(None, own), (Some("a"), shared)] {
            let body = json!({ "prompt_cache_key": "k" });
            assert_eq!(sent(owner, &body, &settings(Some(CACHE_SALT), sharing)), body);
        }
    }
}
