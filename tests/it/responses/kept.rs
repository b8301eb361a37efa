//! What is kept of responses, by the real binary too, and what is not.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};

use crate::harness::{Answer, Folder, Process, World, tenant};
use crate::sdk::keys;
use stint::http;
use stint_backend::Backend;
use stint_backend::scripted::ScriptedBackend;
use stint_sessions::agent::stored::{
    self, MemoryResponses, ResponseChain, ResponseStore, ResponsesError, StoredResponse,
};
use stint_types::catalog::Model;
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp, Tokens};

use super::{RICH, able, ask, events, plays, world};

#[tokio::test]
async fn the_real_binary_keeps_responses_over_a_restart_and_deletes_them_for_good() {
    let folder = Folder::new(&keys());
    let mut process = folder.serve();
    let post = |process: &Process, body: &Value| {
        let request = process.client.post(format!("{}/v1/responses", process.base));
        let request =
            request.header("authorization", "Bearer sk-test").header("content-type", "application/json");
        Answer::of(request.body(body.to_string()))
    };
    let asked = |more: Value| {
        let mut body = ask("What is 17+25?", more);
        body["model"] = "reasoner".into();
        body["temperature"] = 0.into();
        body
    };
    let first = post(&process, &asked(json!({ "budget": { "thinking_tokens": 8 } }))).await.good();
    assert_eq!(first["budget"]["thinking"], json!({ "budget": 8, "used": 8, "ended": "cut" }));
    assert_eq!(first["output"][1]["content"][0]["text"], "42");
    let id = first["id"].as_str().unwrap().to_owned();
    process.signal("TERM");
    assert!(process.ended().success());
    let process = folder.serve();
    let path = format!("/v1/responses/{id}");
    assert_eq!(process.get("sk-test", &path).await.good(), first);
    assert_eq!(process.get("sk-poor", &path).await.status, 404);
    let story = process.get("sk-test", &format!("/v1/requests/{id}")).await;
    assert_eq!(story.good()["outcome"]["ended"], "finished", "the id is that of the request");
    let more = post(&process, &asked(json!({ "previous_response_id": id, "stream": true }))).await;
    let told = events(&more);
    let (last, end) = told.last().unwrap();
    assert_eq!(last, "response.completed", "{end}");
    let prompt = |usage: &Value| usage["input_tokens"].as_u64().unwrap();
    assert!(prompt(&end["response"]["usage"]) > 2 * prompt(&first["usage"]), "it goes on: {end}");
    let delete =
        process.client.delete(format!("{}{path}", process.base)).header("authorization", "Bearer sk-test");
    assert_eq!(Answer::of(delete).await.good(), json!({ "id": id, "object": "response", "deleted": true }));
    assert_eq!(process.get("sk-test", &path).await.error()["code"], "response_not_found");
    let next = end["response"]["id"].as_str().unwrap();
    let broken = post(&process, &asked(json!({ "previous_response_id": next }))).await;
    assert_eq!((broken.status, &broken.error()["code"]), (400, &json!("previous_response_not_found")));
    let metrics = process.get("sk-test", "/metrics").await.text;
    assert!(metrics.contains("stint_responses_stored_total{outcome=\"kept\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn an_operator_may_keep_nothing() {
    let folder = Folder::new("[responses]\nstore = false\n");
    let process = folder.serve();
    let request = process.client.post(format!("{}/v1/responses", process.base));
    let body = json!({ "model": "reasoner", "input": "What is 1+2?" }).to_string();
    let answer = Answer::of(request.header("content-type", "application/json").body(body)).await.good();
    assert_eq!(answer["store"], false);
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    assert_eq!(process.get("", &path).await.status, 404);
}

#[tokio::test]
async fn what_is_too_large_to_keep_or_the_store_does_not_take_is_answered_and_says_so() {
    let script = Arc::new(ScriptedBackend::each(plays));
    let small = stored::Settings { response_max: 1 << 10, ..stored::Settings::default() };
    let models = || vec![(able("m"), script.clone())];
    let world =
        World::keeping(models(), vec![tenant("acme", RICH)], Arc::new(MemoryResponses::default()), small)
            .await;
    let large = world.post("/v1/responses", "sk-acme", &ask("x".repeat(2000), json!({}))).await.good();
    assert_eq!((&large["store"], &large["status"]), (&json!(false), &json!("completed")));
    assert_eq!(world.metrics.storage.responses.with_label_values(&["too_large"]).get(), 1);
    let slow = stored::Settings { patience: Duration::from_millis(20), ..stored::Settings::default() };
    let world = World::keeping(models(), vec![tenant("acme", RICH)], Arc::new(Broken), slow).await;
    let whole = world.post("/v1/responses", "sk-acme", &ask("hi", json!({}))).await.good();
    assert_eq!(
        (&whole["store"], &whole["output"][1]["content"][0]["text"]),
        (&json!(false), &json!("3 after 1"))
    );
    let streamed =
        events(&world.post("/v1/responses", "sk-acme", &ask("hi", json!({ "stream": true }))).await);
    let (name, end) = streamed.last().unwrap();
    assert_eq!((name.as_str(), &end["response"]["store"]), ("response.completed", &json!(false)));
    assert_eq!(world.metrics.storage.responses.with_label_values(&["failed"]).get(), 2);
    let unknown = world
        .post("/v1/responses", "sk-acme", &ask("hi", json!({ "previous_response_id": whole["id"] })))
        .await;
    assert_eq!(unknown.status, 503, "nobody knows: {}", unknown.text);
}

/// A store that does nothing.
struct Broken;

impl ResponseStore for Broken {
    fn keep<'a>(&'a self, _: &'a [StoredResponse], _: u64) -> BoxFuture<'a, Result<(), ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn find<'a>(
        &'a self,
        _: &'a AccountId,
        _: RequestId,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn chain<'a>(
        &'a self,
        _: &'a AccountId,
        _: RequestId,
        _: Timestamp,
        _: u64,
    ) -> BoxFuture<'a, Result<Option<ResponseChain>, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn delete<'a>(&'a self, _: &'a AccountId, _: RequestId) -> BoxFuture<'a, Result<bool, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn delete_of<'a>(
        &'a self,
        _: &'a AccountId,
        _: Option<KeyId>,
    ) -> BoxFuture<'a, Result<u64, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn purge(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        ready(Ok(0)).boxed()
    }
}

