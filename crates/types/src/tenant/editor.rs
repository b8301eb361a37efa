//! The changes that somebody makes to keys and accounts. Each has its entry in the audit log, in one transaction with it.

use std::time::Duration;

use crate::units::{AccountId, Timestamp};

use super::{
    AccountTerms, AdminRole, DeclaredTenants, Directory, DirectorySnapshot, ImportSummary, KeyChangeError,
    KeyId, KeyPatch, KeyStoreChange, ListedKey, NewKey, TermsPatch,
};

/// A directory in somebody's hands.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryEditor<'d> {
    pub(super) directory: &'d Directory,
    /// As the audit log calls them.
    pub(super) who: &'d str,
    pub(super) authority: EditorAuthority<'d>,
}

/// How far somebody may go. It is looked at with each try of a change: another replica may have changed roles meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditorAuthority<'d> {
    /// By itself.
    Role(AdminRole),
    /// By the key that this account has.
    Key(&'d AccountId),
}

impl EditorAuthority<'_> {
    /// The role, if it is enough to manage keys.
    fn role(self, snapshot: &DirectorySnapshot) -> Result<AdminRole, KeyChangeError> {
        let (role, account) = match self {
            EditorAuthority::Role(role) => (Some(role), None),
            EditorAuthority::Key(account) => (snapshot.role_of(account), Some(account)),
        };
        match (role, account) {
            (Some(role), _) if role >= AdminRole::Keys => Ok(role),
            (Some(own), _) => Err(KeyChangeError::RoleTooLow { role: AdminRole::Keys, own }),
            (None, account) => Err(KeyChangeError::NotAdmin(account.cloned())),
        }
    }
}

impl<'d> DirectoryEditor<'d> {
    /// The same in the hands of somebody who may go so far.
    #[must_use]
    pub fn with_authority(self, authority: EditorAuthority<'d>) -> DirectoryEditor<'d> {
        DirectoryEditor { authority, ..self }
    }

    /// Makes a key for an account that has none; the secret is known to the caller alone.
    ///
    /// # Errors
    /// When there is such a key, or the store fails.
    pub async fn create(
        &self,
        account: &AccountId,
        wanted: &KeyPatch,
    ) -> Result<(ListedKey, NewKey), KeyChangeError> {
        let (id, secret, now) = (KeyId::generate()?, NewKey::generate()?, Timestamp::now());
        self.commit(|snapshot| Ok((snapshot.create(id, account, secret.hash(), wanted, now)?, ()))).await?;
        Ok((self.directory.snapshot().key(id)?, secret))
    }

    /// Makes another secret for a key. Those before are taken until the grace is over at the latest.
    ///
    /// # Errors
    /// When the key cannot be changed, or the store fails.
    pub async fn rotate(&self, id: KeyId, grace: Duration) -> Result<(ListedKey, NewKey), KeyChangeError> {
        let (secret, now) = (NewKey::generate()?, Timestamp::now());
        self.commit(|snapshot| Ok((snapshot.rotate(id, secret.hash(), grace, now)?, ()))).await?;
        Ok((self.directory.snapshot().key(id)?, secret))
    }

    /// Ends a key for good. It is refused from the next request on; what runs may finish.
    ///
    /// # Errors
    /// When the key cannot be changed, or the store fails.
    pub async fn revoke(&self, id: KeyId) -> Result<ListedKey, KeyChangeError> {
        let now = Timestamp::now();
        self.commit(|snapshot| Ok((snapshot.revoke(id, now)?, ()))).await?;
        self.directory.snapshot().key(id)
    }

    /// Gives a key other scopes, another end or other terms.
    ///
    /// # Errors
    /// When the key cannot be changed, or the store fails.
    pub async fn change(&self, id: KeyId, wanted: &KeyPatch) -> Result<ListedKey, KeyChangeError> {
        self.commit(|snapshot| Ok((snapshot.change(id, wanted)?, ()))).await?;
        self.directory.snapshot().key(id)
    }

    /// Puts these in place of all terms of an account.
    ///
    /// # Errors
    /// When they are declared in the configuration, or the store fails.
    pub async fn set_terms(&self, account: &AccountId, wanted: &TermsPatch) -> Result<(), KeyChangeError> {
        let terms = wanted.apply_to(AccountTerms::unlimited(account.clone()));
        self.commit(|snapshot| Ok((snapshot.set_terms(&terms)?, ()))).await
    }

    /// Takes an account's terms away.
    ///
    /// # Errors
    /// When there is no such account, it is declared in the configuration, or the store fails.
    pub async fn drop_terms(&self, account: &AccountId) -> Result<(), KeyChangeError> {
        self.commit(|snapshot| Ok((snapshot.drop_terms(account)?, ()))).await
    }

    /// Takes over keys and accounts, all or none. To do it again changes nothing.
    ///
    /// # Errors
    /// What cannot be taken over, all of it; or the store fails.
    pub async fn import(&self, wanted: &DeclaredTenants) -> Result<ImportSummary, KeyChangeError> {
        let now = Timestamp::now();
        self.commit(|snapshot| snapshot.import(wanted, now)).await
    }

    /// Commits what is planned, where nobody's role is above the editor's own.
    async fn commit<T>(
        &self,
        plan: impl Fn(&DirectorySnapshot) -> Result<(Vec<KeyStoreChange>, T), KeyChangeError>,
    ) -> Result<T, KeyChangeError> {
        let checked = |snapshot: &DirectorySnapshot| {
            let own = self.authority.role(snapshot)?;
            let (changes, result) = plan(snapshot)?;
            snapshot.check_roles(&changes, own)?;
            Ok((changes, result))
        };
        self.directory.commit(self.who, checked).await
    }
}
