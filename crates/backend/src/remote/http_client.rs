//! What sends requests to an upstream, and answers in the same terms whichever client it is.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Client, Method, Request, Response, Url};

use super::bounded_client::BoundedClient;
use super::transport_error::TransportError;

/// A client, with its connections. Clones share them.
#[derive(Debug, Clone)]
pub(super) enum HttpClient {
    /// Through a proxy; also for what is read whole over TLS.
    General(Client),
    /// Straight to the upstream, with a bound on what is read ahead.
    Bounded(Arc<BoundedClient>),
}

impl HttpClient {
    /// Sends a JSON body, with these headers in place of what is usually sent under their names; resolves when the head of the answer is there.
    pub(super) async fn post(
        &self,
        url: Url,
        accept: &'static str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> Result<Response, TransportError> {
        let mut request = request(Method::POST, url, accept);
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(TransportError::broken)?;
            request.headers_mut().insert(*name, value);
        }
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(Body::from(body));
        self.send(request).await
    }

    /// Asks for a JSON value; resolves when the head of the answer is there.
    pub(super) async fn get(&self, url: Url) -> Result<Response, TransportError> {
        self.send(request(Method::GET, url, "application/json")).await
    }

    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        match self {
            HttpClient::General(client) => Ok(client.execute(request).await?),
            HttpClient::Bounded(client) => client.send(request).await,
        }
    }
}

fn request(method: Method, url: Url, accept: &'static str) -> Request {
    let mut request = Request::new(method, url);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
    request
}
