//! Why a token is refused.

use stint_types::tenant::TokenAccountError;

/// Why a token is refused. Nothing here repeats what is in the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("the token cannot be read: it must be a signed JSON Web Token, whole and unchanged")]
    Malformed,
    /// It is signed in a way that is not taken.
    #[error("the token is not signed by an algorithm that is taken here")]
    Algorithm,
    /// It is from somebody else.
    #[error("the token is of an issuer (iss) that is not taken here")]
    Issuer,
    /// It is for somebody else.
    #[error("the token is for another audience (aud)")]
    Audience,
    /// Its time is over.
    #[error("the token is expired; get a new one from its issuer")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet (nbf); the clocks of its issuer and of this gateway may differ")]
    TooEarly,
    /// Its key is none that the issuer publishes.
    #[error("the token's key (kid) is none that its issuer publishes")]
    UnknownKey,
    /// The signature is not the key's.
    #[error("the token's signature is not that of its issuer's key")]
    Signature,
    /// A claim is absent or malformed that every token must have.
    #[error("the token lacks one of the claims exp, iss and aud, or has it in another form")]
    MissingClaim,
    /// It does not say what the operator wants.
    #[error("the token's claim {0} does not have what is required here")]
    Requirement(String),
    /// It does not name an account.
    #[error("the token's claim {0} names no account: it must be a text or a number, and short enough")]
    Account(String),
    /// No profile is for it.
    #[error("the token's claims fit none of the profiles of its issuer")]
    NoProfile,
    /// Its account is another's, or one too many.
    #[error("{}", account_refusal(.0))]
    Directory(TokenAccountError),
    /// The issuer's keys are not there.
    #[error("the keys of the token's issuer cannot be had right now; try again shortly")]
    Unavailable,
}

/// The operator's configuration is not the caller's to know.
fn account_refusal(error: &TokenAccountError) -> &'static str {
    match error {
        TokenAccountError::OfKey(_) => "the account that the token names belongs to a key",
        TokenAccountError::Full(..) => "as many accounts as may came with tokens of this issuer",
    }
}

/// Whose turn it is after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFault {
    /// The token is not valid; another may be.
    Token,
    /// It is valid and does not allow this.
    Permission,
    /// The same token may be taken later.
    Unavailable,
}

impl TokenError {
    /// Whose turn it is.
    pub fn fault(&self) -> TokenFault {
        match self {
            TokenError::Requirement(_)
            | TokenError::Account(_)
            | TokenError::NoProfile
            | TokenError::Directory(TokenAccountError::OfKey(_)) => TokenFault::Permission,
            TokenError::Directory(TokenAccountError::Full(..)) | TokenError::Unavailable => {
                TokenFault::Unavailable
            }
            _ => TokenFault::Token,
        }
    }

    /// The check that failed, in a word.
    pub fn as_str(&self) -> &'static str {
        match self {
            TokenError::Malformed => "malformed",
            TokenError::Algorithm => "algorithm",
            TokenError::Issuer => "issuer",
            TokenError::Audience => "audience",
            TokenError::Expired => "expired",
            TokenError::TooEarly => "too_early",
            TokenError::UnknownKey => "unknown_key",
            TokenError::Signature => "signature",
            TokenError::MissingClaim => "missing_claim",
            TokenError::Requirement(_) => "requirement",
            TokenError::Account(_) | TokenError::Directory(TokenAccountError::OfKey(_)) => "account",
            TokenError::NoProfile => "no_profile",
            TokenError::Directory(TokenAccountError::Full(..)) => "accounts_full",
            TokenError::Unavailable => "unavailable",
        }
    }

    /// Every word, and the one for a token that is taken.
    pub(super) const WORDS: [&'static str; 15] = [
        "accepted",
        "malformed",
        "algorithm",
        "issuer",
        "audience",
        "expired",
        "too_early",
        "unknown_key",
        "signature",
        "missing_claim",
        "requirement",
        "account",
        "no_profile",
        "accounts_full",
        "unavailable",
    ];
}
