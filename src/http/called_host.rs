//! The name by which a request calls this server. A page of another site whose name was made to resolve to this machine's address
//! (DNS rebinding) comes with that site's name.

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{Request, header};

/// The names of this machine for itself.
pub(super) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The host of a request in small letters, without its port.
pub(super) fn called_host(request: &Request<Body>) -> Option<String> {
    let text = called_authority(request)?;
    let authority = text.parse::<Authority>().ok().filter(|_| !text.contains('@'))?;
    Some(authority.host().to_ascii_lowercase())
}

/// The host of a request with its port, as the request writes it.
pub(super) fn called_authority(request: &Request<Body>) -> Option<&str> {
    let header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    header.or_else(|| request.uri().authority().map(Authority::as_str))
}
