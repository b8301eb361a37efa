//! How the verbs of the command line know the server of their own configuration: by its very certificate, whatever names it has
//! and anyone who signed it. They call it on an address of this machine, which is hardly ever in a certificate.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ALL_VERSIONS, CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
};

use super::TlsSettings;
use super::error::TlsError;
use super::identity::provider;
use super::pem_files::{certificates, malformed, private_key};

/// A client that takes this listener's certificate and no other. Where callers must show one, it shows the listener's own.
///
/// # Errors
/// When the files cannot be used.
pub(super) fn client_config(settings: &TlsSettings) -> Result<ClientConfig, TlsError> {
    let chain = certificates("certificate", &settings.certificate)?;
    let expected = chain.first().cloned().unwrap_or_else(|| CertificateDer::from(Vec::new()));
    config(settings, Some(expected))
}

/// A client that takes any certificate, for what tells no secret: while a renewal is being written the listener's file is not what
/// the listener shows.
///
/// # Errors
/// When it must show a certificate of its own, whose files cannot be used.
pub(super) fn unpinned_client_config(settings: &TlsSettings) -> Result<ClientConfig, TlsError> {
    config(settings, None)
}

fn config(
    settings: &TlsSettings,
    expected: Option<CertificateDer<'static>>,
) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let pinned = Arc::new(PinnedCertificate { expected, provider: provider.clone() });
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(ALL_VERSIONS)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(pinned);
    let mut client = match settings.client_ca {
        None => builder.with_no_client_auth(),
        Some(_) => builder
            .with_client_auth_cert(
                certificates("certificate", &settings.certificate)?,
                private_key(&settings.key)?,
            )
            .map_err(|error| malformed("key", &settings.key, error.to_string()))?,
    };
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(client)
}

#[derive(Debug)]
struct PinnedCertificate {
    /// None takes any.
    expected: Option<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.expected.as_ref().is_none_or(|expected| end_entity == expected) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
