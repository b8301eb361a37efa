//! `[server.tls]` and `[admin.tls]`: the certificate of a listener.

use crate::http::tls::{TlsIdentity, TlsSettings};
use stint_types::units::Timestamp;

use super::reader::{SecretsPolicy, Section};

/// A listener's section; none where it is absent or its files cannot be used.
pub(super) fn tls(listener: &Section<'_>) -> Option<TlsSettings> {
    if !listener.has("tls") {
        return None;
    }
    let section = listener.section("tls");
    let remedy = "name a file in PEM: certificate has the chain, key its private key";
    for key in ["certificate", "key"] {
        section.require::<std::path::PathBuf>(key, remedy);
    }
    let client_ca = section.path("client_ca");
    let (certificate, key) = (section.path("certificate")?, section.path("key")?);
    let settings = TlsSettings { certificate, key, client_ca };
    settings.files().for_each(|file| section.document().files.track(file));
    // Verbs that serve nobody may be called by who must not read the key.
    if section.document().secrets == SecretsPolicy::Required {
        match TlsIdentity::load(&settings) {
            Ok(identity) => warn(&section, &identity, Timestamp::now()),
            Err(error) => section.reject(error.key(), error.to_string(), error.remedy()),
        }
    }
    Some(settings)
}

/// A certificate out of its time serves nobody, and yet is no reason to stay down.
fn warn(section: &Section<'_>, identity: &TlsIdentity, now: Timestamp) {
    let what = if identity.facts.ends <= now {
        format!("expired at {}, so that callers refuse it", identity.facts.ends)
    } else if identity.facts.begins > now {
        format!("is not valid before {}, so that callers refuse it", identity.facts.begins)
    } else {
        return;
    };
    section.warn("certificate", what, "put another there; it is taken within seconds");
}
