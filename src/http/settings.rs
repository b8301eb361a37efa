//! The settings of the HTTP server and of the admin API.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use stint_types::tenant::SecretToken;
use stint_types::units::Effort;

use super::Origins;
use super::image_urls::ImageUrls;
use super::tls::TlsSettings;

/// The listener of those who manage keys and accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminSettings {
    /// Where it is served.
    pub listen: SocketAddr,
    /// Who sends it may do everything.
    pub token: SecretToken,
    /// The names by which it may be called, beside those of this machine.
    pub hosts: Vec<String>,
    /// The certificate of the listener; it speaks plain HTTP where absent.
    pub tls: Option<TlsSettings>,
}

/// Listeners, limits and deadlines of the HTTP server.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where the API is served.
    pub listen: SocketAddr,
    /// The names by which the API may be called while no key exists, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Where `/metrics`, `/healthz` and `/readyz` are served; on the API's listener when absent.
    pub metrics_listen: Option<SocketAddr>,
    /// The certificate of the API's listener; it speaks plain HTTP where absent.
    pub tls: Option<TlsSettings>,
    /// The most connections at once.
    pub connections_max: usize,
    /// The most connections of one address at once; behind a proxy, its requests in flight.
    pub address_connections_max: usize,
    /// The most requests at once of one connection over HTTP/2; where it is 0, HTTP/1.1 alone is spoken.
    pub http2_requests_max: u32,
    /// The most requests of one account in flight, where there are keys.
    pub account_requests_max: usize,
    /// Who connects for others and says for whom.
    pub trusted_proxies: Vec<IpNet>,
    /// The most bytes of a request's body.
    pub body_max: usize,
    /// The most bytes of the bodies of all requests in flight.
    pub bodies_max: usize,
    /// The most header lines of a request.
    pub headers_max: usize,
    /// The most bytes of a request's head.
    pub head_max: usize,
    /// How long a request's head may take, and how long a kept connection may stay idle.
    pub head_timeout: Duration,
    /// How long a body may pause.
    pub body_timeout: Duration,
    /// How long a body may take altogether.
    pub body_total: Duration,
    /// How long a caller may take no bytes of an answer before it is given up.
    pub write_timeout: Duration,
    /// How long shutdown waits for answers that are running.
    pub drain: Duration,
    /// How often a silent stream carries a comment.
    pub heartbeat: Duration,
    /// Where images may be.
    pub image_urls: ImageUrls,
    /// Mirrors `reasoning_content` to `reasoning`.
    pub mirror_reasoning: bool,
    /// Pages that may call the API from a browser; none where this is absent.
    pub cors: Option<Origins>,
    /// What the words of `reasoning_effort` mean.
    pub efforts: BTreeMap<String, Effort>,
}
