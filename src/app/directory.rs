//! The keys and accounts of a gateway, wired to what it has of configuration, database and ledger.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::config::{self, Settings};
use crate::gateway::Gateway;
use crate::http::AdminSettings;
use crate::http::admin::{Admin, Reload, Statement};
use crate::ledger::{About, Change, JournalError, Ledger};
use crate::storage::{Changes, Database};
use crate::tasks::Tasks;
use crate::tenant::{Announce, Declared, Directory, KeyRefused, Tenant};

/// How often it is asked whether another process has changed something: revoking a key must reach all within a second.
const LOOK: Duration = Duration::from_millis(500);

/// What is imported is called this in its mistakes.
const IMPORT: &str = "what is to be imported";

/// What the configuration declares and the database has.
pub(super) async fn open(
    settings: &Settings,
    first: Option<Tenant>,
    database: &Database,
) -> Result<Directory, KeyRefused> {
    Directory::open(database.keys(), declared(settings, first), settings.keys_required).await
}

/// What the configuration declares, with the first key's tenant.
pub(super) fn declared(settings: &Settings, first: Option<Tenant>) -> Declared {
    let tenants = settings.tenants.iter().cloned().chain(first).collect();
    Declared { tenants, terms: settings.terms.clone() }
}

/// Tells the ledger of changed terms.
pub(super) fn to(ledger: Ledger) -> Announce {
    Box::new(move |terms| {
        let ledger = ledger.clone();
        Box::pin(async move { ledger.declare(&terms) })
    })
}

/// Takes over what other processes change: as soon as they tell of it, else by looking now and then.
pub(super) fn watch(work: &Tasks, directory: Arc<Directory>, mut changes: Option<Changes>) {
    let stopping = work.stopping();
    work.spawn(async move {
        tokio::pin!(stopping);
        let mut failing = false;
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(LOOK) => {}
                () = told(&mut changes) => {}
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

/// Resolves when keys or terms may have changed; never, where nobody tells.
async fn told(changes: &mut Option<Changes>) {
    let Some(changes) = changes else { return std::future::pending().await };
    while let Change::Recall { .. } = changes.next().await {}
}

/// The admin API's service.
pub(super) fn admin(
    settings: &Settings,
    access: AdminSettings,
    directory: Arc<Directory>,
    statement: Statement,
    reload: Reload,
    gateway: Option<Gateway>,
) -> Arc<Admin> {
    let catalog: Catalog = settings.catalog.clone();
    let names = catalog.clone();
    let read = Box::new(move |text: &str| {
        config::keys(text, IMPORT, &names).map_err(|mistakes| mistakes.to_string())
    });
    Arc::new(Admin {
        settings: settings.http.clone(),
        access,
        directory,
        catalog,
        statement,
        read,
        reload,
        gateway,
    })
}

/// How accounts stand in the ledger.
pub(super) fn standing(gateway: Gateway) -> Statement {
    Box::new(move |account| Some(gateway.account_statement(account)))
}

/// How accounts stand by what the database has of them, where no ledger is open here.
pub(super) async fn stored_standing(
    database: &Database,
    keys: &Directory,
) -> Result<Statement, JournalError> {
    let (accounts, now) = database.standing(&keys.book().terms()).await?;
    Ok(Box::new(move |account| Some(accounts.statement(account, &About::default(), now))))
}

/// The first key's tenant where its file is there already.
pub(super) fn first(path: Option<&Path>) -> std::io::Result<Option<Tenant>> {
    path.filter(|path| path.exists()).map(super::first_key::tenant).transpose()
}
