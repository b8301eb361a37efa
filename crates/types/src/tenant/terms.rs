//! What an account may spend, and by whose calendar.

use crate::units::{AccountId, Zone};

use super::TenantLimit;

/// What an operator has declared about an account: a key's, or one that keys belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountTerms {
    /// Which account.
    pub account: AccountId,
    /// What it may spend; nothing here is no limit.
    pub limits: Vec<TenantLimit>,
    /// Where its days and months begin.
    pub zone: Zone,
    /// When a limit is announced, before it refuses anything.
    pub warn_at: Percent,
}

/// Some of an account's terms, to be put in place of those that hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TermsPatch {
    /// All its limits.
    pub limits: Option<Vec<TenantLimit>>,
    /// Where its days and months begin.
    pub zone: Option<Zone>,
    /// When a limit is announced.
    pub warn_at: Option<Percent>,
}

/// A share in percent, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

/// A number that is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a share: write a whole number of percent from 1 to 100")]
pub struct InvalidPercent(u64);

impl AccountTerms {
    /// An account without limits.
    pub fn unlimited(account: AccountId) -> AccountTerms {
        AccountTerms { account, limits: Vec::new(), zone: Zone::UTC, warn_at: Percent::default() }
    }
}

impl TermsPatch {
    /// The terms with these in their place.
    pub fn apply_to(&self, terms: AccountTerms) -> AccountTerms {
        AccountTerms {
            account: terms.account,
            limits: self.limits.clone().unwrap_or(terms.limits),
            zone: self.zone.clone().unwrap_or(terms.zone),
            warn_at: self.warn_at.unwrap_or(terms.warn_at),
        }
    }
}

impl Percent {
    /// True if a part of a whole reaches this share.
    pub fn is_reached(self, part: u64, whole: u64) -> bool {
        u128::from(part) * 100 >= u128::from(whole) * u128::from(self.0)
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// Four fifths: late enough to mean something, early enough to act.
impl Default for Percent {
    fn default() -> Percent {
        Percent(80)
    }
}

impl TryFrom<u64> for Percent {
    type Error = InvalidPercent;

    fn try_from(number: u64) -> Result<Percent, InvalidPercent> {
        match u8::try_from(number) {
            Ok(percent @ 1..=100) => Ok(Percent(percent)),
            _ => Err(InvalidPercent(number)),
        }
    }
}
