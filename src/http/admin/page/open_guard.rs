//! Who sees the page on the API's own listener: anyone who sits at this machine, for as long as no key exists and there is no
//! `[admin]`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Request, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::admin::access::Admin;
use crate::http::admin::state::AdminState;
use crate::http::called_host::{LOOPBACK, called_host};
use crate::http::error::{ApiError, codes};
use stint_types::tenant::AdminRole;

/// What browsers say of where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Headers in which proxies name the client behind them. Anyone who sits at this machine sends none.
const OF_PROXIES: [HeaderName; 6] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];

/// What the audit log calls anyone who sits at this machine.
const PERSON: &str = "/this machine";

/// Looks at the keys, the host and the origin before anything else is looked at.
pub(super) async fn guard(
    State(admin): State<Arc<AdminState>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    match check(&admin, &request) {
        Ok(()) => {
            request.extensions_mut().insert(Admin { name: PERSON.into(), role: AdminRole::All, key: None });
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn check(admin: &AdminState, request: &Request<Body>) -> Result<(), ApiError> {
    if !admin.directory.keys().is_open() {
        return Err(ApiError::unknown_path());
    }
    let headers = request.headers();
    let is_here = called_host(request).is_some_and(|host| LOOPBACK.contains(&&*host));
    if !is_here || OF_PROXIES.iter().any(|name| headers.contains_key(name)) {
        let message = "the page is for this machine alone, by the name localhost or 127.0.0.1; give [admin] a token and \
                       a listener to see it from elsewhere";
        return Err(ApiError::forbidden(message).with_code(codes::BAD_HOST));
    }
    if is_of_another_page(headers, admin.settings.tls.is_some()) {
        return Err(ApiError::forbidden("another page may not ask this one's").with_code(codes::BAD_ORIGIN));
    }
    Ok(())
}

/// True where a browser says that a page of another origin asks. Programs say nothing of that.
fn is_of_another_page(headers: &HeaderMap, speaks_tls: bool) -> bool {
    let text =
        |name| headers.get(name).map(|value: &axum::http::HeaderValue| value.to_str().unwrap_or_default());
    let is_foreign_fetch = text(FETCH_SITE).is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let scheme = if speaks_tls { "https" } else { "http" };
    let own = text(header::HOST).map(|host| format!("{scheme}://{host}"));
    let is_foreign_origin = text(header::ORIGIN).is_some_and(|origin| own.as_deref() != Some(origin));
    is_foreign_fetch || is_foreign_origin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_of_the_listeners_own_scheme() {
        let check = |origin: &'static str, speaks_tls, expected| {
            let host = (header::HOST, "localhost:8080".parse().unwrap());
            let headers = HeaderMap::from_iter([host, (header::ORIGIN, origin.parse().unwrap())]);
            assert_eq!(is_of_another_page(&headers, speaks_tls), expected, "{origin}");
        };
        check("http://localhost:8080", false, false);
        check("https://localhost:8080", false, true);
        check("https://localhost:8080", true, false);
        check("http://localhost:8080", true, true);
    }
}
