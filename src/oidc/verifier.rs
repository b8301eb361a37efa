//! Finds the tenant of a token. A token that was checked before costs a hash and a look into a table.

use std::fmt;
use std::sync::Arc;

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::tenant::{Directory, Tenant, hash_key};
use stint_types::units::Timestamp;

use super::error::TokenError;
use super::issuer::{Issuer, stated_issuer};
use super::issuer_keys::{IssuerKeys, KeyWait};
use super::settings::IssuerSettings;
use super::token_cache::{CheckedToken, TokenCache};

/// What stands for the issuer where it is not known.
const NO_ISSUER: &str = "none";

/// Takes tokens of some issuers. Clones share it.
#[derive(Clone)]
pub struct TokenVerifier {
    inner: Arc<Inner>,
}

struct Inner {
    issuers: Vec<Issuer>,
    checked: TokenCache,
    directory: Arc<Directory>,
    metrics: Arc<Metrics>,
    /// Counts up with each configuration.
    configuration: u64,
}

/// Why no tokens can be taken.
#[derive(Debug, thiserror::Error)]
#[error("the client that fetches the keys of issuers cannot be made")]
pub struct TokenVerifierError(#[source] reqwest::Error);

impl TokenVerifier {
    /// Begins to fetch the keys of these issuers. Those of the configuration before stay where they come from the same place.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn start(
        issuers: Vec<IssuerSettings>,
        before: Option<&TokenVerifier>,
        directory: Arc<Directory>,
        metrics: Arc<Metrics>,
        tasks: &Tasks,
    ) -> Result<TokenVerifier, TokenVerifierError> {
        let configuration = before.map_or(0, |before| before.inner.configuration) + 1;
        let with_keys = |settings: IssuerSettings| {
            let name = settings.tree.as_str();
            for outcome in TokenError::WORDS {
                metrics.tokens.checks.with_label_values(&[name, outcome]);
            }
            let known = before.and_then(|before| before.keys_of(&settings));
            let keys = match known {
                Some(keys) => keys,
                None => IssuerKeys::start(settings.keys.clone(), name.to_owned(), &metrics, tasks)?,
            };
            Ok::<_, reqwest::Error>(Issuer::new(settings, keys))
        };
        let issuers =
            issuers.into_iter().map(with_keys).collect::<Result<_, _>>().map_err(TokenVerifierError)?;
        let checked = TokenCache::default();
        let inner = Inner { issuers, checked, directory, metrics, configuration };
        Ok(TokenVerifier { inner: Arc::new(inner) })
    }

    fn keys_of(&self, settings: &IssuerSettings) -> Option<Arc<IssuerKeys>> {
        let same =
            |known: &&Issuer| known.keys.source == settings.keys && known.settings.tree == settings.tree;
        self.inner.issuers.iter().find(same).map(|known| known.keys.clone())
    }

    /// True for what has the form of a token, which no key of ours has.
    pub fn is_token(text: &str) -> bool {
        let is_written =
            |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let mut parts = text.split('.');
        // The beginning of every JSON object in this coding.
        let is_header = parts.next().is_some_and(|header| header.starts_with("ey") && is_written(header));
        is_header && parts.clone().count() == 2 && parts.all(is_written)
    }

    /// The tenant of a token, whose account may spend from now on.
    ///
    /// # Errors
    /// When any check fails, which the error names.
    pub async fn admit(&self, token: &str, wait: KeyWait, now: Timestamp) -> Result<Arc<Tenant>, TokenError> {
        let inner = &self.inner;
        let hash = hash_key(token);
        if let Some(found) = inner.checked.find(hash, now)
            && inner.issuers[found.issuer].keys.version() == Some(found.keys)
            && found.usage.touch(now)
        {
            return Ok(found.tenant);
        }
        let stated = stated_issuer(token).and_then(|stated| {
            let place = inner.issuers.iter().position(|issuer| issuer.settings.keys.issuer == stated);
            place.ok_or(TokenError::Issuer)
        });
        let (name, checked) = match stated {
            Ok(issuer) => {
                (inner.issuers[issuer].settings.tree.as_str(), self.check(issuer, token, wait, now).await)
            }
            Err(error) => (NO_ISSUER, Err(error)),
        };
        let outcome = checked.as_ref().map_or_else(TokenError::as_str, |_| "accepted");
        inner.metrics.tokens.checks.with_label_values(&[name, outcome]).inc();
        let checked = checked?;
        let tenant = checked.tenant.clone();
        inner.checked.insert(hash, checked);
        Ok(tenant)
    }

    /// The tenant of a token that was let in a moment ago.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<Arc<Tenant>> {
        self.inner.checked.find(hash_key(token), now).map(|found| found.tenant)
    }

    async fn check(
        &self,
        place: usize,
        token: &str,
        wait: KeyWait,
        now: Timestamp,
    ) -> Result<CheckedToken, TokenError> {
        let inner = &self.inner;
        let issuer = &inner.issuers[place];
        let verified = issuer.verify(token, inner.configuration, wait).await?;
        let (tree, most) = (&issuer.settings.tree, issuer.settings.accounts_max);
        let admitted = inner.directory.admit_token(tree, most, verified.account, now).await;
        let usage = admitted.map_err(|error| {
            tracing::warn!(%error, "a token is refused");
            TokenError::Directory(error)
        })?;
        let tenant = Arc::new(verified.tenant);
        Ok(CheckedToken { tenant, until: verified.until, issuer: place, keys: verified.keys, usage })
    }
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenVerifier").field("issuers", &self.inner.issuers.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_taken_for_tokens() {
        let check = |text: &str, expected| assert_eq!(TokenVerifier::is_token(text), expected, "{text}");
        check("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", true);
        check("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", true);
        check("sk-stint-0123", false);
        check("eyJhbGciOiJFUzI1NiJ9", false);
        check("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0", false);
        check("a.b.c", false);
        check("ey.b c.d", false);
    }
}
