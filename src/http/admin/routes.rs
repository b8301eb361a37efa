//! The admin API's route table.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, patch, post, put};

use crate::http::router::{ApiRoute, build_router, with_fallbacks, with_layers};

use super::state::AdminState;
use super::{accounts, audit, episodes, guard, keys, page, reload, requests, stored, transfer};

/// The admin API and its page. A caller who may not use it learns nothing of its paths, and sees of the page the login alone.
pub fn admin(admin: &Arc<AdminState>) -> Router {
    let routes = build_router(admin_routes(), admin.clone());
    let guarded = with_fallbacks(routes).layer(from_fn_with_state(admin.clone(), guard::guard));
    with_layers(guarded.merge(page::page_routes(admin)))
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
        ApiRoute::new("DELETE", "/admin/stored/{*who}", delete(stored::delete)),
        ApiRoute::new("GET", "/admin/audit", get(audit::list)),
        ApiRoute::new("GET", "/admin/export", get(transfer::export)),
        ApiRoute::new("POST", "/admin/import", post(transfer::import)),
        ApiRoute::new("POST", "/admin/reload", post(reload::reload)),
        ApiRoute::new("GET", "/admin/requests/{id}", get(requests::request_record)),
        ApiRoute::new("GET", "/admin/episodes", get(episodes::list)),
        ApiRoute::new("GET", "/admin/episodes/{id}", get(episodes::show)),
        ApiRoute::new("POST", "/admin/episodes/{id}/raise", post(episodes::raise)),
        ApiRoute::new("POST", "/admin/episodes/{id}/end", post(episodes::end)),
        ApiRoute::new("GET", "/admin/page/{part}", get(page::part)),
        ApiRoute::new("POST", "/admin/try", post(page::ask)),
    ]
}
