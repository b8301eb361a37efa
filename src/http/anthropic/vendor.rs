//! The headers of Anthropic's API: its version, and the features before their release that a caller asks for.

use axum::http::HeaderMap;

use crate::http::error::ApiError;
use stint_types::chat::VendorHeaders;

/// So many features may be asked for, the rest is not read,
const BETAS_MAX: usize = 32;
/// each of so many characters.
const BETA_LENGTH_MAX: usize = 64;

/// Reads what a caller says in Anthropic's headers.
///
/// # Errors
/// 400 for a version that there is not.
pub(super) fn read(headers: &HeaderMap) -> Result<VendorHeaders, ApiError> {
    let version = match headers.get("anthropic-version") {
        None => None,
        Some(value) => {
            let value = value.to_str().unwrap_or_default();
            Some(VendorHeaders::known_version(value).ok_or_else(|| unknown_version(value))?)
        }
    };
    let lists = headers.get_all("anthropic-beta").iter().filter_map(|list| list.to_str().ok());
    let betas = lists.flat_map(|list| list.split(',')).map(str::trim).filter(|beta| is_beta(beta));
    Ok(VendorHeaders { version, betas: betas.take(BETAS_MAX).map(Into::into).collect() })
}

fn unknown_version(stated: &str) -> ApiError {
    let shown: String = stated.chars().take(BETA_LENGTH_MAX).collect();
    let known = [VendorHeaders::VERSION_WITH_SAMPLING, VendorHeaders::VERSION].join(" or ");
    ApiError::invalid(Some("anthropic-version"), format!("\"{shown}\" is not a valid version; send {known}"))
}

/// True for a word that may stand in the header.
fn is_beta(beta: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !beta.is_empty() && beta.len() <= BETA_LENGTH_MAX && beta.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(said: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        said.iter().map(pair).collect()
    }

    #[test]
    fn the_version_and_every_feature_that_is_asked_for_are_read() {
        let said = read(&headers(&[
            ("anthropic-version", "2023-06-01"),
            ("anthropic-beta", "a-2025-01-01, b-2025-01-01"),
        ]));
        let said = said.unwrap();
        assert_eq!(said.version, Some("2023-06-01"));
        assert_eq!(said.betas, ["a-2025-01-01".into(), "b-2025-01-01".into()]);
        assert_eq!(read(&HeaderMap::new()).unwrap(), VendorHeaders::default());
        assert!(read(&headers(&[("anthropic-beta", "a b,, ,\"x\"")])).unwrap().betas.is_empty());
    }

    #[test]
    fn a_version_that_there_is_not_is_told() {
        let refused = read(&headers(&[("anthropic-version", "2024-01-01")])).unwrap_err();
        assert_eq!(refused.status().as_u16(), 400);
        assert!(refused.message().contains("\"2024-01-01\" is not a valid version"), "{}", refused.message());
    }
}
