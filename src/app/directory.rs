//! Wires the directory of keys and accounts to configuration, database and ledger, for the server and for `stint keys`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, Settings};
use crate::gateway::Gateway;
use crate::http::AdminSettings;
use crate::http::admin::{AdminState, PageState, ReloadFn, StatementFn, StoredContent};
use crate::oidc::TokenVerifier;
use stint_ledger::{ChangeNotice, JournalError, Ledger, RequestScope};
use stint_storage::{ChangeListener, Database};
use stint_types::catalog::Catalog;
use stint_types::tasks::Tasks;
use stint_types::tenant::{DeclaredTenants, Directory, KeyChangeError, Tenant, TermsChange, TermsListener};

/// How often it is asked whether another process has changed something: revoking a key must reach all within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What is imported is called this in its mistakes.
const IMPORT_SOURCE: &str = "what is to be imported";

/// What the configuration declares and the database has.
pub(super) async fn open(
    settings: &Settings,
    first: Option<Tenant>,
    database: &Database,
) -> Result<Directory, KeyChangeError> {
    Directory::open(database.keys(), declared(settings, first), settings.keys_required).await
}

/// What the configuration declares, with the first key's tenant.
pub(super) fn declared(settings: &Settings, first: Option<Tenant>) -> DeclaredTenants {
    let tenants = settings.tenants.iter().cloned().chain(first).collect();
    let token_trees = settings.issuers.iter().map(|issuer| issuer.tree.clone()).collect();
    DeclaredTenants { tenants, terms: settings.terms.clone(), token_trees }
}

/// Notifies the ledger of changed terms.
pub(super) fn ledger_announcer(ledger: Ledger) -> TermsListener {
    Box::new(move |change| {
        let ledger = ledger.clone();
        Box::pin(async move {
            match change {
                TermsChange::All(terms) => ledger.declare(&terms),
                TermsChange::One(terms) => ledger.declare_one(&terms),
                TermsChange::None(account) => ledger.withdraw(&account),
            }
        })
    })
}

/// Takes over what other processes change: as soon as they tell of it, else by looking now and then.
pub(super) fn watch_changes(work: &Tasks, directory: Arc<Directory>, mut changes: Option<ChangeListener>) {
    let stopping = work.stopping();
    work.spawn(async move {
        tokio::pin!(stopping);
        let mut failing = false;
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = next_change(&mut changes) => {}
            }
            let refreshed = directory.refresh().await;
            if let Err(error) = &refreshed
                && !failing
            {
                tracing::error!(error = error as &dyn std::error::Error, "changed keys cannot be read");
            }
            failing = refreshed.is_err();
        }
    });
}

/// Resolves when keys or terms may have changed; never, if there are no notifications.
async fn next_change(changes: &mut Option<ChangeListener>) {
    let Some(changes) = changes else { return std::future::pending().await };
    while let ChangeNotice::Recall { .. } = changes.next().await {}
}

/// What the admin API has of a server that runs.
pub(super) struct ServerParts {
    pub(super) gateway: Gateway,
    pub(super) page: PageState,
    pub(super) tokens: Option<TokenVerifier>,
}

/// What the admin API has of what is stored.
pub(super) struct StoredParts {
    pub(super) keys: Arc<Directory>,
    pub(super) statement: StatementFn,
    pub(super) content: StoredContent,
}

/// What callers have stored in a database.
pub(super) fn content(database: &Database) -> StoredContent {
    StoredContent { responses: database.responses(), conversations: database.conversations() }
}

/// The admin API's service.
pub(super) fn admin(
    settings: &Settings,
    access: AdminSettings,
    token_holder: &'static str,
    StoredParts { keys: directory, statement, content: stored }: StoredParts,
    reload: ReloadFn,
    server: Option<ServerParts>,
) -> Arc<AdminState> {
    let (gateway, page, tokens) = match server {
        Some(server) => (Some(server.gateway), Some(server.page), server.tokens),
        None => (None, None, None),
    };
    let catalog: Catalog = settings.catalog.clone();
    let names = catalog.clone();
    let read = Box::new(move |text: &str| {
        config::keys(text, IMPORT_SOURCE, &names).map_err(|mistakes| mistakes.to_string())
    });
    Arc::new(AdminState {
        settings: settings.http.clone(),
        access,
        token_holder,
        directory,
        tokens,
        catalog,
        statement,
        stored,
        read,
        reload,
        gateway,
        page,
    })
}

/// How accounts stand in the ledger.
pub(super) fn ledger_statement(gateway: Gateway) -> StatementFn {
    Box::new(move |account| Some(gateway.account_statement(account)))
}

/// How accounts stand by what the database has of them, where no ledger is open here.
pub(super) async fn stored_statement(
    database: &Database,
    keys: &Directory,
) -> Result<StatementFn, JournalError> {
    let (accounts, now) = database.accounts_from_journal(&keys.snapshot().terms()).await?;
    Ok(Box::new(move |account| Some(accounts.statement(account, &RequestScope::default(), now))))
}

/// The first key's tenant where its file is there already.
pub(super) fn existing_first_key(path: Option<&Path>) -> std::io::Result<Option<Tenant>> {
    path.filter(|path| path.exists()).map(super::first_key::load_or_create).transpose()
}
