//! The keys and accounts of a running gateway: what changes goes to the store first, then into the live table, then
//! to the ledger, which counts what accounts spend.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use crate::units::{AccountId, Timestamp};

use super::keys::KeyTable;
use super::{
    AccountTerms, AdminRole, AuditEntry, AuditRecord, DeclaredTenants, DirectoryEditor, DirectorySnapshot,
    EditorAuthority, KeyChangeError, KeyLookup, KeyStore, KeyStoreChange, KeyStoreError, TokenAccount,
    TokenAccountError, TokenAccountUse, keys,
};

/// How often a change is planned again when others change something at the same time.
const ATTEMPTS: usize = 5;

/// Terms that hold from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermsChange {
    /// These, and no others.
    All(Vec<AccountTerms>),
    /// These of one account, beside those of all others.
    One(AccountTerms),
    /// One account has none any more, and may spend nothing; those of all others stay.
    None(AccountId),
}

/// Which declaration it is, of those that were in force one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeclarationNumber(u64);

#[derive(Debug, Default)]
struct GoneTerms {
    number: DeclarationNumber,
    terms: Vec<AccountTerms>,
}

/// Called whenever terms in force may have changed.
pub type TermsListener = Box<dyn Fn(TermsChange) -> BoxFuture<'static, ()> + Send + Sync>;

/// All keys and accounts, declared and stored.
pub struct Directory {
    store: Arc<dyn KeyStore>,
    snapshot: RwLock<Arc<DirectorySnapshot>>,
    /// The live table; another one for each declaration, so that none has half of two.
    keys: RwLock<KeyLookup>,
    listener: Option<TermsListener>,
    /// The terms that only requests have which began before the declaration in force.
    gone: std::sync::Mutex<GoneTerms>,
    /// Held while keys or accounts are changed or reloaded.
    change_lock: Mutex<()>,
}

impl Directory {
    /// The directory of what is declared and what the store has. Without any key it is open to everybody, unless keys
    /// are required.
    ///
    /// # Errors
    /// When the store cannot be read, or what is declared contradicts itself.
    pub async fn open(
        store: Arc<dyn KeyStore>,
        declared: DeclaredTenants,
        required: bool,
    ) -> Result<Directory, KeyChangeError> {
        keys::check(&declared.tenants)?;
        let snapshot = DirectorySnapshot::new(declared, required, store.load().await?);
        warn_of_shadowed(&snapshot);
        let keys = KeyLookup::of(snapshot.table());
        Ok(Directory {
            store,
            snapshot: RwLock::new(Arc::new(snapshot)),
            keys: RwLock::new(keys),
            listener: None,
            gone: std::sync::Mutex::default(),
            change_lock: Mutex::default(),
        })
    }

    /// The same with a listener for changed terms.
    #[must_use]
    pub fn with_listener(self, listener: TermsListener) -> Directory {
        Directory { listener: Some(listener), ..self }
    }

    /// The live table.
    pub fn keys(&self) -> KeyLookup {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a declaration may be put in place of the one in force.
    ///
    /// # Errors
    /// When it contradicts itself.
    pub fn check(declared: &DeclaredTenants) -> Result<(), KeyChangeError> {
        Ok(keys::check(&declared.tenants)?)
    }

    /// Puts another declaration, which was checked, in place of the one in force. Terms that are new hold before `switch` is
    /// given the keys that are looked up from then on. The table before stays as it is for those who hold it, and so do the terms
    /// of accounts that are gone, until [`Directory::withdraw_gone`]: requests that began by them need them. Says which
    /// declaration it is, where accounts are gone.
    pub async fn replace_declared(
        &self,
        declared: DeclaredTenants,
        required: bool,
        switch: impl FnOnce(KeyLookup),
    ) -> Option<DeclarationNumber> {
        let _turn = self.change_lock.lock().await;
        let before = self.snapshot();
        let snapshot = DirectorySnapshot::new(declared, required, before.stored.clone());
        let snapshot = snapshot.with_tokens_of(&before);
        warn_of_shadowed(&snapshot);
        let earlier = self.gone.lock().unwrap_or_else(PoisonError::into_inner).terms.clone();
        let gone = self
            .install(snapshot, earlier, |table| {
                let keys = KeyLookup::of(table);
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.clone();
                switch(keys);
            })
            .await;
        let mut state = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        state.number.0 += 1;
        state.terms = gone;
        (!state.terms.is_empty()).then_some(state.number)
    }

    /// Withdraws the terms of accounts that are gone since that declaration, if it is the last one.
    pub async fn withdraw_gone(&self, number: DeclarationNumber) {
        let _turn = self.change_lock.lock().await;
        let is_last = {
            let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
            let is_last = gone.number == number;
            if is_last {
                gone.terms.clear();
            }
            is_last
        };
        if is_last {
            self.notify(TermsChange::All(self.snapshot().terms())).await;
        }
    }

    /// Lets a caller in who came with a token: from now on the account that it names may spend by its terms. It is below `tree`, and
    /// no more than so many are. Where there are so many, one that was not used for long is forgotten.
    ///
    /// # Errors
    /// When a key has the account, or there are too many in use.
    pub async fn admit_token(
        &self,
        tree: &AccountId,
        most: usize,
        account: TokenAccount,
        now: Timestamp,
    ) -> Result<TokenAccountUse, TokenAccountError> {
        let known =
            |snapshot: &DirectorySnapshot| snapshot.token_account(&account).filter(|usage| usage.touch(now));
        if let Some(usage) = known(&self.snapshot()) {
            return Ok(usage);
        }
        let _turn = self.change_lock.lock().await;
        let snapshot = self.snapshot();
        if let Some(usage) = known(&snapshot) {
            return Ok(usage);
        }
        let id = account.terms.account.clone();
        let before = snapshot.is_token_announced(&id).then(|| snapshot.terms_of(&id));
        let (usage, forgotten) = snapshot.insert_token_account(tree, most, account, now)?;
        if let Some(forgotten) = forgotten {
            let rest = snapshot.has_account(&forgotten).then(|| snapshot.terms_of(&forgotten));
            self.notify(rest.map_or(TermsChange::None(forgotten), TermsChange::One)).await;
        }
        let terms = snapshot.terms_of(&id);
        // A later token with the same terms only keeps earlier ones from holding again.
        if before.as_ref() != Some(&terms) {
            self.notify(TermsChange::One(terms)).await;
        }
        // From here on others find it without a turn.
        snapshot.mark_token_announced(&id);
        Ok(usage)
    }

    /// All that is known at this moment.
    pub fn snapshot(&self) -> Arc<DirectorySnapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same in the hands of somebody who may everything, as the audit log is to call them.
    pub fn by<'d>(&'d self, who: &'d str) -> DirectoryEditor<'d> {
        DirectoryEditor { directory: self, who, authority: EditorAuthority::Role(AdminRole::All) }
    }

    /// Puts what somebody did to something else than keys and accounts into the audit log.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit(&self, entry: AuditEntry) -> Result<(), KeyChangeError> {
        Ok(self.store.append_audit(&[entry]).await?)
    }

