//! The parameters in the path of a request.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// What [`Path`] takes out of a path. Where it cannot, the answer is an error of the API and not a line of text.
#[derive(Debug)]
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathParams<T>, ApiError> {
        let message = "nothing has this path, which is not UTF-8 once it is decoded; send names and ids as they were given";
        let Path(params) =
            Path::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found(message))?;
        Ok(PathParams(params))
    }
}
