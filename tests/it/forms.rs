//! Answers that must have a form, at providers that each take another part of what a schema may say; and what else clients send that
//! one provider takes and another does not.

use serde_json::{Value, json};

use crate::endpoints::Upstream;
use crate::harness::emulators::anthropic::Anthropic;
use crate::harness::emulators::chat;
use crate::harness::emulators::gemini::Gemini;
use crate::harness::emulators::openai::OpenAi;
use crate::harness::emulators::responses::Responses;
use crate::harness::emulators::{Emulator, KEY, Turn};
use crate::harness::{Answer, Folder, Process};

const CHAT: &str = "chat/completions";
const MESSAGES: &str = "messages";

/// The binary before one provider.
fn serve(kind: &str, base: &str, models: &str) -> Process {
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nkind = \"{kind}\"\nbase_url = \"{base}\"\napi_key_file = \"key\"\n{models}\n"
    ));
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    folder.serve()
}

/// Claude, which says that as often as it is asked.
fn claude(answer: &'static str) -> (Emulator, Process) {
    let emulator = Emulator::start_by(Anthropic::default(), move |_| Turn::answers(0, answer));
    let process =
        serve("anthropic", &emulator.base, "models = [\"claude-sonnet-4-5\", \"claude-sonnet-5-5\"]");
    (emulator, process)
}

async fn post(process: &Process, path: &str, model: &str, more: &Value) -> Answer {
    let mut body = json!({ "model": model, "max_tokens": 3000, "messages": [{ "role": "user", "content": "What is it, in JSON?" }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request = process.client.post(format!("{}/v1/{path}", process.base));
    Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
}

/// A form, as OpenAI's clients write it.
fn form(schema: &Value) -> Value {
    json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "it", "strict": true, "schema": schema } } })
}

fn object(members: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
}

