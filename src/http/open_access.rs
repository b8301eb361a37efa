//! Who may call while no key exists: programs, and pages that come from this server's own address or from an allowed origin. Without
//! keys, a page in a browser on this machine could do all that its owner may.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, Request, header};
use axum::response::{IntoResponse, Response};

use super::api_state::ApiState;
use super::around::{Around, RouteBehind};
use super::called_host::{called_authority, called_host};
use super::cors::Origins;
use super::error::{ApiError, codes};

/// What browsers say of where a request comes from, and of what it is for.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Machines ask these by whatever name they have, and they tell nothing of anybody.
const FOR_EVERYONE: [&str; 2] = ["/healthz", "/readyz"];

/// [`check`] as a layer, around the monitoring pages where they have a listener of their own.
#[derive(Debug, Clone)]
pub(super) struct OpenAccessGuard(pub(super) Arc<ApiState>);

impl Around for OpenAccessGuard {
    async fn answer(&self, request: Request<Body>, next: RouteBehind<'_>) -> Response {
        guard(&self.0, request, next).await
    }
}

/// The answer of what is behind it, to whom that may call.
pub(super) async fn guard(service: &ApiState, request: Request<Body>, next: RouteBehind<'_>) -> Response {
    match check(service, &request) {
        Ok(()) => next.answer(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Refuses what a page of another site sends, as long as nobody needs a key. Where there are keys, the key decides.
///
/// # Errors
/// 403 where the host is a name that nobody stated, or the origin is another's.
pub(super) fn check(service: &ApiState, request: &Request<Body>) -> Result<(), ApiError> {
    if !service.keys.is_open() || FOR_EVERYONE.contains(&request.uri().path()) {
        return Ok(());
    }
    if !is_known_host(&service.settings.hosts, request) {
        let message = "while no key exists, the API is called by an address, by \"localhost\" or by a name in `hosts` of [server]; \
                       add this host's name there, or make keys with `stint keys new`";
        return Err(ApiError::forbidden(message).with_code(codes::BAD_HOST));
    }
    if !is_allowed_origin(service.settings.cors.as_ref(), request) {
        let message = "while no key exists, pages of other origins may not call the API; add the page's origin to `origins` of \
                       [server.cors]";
        return Err(ApiError::forbidden(message).with_code(codes::BAD_ORIGIN));
    }
    Ok(())
}

/// An address is never rebound: it is no name. Programs that send no host at all are no browsers.
fn is_known_host(stated: &[String], request: &Request<Body>) -> bool {
    if called_authority(request).is_none() {
        return true;
    }
    called_host(request).is_some_and(|host| {
        let (name, bare) = (host.trim_end_matches('.'), host.trim_matches(['[', ']']));
        let is_address = bare.parse::<Ipv4Addr>().is_ok() || bare.parse::<Ipv6Addr>().is_ok();
        is_address
            || name == "localhost"
            || name.ends_with(".localhost")
            || stated.iter().any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// What has no origin is a program, a page's own question, or a link that somebody followed; pages cannot read what a link leads to.
fn is_allowed_origin(allowed: Option<&Origins>, request: &Request<Body>) -> bool {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    if allowed == Some(&Origins::Any) {
        return true;
    }
    let Some(origin) = text(header::ORIGIN) else {
        let is_foreign = matches!(text(FETCH_SITE), Some("cross-site" | "same-site"));
        return !is_foreign || text(FETCH_MODE) == Some("navigate");
    };
    let is_listed =
        matches!(allowed, Some(Origins::Listed(listed)) if listed.iter().any(|known| known == origin));
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let is_own = host.is_some_and(|host| {
        called_authority(request).is_some_and(|called| called.eq_ignore_ascii_case(host))
    });
    is_listed || is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&'static str, &'static str)]) -> Request<Body> {
        let request = Request::builder();
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn addresses_localhost_and_stated_names_are_hosts() {
        let stated = ["host.docker.internal".to_owned()];
        let check = |host, expected| {
            assert_eq!(is_known_host(&stated, &request(&[("host", host)])), expected, "{host}");
        };
        assert!(is_known_host(&stated, &request(&[])));
        for host in
            ["127.0.0.1:8080", "[::1]:8080", "192.0.2.7", "localhost", "LocalHost.:8080", "me.localhost:8080"]
        {
            check(host, true);
        }
        check("host.docker.internal:8080", true);
        for host in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.nip.io", "evil@localhost", ""]
        {
            check(host, false);
        }
    }

    #[test]
    fn a_page_calls_from_its_own_address_or_from_a_stated_origin() {
        let listed = Origins::Listed(vec!["https://app.example".to_owned()]);
        let check = |headers: &[(&'static str, &'static str)], expected| {
            let headers = [&[("host", "localhost:8080")], headers].concat();
            assert_eq!(is_allowed_origin(Some(&listed), &request(&headers)), expected, "{headers:?}");
            assert!(is_allowed_origin(Some(&Origins::Any), &request(&headers)), "{headers:?}");
        };
        check(&[("origin", "http://localhost:8080"), ("sec-fetch-site", "same-origin")], true);
        check(&[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")], true);
        for origin in ["null", "http://localhost:3000", "http://127.0.0.1:8080", "https://evil.example", ""] {
            check(&[("origin", origin)], false);
        }
        check(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], false);
        check(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], true);
        check(&[("sec-fetch-site", "none")], true);
    }
}
