//! How an operator's own services are called: hooks, issuers, verifiers, webhooks, collectors. A call goes where it is sent and nowhere
//! else, and an answer has a bound.

use reqwest::{Client, ClientBuilder, Response, redirect};

/// A client that follows no redirect and asks no proxy.
pub(crate) fn client_builder() -> ClientBuilder {
    Client::builder().redirect(redirect::Policy::none()).no_proxy()
}

/// Why an answer was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerReadError {
    /// It broke off.
    #[error("the answer broke off")]
    Broken(#[source] reqwest::Error),
    /// It is longer than is read.
    #[error("the answer is too long")]
    TooLong,
}

/// The whole answer, if it has so many bytes at most. No more is read.
pub(crate) async fn read_up_to(mut answer: Response, max: usize) -> Result<Vec<u8>, AnswerReadError> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(AnswerReadError::Broken)? {
        if bytes.len() + piece.len() > max {
            return Err(AnswerReadError::TooLong);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(length: usize, max: usize, is_read: bool) {
        let answer = Response::from(hyper::Response::new("x".repeat(length)));
        let read = read_up_to(answer, max).await;
        assert_eq!(read.is_ok_and(|bytes| bytes.len() == length), is_read, "{length} of {max}");
    }

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_bound() {
        check(0, 0, true).await;
        check(4, 4, true).await;
        check(5, 4, false).await;
    }
}
