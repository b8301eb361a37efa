//! Where the page is: its files, which anyone may read who may call the listener, and its data, which the admin API guards.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::http::admin::state::AdminState;
use crate::http::admin::{episodes, guard};
use crate::http::router::{ApiRoute, build_router, with_layers};

use super::{assets, open_guard, parts, playground};

/// The page's files on the admin listener. They say nothing of this server; what they ask for needs the token.
pub(in crate::http::admin) fn page_routes(admin: &Arc<AdminState>) -> Router {
    files("/").merge(files(assets::PAGE)).merge(folder()).layer(from_fn_with_state(admin.clone(), check_host))
}

/// The page on the API's listener, for this machine alone and for as long as nobody needs a key.
pub fn open_page(admin: &Arc<AdminState>) -> Router {
    let rows = vec![
        ApiRoute::new("GET", "/admin/page/{part}", get(parts::part)),
        ApiRoute::new("POST", "/admin/try", post(playground::ask)),
        ApiRoute::new("GET", "/admin/episodes/{id}", get(episodes::show)),
        ApiRoute::new("POST", "/admin/episodes/{id}/raise", post(episodes::raise)),
        ApiRoute::new("POST", "/admin/episodes/{id}/end", post(episodes::end)),
    ];
    let data = build_router(rows, admin.clone());
    let all = data.merge(files(assets::PAGE)).merge(folder());
    with_layers(all.layer(from_fn_with_state(admin.clone(), open_guard::guard)))
}

fn files(path: &str) -> Router {
    Router::new().route(path, get(assets::page))
}

fn folder() -> Router {
    Router::new().route("/page/{file}", get(assets::file))
}

async fn check_host(State(admin): State<Arc<AdminState>>, request: Request<Body>, next: Next) -> Response {
    match guard::check_host(&admin, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
