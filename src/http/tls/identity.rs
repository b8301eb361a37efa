//! What a listener shows of itself: its certificate, and how it speaks TLS.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{ALL_VERSIONS, Error, InconsistentKeys, RootCertStore, ServerConfig};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use stint_types::units::Timestamp;

use super::TlsSettings;
use super::error::TlsError;
use super::pem_files::{certificates, malformed, private_key};

/// How the versions of HTTP are called where TLS agrees on one (RFC 7301).
const HTTP1: &[u8] = b"http/1.1";
pub(super) const HTTP2: &[u8] = b"h2";

/// A listener's certificate in use. What connections began with stays theirs.
#[derive(Debug)]
pub struct TlsIdentity {
    pub(super) server: Arc<ServerConfig>,
    /// The same, offering HTTP/1.1 alone.
    pub(super) http1_server: Arc<ServerConfig>,
    /// What the certificate says.
    pub facts: CertificateFacts,
}

/// What a certificate says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// When it is first to be believed, and when last.
    pub begins: Timestamp,
    /// The earliest end of it and of those that lead to its authority.
    pub ends: Timestamp,
    /// The names and addresses that it is for.
    pub names: Vec<String>,
}

impl TlsIdentity {
    /// Reads the files and sees whether they fit each other. Blocks.
    ///
    /// # Errors
    /// When they cannot be used; the error names the setting and the remedy.
    pub fn load(settings: &TlsSettings) -> Result<TlsIdentity, TlsError> {
        let chain = certificates("certificate", &settings.certificate)?;
        let facts = facts(&settings.certificate, &chain)?;
        let key = private_key(&settings.key)?;
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(ALL_VERSIONS)?;
        let builder = match &settings.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(path)?),
        };
        let mut server = builder.with_single_cert(chain, key).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::OtherKey {
                certificate: settings.certificate.clone(),
                key_path: settings.key.clone(),
            },
            Error::InvalidCertificate(reason) => {
                malformed("certificate", &settings.certificate, format!("{reason:?}"))
            }
            error => malformed("key", &settings.key, error.to_string()),
        })?;
        server.alpn_protocols = vec![HTTP1.to_vec()];
        let http1_server = Arc::new(server.clone());
        server.alpn_protocols.insert(0, HTTP2.to_vec());
        Ok(TlsIdentity { server: Arc::new(server), http1_server, facts })
    }
}

/// The ciphers, which all of TLS here shares.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    const KEY: &str = "client_ca";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(KEY, path)? {
        roots.add(certificate).map_err(|error| malformed(KEY, path, error.to_string()))?;
    }
    let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    built.map_err(|error| malformed(KEY, path, error.to_string()))
}

fn facts(path: &Path, chain: &[CertificateDer<'_>]) -> Result<CertificateFacts, TlsError> {
    let parse = |certificate| {
        X509Certificate::from_der(certificate)
            .map(|(_, parsed)| parsed)
            .map_err(|error| malformed("certificate", path, error.to_string()))
    };
    let parsed: Vec<X509Certificate<'_>> = chain.iter().map(|one| parse(one)).collect::<Result<_, _>>()?;
    let moment = |seconds: i64| Timestamp(seconds.saturating_mul(1000));
    let spans = parsed.iter().map(|one| one.validity());
    let (begins, ends): (Vec<i64>, Vec<i64>) =
        spans.map(|span| (span.not_before.timestamp(), span.not_after.timestamp())).unzip();
    let names = parsed.first().map(names).unwrap_or_default();
    Ok(CertificateFacts {
        begins: moment(begins.into_iter().max().unwrap_or(i64::MIN)),
        ends: moment(ends.into_iter().min().unwrap_or(i64::MAX)),
        names,
    })
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(listed)) = certificate.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
            _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        _ => None,
    };
    listed.value.general_names.iter().filter_map(name).collect()
}
