//! Answers of the local engine that must have a form: JSON by a schema, and calls of tools.

use serde_json::{Value, json};

use crate::harness::tools::{chat_model, printed, tool};
use crate::harness::{Answer, Folder, Process};
use crate::sdk::keys;

const SCHEMAS: &str = include_str!("../fixtures/schemas/schemas.jsonl");

/// A real chat model, and the embedded one as a file, which may write more than its own 64 tokens. Both call tools as far as is
/// stated, though neither was taught to.
fn serve() -> Process {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let model = |name: &str, file: &str| {
        format!(
            "[[backend]]\nname = '{name}'\nkind = 'local'\nfile = '{file}'\n\
             [[backend.model]]\nname = '{name}'\nprice_input = '0.01'\nprice_output = '0.04'\n\
             capabilities = ['tools', 'schema', 'logprobs']\ntool_syntax = 'hermes'\n"
        )
    };
    let chat = chat_model();
    let models = model("bytes", file) + &model("smollm2", &chat.display().to_string());
    Folder::new(&format!("{}{models}", keys())).serve()
}

async fn ask(process: &Process, model: &str, more: Value) -> Answer {
    let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": "What is the weather in Paris?" }],
        "temperature": 0, "max_tokens": 200, "reasoning_effort": "none" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    process.ask("sk-test", &body).await
}

fn form(schema: &Value) -> Value {
    json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "it", "strict": true, "schema": schema } } })
}

fn weather(more: &Value) -> Value {
    let city = json!({ "type": "string", "enum": ["Paris", "Rome", "東京"] });
    let unit = json!({ "type": "string", "enum": ["C", "F"] });
    let parameters = json!({ "type": "object", "properties": { "city": city, "unit": unit },
        "required": ["city", "unit"], "additionalProperties": false });
    let tool = |name: &str, parameters: &Value| json!({ "type": "function", "function": { "name": name, "parameters": parameters } });
    let tools = [
        tool("weather", &parameters),
        tool(
            "clock",
            &json!({ "type": "object", "properties": {},
        "additionalProperties": false }),
        ),
    ];
    let mut body = json!({ "tools": tools });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn calls(answer: &Value) -> Vec<(String, Value)> {
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array().unwrap().iter();
    let call = |call: &Value| {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        (call["function"]["name"].as_str().unwrap().to_owned(), serde_json::from_str(arguments).unwrap())
    };
    calls.map(call).collect()
}

/// Of all answers so many may reach their limit, which no grammar shortens.
async fn check_schemas(model: &str, cut_max: usize) {
    let process = serve();
    let mut script = tool("python");
    script.args(["tests/python/structured_run.py", &process.base, model, "400"]);
    let facts: Value = serde_json::from_str(&printed(&mut script, SCHEMAS)).unwrap();
    let checked = facts["checked"].as_array().unwrap();
    let is_cut = |result: &Value| result.as_str().is_some_and(|result| result.starts_with("ended by length"));
    let cut = checked.iter().filter(|checked| is_cut(&checked["result"])).count();
    assert!(cut <= cut_max, "{cut} answers reached their limit");
    let wrong: Vec<_> =
        checked.iter().filter(|checked| checked["result"] != "ok" && !is_cut(&checked["result"])).collect();
    assert!(checked.len() == 50 && wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), checked.len());
    for helper in ["parsed", "responded", "messaged", "object"] {
        assert_eq!(facts[helper], true, "{helper}");
    }
}

#[tokio::test]
async fn a_chat_model_s_answers_fit_fifty_schemas_through_the_official_sdks() {
    check_schemas("smollm2", 1).await;
}

#[tokio::test]
async fn a_model_of_bytes_breaks_no_character_and_no_schema() {
    check_schemas("bytes", 3).await;
}

#[tokio::test]
async fn a_model_that_thinks_does_so_freely_and_answers_in_the_form() {
    let process = serve();
    let schema = json!({ "type": "object", "properties": { "sum": { "type": "integer", "minimum": 0, "maximum": 999 } },
        "required": ["sum"], "additionalProperties": false });
    let question = json!([{ "role": "user", "content": "What is 12+34*2?" }]);
    for thinking in [4, 60] {
        let mut more = form(&schema);
        more["messages"] = question.clone();
        more["reasoning_effort"] = Value::Null;
        more["max_tokens"] = Value::Null;
        more["budget"] = json!({ "thinking_tokens": thinking });
        let answer = ask(&process, "reasoner", more).await.good();
        let message = &answer["choices"][0]["message"];
        let cut = if thinking == 4 { "cut" } else { "closed" };
        assert_eq!(answer["budget"]["thinking"]["ended"], cut, "{answer}");
        assert!(message["reasoning_content"].as_str().unwrap().starts_with("34*2"), "{answer}");
        let content: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
        assert!(content["sum"].is_u64(), "{answer}");
    }
}

#[tokio::test]
async fn an_answer_that_its_limit_ends_says_so() {
    let process = serve();
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string", "minLength": 100 } },
        "required": ["text"], "additionalProperties": false });
    let mut more = form(&schema);
    more["max_tokens"] = json!(10);
    let answer = ask(&process, "smollm2", more).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
    assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().contains("\"text\""), "{answer}");
}

