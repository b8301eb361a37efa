//! A whole gateway over the upstream, and callers on raw connections.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::patience::PATIENCE;
use crate::harness::{Answer, World, model, tenant};
use stint::http;
use stint_backend::remote::openai::{self, Dialect, OpenAiBackend};
use stint_backend::remote::{self, Connections, Secret};
use stint_types::catalog::{EnforcementClass, Model};
use stint_types::units::{Money, Tokens};

use super::Faultup;
use super::script::Script;

/// What no answer, header or metric may show.
pub(crate) const CANARY: &str = "canary-0123456789";

/// The gateway and its upstream.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) upstream: Faultup,
}

/// Settings that a test changes.
pub(crate) struct Knobs<'a> {
    pub(crate) upstream: &'a mut remote::Settings,
    pub(crate) http: &'a mut http::Settings,
    pub(crate) model: &'a mut Model,
    pub(crate) dialect: &'a mut Dialect,
}

impl Rig {
    /// The model `m` of an upstream that answers by these scripts.
    pub(crate) async fn new(scripts: Vec<Script>) -> Rig {
        Rig::with(scripts, |_| ()).await
    }

    /// The same, adjusted.
    pub(crate) async fn with(scripts: Vec<Script>, adjust: impl Fn(&mut Knobs)) -> Rig {
        let upstream = Faultup::start(scripts).await;
        let world = over(&upstream.address, adjust).await;
        Rig { world, upstream }
    }

    /// Asks, streamed or not.
    pub(crate) async fn ask(&self, stream: bool) -> Answer {
        self.world.ask("sk-key", &question(stream)).await
    }

    /// What was spent, once nothing is reserved any more.
    pub(crate) async fn spent(&self) -> Money {
        spent(&self.world).await
    }

    /// How many requests ended in this way.
    pub(crate) fn ended(&self, outcome: &str) -> u64 {
        self.world.metrics.requests.total.with_label_values(&["m", "m", outcome]).get()
    }
}

/// A gateway whose model `m` is behind this address.
pub(crate) async fn over(address: &str, adjust: impl Fn(&mut Knobs)) -> World {
    let mut client = remote::Settings {
        base_url: format!("{address}/v1"),
        api_key: Some(Secret::new(CANARY)),
        ..remote::Settings::default()
    };
    let mut model = Model { solution_max: Some(Tokens(20)), ..model("m", EnforcementClass::Effort) };
    let (mut unused, mut dialect) = (defaults(), Dialect::default());
    adjust(&mut Knobs { upstream: &mut client, http: &mut unused, model: &mut model, dialect: &mut dialect });
    let (spoken, model_name) = (dialect.clone(), "m".to_owned());
    let settings =
        openai::Settings { client: client.clone(), model: model_name, dialect: spoken, ..Default::default() };
    let backend = Arc::new(OpenAiBackend::new(&Connections::default(), settings).unwrap());
    let served = model.clone();
    World::with(vec![(served, backend)], vec![tenant("key", 1 << 50)], |http| {
        adjust(&mut Knobs { upstream: &mut client, http, model: &mut model, dialect: &mut dialect });
    })
    .await
}

fn defaults() -> http::Settings {
    stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into())).unwrap().http
}

/// What the key of such a gateway has spent, once nothing is reserved any more.
pub(crate) async fn spent(world: &World) -> Money {
    world.settled().await;
    let account = world.account("key");
    assert_eq!(account.reserved.money, Money::ZERO, "nothing stays reserved");
    assert_eq!(account.overrun, Money::ZERO, "nothing was billed beyond its reservation");
    account.spent.money
}

/// A question to the model `m`.
pub(crate) fn question(stream: bool) -> Value {
    json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "What is 1+2?" }] })
}

/// A caller on a raw connection, who has asked and got nothing yet.
#[derive(Debug)]
pub(crate) struct Caller(pub(crate) TcpStream);

impl Caller {
    /// Asks, by this version of HTTP.
    pub(crate) async fn ask(world: &World, body: &Value, version: &str) -> Caller {
        let address = world.base.strip_prefix("http://").unwrap();
        let mut connection = TcpStream::connect(address).await.unwrap();
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/{version}\r\nhost: {address}\r\nauthorization: Bearer sk-key\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        Caller(connection)
    }

    /// Reads until something was said.
    pub(crate) async fn hears(&mut self, words: &str) -> String {
        let mut heard = String::new();
        let all = async {
            while !heard.contains(words) {
                let mut bytes = [0; 4096];
                let count = self.0.read(&mut bytes).await.unwrap();
                assert!(count > 0, "the end before {words:?}: {heard}");
                heard += &String::from_utf8_lossy(&bytes[..count]);
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, all).await;
        assert!(in_time.is_ok(), "no {words:?} in {heard}");
        heard
    }
}
