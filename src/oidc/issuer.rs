//! One issuer: checks a token of its own, signature first, and reads who it is.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::Value;

use stint_types::tenant::{AccountTerms, Tenant, TokenAccount, TokenOrder, hash_key};
use stint_types::units::Timestamp;

use super::claims::{TokenIdentity, identity};
use super::error::TokenError;
use super::issuer_keys::{IssuerKeys, KeyWait};
use super::settings::IssuerSettings;

/// An issuer, with its keys.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) settings: IssuerSettings,
    pub(super) keys: Arc<IssuerKeys>,
    validation: Validation,
}

/// A token that was found to be right, whose account is not let in yet.
pub(super) struct VerifiedToken {
    pub(super) tenant: Tenant,
    pub(super) account: TokenAccount,
    pub(super) until: Timestamp,
    /// The keys that it was checked with.
    pub(super) keys: u64,
}

impl Issuer {
    pub(super) fn new(settings: IssuerSettings, keys: Arc<IssuerKeys>) -> Issuer {
        let leeway = settings.leeway.as_secs();
        let mut validation = Validation { leeway, validate_nbf: true, ..Validation::default() };
        validation.set_audience(&settings.audiences);
        validation.set_issuer(&[&settings.keys.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        Issuer { settings, keys, validation }
    }

    /// Checks a token that says it is of this issuer.
    pub(super) async fn verify(
        &self,
        token: &str,
        configuration: u64,
        wait: KeyWait,
    ) -> Result<VerifiedToken, TokenError> {
        // Other algorithms than signatures are none that the library knows.
        let header = decode_header(token).map_err(|_| TokenError::Algorithm)?;
        // What must be understood (RFC 7515, 4.1.11) is understood by nobody here.
        if header.crit.is_some() || !self.settings.algorithms.contains(&header.alg) {
            return Err(TokenError::Algorithm);
        }
        let (key, keys) = self.keys.find(header.kid.as_deref(), header.alg, wait).await?;
        let validation = Validation { algorithms: vec![header.alg], ..self.validation.clone() };
        let checked = decode::<Value>(token, &key, &validation).map_err(|error| refusal(error.kind()))?;
        // The library takes a list too.
        if !checked.claims["iss"].is_string() {
            return Err(TokenError::Issuer);
        }
        let identity = identity(&self.settings, &checked.claims)?;
        Ok(verified(identity, keys, configuration))
    }
}

fn verified(identity: TokenIdentity<'_>, keys: u64, configuration: u64) -> VerifiedToken {
    let TokenIdentity { account, profile, issued, expires } = identity;
    let until = Timestamp(i64::try_from(expires).unwrap_or(i64::MAX / 1_000).saturating_mul(1_000));
    // It has no key of ours. What asks whether it has one asks whether the caller is known.
    let stands_for_key = hash_key(&format!("tokens of {account}"));
    let tenant = Tenant {
        access: profile.access.clone(),
        priority: profile.priority,
        expires: Some(until),
        ..Tenant::new(account.clone(), stands_for_key)
    };
    let (limits, warn_at) = (profile.limits.clone(), profile.warn_at);
    let terms = AccountTerms { limits, warn_at, ..AccountTerms::unlimited(account) };
    let account = TokenAccount { terms, order: TokenOrder { configuration, issued } };
    VerifiedToken { tenant, account, until, keys }
}

/// Whom a token says it is from. Nothing of it is checked.
pub(super) fn stated_issuer(token: &str) -> Result<String, TokenError> {
    let claims: Value =
        jsonwebtoken::dangerous::insecure_decode_claims(token).map_err(|_| TokenError::Malformed)?;
    match &claims["iss"] {
        Value::String(issuer) => Ok(issuer.clone()),
        Value::Null => Err(TokenError::MissingClaim),
        _ => Err(TokenError::Issuer),
    }
}

fn refusal(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::ExpiredSignature => TokenError::Expired,
        ErrorKind::ImmatureSignature => TokenError::TooEarly,
        ErrorKind::InvalidIssuer => TokenError::Issuer,
        ErrorKind::InvalidAudience => TokenError::Audience,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => TokenError::MissingClaim,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => TokenError::Algorithm,
        ErrorKind::InvalidKeyFormat | ErrorKind::InvalidEcdsaKey | ErrorKind::InvalidEddsaKey => {
            TokenError::Signature
        }
        _ => TokenError::Malformed,
    }
}