fn content(answer: &Answer) -> String {
    answer.good()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

fn last(emulator: &Emulator) -> Value {
    emulator.asked().last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_is_held_to_what_it_takes_of_a_schema_and_told_the_rest() {
    let (emulator, process) = claude("{}");
    let score = json!({ "type": "integer", "minimum": 1, "maximum": 10 });
    let tags = json!({ "type": "array", "items": { "type": "string" }, "maxItems": 3 });
    let schema = json!({ "type": "object", "properties": { "score": score, "tags": tags }, "required": ["score", "tags"] });
    for model in ["claude-sonnet-4-5", "claude-sonnet-5-5"] {
        post(&process, CHAT, model, &form(&schema)).await.good();
        let sent = &last(&emulator)["output_config"]["format"]["schema"];
        let told = json!({
            "score": { "type": "integer", "description": "{minimum: 1, maximum: 10}" },
            "tags": { "type": "array", "items": { "type": "string" }, "description": "{maxItems: 3}" },
        });
        assert_eq!(*sent, object(&told, &["score", "tags"]));
    }
    assert_eq!(emulator.refused(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_claude_cannot_be_held_to_is_asked_for_in_words_and_a_fence_is_taken_off() {
    let (emulator, process) = claude("```json {\"kids\": []} ```");
    let node = json!({ "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/Node" } } },
        "required": ["kids"], "additionalProperties": false });
    let tree = json!({ "$ref": "#/$defs/Node", "$defs": { "Node": node } });
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let members: serde_json::Map<String, Value> =
        (0..25).map(|at| (format!("m{at}"), json!({ "type": "string" }))).collect();
    let optional = object(&members.into(), &[]);
    for schema in [&tree, &counts, &optional] {
        for stream in [false, true] {
            let mut asked = form(schema);
            asked["stream"] = stream.into();
            asked["messages"] =
                json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Go." }]);
            let answer = post(&process, CHAT, "claude-sonnet-5-5", &asked).await;
            let text = if stream { answer.chunks().joined(0, "content") } else { content(&answer) };
            assert_eq!(text.trim(), "{\"kids\": []}", "{}", answer.text);
            let sent = last(&emulator);
            let system = sent["system"].to_string();
            assert!(system.contains("Be brief.") && system.contains("JSON schema"), "{system}");
            assert!(sent["output_config"]["format"].is_null());
        }
    }
    assert_eq!(emulator.refused(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_without_a_schema_is_asked_of_claude_in_words() {
    let (emulator, process) = claude("{\"a\": 1}");
    let asked = json!({ "response_format": { "type": "json_object" } });
    for model in ["claude-sonnet-4-5", "claude-sonnet-5-5"] {
        assert_eq!(content(&post(&process, CHAT, model, &asked).await).trim(), "{\"a\": 1}");
        assert!(last(&emulator)["system"].to_string().contains("one JSON object"));
        let said = json!({ "text": { "format": { "type": "json_object" } }, "input": "In JSON.", "max_output_tokens": 3000 });
        let request = process.client.post(format!("{}/v1/responses", process.base));
        let mut body = said.clone();
        body["model"] = model.into();
        Answer::of(request.header("content-type", "application/json").body(body.to_string())).await.good();
    }
    assert_eq!(emulator.refused(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_tools_are_strict_as_claude_takes() {
    let (emulator, process) = claude("so");
    let tool = |at: usize, parameters: &Value| json!({ "type": "function", "function": { "name": format!("t{at}"), "strict": true, "parameters": parameters } });
    let strict = async |tools: Vec<Value>| {
        post(&process, CHAT, "claude-sonnet-5-5", &json!({ "tools": tools })).await.good();
        let sent = last(&emulator);
        sent["tools"].as_array().unwrap().iter().filter(|tool| tool["strict"] == true).count()
    };
    let plain = object(&json!({}), &[]);
    assert_eq!(strict((0..25).map(|at| tool(at, &plain)).collect()).await, 20);
    let optional =
        object(&json!({ "a": { "type": "string", "minLength": 1 }, "b": { "type": "string" } }), &[]);
    assert_eq!(strict((0..15).map(|at| tool(at, &optional)).collect()).await, 12);
    assert_eq!(
        last(&emulator)["tools"][0]["input_schema"]["properties"]["a"]["description"],
        "{minLength: 1}"
    );
    let union = object(&json!({ "a": { "type": ["string", "null"] } }), &["a"]);
    assert_eq!(strict((0..20).map(|at| tool(at, &union)).collect()).await, 16);
    let open = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert_eq!(strict(vec![tool(0, &open), tool(1, &plain)]).await, 1);
    assert_eq!(emulator.refused(), []);
}

/// Anthropic's clients may leave members out of `required`; OpenAI's strict schemas have all of them there.
#[tokio::test(flavor = "multi_thread")]
async fn what_anthropics_clients_hold_an_answer_to_holds_at_openai_where_it_means_the_same() {
    let age = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null });
    let nullable = object(&json!({ "name": { "type": "string" }, "age": age }), &["name"]);
    let absent = object(&json!({ "name": { "type": "string" }, "age": { "type": "integer" } }), &["name"]);
    let over_chat = Emulator::start_by(OpenAi, |_| Turn::answers(0, "{}"));
    let over_responses = Emulator::start_by(Responses, |_| Turn::answers(0, "{}"));
    let declared = "[[backend.model]]\nname = \"gpt-4.1\"\nthinking_max = 0";
    let processes = [
        (&over_chat, serve("openai", &over_chat.base, declared)),
        (
            &over_responses,
            serve("responses", &over_responses.base, &format!("{declared}\nthinking = \"never\"")),
        ),
    ];
    for (emulator, process) in &processes {
        for (schema, is_strict) in [(&nullable, true), (&absent, false)] {
            let asked = json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } },
                "tools": [{ "name": "w", "strict": true, "input_schema": schema }] });
            post(process, MESSAGES, "gpt-4.1", &asked).await.good();
            let sent = last(emulator);
            let (format, tool) = if sent["input"].is_null() {
                (sent["response_format"]["json_schema"].clone(), sent["tools"][0]["function"].clone())
            } else {
                (sent["text"]["format"].clone(), sent["tools"][0].clone())
            };
            assert_eq!(
                (&format["strict"], &tool["strict"]),
                (&json!(is_strict), &json!(is_strict)),
                "{sent}"
            );
            let required = if is_strict { json!(["name", "age"]) } else { json!(["name"]) };
            assert_eq!(
                (&format["schema"]["required"], &tool["parameters"]["required"]),
                (&required, &required)
            );
        }
        assert_eq!(emulator.refused(), []);
    }
}

/// The same schemas go to Claude as they are: its provider is the judge of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_anthropics_clients_write_goes_to_claude_as_it_is() {
    let (emulator, process) = claude("{}");
    let schema = object(&json!({ "zip": { "type": "string", "pattern": "\\bx" } }), &[]);
    let asked = json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } });
    post(&process, MESSAGES, "claude-sonnet-5-5", &asked).await.good();
    assert_eq!(last(&emulator)["output_config"]["format"]["schema"], schema);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_writes_json_is_told_a_schema_in_words() {
    let emulator = chat::Emulator::start(chat::Kind::DeepSeek, chat::Script::new(0, 3));
    let models = "[[backend.model]]\nname = \"deepseek-v4-pro\"\ncapabilities = [\"tools\", \"json\"]\n\
                  [[backend.model]]\nname = \"plain\"\ncapabilities = [\"tools\"]";
    let process = serve("deepseek", &emulator.address, models);
    let schema = object(&json!({ "city": { "type": "string" } }), &["city"]);
    for asked in [form(&schema), json!({ "response_format": { "type": "json_object" } })] {
        post(&process, CHAT, "deepseek-v4-pro", &asked).await.good();
        let sent = emulator.arrived().last().unwrap().body.clone();
        assert_eq!(sent["response_format"], json!({ "type": "json_object" }));
        let is_told = sent["messages"][0]["content"].to_string().contains("city");
        assert_eq!(is_told, asked["response_format"]["type"] == "json_schema", "{sent}");
    }
    assert_eq!(emulator.refusals(), Vec::<Value>::new());
    let refused = post(&process, CHAT, "plain", &form(&schema)).await;
    assert_eq!((refused.status, &refused.error()["code"]), (400, &json!("model_not_capable")));
    let models =
        process.client.get(format!("{}/v1/models", process.base)).send().await.unwrap().text().await.unwrap();
    assert!(models.contains("\"json\""), "{models}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_goes_by_the_type_that_its_bytes_say() {
    let (emulator, process) = claude("a cat");
    for (stated, data, sent) in [
        ("image/jpg", "/9j/4AAQ", "image/jpeg"),
        ("image/PNG", "iVBORw0KGgo=", "image/png"),
        ("image/jpeg", "iVBORw0KGgo=", "image/png"),
    ] {
        let url = format!("data:{stated};base64,{data}");
        let part = json!({ "type": "image_url", "image_url": { "url": url } });
        post(
            &process,
            CHAT,
            "claude-sonnet-5-5",
            &json!({ "messages": [{ "role": "user", "content": [part] }] }),
        )
        .await
        .good();
        assert_eq!(last(&emulator)["messages"][0]["content"][0]["source"]["media_type"], sent);
        let source = json!({ "type": "base64", "media_type": stated, "data": data });
        let block = json!({ "type": "image", "source": source });
        post(
            &process,
            MESSAGES,
            "claude-sonnet-5-5",
            &json!({ "messages": [{ "role": "user", "content": [block] }] }),
        )
        .await
        .good();
        assert_eq!(last(&emulator)["messages"][0]["content"][0]["source"]["media_type"], sent);
    }
    assert_eq!(emulator.refused(), []);
}

/// Agents send penalties to whatever model they are given.
#[tokio::test(flavor = "multi_thread")]
async fn penalties_are_left_out_where_they_are_not_taken_and_biases_are_refused() {
    let (emulator, process) = claude("so");
    let gemini = Emulator::start_by(Gemini, |_| Turn::answers(0, "so"));
    let responses = Emulator::start_by(Responses, |_| Turn::answers(0, "so"));
    let openai = Emulator::start_by(OpenAi, |_| Turn::answers(0, "so"));
    let never = "[[backend.model]]\nname = \"gpt\"\nthinking_max = 0";
    let cases = [
        (&emulator, process, "claude-sonnet-5-5"),
        (&gemini, serve("gemini", &gemini.base, "models = [\"gemini-2.5-flash\"]"), "gemini-2.5-flash"),
        (&responses, serve("responses", &responses.base, &format!("{never}\nthinking = \"never\"")), "gpt"),
        (&openai, serve("openai", &openai.base, &format!("{never}\ncapabilities = [\"tools\"]")), "gpt"),
    ];
    for (emulator, process, model) in &cases {
        let penalties = json!({ "frequency_penalty": 0.3, "presence_penalty": -0.5 });
        post(process, CHAT, model, &penalties).await.good();
        let sent = last(emulator).to_string().to_ascii_lowercase();
        assert!(!sent.contains("penalty"), "{sent}");
        let bias =
            post(process, CHAT, model, &json!({ "logit_bias": { "7": 1 }, "presence_penalty": 0.3 })).await;
        let told = (bias.status, &bias.error()["code"], &bias.error()["param"]);
        assert_eq!(told, (400, &json!("model_not_capable"), &json!("logit_bias")), "{model}: {}", bias.text);
        assert_eq!(emulator.refused(), []);
    }
}

/// What Jina, Cohere and servers of one's own take besides.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_embeddings_that_nobody_here_knows_go_to_who_takes_them() {
    let upstream = Upstream::start();
    let asked =
        json!({ "model": "vectors", "input": "one", "task": "retrieval.query", "late_chunking": true });
    for (setting, status) in [("", 200), ("unknown_members = \"refuse\"\n", 400)] {
        let models = "[[backend.model]]\nname = \"vectors\"\nupstream = \"upstream-vectors\"\nserves = [\"embeddings\"]";
        let process = serve("openai", &upstream.base, &format!("{setting}{models}"));
        let request = process.client.post(format!("{}/v1/embeddings", process.base));
        let answer =
            Answer::of(request.header("content-type", "application/json").body(asked.to_string())).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        if status == 200 {
            assert_eq!(answer.good()["data"][0]["embedding"], json!([3, 15]));
        } else {
            assert_eq!(
                (&answer.error()["code"], &answer.error()["param"]),
                (&json!("unknown_parameter"), &json!("task"))
            );
        }
    }
}
