//! The admin API: keys and accounts, on a listener of its own, for those who have the token or a key with the scope.

mod accounts;
mod episodes;
mod guard;
mod keys;
mod query;
mod read;
mod reload;
mod requests;
mod show;
mod transfer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::gateway::Gateway;
use crate::ledger::LimitStatus;
use crate::tenant::{DeclaredTenants, Directory};
use crate::units::AccountId;

use super::error::ApiError;
use super::router::{self, ApiRoute};
use super::{AdminSettings, Settings};

/// How an account's limits stand; nothing where no ledger is open.
pub type StatementFn = Box<dyn Fn(&AccountId) -> Option<Vec<LimitStatus>> + Send + Sync>;

/// Reads keys and accounts in the form of the configuration; what is wrong comes back in words, all of it.
pub type ImportFn = Box<dyn Fn(&str) -> Result<DeclaredTenants, String> + Send + Sync>;

/// Has the configuration read anew; says what came of it, or nothing where no server runs that could.
pub type ReloadFn = Box<dyn Fn() -> BoxFuture<'static, Option<ReloadOutcome>> + Send + Sync>;

/// What came of reading the configuration anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// It is in force; what is other than before.
    Applied(Vec<String>),
    /// The one before stays in force; everything that is wrong with this one.
    Refused(Vec<String>),
}

/// What the admin API's handlers ask.
pub struct AdminState {
    /// Limits of the wire.
    pub settings: Settings,
    /// Who may ask, and by which names.
    pub access: AdminSettings,
    /// The keys and accounts.
    pub directory: Arc<Directory>,
    /// The models and routes that keys may be limited to.
    pub catalog: Catalog,
    /// How accounts stand.
    pub statement: StatementFn,
    /// Reads what is imported.
    pub read: ImportFn,
    /// Reads the configuration anew.
    pub reload: ReloadFn,
    /// What serves requests; nothing where no server runs.
    pub gateway: Option<Gateway>,
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState").field("access", &self.access).finish_non_exhaustive()
    }
}

impl AdminState {
    /// # Errors
    /// 503 where no server runs that could say.
    fn require_gateway(&self) -> Result<&Gateway, ApiError> {
        self.gateway.as_ref().ok_or_else(|| {
            let message = "no server runs here: ask the admin API of one that does";
            ApiError::overloaded(message.to_owned(), Duration::from_secs(5))
        })
    }
}

/// The admin API. Whoever may not use it learns nothing of its paths.
pub fn admin(admin: &Arc<AdminState>) -> Router {
    let routes = router::build_router(admin_routes(), admin.clone());
    router::with_layers(router::with_fallbacks(routes).layer(from_fn_with_state(admin.clone(), guard::guard)))
}

/// Every method and path of the admin API.
pub fn admin_table() -> Vec<(&'static str, &'static str)> {
    admin_routes().into_iter().map(|row| (row.method, row.path)).collect()
}

fn admin_routes() -> Vec<ApiRoute<Arc<AdminState>>> {
    vec![
        ApiRoute::new("GET", "/admin/keys", get(keys::list)),
        ApiRoute::new("POST", "/admin/keys", post(keys::create)),
        ApiRoute::new("GET", "/admin/keys/{id}", get(keys::show)),
        ApiRoute::new("PATCH", "/admin/keys/{id}", patch(keys::change)),
        ApiRoute::new("DELETE", "/admin/keys/{id}", delete(keys::revoke)),
        ApiRoute::new("POST", "/admin/keys/{id}/rotate", post(keys::rotate)),
        ApiRoute::new("GET", "/admin/accounts", get(accounts::list)),
        ApiRoute::new("GET", "/admin/accounts/{*path}", get(accounts::show)),
        ApiRoute::new("PUT", "/admin/accounts/{*path}", put(accounts::set)),
        ApiRoute::new("DELETE", "/admin/accounts/{*path}", delete(accounts::delete)),
        ApiRoute::new("GET", "/admin/export", get(transfer::export)),
        ApiRoute::new("POST", "/admin/import", post(transfer::import)),
        ApiRoute::new("POST", "/admin/reload", post(reload::reload)),
        ApiRoute::new("GET", "/admin/requests/{id}", get(requests::request_record)),
        ApiRoute::new("GET", "/admin/episodes", get(episodes::list)),
        ApiRoute::new("GET", "/admin/episodes/{id}", get(episodes::show)),
        ApiRoute::new("POST", "/admin/episodes/{id}/raise", post(episodes::raise)),
        ApiRoute::new("POST", "/admin/episodes/{id}/end", post(episodes::end)),
    ]
}

fn page(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, value.to_string()).into_response()
}
