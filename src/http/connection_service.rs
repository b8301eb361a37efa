//! Answers the requests of one connection: by the router, unless the connection itself has no right to more.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, Version, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use tower_service::Service;

use stint_types::metrics::Metrics;
use stint_types::units::RequestId;

use super::connection_table::{ConnectionPlace, Crowding, is_within, network};
use super::error::ApiError;
use super::forwarded::caller_address;
use super::framing::HeadLimits;
use super::held_body::hold;
use super::http2::{check_head, watched, with_host};
use super::request_reader::RefusedHead;
use super::requests_in_flight::{RequestInFlight, RequestsInFlight};
use super::unwritten::UnwrittenBytes;
use super::{SwappableRouter, access_log, anthropic, endpoint_counters, headers};

/// What is served where there is place for nothing else.
const HEALTH_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];
/// What the counter calls a request that was refused for its address.
pub(super) const FORWARDED: &str = "forwarded";

/// The service of one connection.
#[derive(Debug)]
pub(super) struct ConnectionService {
    pub(super) router: SwappableRouter,
    pub(super) wire: Wire,
    pub(super) place: Arc<ConnectionPlace>,
    /// Who is at the other end.
    pub(super) peer: IpAddr,
    pub(super) shares: SharesInFlight,
    pub(super) metrics: Arc<Metrics>,
}

/// What its connection speaks, and what is known there of its requests.
#[derive(Debug)]
pub(super) enum Wire {
    /// One request after the other: why the last one is not read, and what of the answers is not written.
    Http1 { refused: RefusedHead, unwritten: UnwrittenBytes },
    /// Many at once, whose heads keep these limits.
    Http2(HeadLimits),
}

/// The requests in flight that do not count by their connections. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct SharesInFlight {
    /// Those of each address that a proxy brings, or that speaks HTTP/2.
    addresses: RequestsInFlight<IpAddr>,
    /// All over HTTP/2.
    http2: RequestsInFlight<()>,
}

/// The shares of one request.
type RequestShares = (Option<RequestInFlight<IpAddr>>, Option<RequestInFlight<()>>);

impl ConnectionService {
    /// The answer to a request, which keeps the connection busy until all of it was handed over.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response, Infallible> {
        let busy = self.place.begin();
        let request = if self.is_http2() { with_host(request) } else { request };
        let (response, shares) = match self.check(&request) {
            Ok(shares) => (self.router.router().call(request).await?, shares),
            Err(error) => {
                let response = refusal(&request, error);
                endpoint_counters::count_other(&self.metrics, response.status());
                (response, RequestShares::default())
            }
        };
        let held = (busy, shares);
        Ok(response.map(|body| match &self.wire {
            Wire::Http1 { unwritten, .. } => hold(unwritten.bound(body), held),
            Wire::Http2(_) => hold(watched(body), held),
        }))
    }

    /// Whether a request is served, with its shares.
    fn check(&self, request: &Request<Incoming>) -> Result<RequestShares, ApiError> {
        match &self.wire {
            Wire::Http1 { refused, .. } => refused.reason(request.method()).map_or(Ok(()), Err)?,
            Wire::Http2(limits) => check_head(request, *limits)?,
        }
        // Of them there are few, and who keeps a gateway alive must see that it lives.
        if HEALTH_PATHS.contains(&request.uri().path()) {
            return Ok(RequestShares::default());
        }
        if let Some(crowding) = self.place.crowding() {
            if self.is_http2() {
                // Nothing else says that the next request is to come by a new connection.
                self.place.tell_to_go();
            }
            return Err(self.turned_away(crowding.as_str(), match crowding {
                Crowding::Full => {
                    "there are as many connections as [server] connections_max allows, all of them busy"
                }
                Crowding::Address => {
                    "your address has as many connections as [server] address_connections_max allows, all of them busy"
                }
            }));
        }
        Ok((self.address_share(request.headers())?, self.http2_share()?))
    }

    /// A place in the share of the address that a proxy brings a request from, or of the caller's own, which a connection of HTTP/1.1
    /// has by itself.
    fn address_share(&self, headers: &HeaderMap) -> Result<Option<RequestInFlight<IpAddr>>, ApiError> {
        let current = self.router.current();
        let (proxies, most) = (&current.settings.trusted_proxies, current.settings.address_connections_max);
        let (address, why) = if !proxies.is_empty() && is_within(proxies, self.peer) {
            (caller_address(headers, proxies).unwrap_or(self.peer), FORWARDED)
        } else if self.is_http2() {
            (self.peer, Crowding::Address.as_str())
        } else {
            return Ok(None);
        };
        self.shares.addresses.begin(network(address), most).map(Some).ok_or_else(|| {
            let what = format!("your address has {most} requests in flight, as many as it may have");
            self.turned_away(why, &what)
        })
    }

    /// A place among all requests over HTTP/2.
    fn http2_share(&self) -> Result<Option<RequestInFlight<()>>, ApiError> {
        if !self.is_http2() {
            return Ok(None);
        }
        let most = self.router.current().settings.connections_max;
        self.shares.http2.begin((), most).map(Some).ok_or_else(|| {
            let what = format!(
                "there are {most} requests over HTTP/2 in flight, as many as [server] connections_max allows"
            );
            self.turned_away(Crowding::Full.as_str(), &what)
        })
    }

    fn is_http2(&self) -> bool {
        matches!(self.wire, Wire::Http2(_))
    }

    fn turned_away(&self, why: &str, what: &str) -> ApiError {
        self.metrics.requests.turned_away.with_label_values(&[why]).inc();
        ApiError::overloaded(format!("{what}; try again shortly"), Duration::from_secs(1))
    }
}

/// What a caller is told whose request is not looked at, in the form of its API. A connection of HTTP/1.1 ends with it.
fn refusal(request: &Request<Incoming>, error: ApiError) -> Response {
    let answer = || {
        let mut response = error.into_response();
        headers::set_request_id(response.headers_mut(), RequestId::new());
        if request.version() < Version::HTTP_2 {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let is_anthropic = anthropic::is_spoken(request.uri().path(), request.headers());
        if is_anthropic { anthropic::reword(response) } else { response }
    };
    access_log::record_early(request, answer)
}
