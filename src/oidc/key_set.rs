//! The keys that an issuer publishes (RFC 7517). Those that no token may be checked with are left out.

use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::Value;

/// The most keys of one issuer that are looked at.
const KEYS_MAX: usize = 64;

/// The keys of an issuer.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<VerificationKey>,
    /// What they were read from.
    source: Value,
}

#[derive(Debug)]
struct VerificationKey {
    id: Option<String>,
    algorithm: Option<KeyAlgorithm>,
    key: DecodingKey,
}

/// A text that is no set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum KeySetError {
    #[error("it is not JSON with a list \"keys\"")]
    NotASet,
    #[error("it has no public key for signatures")]
    Empty,
}

impl KeySet {
    pub(super) fn parse(text: &[u8]) -> Result<KeySet, KeySetError> {
        let source: Value = serde_json::from_slice(text).map_err(|_| KeySetError::NotASet)?;
        let list = source.get("keys").and_then(Value::as_array).ok_or(KeySetError::NotASet)?;
        // One that is not understood is another application's, or of a kind to come.
        let keys: Vec<VerificationKey> =
            list.iter().take(KEYS_MAX).filter_map(VerificationKey::read).collect();
        if keys.is_empty() {
            return Err(KeySetError::Empty);
        }
        Ok(KeySet { keys, source })
    }

    /// The key of that id. A token that names none is checked where there is no choice.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let mut fitting = self.keys.iter().filter(|key| key.fits(algorithm));
        let Some(id) = id else {
            let only = fitting.next()?;
            return fitting.next().is_none().then_some(&only.key);
        };
        fitting.find(|key| key.id.as_deref() == Some(id)).map(|key| &key.key)
    }
}

impl PartialEq for KeySet {
    fn eq(&self, other: &KeySet) -> bool {
        self.source == other.source
    }
}

impl VerificationKey {
    fn read(value: &Value) -> Option<VerificationKey> {
        let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
        if jwk.common.public_key_use.is_some_and(|purpose| purpose != PublicKeyUse::Signature) {
            return None;
        }
        let key =
            DecodingKey::from_jwk(&Jwk { common: Default::default(), algorithm: jwk.algorithm }).ok()?;
        // What everybody can read is no shared secret.
        if key.family() == AlgorithmFamily::Hmac {
            return None;
        }
        Some(VerificationKey { id: jwk.common.key_id, algorithm: jwk.common.key_algorithm, key })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_named = self.algorithm.is_none_or(|own| own == KeyAlgorithm::from(algorithm));
        is_named && self.key.family().algorithms().contains(&algorithm)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ed(id: Option<&str>) -> Value {
        json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": id })
    }

    fn set(keys: &[Value]) -> Result<KeySet, KeySetError> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn a_key_is_found_by_its_id_and_by_nothing_else_that_a_token_says() {
        let keys = set(&[ed(Some("a")), ed(Some("b"))]).unwrap();
        assert!(keys.find(Some("a"), Algorithm::EdDSA).is_some());
        assert!(keys.find(Some("c"), Algorithm::EdDSA).is_none());
        assert!(keys.find(Some("a"), Algorithm::ES256).is_none(), "of another kind");
        assert!(keys.find(Some("a"), Algorithm::HS256).is_none());
        assert!(keys.find(None, Algorithm::EdDSA).is_none(), "one of two");
        assert!(set(&[ed(Some("a"))]).unwrap().find(None, Algorithm::EdDSA).is_some());
    }

    #[test]
    fn shared_secrets_and_keys_for_encryption_are_left_out() {
        let secret = json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "a" });
        assert_eq!(set(std::slice::from_ref(&secret)), Err(KeySetError::Empty));
        let mut encrypts = ed(Some("b"));
        encrypts["use"] = "enc".into();
        let strange = json!({ "kty": "PQC", "kid": "c" });
        let keys = set(&[secret, encrypts, strange, ed(Some("d"))]).unwrap();
        assert_eq!(keys.keys.len(), 1);
        assert_eq!(KeySet::parse(b"<html>"), Err(KeySetError::NotASet));
        assert_eq!(KeySet::parse(b"{\"keys\": []}"), Err(KeySetError::Empty));
    }

    #[test]
    fn a_key_that_names_its_algorithm_is_for_no_other() {
        let mut rsa = json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "r", "alg": "RS256" });
        let keys = set(std::slice::from_ref(&rsa)).unwrap();
        assert!(keys.find(Some("r"), Algorithm::RS256).is_some());
        assert!(keys.find(Some("r"), Algorithm::PS256).is_none());
        rsa.as_object_mut().unwrap().remove("alg");
        assert!(set(&[rsa]).unwrap().find(Some("r"), Algorithm::PS256).is_some());
    }
}
