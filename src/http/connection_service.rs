//! Answers the requests of one connection: by the router, unless the connection itself has no right to more.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use tower_service::Service;

use stint_types::metrics::Metrics;
use stint_types::units::RequestId;

use super::connection_table::{ConnectionPlace, Crowding, is_within, network};
use super::error::ApiError;
use super::forwarded::caller_address;
use super::held_body::hold;
use super::request_reader::RefusedHead;
use super::requests_in_flight::{RequestInFlight, RequestsInFlight};
use super::unwritten::UnwrittenBytes;
use super::{SwappableRouter, access_log, anthropic, endpoint_counters, headers};

/// What is served where there is place for nothing else.
const HEALTH_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];
/// What the counter calls a request that was refused for its address.
pub(super) const FORWARDED: &str = "forwarded";

/// The service of one connection. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct ConnectionService {
    pub(super) router: SwappableRouter,
    pub(super) refused: RefusedHead,
    pub(super) unwritten: UnwrittenBytes,
    pub(super) place: Arc<ConnectionPlace>,
    /// Who is at the other end.
    pub(super) peer: IpAddr,
    /// The requests of each address that a proxy brings.
    pub(super) forwarded: RequestsInFlight<IpAddr>,
    pub(super) metrics: Arc<Metrics>,
}

impl ConnectionService {
    /// The answer to a request, which keeps the connection busy until all of it was handed over.
    pub(super) async fn answer(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let busy = self.place.begin();
        let (response, counted) = match self.check(&request) {
            Ok(counted) => (self.router.router().call(request).await?, counted),
            Err(error) => {
                let response = refusal(&request, error);
                endpoint_counters::count_other(&self.metrics, response.status());
                (response, None)
            }
        };
        Ok(response.map(|body| hold(self.unwritten.bound(body), (busy, counted))))
    }

    /// Whether a request is served, and counts in the share of the address that a proxy brings it from.
    fn check(&self, request: &Request<Incoming>) -> Result<Option<RequestInFlight<IpAddr>>, ApiError> {
        if let Some(error) = self.refused.reason(request.method()) {
            return Err(error.into());
        }
        if let Some(crowding) = self.place.crowding()
            && !HEALTH_PATHS.contains(&request.uri().path())
        {
            self.metrics.requests.turned_away.with_label_values(&[crowding.as_str()]).inc();
            return Err(crowded(match crowding {
                Crowding::Full => {
                    "there are as many connections as [server] connections_max allows, all of them busy"
                }
                Crowding::Address => {
                    "your address has as many connections as [server] address_connections_max allows, all of them busy"
                }
            }));
        }
        let current = self.router.current();
        let (proxies, most) = (&current.settings.trusted_proxies, current.settings.address_connections_max);
        if proxies.is_empty() || !is_within(proxies, self.peer) {
            return Ok(None);
        }
        let address = caller_address(request.headers(), proxies).unwrap_or(self.peer);
        self.forwarded.begin(network(address), most).map(Some).ok_or_else(|| {
            self.metrics.requests.turned_away.with_label_values(&[FORWARDED]).inc();
            crowded(&format!("your address has {most} requests in flight, as many as it may have"))
        })
    }
}

fn crowded(what: &str) -> ApiError {
    ApiError::overloaded(format!("{what}; try again shortly"), Duration::from_secs(1))
}

/// What a caller is told whose request is not looked at, in the form of its API. The connection ends with it.
fn refusal(request: &Request<Incoming>, error: ApiError) -> Response {
    let answer = || {
        let mut response = error.into_response();
        headers::set_request_id(response.headers_mut(), RequestId::new());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let is_anthropic = anthropic::is_spoken(request.uri().path(), request.headers());
        if is_anthropic { anthropic::reword(response) } else { response }
    };
    access_log::record_early(request, answer)
}
