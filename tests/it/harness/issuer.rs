//! A little issuer of tokens: it publishes its keys as `OpenID` Connect wants it, and signs what it is told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

/// A key that signs, and its public half.
pub(crate) struct SigningKey {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
    pub(crate) public: Value,
}

/// An issuer in this process. It serves until the test ends.
pub(crate) struct TokenIssuer {
    pub(crate) url: String,
    pub(crate) key: SigningKey,
    state: Arc<Mutex<Published>>,
    _tasks: Tasks,
}

#[derive(Default)]
struct Published {
    keys: Vec<Value>,
    is_down: bool,
    fetches: usize,
}

impl SigningKey {
    pub(crate) fn new(id: &str, algorithm: Algorithm) -> SigningKey {
        let made = |of| rcgen::KeyPair::generate_for(of).unwrap().serialize_der();
        let edwards = (algorithm == Algorithm::EdDSA)
            .then(|| rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap());
        let key = match algorithm {
            Algorithm::ES256 => EncodingKey::from_ec_der(&made(&rcgen::PKCS_ECDSA_P256_SHA256)),
            Algorithm::EdDSA => EncodingKey::from_ed_der(&edwards.as_ref().unwrap().serialize_der()),
            // Behind the head that says what it is.
            _ => EncodingKey::from_rsa_der(&made(&rcgen::PKCS_RSA_SHA256)[26..]),
        };
        let mut public = match &edwards {
            Some(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key_raw()) }),
            None => serde_json::to_value(Jwk::from_encoding_key(&key, algorithm).unwrap()).unwrap(),
        };
        public["kid"] = id.into();
        public["use"] = "sig".into();
        SigningKey { id: id.to_owned(), algorithm, key, public }
    }

    /// The same key under another id.
    pub(crate) fn renamed(self, id: &str) -> SigningKey {
        SigningKey { id: id.to_owned(), ..self }
    }

    /// These claims, signed.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).unwrap()
    }

    /// Claims under a code whose secret is the public key, as its issuer publishes it.
    pub(crate) fn sign_with_public_half(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::HS256) };
        encode(&header, claims, &EncodingKey::from_secret(self.public.to_string().as_bytes())).unwrap()
    }
}

impl TokenIssuer {
    pub(crate) fn start() -> TokenIssuer {
        TokenIssuer::signing(Algorithm::ES256)
    }

    /// Signs with this algorithm.
    pub(crate) fn signing(algorithm: Algorithm) -> TokenIssuer {
        let tasks = Tasks::default();
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let url = format!("http://{}/realms/acme", bound.address());
        let key = SigningKey::new("first", algorithm);
        let state =
            Arc::new(Mutex::new(Published { keys: vec![key.public.clone()], ..Published::default() }));
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        let (published, seen) = (state.clone(), state.clone());
        let configuration = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") });
        let discovery = async move || answer(&published, |_| configuration.clone());
        let keys = async move || {
            answer(&seen, |state| {
                state.fetches += 1;
                json!({ "keys": state.keys })
            })
        };
        let routes = Router::new()
            .route("/realms/acme/.well-known/openid-configuration", get(discovery))
            .route("/realms/acme/keys", get(keys));
        tasks.spawn(server.serve(bound, routes));
        TokenIssuer { url, key, state, _tasks: tasks }
    }

    /// The claims of a token that is good for a minute.
    pub(crate) fn claims(&self, sub: &str) -> Value {
        let now = Timestamp::now().0 / 1_000;
        json!({ "iss": self.url, "aud": "stint", "sub": sub, "iat": now, "exp": now + 60 })
    }

    /// A good token.
    pub(crate) fn token(&self, sub: &str) -> String {
        self.key.sign(&self.claims(sub))
    }

    /// A good token with something else in it.
    pub(crate) fn token_with(&self, sub: &str, more: &Value) -> String {
        let mut claims = self.claims(sub);
        for (claim, value) in more.as_object().unwrap() {
            claims[claim] = value.clone();
        }
        self.key.sign(&claims)
    }

    /// Publishes these keys in place of its own.
    pub(crate) fn publish(&self, keys: &[&SigningKey]) {
        self.state.lock().unwrap().keys = keys.iter().map(|key| key.public.clone()).collect();
    }

    /// Whether it answers.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// How often its keys were fetched.
    pub(crate) fn fetches(&self) -> usize {
        self.state.lock().unwrap().fetches
    }
}

/// As JSON Web Keys have bytes.
fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let group = |group: &[u8]| {
        let bits =
            group.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        let letter = move |place: usize| char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]);
        (0..=group.len()).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

fn answer(state: &Mutex<Published>, body: impl FnOnce(&mut Published) -> Value) -> Response {
    let mut state = state.lock().unwrap();
    if state.is_down {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    ([("content-type", "application/json")], body(&mut state).to_string()).into_response()
}