#[tokio::test]
async fn a_tool_is_called_where_one_must_be() {
    let process = serve();
    for model in ["smollm2", "bytes"] {
        let any = ask(&process, model, weather(&json!({ "tool_choice": "required", "max_tokens": 400 })))
            .await
            .good();
        let called = calls(&any);
        assert!(called.iter().all(|(name, _)| ["weather", "clock"].contains(&&**name)), "{any}");
        let named = json!({ "type": "function", "function": { "name": "weather" } });
        let named = json!({ "tool_choice": named, "max_tokens": 400 });
        let one = ask(&process, model, weather(&named)).await.good();
        let called = calls(&one);
        assert_eq!((called.len(), &*called[0].0), (1, "weather"), "{one}");
        assert!(["Paris", "Rome", "東京"].contains(&called[0].1["city"].as_str().unwrap()), "{one}");
        assert_eq!(one["choices"][0]["finish_reason"], "tool_calls");
        assert!(one["choices"][0]["message"]["content"].as_str().unwrap_or_default().is_empty(), "{one}");
    }
}

#[tokio::test]
async fn only_one_tool_is_called_where_only_one_may_be() {
    let process = serve();
    let more = json!({ "tool_choice": "required", "parallel_tool_calls": false, "temperature": 1, "n": 4, "seed": 3 });
    let answer = ask(&process, "smollm2", weather(&more)).await.good();
    for choice in answer["choices"].as_array().unwrap() {
        assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 1, "{choice}");
    }
}

#[tokio::test]
async fn what_no_answer_can_be_held_to_is_refused_by_its_member() {
    let process = serve();
    let refused = async |more: Value, param: &str, words: &str| {
        let answer = ask(&process, "smollm2", more).await;
        let error = answer.error();
        assert_eq!((answer.status, &error["param"]), (400, &json!(param)), "{}", answer.text);
        assert!(error["message"].as_str().unwrap().contains(words), "{}", answer.text);
    };
    refused(form(&json!({ "type": "objekt" })), "response_format", "objekt").await;
    refused(form(&json!({ "type": "object", "not": {} })), "response_format", "not").await;
    refused(form(&json!({ "$ref": "https://example.com/schema.json" })), "response_format", "ref").await;
    refused(form(&json!({ "type": "string", "pattern": "(" })), "response_format", "unclosed group").await;
    refused(form(&json!({ "type": "integer", "minimum": 5, "maximum": 3 })), "response_format", "").await;
    let deep =
        (0..80).fold(json!({ "type": "integer" }), |inner, _| json!({ "type": "array", "items": inner }));
    refused(form(&deep), "response_format", "deep").await;
    let broken =
        json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "objekt" } } }]);
    refused(json!({ "tools": broken, "tool_choice": "required" }), "tools", "").await;
}

#[tokio::test]
async fn those_beside_an_answer_of_a_form_write_what_they_write_alone() {
    let process = serve();
    let plain =
        json!({ "max_tokens": 24, "messages": [{ "role": "user", "content": "Tell me of the sea." }] });
    let alone = ask(&process, "smollm2", plain.clone()).await.good();
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string", "minLength": 200 } },
        "required": ["text"], "additionalProperties": false });
    let mut held = form(&schema);
    held["max_tokens"] = json!(40);
    let mut told = plain.clone();
    told["logprobs"] = json!(true);
    let (beside, _, told) = tokio::join!(
        ask(&process, "smollm2", plain),
        ask(&process, "smollm2", held),
        ask(&process, "smollm2", told)
    );
    let text = |answer: &Value| answer["choices"][0]["message"]["content"].clone();
    assert_eq!(text(&alone), text(&beside.good()));
    assert_eq!(text(&alone), text(&told.good()));
}

/// As many as the answer has tokens, each with its bytes, and likelier ones first.
#[tokio::test]
async fn the_chances_of_an_answer_s_tokens_are_told() {
    let process = serve();
    for (model, stream) in [("smollm2", false), ("smollm2", true), ("bytes", false)] {
        let more = json!({ "logprobs": true, "top_logprobs": 5, "max_tokens": 12 });
        let answer = ask(&process, model, more.clone()).await.good();
        let mut entries = answer["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
        if stream {
            let mut more = more;
            more["stream"] = json!(true);
            let chunks = ask(&process, model, more).await.chunks();
            let streamed =
                chunks.all.iter().filter_map(|chunk| chunk["choices"][0]["logprobs"]["content"].as_array());
            let streamed: Vec<Value> = streamed.flatten().cloned().collect();
            assert_eq!(streamed, entries);
            entries = streamed;
        }
        let text: String = entries.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
        assert_eq!(text.trim(), answer["choices"][0]["message"]["content"].as_str().unwrap().trim());
        for entry in &entries {
            let top = entry["top_logprobs"].as_array().unwrap();
            assert_eq!(top.len(), 5);
            // Greedy, so that the first is the one that came.
            assert_eq!((&top[0]["token"], &top[0]["logprob"]), (&entry["token"], &entry["logprob"]));
            assert!(top.is_sorted_by_key(|other| -other["logprob"].as_f64().unwrap()));
            assert!(entry["logprob"].as_f64().unwrap() <= 0.0);
        }
    }
}
