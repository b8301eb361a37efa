//! A verifier at an HTTP address.

use std::time::Duration;

use reqwest::{Client, redirect};

use super::error::{REPLY_MAX, VerifierError};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// A client that goes where it is sent and nowhere else.
pub(super) fn client() -> Result<Client, reqwest::Error> {
    Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT)
        .build()
}

/// Posts once.
pub(super) async fn call(client: &Client, address: &str, asked: String) -> Result<Vec<u8>, VerifierError> {
    let request = client.post(address).header("content-type", "application/json").body(asked);
    let mut response = request.send().await.map_err(VerifierError::Unreachable)?;
    if response.status() != 200 {
        return Err(VerifierError::Status(response.status().as_u16()));
    }
    let mut reply = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(VerifierError::Unreachable)? {
        reply.extend_from_slice(&piece);
        if reply.len() > REPLY_MAX {
            return Err(VerifierError::TooLong);
        }
    }
    Ok(reply)
}
