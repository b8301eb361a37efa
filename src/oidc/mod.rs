//! Callers with tokens of an issuer (`OpenID` Connect, or any that signs JSON Web Tokens and publishes its keys), in place of keys of
//! our own.
//!
//! A token is checked once and remembered until it ends. The issuer's keys are fetched in the background. A token with an unknown
//! key has them fetched again, within a rate. The claims name an account, in a tree that no key has, and choose what it may.
//!
//! It speaks to issuers alone, and knows nothing of requests. What becomes of a refusal is the caller's matter.

mod account_name;
mod claims;
mod error;
mod fetch;
mod issuer;
mod issuer_keys;
mod key_set;
mod refetch_rate;
mod settings;
mod token_cache;
mod verifier;

pub use error::{TokenError, TokenFault};
pub use issuer_keys::KeyWait;
pub use jsonwebtoken::Algorithm;
pub use settings::{ClaimRequirement, IssuerSettings, KeySource, TokenProfile};
pub use verifier::{TokenVerifier, TokenVerifierError};
