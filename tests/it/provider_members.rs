//! What a provider says that not every API has a word for: who ended an answer, why it was withheld, counts of its own, pictures.

use serde_json::{Value, json};

use crate::harness::World;
use crate::harness::faultup::rig::{Rig, question};
use crate::harness::faultup::script::{DONE, Script, Step, ends, event, says, stream, used};
use crate::harness::tools::{printed, tool};

/// An upstream that sends these events.
fn sends(events: &[Value]) -> Script {
    stream().send(events.iter().map(event).collect::<String>() + DONE).then(Step::Close)
}

/// A question with a limit of 20 tokens.
fn limited(stream: bool) -> Value {
    let mut asked = question(stream);
    asked["max_tokens"] = json!(20);
    asked["stream_options"] = if stream { json!({ "include_usage": true }) } else { Value::Null };
    asked
}

/// A whole answer, and the chunks of a streamed one.
async fn both(world: &World) -> (Value, Vec<Value>) {
    let whole = world.ask("sk-key", &limited(false)).await.good();
    let streamed = world.ask("sk-key", &limited(true)).await.chunks();
    assert!(streamed.done);
    (whole, streamed.all)
}

#[tokio::test]
async fn who_has_ended_an_answer_is_told() {
    for (word, written, ended, finish) in [
        ("length", 20, "caller", "length"),
        ("length", 15, "caller", "length"),
        ("length", 3, "model", "length"),
        ("model_length", 20, "model", "length"),
        ("insufficient_system_resource", 3, "upstream", "length"),
        ("abort", 20, "upstream", "length"),
        ("content_filter", 3, "upstream", "content_filter"),
        ("stop", 3, "stop", "stop"),
    ] {
        let rig = Rig::new(vec![sends(&[says("It is"), ends(word), used(9, written)])]).await;
        let (whole, chunks) = both(&rig.world).await;
        let told = (&whole["budget"]["solution"]["ended"], &whole["choices"][0]["finish_reason"]);
        assert_eq!(told, (&json!(ended), &json!(finish)), "{word} {written}: {whole}");
        let last = chunks.iter().find(|chunk| chunk["budget"].is_object()).unwrap();
        let told = (&last["budget"]["solution"]["ended"], &last["choices"][0]["finish_reason"]);
        assert_eq!(told, (&json!(ended), &json!(finish)), "{word} {written}: {last}");
    }
}

#[tokio::test]
async fn an_answer_that_was_broken_off_before_it_began_is_a_failure_that_another_target_may_mend() {
    let rig = Rig::new(vec![sends(&[ends("insufficient_system_resource"), used(9, 0)])]).await;
    for stream in [false, true] {
        let answer = rig.world.ask("sk-key", &limited(stream)).await;
        assert_eq!(
            (answer.status, &answer.error()["code"]),
            (502, &json!("upstream_failed")),
            "{}",
            answer.text
        );
    }
}

/// What `OpenRouter`, Perplexity and OpenAI say besides, in the last chunks of a stream.
fn with_members() -> Vec<Value> {
    let tier = |mut chunk: Value| {
        chunk["service_tier"] = json!("flex");
        chunk
    };
    let mut end = ends("stop");
    end["choices"][0]["native_finish_reason"] = json!("end_turn");
    end["citations"] = json!(["https://a"]);
    end["search_results"] = json!([{ "title": "A", "url": "https://a" }]);
    end["obfuscation"] = json!("x8Yz");
    let usage = json!({
        "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, "cost": 0.00015,
        "cost_details": { "upstream_inference_cost": null, "upstream_inference_prompt_cost": 0.0001 },
        "prompt_tokens_details": { "cached_tokens": 2, "audio_tokens": 4 },
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 1, "accepted_prediction_tokens": 2, "rejected_prediction_tokens": 3,
        },
    });
    vec![tier(says("It is")), tier(says(" 3.")), tier(end), tier(json!({ "choices": [], "usage": usage }))]
}

fn check_usage(usage: &Value) {
    let prompt = json!({ "cached_tokens": 2, "cache_write_tokens": 0, "audio_tokens": 4 });
    assert_eq!(usage["prompt_tokens_details"], prompt, "{usage}");
    let answer = json!({
        "reasoning_tokens": 0, "audio_tokens": 1, "accepted_prediction_tokens": 2, "rejected_prediction_tokens": 3,
    });
    assert_eq!(usage["completion_tokens_details"], answer, "{usage}");
    assert_eq!((&usage["cost"], &usage["total_tokens"]), (&json!(0.00015), &json!(14)), "{usage}");
    assert_eq!(usage["cost_details"]["upstream_inference_prompt_cost"], 0.0001, "{usage}");
}

