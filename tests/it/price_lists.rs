//! Prices that an upstream lists itself: taken, kept in a file, and asked for again while the server runs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use crate::harness::{Folder, Process};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// An upstream that lists models at prices for a token, and refuses where it is told of none.
struct Lister {
    base: String,
    price: Arc<Mutex<Option<&'static str>>>,
    _tasks: Tasks,
}

impl Lister {
    fn start(price: &'static str) -> Lister {
        let (tasks, price) = (Tasks::default(), Arc::new(Mutex::new(Some(price))));
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}/v1", bound.address());
        let listed = price.clone();
        let answer = move || async move { list(*listed.lock().unwrap()) };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().route("/v1/models", get(answer))));
        Lister { base, price, _tasks: tasks }
    }

    fn lists(&self, price: Option<&'static str>) {
        *self.price.lock().unwrap() = price;
    }

    /// A folder whose models are all here: one whose price is listed, one whose price is the operator's, one that nobody prices.
    fn folder(&self, every: &str) -> Folder {
        Folder::new(&format!(
            "[engine]\nembedded = false\n[catalog]\nopenrouter_file = 'kept.toml'\nopenrouter_every = '{every}'\n\
             [[backend]]\nkind = 'openrouter'\nbase_url = '{}'\n\
             [[backend.model]]\nname = 'listed'\nupstream = 'maker/small'\n\
             [[backend.model]]\nname = 'own'\nupstream = 'maker/large'\nprice_input = '7'\nprice_output = '8'\n\
             [[backend.model]]\nname = 'unknown'\nupstream = 'maker/none'\n",
            self.base
        ))
    }
}

fn list(price: Option<&str>) -> Response {
    let Some(price) = price else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    let model = |name: &str| {
        json!({ "id": name, "context_length": 65536, "top_provider": {},
                "pricing": { "prompt": price, "completion": "0.000005", "input_cache_read": "0.0000001" } })
    };
    let auto = json!({ "id": "openrouter/auto", "pricing": { "prompt": "-1", "completion": "-1" } });
    let list = json!({ "data": [model("maker/small"), model("maker/large"), auto] });
    ([("content-type", "application/json")], list.to_string()).into_response()
}

/// What the gateway says of a model.
async fn shown(process: &Process, name: &str) -> Value {
    let page = process.get("", "/v1/models").await.json();
    page["data"].as_array().unwrap().iter().find(|model| model["id"] == name).unwrap().clone()
}

/// Waits until the model's input costs so much.
async fn costs(process: &Process, name: &str, price: &Value) -> Value {
    let began = Instant::now();
    loop {
        let model = shown(process, name).await;
        if model["price"]["input_usd_per_million"] == *price {
            return model;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{model} and {:?}", process.lines(""));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_prices_hold_from_their_arrival_on_and_give_way_to_the_operators() {
    let upstream = Lister::start("0.000002");
    let folder = upstream.folder("200ms");
    let process = folder.serve();
    let listed = costs(&process, "listed", &json!("2")).await;
    assert_eq!(listed["price"]["output_usd_per_million"], "5", "{listed}");
    assert_eq!(listed["context_length"], 65536);
    assert_eq!(shown(&process, "own").await["price"]["input_usd_per_million"], "7");
    assert_eq!(shown(&process, "unknown").await["price"], Value::Null);
    upstream.lists(Some("0.000003"));
    costs(&process, "listed", &json!("3")).await;
    assert!(folder.path().join("kept.toml").exists());
}

/// SC-09: a list that cannot be had stops no start.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_holds_where_the_list_is_not_to_be_had() {
    let upstream = Lister::start("0.000002");
    let folder = upstream.folder("200ms");
    let mut process = folder.serve();
    costs(&process, "listed", &json!("2")).await;
    process.signal("TERM");
    process.ended();
    upstream.lists(None);
    let process = folder.serve();
    process.logged("no new prices from OpenRouter").await;
    assert_eq!(shown(&process, "listed").await["price"]["input_usd_per_million"], "2");
    // A file that somebody spoiled keeps nobody from serving.
    drop(process);
    std::fs::write(folder.path().join("kept.toml"), "[[model]]\nmatch = 3").unwrap();
    let process = folder.serve();
    assert_eq!(shown(&process, "listed").await["price"], Value::Null);
    assert_eq!(process.logged_times("are not used", 1).await.len(), 1);
}
