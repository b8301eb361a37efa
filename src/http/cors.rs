//! Pages of other origins that may call the API from a browser.
//!
//! Callers are known by their keys, never by cookies, so no credentials are allowed, and any header may be sent.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::headers;

/// How long a browser may remember the answer to a preflight.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Which pages may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Every page.
    Any,
    /// Those of these origins, each as a browser writes it: `https://app.example`.
    Listed(Vec<String>),
}

/// The layer that answers browsers who ask whether a page may call, and says so on every answer.
pub(super) fn layer(origins: &Origins) -> CorsLayer {
    let allowed = match origins {
        Origins::Any => AllowOrigin::any(),
        // What is no header's value is no page's origin.
        Origins::Listed(listed) => {
            AllowOrigin::list(listed.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
        }
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed())
        .max_age(REMEMBERED)
}

/// What a page may read of an answer's headers, beside what every page may.
fn exposed() -> Vec<HeaderName> {
    headers::OWN_HEADERS.into_iter().chain([header::RETRY_AFTER]).collect()
}
