//! The state that the admin API's handlers share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::gateway::Gateway;
use crate::http::error::ApiError;
use crate::http::settings::{AdminSettings, Settings};
use crate::oidc::TokenVerifier;
use stint_ledger::LimitStatus;
use stint_types::catalog::Catalog;
use stint_types::tenant::{DeclaredTenants, Directory};
use stint_types::units::{AccountId, Timestamp};

use super::page::PageState;
use super::stored_content::StoredContent;

/// How an account's limits stand; nothing if no ledger is open.
pub type StatementFn = Box<dyn Fn(&AccountId) -> Option<Vec<LimitStatus>> + Send + Sync>;

/// Reads keys and accounts in the form of the configuration; an error lists every mistake.
pub type ImportFn = Box<dyn Fn(&str) -> Result<DeclaredTenants, String> + Send + Sync>;

/// Reloads the configuration and gives back what came of it; nothing if no server runs.
pub type ReloadFn = Box<dyn Fn() -> BoxFuture<'static, Option<ReloadOutcome>> + Send + Sync>;

/// What came of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The new configuration is in force; what changed.
    Applied(Vec<String>),
    /// The earlier configuration stays in force; every mistake of the new one.
    Refused(Vec<String>),
}

/// What the admin API's handlers work with.
pub struct AdminState {
    /// Limits of requests.
    pub settings: Settings,
    /// The token, and the host names by which the listener may be called.
    pub access: AdminSettings,
    /// What the audit log calls anyone who has the token.
    pub token_holder: &'static str,
    /// The keys and accounts.
    pub directory: Arc<Directory>,
    /// Who takes tokens of issuers; nothing where there are none, or no server runs.
    pub tokens: Option<TokenVerifier>,
    /// The models and routes that keys may be limited to.
    pub catalog: Catalog,
    /// How accounts stand.
    pub statement: StatementFn,
    /// What callers have stored.
    pub stored: StoredContent,
    /// Reads what is imported.
    pub read: ImportFn,
    /// Reloads the configuration.
    pub reload: ReloadFn,
    /// What serves requests; nothing if no server runs.
    pub gateway: Option<Gateway>,
    /// What the page shows; nothing if no server runs.
    pub page: Option<PageState>,
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState").field("access", &self.access).finish_non_exhaustive()
    }
}

impl AdminState {
    /// The time by which keys end: that of the server, where one runs.
    pub(super) fn now(&self) -> Timestamp {
        self.gateway.as_ref().map_or_else(Timestamp::now, Gateway::now)
    }

    /// # Errors
    /// 503 where no server runs that could say.
    pub(super) fn require_gateway(&self) -> Result<&Gateway, ApiError> {
        self.gateway.as_ref().ok_or_else(no_server)
    }

    /// # Errors
    /// 503 where no server runs that has a page.
    pub(super) fn require_page(&self) -> Result<&PageState, ApiError> {
        self.page.as_ref().ok_or_else(no_server)
    }
}

fn no_server() -> ApiError {
    let message = "no server runs here: ask the admin API of one that does";
    ApiError::overloaded(message.to_owned(), Duration::from_secs(5))
}