    /// The latest entries of the audit log, the newest first: so many at most, and only those before that number.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit_records(
        &self,
        before: Option<u64>,
        most: u32,
    ) -> Result<Vec<AuditRecord>, KeyChangeError> {
        Ok(self.store.read_audit(before, most).await?)
    }

    /// Takes over what others have changed in the store; returns whether there were any changes.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn refresh(&self) -> Result<bool, KeyChangeError> {
        if self.store.version().await? == self.snapshot().stored.version {
            return Ok(false);
        }
        let _turn = self.change_lock.lock().await;
        self.reload().await?;
        Ok(true)
    }

    pub(super) async fn commit<T>(
        &self,
        who: &str,
        plan: impl Fn(&DirectorySnapshot) -> Result<(Vec<KeyStoreChange>, T), KeyChangeError>,
    ) -> Result<T, KeyChangeError> {
        let _turn = self.change_lock.lock().await;
        for _ in 0..ATTEMPTS {
            let snapshot = self.snapshot();
            let (changes, result) = plan(&snapshot)?;
            if changes.is_empty() {
                return Ok(result);
            }
            let entries = snapshot.audit_entries(&changes, who, Timestamp::now());
            match self.store.apply(snapshot.stored.version, &changes, &entries).await {
                Ok(()) => {
                    let mut next = DirectorySnapshot::clone(&snapshot);
                    next.stored.apply(&changes);
                    self.install_and_withdraw(next).await;
                    return Ok(result);
                }
                Err(KeyStoreError::Conflict) => self.reload().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(KeyStoreError::Conflict.into())
    }

    async fn reload(&self) -> Result<(), KeyChangeError> {
        let stored = self.store.load().await?;
        let snapshot = DirectorySnapshot { stored, ..DirectorySnapshot::clone(&self.snapshot()) };
        self.install_and_withdraw(snapshot).await;
        Ok(())
    }

    /// Installs changed keys. The account of a revoked key may spend nothing from then on; what a declaration removed stays until
    /// [`withdraw_gone`](Self::withdraw_gone).
    async fn install_and_withdraw(&self, snapshot: DirectorySnapshot) {
        let earlier = self.gone.lock().unwrap_or_else(PoisonError::into_inner).terms.clone();
        let gone = self.install(snapshot, earlier.clone(), |table| self.keys().replace(table)).await;
        let is_earlier = |terms: &AccountTerms| earlier.iter().any(|one| one.account == terms.account);
        let (kept, revoked): (Vec<_>, Vec<_>) = gone.into_iter().partition(is_earlier);
        if !revoked.is_empty() {
            let all = self.snapshot().terms().into_iter().chain(kept.iter().cloned()).collect();
            self.notify(TermsChange::All(all)).await;
        }
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).terms = kept;
    }

    /// The listener learns of new terms before any key of theirs works. Those that are gone, now or `earlier`, still hold after it.
    async fn install(
        &self,
        snapshot: DirectorySnapshot,
        earlier: Vec<AccountTerms>,
        switch: impl FnOnce(KeyTable),
    ) -> Vec<AccountTerms> {
        let (table, terms) = (snapshot.table(), snapshot.terms());
        let mut known: HashSet<AccountId> = terms.iter().map(|terms| terms.account.clone()).collect();
        let before = self.snapshot().terms().into_iter().chain(earlier);
        let gone: Vec<AccountTerms> = before.filter(|old| known.insert(old.account.clone())).collect();
        self.store_snapshot(snapshot);
        self.notify(TermsChange::All(terms.into_iter().chain(gone.iter().cloned()).collect())).await;
        switch(table);
        gone
    }

    fn store_snapshot(&self, snapshot: DirectorySnapshot) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    async fn notify(&self, terms: TermsChange) {
        if let Some(announce) = &self.listener {
            announce(terms).await;
        }
    }
}

fn warn_of_shadowed(snapshot: &DirectorySnapshot) {
    for record in snapshot.shadowed() {
        let (key, account) = (record.id, &record.account);
        tracing::warn!(%key, %account, "this stored key is not accepted while the configuration declares one of its name or secret; revoke it, or it \
             comes back when that goes");
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("store", &self.store).finish_non_exhaustive()
    }
}
