//! An authority that signs certificates for a test's listeners and callers.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// An authority of the test's own.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, for those who are to trust it.
    pub(crate) pem: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Another name than what it signs, which would pass for signed by itself.
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these names that ends with this year.
    pub(crate) fn sign(&self, names: &[&str], year: i32) -> Signed {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = date_time_ymd(year, 12, 31);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    /// As a root that clients trust.
    pub(crate) fn root(&self) -> reqwest::Certificate {
        reqwest::Certificate::from_pem(self.pem.as_bytes()).unwrap()
    }

    /// A client that trusts it alone.
    pub(crate) fn client(&self) -> reqwest::Client {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([self.root()]);
        client.build().unwrap()
    }
}

impl Signed {
    /// Puts both into a folder, under the names that the tests' configurations use.
    pub(crate) fn write(&self, folder: &Path) {
        std::fs::write(folder.join("tls.crt"), &self.certificate).unwrap();
        std::fs::write(folder.join("tls.key"), &self.key).unwrap();
    }
}