#[tokio::test]
async fn what_only_some_providers_say_of_an_answer_reaches_callers_of_the_same_api() {
    let rig = Rig::new(vec![sends(&with_members())]).await;
    let (whole, chunks) = both(&rig.world).await;
    let last = chunks.iter().find(|chunk| chunk["choices"][0]["finish_reason"] == "stop").unwrap();
    for answer in [&whole, last] {
        assert_eq!(answer["service_tier"], "flex", "{answer}");
        assert_eq!(answer["citations"], json!(["https://a"]), "{answer}");
        assert_eq!(answer["search_results"][0]["title"], "A", "{answer}");
        assert_eq!(answer["choices"][0]["native_finish_reason"], "end_turn", "{answer}");
        assert_eq!((answer.get("obfuscation"), &answer["model"]), (None, &json!("m")), "{answer}");
    }
    check_usage(&whole["usage"]);
    check_usage(&chunks.last().unwrap()["usage"]);

    let response =
        rig.world.post("/v1/responses", "sk-key", &json!({ "model": "m", "input": "1+2?" })).await.good();
    assert_eq!((&response["service_tier"], response.get("citations")), (&json!("flex"), None), "{response}");
    let asked =
        json!({ "model": "m", "max_tokens": 20, "messages": [{ "role": "user", "content": "1+2?" }] });
    let message = rig.world.post("/v1/messages", "sk-key", &asked).await.good();
    assert_eq!((message.get("service_tier"), message["usage"].get("cost")), (None, None), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_sdk_finds_what_its_provider_says() {
    let rig = Rig::new(vec![sends(&with_members())]).await;
    let facts = printed(tool("python").args(["tests/python/answer_members.py", "chat", &rig.world.base]), "");
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let told = json!({
        "service_tier": "flex", "citations": ["https://a"], "finish": "stop", "native": "end_turn",
        "audio_tokens": [4, 1], "accepted": 2, "rejected": 3, "cost": 0.00015,
    });
    assert_eq!((&facts["whole"], &facts["streamed"]), (&told, &told), "{facts}");
    assert_eq!(facts["helped"], json!(["It is 3.", null]), "{facts}");
}

/// A message is sent back as it came, members of its provider's own included.
#[tokio::test]
async fn pictures_and_sound_that_a_model_made_are_passed_on() {
    let image = |at: u64| json!({ "type": "image_url", "index": at, "image_url": { "url": "data:image/png;base64,iVBORw0=" } });
    let piece = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let said = [
        piece(json!({ "role": "assistant", "content": "" })),
        piece(json!({ "content": "", "images": [image(0)] })),
        piece(
            json!({ "images": [image(1)], "audio": { "id": "audio_1", "data": "UklG", "transcript": "It " } }),
        ),
        piece(json!({ "audio": { "data": "Rg==", "transcript": "is.", "expires_at": 7 } })),
        ends("stop"),
        used(9, 12),
    ];
    let rig = Rig::new(vec![sends(&said)]).await;
    let (whole, chunks) = both(&rig.world).await;
    let message = &whole["choices"][0]["message"];
    let audio = json!({ "id": "audio_1", "data": "UklGRg==", "transcript": "It is.", "expires_at": 7 });
    assert_eq!((&message["images"], &message["audio"]), (&json!([image(0), image(1)]), &audio), "{whole}");
    assert_eq!((&message["content"], &whole["choices"][0]["finish_reason"]), (&Value::Null, &json!("stop")));
    assert_eq!(whole["budget"]["solution"]["ended"], "stop", "{whole}");
    let deltas = || chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]);
    let images: Vec<&Value> = deltas().filter_map(|delta| delta["images"].as_array()).flatten().collect();
    assert_eq!(images, [&image(0), &image(1)]);
    let data: String = deltas().filter_map(|delta| delta["audio"]["data"].as_str()).collect();
    assert_eq!(data, "UklGRg==");

    let mut asked = limited(false);
    let goes_on = [message.clone(), json!({ "role": "user", "content": "And then?" })];
    asked["messages"].as_array_mut().unwrap().extend(goes_on);
    rig.world.ask("sk-key", &asked).await.good();
}

#[tokio::test]
async fn a_picture_is_larger_than_any_text() {
    let url = format!("data:image/png;base64,{}", "iVBORw0K".repeat(1 << 18));
    let image = json!({ "type": "image_url", "image_url": { "url": url } });
    let piece = json!({ "choices": [{ "index": 0, "delta": { "images": [image] }, "finish_reason": null }] });
    let rig = Rig::new(vec![sends(&[piece, ends("stop"), used(9, 12)])]).await;
    let whole = rig.world.ask("sk-key", &limited(false)).await.good();
    let told = whole["choices"][0]["message"]["images"][0]["image_url"]["url"].as_str().map(str::len);
    assert_eq!(told, Some(url.len()));
}

#[tokio::test]
async fn an_answer_that_is_empty_behind_its_thought_is_passed_on_as_its_provider_sends_it() {
    let piece = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let said = [piece(json!({ "reasoning_content": "Nothing to add." })), ends("stop"), used(9, 5)];
    let rig = Rig::new(vec![sends(&said)]).await;
    let (whole, chunks) = both(&rig.world).await;
    let message = &whole["choices"][0]["message"];
    let told = (&message["content"], &whole["choices"][0]["finish_reason"]);
    assert_eq!(told, (&json!(""), &json!("stop")), "{whole}");
    assert_eq!(message["reasoning_content"], "Nothing to add.", "{whole}");
    assert_eq!(whole["budget"]["solution"]["ended"], "none", "{whole}");
    let finish: Vec<&str> =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(finish, ["stop"]);
    rig.world.settled().await;
    assert_eq!(rig.ended("emptied"), 2, "nothing is learned from it as from an answer");
}
