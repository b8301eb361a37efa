//! The system's trusted certificates, read once for all clients that are made together.
//!
//! Each client would read them separately. Here it gets what it would have made then: the same check by the same
//! certificates, and the same offer to the upstream. Only the check is shared; each client resumes only its own sessions.

use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls_platform_verifier::Verifier;

/// The certificates, once somebody wants them. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct TlsRoots(Arc<OnceLock<Arc<Verifier>>>);

impl TlsRoots {
    /// How a client speaks TLS, as it would set it up by itself.
    pub(super) fn client_config(&self) -> Result<ClientConfig, rustls::Error> {
        let provider = match CryptoProvider::get_default() {
            Some(provider) => provider.clone(),
            None => Arc::new(aws_lc_rs::default_provider()),
        };
        let verifier = self.verifier(&provider)?;
        let builder =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::ALL_VERSIONS)?;
        let mut client = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(client)
    }

    /// Where two read at once, the first is kept.
    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<Verifier>, rustls::Error> {
        if let Some(read) = self.0.get() {
            return Ok(read.clone());
        }
        let read = Arc::new(Verifier::new(provider.clone())?);
        Ok(self.0.get_or_init(|| read).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_once_for_all_clients_and_each_has_its_own_rest() {
        let roots = TlsRoots::default();
        let [one, other] = [(); 2].map(|()| roots.clone().client_config().unwrap());
        assert_eq!(Arc::strong_count(roots.0.get().unwrap()), 3, "the clients' and ours");
        assert!(one.enable_sni && one.alpn_protocols == [&b"h2"[..], b"http/1.1"]);
        assert_eq!(one.alpn_protocols, other.alpn_protocols);
        assert!(TlsRoots::default().0.get().is_none(), "nothing is read before somebody wants it");
    }
}
