//! The settings of an issuer: where its keys are, which of its tokens are taken, and what they may.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use reqwest::Url;

use stint_types::tenant::{KeyAccess, Percent, TenantLimit};
use stint_types::units::{AccountId, Priority};

/// An issuer of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuerSettings {
    /// Where its keys are.
    pub keys: KeySource,
    /// A token must be for one of these.
    pub audiences: Vec<String>,
    /// How it may be signed; none of them with a shared secret.
    pub algorithms: Vec<Algorithm>,
    /// How far its clock and ours may differ.
    pub leeway: Duration,
    /// The tree that all its callers' accounts are in.
    pub tree: AccountId,
    /// The claims that name the account, each a part of its path.
    pub account_claims: Vec<String>,
    /// What else a token must say.
    pub required: Vec<ClaimRequirement>,
    /// The claim that chooses the profile.
    pub profile_claim: Option<String>,
    /// What callers may: the first that fits.
    pub profiles: Vec<TokenProfile>,
    /// The most accounts that come with its tokens.
    pub accounts_max: usize,
}

/// Where an issuer's keys are, and how they are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySource {
    /// Its name, as tokens have it; by discovery its keys are found below it.
    pub issuer: String,
    /// Where its keys are, where that is stated.
    pub jwks_url: Option<Url>,
    /// How often they are fetched.
    pub refresh: Duration,
    /// How long they are used when they cannot be fetched any more.
    pub keep: Duration,
}

/// What a token must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequirement {
    /// In this claim,
    pub claim: String,
    /// this value, alone or among others.
    pub value: String,
}

/// What callers may whose tokens say something.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenProfile {
    /// Its name.
    pub name: Arc<str>,
    /// It is for those whose claim has one of these; for everybody where absent.
    pub when: Option<Vec<String>>,
    /// What they may name and do.
    pub access: KeyAccess,
    /// Who goes first where requests wait.
    pub priority: Priority,
    /// What each of their accounts may spend.
    pub limits: Vec<TenantLimit>,
    /// When a limit is announced.
    pub warn_at: Percent,
}
