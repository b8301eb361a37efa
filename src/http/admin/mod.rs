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
use crate::ledger::Line;
use crate::tenant::{Declared, Directory};
use crate::units::AccountId;

use super::error::Problem;
use super::router::{self, Row};
use super::{AdminSettings, Settings};

/// How an account's limits stand; nothing where no ledger is open.
pub type Statement = Box<dyn Fn(&AccountId) -> Option<Vec<Line>> + Send + Sync>;

/// Reads keys and accounts in the form of the configuration; what is wrong comes back in words, all of it.
pub type Reader = Box<dyn Fn(&str) -> Result<Declared, String> + Send + Sync>;

/// Has the configuration read anew; says what came of it, or nothing where no server runs that could.
pub type Reload = Box<dyn Fn() -> BoxFuture<'static, Option<Reloaded>> + Send + Sync>;

/// What came of reading the configuration anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reloaded {
    /// It is in force; what is other than before.
    InForce(Vec<String>),
    /// The one before stays in force; everything that is wrong with this one.
    Refused(Vec<String>),
}

/// What the admin API's handlers ask.
pub struct Admin {
    /// Limits of the wire.
    pub settings: Settings,
    /// Who may ask, and by which names.
    pub access: AdminSettings,
    /// The keys and accounts.
    pub directory: Arc<Directory>,
    /// The models and routes that keys may be limited to.
    pub catalog: Catalog,
    /// How accounts stand.
    pub statement: Statement,
    /// Reads what is imported.
    pub read: Reader,
    /// Reads the configuration anew.
    pub reload: Reload,
    /// What serves requests; nothing where no server runs.
    pub gateway: Option<Gateway>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Admin {
    /// # Errors
    /// 503 where no server runs that could say.
    fn running(&self) -> Result<&Gateway, Problem> {
        self.gateway.as_ref().ok_or_else(|| {
            let message = "no server runs here: ask the admin API of one that does";
            Problem::overloaded(message.to_owned(), Duration::from_secs(5))
        })
    }
}

/// The admin API. Whoever may not use it learns nothing of its paths.
pub fn admin(admin: &Arc<Admin>) -> Router {
    let routes = router::of_rows(rows(), admin.clone());
    router::dress(router::endings(routes).layer(from_fn_with_state(admin.clone(), guard::guard)))
}

/// Every method and path of the admin API.
pub fn admin_table() -> Vec<(&'static str, &'static str)> {
    rows().into_iter().map(|row| (row.method, row.path)).collect()
}

fn rows() -> Vec<Row<Arc<Admin>>> {
    vec![
        Row::new("GET", "/admin/keys", get(keys::list)),
        Row::new("POST", "/admin/keys", post(keys::create)),
        Row::new("GET", "/admin/keys/{id}", get(keys::show)),
        Row::new("PATCH", "/admin/keys/{id}", patch(keys::change)),
        Row::new("DELETE", "/admin/keys/{id}", delete(keys::revoke)),
        Row::new("POST", "/admin/keys/{id}/rotate", post(keys::rotate)),
        Row::new("GET", "/admin/accounts", get(accounts::list)),
        Row::new("GET", "/admin/accounts/{*path}", get(accounts::show)),
        Row::new("PUT", "/admin/accounts/{*path}", put(accounts::set)),
        Row::new("DELETE", "/admin/accounts/{*path}", delete(accounts::forget)),
        Row::new("GET", "/admin/export", get(transfer::export)),
        Row::new("POST", "/admin/import", post(transfer::import)),
        Row::new("POST", "/admin/reload", post(reload::reload)),
        Row::new("GET", "/admin/requests/{id}", get(requests::story)),
        Row::new("GET", "/admin/episodes", get(episodes::list)),
        Row::new("GET", "/admin/episodes/{id}", get(episodes::show)),
        Row::new("POST", "/admin/episodes/{id}/raise", post(episodes::raise)),
        Row::new("POST", "/admin/episodes/{id}/end", post(episodes::end)),
    ]
}

fn page(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, value.to_string()).into_response()
}
