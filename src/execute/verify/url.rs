//! A verifier at an HTTP address.

use std::time::Duration;

use reqwest::Client;

use crate::outbound::{self, AnswerReadError};

use super::error::{REPLY_MAX, VerifierError};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// A client that goes where it is sent and nowhere else.
pub(super) fn client() -> Result<Client, reqwest::Error> {
    outbound::client_builder().connect_timeout(CONNECT).build()
}

/// Posts once.
pub(super) async fn call(client: &Client, address: &str, asked: String) -> Result<Vec<u8>, VerifierError> {
    let request = client.post(address).header("content-type", "application/json").body(asked);
    let response = request.send().await.map_err(VerifierError::Unreachable)?;
    if response.status() != 200 {
        return Err(VerifierError::Status(response.status().as_u16()));
    }
    outbound::read_up_to(response, REPLY_MAX).await.map_err(|error| match error {
        AnswerReadError::Broken(error) => VerifierError::Unreachable(error),
        AnswerReadError::TooLong => VerifierError::TooLong,
    })
}
