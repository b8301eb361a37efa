//! The accounts of callers who come with tokens of an issuer, in place of keys. They are known from the first token on, and stand in
//! trees that no key has.

use std::collections::HashMap;

use crate::units::AccountId;

use super::{AccountTerms, DirectorySnapshot};

/// An account that a token names, with what it may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAccount {
    /// What it may spend, where no admin stored something else for it.
    pub terms: AccountTerms,
    /// Which of two tokens of one account holds.
    pub order: TokenOrder,
}

/// Of two tokens of one account the terms of the later one hold: by the configuration that read it, then by when it was issued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenOrder {
    /// Counts up with each configuration.
    pub configuration: u64,
    /// When the issuer made the token, in seconds since 1970; 0 where it does not say.
    pub issued: u64,
}

/// Why a token gets no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenAccountError {
    /// A key has the account, which a token may not take.
    #[error("the account {0} belongs to a key: revoke that key, or give the issuer another account_prefix")]
    OfKey(AccountId),
    /// As many accounts came as the configuration allows.
    #[error("{1} accounts below {0} came with tokens, as many as accounts_max allows")]
    Full(AccountId, usize),
}

/// Every account that came with a token.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenAccounts {
    by_account: HashMap<AccountId, TokenAccount>,
}

impl TokenAccounts {
    pub(super) fn get(&self, account: &AccountId) -> Option<&TokenAccount> {
        self.by_account.get(account)
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = &AccountTerms> {
        self.by_account.values().map(|known| &known.terms)
    }

    /// Those of them that are below one of these.
    pub(super) fn within(&self, trees: &[AccountId]) -> TokenAccounts {
        let is_within = |account: &AccountId| trees.iter().any(|tree| tree.contains(account));
        let kept = self.by_account.iter().filter(|(account, _)| is_within(account));
        TokenAccounts { by_account: kept.map(|(account, known)| (account.clone(), known.clone())).collect() }
    }

    fn below(&self, tree: &AccountId) -> usize {
        self.by_account.keys().filter(|account| tree.contains(account)).count()
    }
}

impl DirectorySnapshot {
    /// True if an account is known with these terms, or with those of a later token.
    pub(super) fn has_token_account(&self, wanted: &TokenAccount) -> bool {
        let known = self.tokens.get(&wanted.terms.account);
        known.is_some_and(|known| {
            known.order > wanted.order || (known.order == wanted.order && known.terms == wanted.terms)
        })
    }

    /// What a token's account may, where it is known.
    pub(super) fn token_terms(&self, account: &AccountId) -> Option<&AccountTerms> {
        self.tokens.get(account).map(|known| &known.terms)
    }

    /// The snapshot with an account that a token names, which is below `tree`; at most so many are.
    pub(super) fn with_token_account(
        &self,
        tree: &AccountId,
        most: usize,
        wanted: TokenAccount,
    ) -> Result<DirectorySnapshot, TokenAccountError> {
        let account = &wanted.terms.account;
        if self.index.key(account).is_some() || self.unrevoked().any(|record| record.account == *account) {
            return Err(TokenAccountError::OfKey(account.clone()));
        }
        if self.tokens.get(account).is_none() && self.tokens.below(tree) >= most {
            return Err(TokenAccountError::Full(tree.clone(), most));
        }
        let mut next = self.clone();
        let mut tokens = TokenAccounts::clone(&self.tokens);
        tokens.by_account.insert(account.clone(), wanted);
        next.tokens = tokens.into();
        Ok(next)
    }

    /// The tree of tokens' accounts that an account stands in, if any.
    pub(super) fn token_tree(&self, account: &AccountId) -> Option<&AccountId> {
        self.declared().token_trees.iter().find(|tree| tree.contains(account))
    }
}
