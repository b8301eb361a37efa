//! What sends requests to an upstream, and answers in the same terms whichever client it is.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Client, Method};

use super::bounded_client::BoundedClient;
use super::transport_error::TransportError;
use super::upstream_response::UpstreamResponse;
use super::upstream_url::UpstreamUrl;

/// A client, with its connections. Clones share them.
#[derive(Debug, Clone)]
pub(super) enum HttpClient {
    /// Through a proxy; also for what is read whole over TLS.
    General(Client),
    /// Straight to the upstream, with a bound on what is read ahead.
    Bounded(Arc<BoundedClient>),
}

impl HttpClient {
    /// Sends a JSON body, with these headers in place of what is usually sent under their names; resolves when the head of the
    /// answer is there.
    pub(super) async fn post(
        &self,
        url: &UpstreamUrl,
        accept: &'static str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> Result<UpstreamResponse, TransportError> {
        let mut request = request(Method::POST, url, accept, Body::from(body));
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(TransportError::broken)?;
            request.headers_mut().insert(*name, value);
        }
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(request, url).await
    }

    /// Asks for a JSON value; resolves when the head of the answer is there.
    pub(super) async fn get(&self, url: &UpstreamUrl) -> Result<UpstreamResponse, TransportError> {
        self.send(request(Method::GET, url, "application/json", Body::default()), url).await
    }

    async fn send(
        &self,
        request: Request<Body>,
        url: &UpstreamUrl,
    ) -> Result<UpstreamResponse, TransportError> {
        match self {
            HttpClient::General(client) => {
                let (head, body) = request.into_parts();
                let mut request = reqwest::Request::new(head.method, url.url.clone());
                *request.headers_mut() = head.headers;
                *request.body_mut() = Some(body);
                Ok(UpstreamResponse::General(client.execute(request).await?))
            }
            HttpClient::Bounded(client) => client.send(request).await.map(UpstreamResponse::Bounded),
        }
    }
}

fn request(method: Method, url: &UpstreamUrl, accept: &'static str, body: Body) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.uri.clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
    request
}