/// A caller cannot make the server remember more than it has room for.
#[tokio::test]
async fn what_is_continued_takes_room_as_a_body_does() {
    let script = Arc::new(ScriptedBackend::each(plays)) as Arc<dyn Backend>;
    let roomy = Model { context: Tokens(100_000), ..able("m") };
    let adjust =
        |settings: &mut http::Settings| (settings.body_max, settings.bodies_max) = (4 << 10, 32 << 10);
    let world = World::with(vec![(roomy, script)], vec![tenant("acme", RICH)], adjust).await;
    let (mut previous, mut turns) = (Value::Null, 0);
    let refused = loop {
        let stream = turns % 2 == 1;
        let body = ask("x".repeat(2500), json!({ "previous_response_id": previous, "stream": stream }));
        let answer = world.post("/v1/responses", "sk-acme", &body).await;
        match (answer.status, stream) {
            (200, false) => previous = answer.json()["id"].clone(),
            (200, true) => previous = events(&answer).last().unwrap().1["response"]["id"].clone(),
            _ => break answer,
        }
        turns += 1;
    };
    assert!((2..6).contains(&turns), "{turns}: {}", refused.text);
    assert_eq!((refused.status, &refused.error()["code"]), (503, &json!("overloaded")), "{}", refused.text);
    let small = world.post("/v1/responses", "sk-acme", &ask("hi", json!({ "stream": true }))).await;
    assert_eq!(small.status, 200, "and gives it back");
}

#[tokio::test]
async fn thoughts_that_are_hidden_are_kept_and_go_on_all_the_same() {
    let (world, script) = world().await;
    let hidden = json!({ "reasoning": { "exclude": true } });
    let first = world.post("/v1/responses", "sk-acme", &ask("hi", hidden)).await.good();
    assert_eq!(first["output"].as_array().unwrap().len(), 1);
    let id = first["id"].as_str().unwrap();
    assert_eq!(world.get("sk-acme", &format!("/v1/responses/{id}")).await.good(), first);
    world.post("/v1/responses", "sk-acme", &ask("and?", json!({ "previous_response_id": id }))).await.good();
    let records = script.records();
    assert_eq!(records[1].call.request.messages[1].thought.as_deref(), Some("1 2 3 "));
}

#[tokio::test]
async fn what_was_put_in_is_listed_in_pages() {
    let (world, _) = world().await;
    let items: Vec<Value> = (0..3).map(|at| json!({ "role": "user", "content": format!("{at}") })).collect();
    let id = world.post("/v1/responses", "sk-acme", &ask(items, json!({}))).await.good()["id"].clone();
    let path = format!("/v1/responses/{}/input_items", id.as_str().unwrap());
    let page = async |query: &str| world.get("sk-acme", &format!("{path}?{query}")).await.good();
    let texts = |page: &Value| -> Vec<String> {
        let texts =
            page["data"].as_array().unwrap().iter().map(|item| item["content"][0]["text"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    };
    let first = page("limit=2").await;
    assert_eq!((texts(&first), &first["has_more"]), (vec!["2".into(), "1".into()], &json!(true)));
    let rest = page(&format!("limit=2&after={}", first["last_id"].as_str().unwrap())).await;
    assert_eq!((texts(&rest), &rest["has_more"]), (vec!["0".into()], &json!(false)));
    assert_eq!(texts(&page("order=asc&include[]=message.input_image.image_url").await), ["0", "1", "2"]);
    for (query, param) in [("limit=0", "limit"), ("order=up", "order"), ("after=x", "after"), ("x=1", "x")] {
        let refused = world.get("sk-acme", &format!("{path}?{query}")).await;
        assert_eq!((refused.status, &refused.error()["param"]), (400, &json!(param)));
    }
    assert_eq!(world.get("sk-other", &path).await.status, 404);
}
