//! Addresses below an upstream's base URL. The last one that was asked is kept: most are asked again and again.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hyper::Uri;
use reqwest::Url;

use super::transport_error::TransportError;

/// An address, as both kinds of clients want it.
#[derive(Debug)]
pub(super) struct UpstreamUrl {
    path: Box<str>,
    pub(super) url: Url,
    pub(super) uri: Uri,
}

/// The addresses of one upstream. Clones share the last one.
#[derive(Debug, Clone)]
pub(super) struct UpstreamUrls {
    base: Url,
    last: Arc<ArcSwapOption<UpstreamUrl>>,
}

impl UpstreamUrls {
    pub(super) fn new(base: Url) -> UpstreamUrls {
        UpstreamUrls { base, last: Arc::default() }
    }

    /// What lies below the base URL, with a query of its own where it names one.
    ///
    /// # Errors
    /// When no request can be made to it.
    pub(super) fn below(&self, path: &str) -> Result<Arc<UpstreamUrl>, TransportError> {
        if let Some(last) = self.last.load().as_ref().filter(|last| *last.path == *path) {
            return Ok(last.clone());
        }
        let url = self.joined(path);
        let uri = url.as_str().parse().map_err(TransportError::broken)?;
        let found = Arc::new(UpstreamUrl { path: path.into(), url, uri });
        self.last.store(Some(found.clone()));
        Ok(found)
    }

    fn joined(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_its_address_whichever_was_asked_before() {
        let urls = UpstreamUrls::new("http://[::1]:8/v1/?x=1".parse().unwrap());
        for path in ["chat", "chat", "models/a:b?alt=sse", "chat", "a b"] {
            let found = urls.below(path).unwrap();
            let expected = format!("http://[::1]:8/v1/{}", path.replace(' ', "%20"));
            assert_eq!((found.url.as_str(), found.uri.to_string()), (expected.as_str(), expected.clone()));
        }
    }
}
