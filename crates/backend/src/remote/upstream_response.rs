//! An upstream's answer: its head, and its body as it comes, whichever client asked for it.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::transport_error::TransportError;

/// An answer whose head is there.
#[derive(Debug)]
pub(super) enum UpstreamResponse {
    General(reqwest::Response),
    Bounded(hyper::Response<Incoming>),
}

impl UpstreamResponse {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            UpstreamResponse::General(response) => response.status(),
            UpstreamResponse::Bounded(response) => response.status(),
        }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        match self {
            UpstreamResponse::General(response) => response.headers(),
            UpstreamResponse::Bounded(response) => response.headers(),
        }
    }

    /// What comes next of its body; nothing at the end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        let response = match self {
            UpstreamResponse::General(response) => return Ok(response.chunk().await?),
            UpstreamResponse::Bounded(response) => response,
        };
        loop {
            let frame = poll_fn(|cx| Pin::new(response.body_mut()).poll_frame(cx)).await;
            let Some(frame) = frame else { return Ok(None) };
            // Trailers say nothing that is wanted.
            if let Ok(data) = frame.map_err(TransportError::broken)?.into_data() {
                return Ok(Some(data));
            }
        }
    }
}
