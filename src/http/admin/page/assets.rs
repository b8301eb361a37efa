//! The files of the page. They are in the binary, and the page may load nothing else.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::http::error::ApiError;
use crate::http::path_params::PathParams;

/// Where the page is.
pub(super) const PAGE: &str = "/page";

const HTML: &str = include_str!("files/page.html");

/// Its own files and its own data, no inline script or style, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, kind and text of each.
const FILES: [(&str, &str, &str); 16] = [
    ("page.css", "text/css; charset=utf-8", include_str!("files/page.css")),
    ("panels.css", "text/css; charset=utf-8", include_str!("files/panels.css")),
    ("icon.svg", "image/svg+xml", include_str!("files/icon.svg")),
    ("app.js", SCRIPT, include_str!("files/app.js")),
    ("api.js", SCRIPT, include_str!("files/api.js")),
    ("dom.js", SCRIPT, include_str!("files/dom.js")),
    ("format.js", SCRIPT, include_str!("files/format.js")),
    ("scale.js", SCRIPT, include_str!("files/scale.js")),
    ("charts.js", SCRIPT, include_str!("files/charts.js")),
    ("now.js", SCRIPT, include_str!("files/now.js")),
    ("thinking.js", SCRIPT, include_str!("files/thinking.js")),
    ("money.js", SCRIPT, include_str!("files/money.js")),
    ("episodes.js", SCRIPT, include_str!("files/episodes.js")),
    ("decisions.js", SCRIPT, include_str!("files/decisions.js")),
    ("try.js", SCRIPT, include_str!("files/try.js")),
    ("stream.js", SCRIPT, include_str!("files/stream.js")),
];

/// The page itself.
pub(super) async fn page() -> Response {
    answer("text/html; charset=utf-8", HTML)
}

/// One of the files that it loads.
pub(super) async fn file(PathParams(name): PathParams<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => answer(kind, text),
        None => ApiError::unknown_path().into_response(),
    }
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let mut answer = text.into_response();
    let own = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    own.into_iter().for_each(|(name, value)| {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    });
    answer
}
