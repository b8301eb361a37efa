//! Golden tests: pairs of files under `tests/fixtures` with the input and the expected output of a translation.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    BackendCall, Failure, GenerationEnd, GenerationPart, Piece, Remark, TagEdge, Thought, TokenUsage,
};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{
    AnswerNote, Budget, CacheTtl, ContentPart, EffortChange, EffortChanges, Message, ProviderMembers,
    Request, Role, SamplingOptions, SignedThought, TaskBudget, ThoughtSigner, Tool, ToolCall, TurnPhase,
};
use stint_types::units::Tokens;

use super::{EventReader, Provider, Settings};

/// Runs every pair of a provider whose name begins with `kind`.
pub(super) fn check(provider: &str, kind: &str, translate: impl Fn(&Value) -> Value) {
    let folder =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/fixtures").join(provider);
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let mut seen = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(case) = name.strip_suffix(".in.json").filter(|case| case.starts_with(kind)) else {
            continue;
        };
        let expected = read(&folder.join(format!("{case}.out.json")));
        let actual = translate(&read(&path));
        let pretty = serde_json::to_string_pretty(&actual).unwrap();
        assert_eq!(actual, expected, "{provider}/{case} gave {pretty}");
        seen += 1;
    }
    assert!(seen > 0, "there are no {kind} fixtures of {provider}");
}

/// What is sent for a call, or why nothing is.
pub(super) fn sent(provider: &impl Provider, call: &BackendCall) -> Value {
    match provider.write_request(call) {
        Ok(sent) => sent.body,
        Err(failure) => json!({"refused": failure.for_caller(), "code": failure.code}),
    }
}

/// What a reader makes of a list of events: objects, or texts such as `[DONE]`.
pub(super) fn pieces(mut reader: impl EventReader, events: &Value) -> Value {
    let mut pieces = VecDeque::new();
    let mut read = || -> Result<(), Failure> {
        for event in events.as_array().unwrap() {
            let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
            reader.read(data.as_bytes(), &mut pieces)?;
            if matches!(pieces.back(), Some(Piece::End(_))) {
                return Ok(());
            }
        }
        reader.close(&mut pieces)
    };
    let failure = read().err();
    let failure =
        failure.map(|it| json!({"failure": it.fault.as_str(), "message": it.for_caller(), "code": it.code}));
    pieces.iter().map(piece).chain(failure).collect()
}

fn piece(piece: &Piece) -> Value {
    match piece {
        Piece::Thought { text, tokens, ids } => json!({"thought": text, "tokens": tokens, "ids": ids}),
        Piece::Answer { text, tokens } => json!({"answer": text, "tokens": tokens}),
        Piece::Tag { tokens, edge: TagEdge::Start } => json!({"tag": "start", "tokens": tokens}),
        Piece::Tag { tokens, edge: TagEdge::End } => json!({"tag": "end", "tokens": tokens}),
        Piece::HandOff { tokens } => json!({"hand_off": tokens}),
        Piece::Summary(text) => json!({"summary": text}),
        Piece::Remark(Remark::StoppedBy(text)) => json!({"stopped_by": text}),
        Piece::Remark(Remark::ThoughtsDropped(count)) => json!({"thoughts_dropped": count}),
        Piece::Remark(Remark::Fingerprint(name)) => json!({"fingerprint": name}),
        Piece::Remark(Remark::Members(it)) => members(it),
        Piece::Unthought => json!("unthought"),
        Piece::Signed(it) => json!({"signed": &*it.block, "model": &*it.signer.model}),
        Piece::ToolCall(it) => {
            json!({"tool_call": it.index, "id": it.id, "name": it.name, "arguments": it.arguments})
        }
        Piece::Usage(it) => usage(it),
        Piece::End(GenerationEnd::Stop { tokens }) => json!({"end": "stop", "tokens": tokens}),
        Piece::End(GenerationEnd::Limit) => json!({"end": "limit"}),
        Piece::End(GenerationEnd::ModelLimit) => json!({"end": "model_limit"}),
        Piece::End(GenerationEnd::BrokenOff) => json!({"end": "broken_off"}),
        Piece::End(GenerationEnd::ToolCalls) => json!({"end": "tool_calls"}),
        Piece::End(GenerationEnd::Filtered) => json!({"end": "filtered"}),
        Piece::Logprobs(entries) => json!({ "logprobs": entries }),
        Piece::Note(AnswerNote::Refusal) => json!("refusal"),
        Piece::Note(AnswerNote::Phase(word)) => json!({ "phase": word }),
        Piece::Note(AnswerNote::Annotation(source)) => json!({ "annotation": source }),
        Piece::Note(AnswerNote::Declined(why)) => json!({ "declined": why }),
        Piece::Note(AnswerNote::Image(image)) => json!({ "image": image }),
        Piece::Note(AnswerNote::Audio(audio)) => json!({ "audio": audio }),
    }
}

/// Members of a provider's own, by where they stand.
fn members(members: &ProviderMembers) -> Value {
    let ProviderMembers { answer, choice, message, usage, .. } = members;
    let places = [("answer", answer), ("choice", choice), ("message", message), ("usage", usage)];
    let told = places.into_iter().filter(|(_, members)| !members.is_empty());
    let told: Map<String, Value> = told.map(|(place, members)| (place.to_owned(), json!(members))).collect();
    json!({ "members": told })
}

/// What a cache had and took is only reported where there is some.
fn usage(usage: &TokenUsage) -> Value {
    let TokenUsage { prompt, completion, thinking, cache_read, cache_write, cache_hour } = usage;
    let mut told = json!({"prompt": prompt, "completion": completion, "thinking": thinking});
    for (name, tokens) in [
        ("cache_read", *cache_read),
        ("cache_write", *cache_write),
        ("cache_hour", cache_hour.unwrap_or_default()),
    ] {
        if tokens > Tokens::ZERO {
            told[name] = json!(tokens);
        }
    }
    json!({ "usage": told })
}

/// Who signs what a model says that nobody said where to reach.
pub(super) fn signer(model: &str) -> ThoughtSigner {
    ThoughtSigner { model: model.into(), domain: Settings::default().origin() }
}

/// The call that a fixture describes.
pub(super) fn call(fixture: &Value, part: GenerationPart) -> BackendCall {
    let float = |name: &str| fixture[name].as_str().map(|text| text.parse().unwrap());
    let texts = |name: &str| list(&fixture[name]).map(|text| text.as_str().unwrap().to_owned()).collect();
    let sampling = SamplingOptions {
        temperature: float("temperature"),
        top_p: float("top_p"),
        top_k: fixture["top_k"].as_u64().map(|k| u32::try_from(k).unwrap()),
        seed: fixture["seed"].as_u64(),
        stop: texts("stop"),
    };
    let request = Request {
        sampling,
        tools: list(&fixture["tools"]).map(tool).collect(),
        tool_choice: fixture.get("tool_choice").cloned(),
        withheld_tools: list(&fixture["withheld_tools"]).map(|name| name.as_str().unwrap().into()).collect(),
        response_format: fixture.get("response_format").cloned(),
        continues_last: fixture["continues_last"] == true,
        logprobs: fixture["logprobs"].as_u64().map(|count| u32::try_from(count).unwrap()),
        unknown_members: fixture["passed"].as_object().cloned().unwrap_or_else(Map::new),
        extra: fixture["extra"].as_object().cloned().unwrap_or_else(Map::new),
        budget: Budget { task: task_budget(&fixture["task_budget"]), ..Budget::default() },
        effort_changes: effort_changes(&fixture["effort_changes"]),
        run_cost: fixture["run_cost_usd"].as_str().map(|usd| usd.parse().unwrap()),
        ..Request::new("any", list(&fixture["messages"]).map(message).collect())
    };
    let seed = fixture["call_seed"].as_u64().unwrap_or(7);
    let class = match part {
        _ if fixture["class"] == "turn" => EnforcementClass::Turn,
        GenerationPart::Whole { .. } => EnforcementClass::Native,
        GenerationPart::Thought { .. } | GenerationPart::Solution { .. } => EnforcementClass::Continue,
        GenerationPart::Total { .. } => EnforcementClass::Effort,
    };
    let (tells_limit, effort) =
        (fixture["tells_limit"] != false, fixture["effort"].as_str().map(str::to_owned));
    BackendCall {
        request: Arc::new(request),
        class,
        part,
        seed,
        hidden: false,
        whole: false,
        tells_limit,
        effort,
        effort_least: None,
    }
}

fn effort_changes(stated: &Value) -> EffortChanges {
    let change = |change: &Value| EffortChange {
        after: usize::try_from(change["after"].as_u64().unwrap()).unwrap(),
        word: change["word"].as_str().unwrap().to_owned(),
    };
    let whole = stated["whole"].as_str().map(str::to_owned);
    EffortChanges { whole, changes: list(&stated["changes"]).map(change).collect() }
}

fn task_budget(stated: &Value) -> Option<TaskBudget> {
    let total = stated["total"].as_u64().map(Tokens)?;
    Some(TaskBudget { total, remaining: stated["remaining"].as_u64().map(Tokens) })
}

/// The part that a fixture describes, under `part`.
pub(super) fn part(fixture: &Value) -> GenerationPart {
    let part = &fixture["part"];
    let (thinking, solution) = (|| tokens(&part["thinking"]), || tokens(&part["solution"]));
    match part["kind"].as_str().unwrap() {
        "whole" => GenerationPart::Whole { thinking: thinking(), solution: solution() },
        "thought" => GenerationPart::Thought { thinking: thinking(), solution: solution() },
        "solution" => GenerationPart::Solution {
            thought: thought(&part["thought"]).into(),
            answer: part["answer"].as_str().unwrap_or_default().to_owned(),
            solution: solution(),
        },
        _ => {
            let effort = part["effort"].as_str().map(str::to_owned);
            GenerationPart::Total { effort, tokens: tokens(&part["tokens"]) }
        }
    }
}

/// A thought to resume from.
pub(super) fn thought(value: &Value) -> Thought {
    Thought {
        ids: list(&value["ids"]).map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect(),
        text: value["text"].as_str().unwrap().to_owned(),
        closed: value["closed"].as_bool().unwrap(),
    }
}

/// A number of tokens in a fixture.
pub(super) fn tokens(value: &Value) -> Tokens {
    Tokens(value.as_u64().unwrap())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn tool(declaration: &Value) -> Tool {
    let name = declaration["function"]["name"].as_str().unwrap().to_owned();
    let mut declaration = declaration.clone();
    let marked = declaration.as_object_mut().unwrap().shift_remove("cache_control").map(|mark| keep(&mark));
    let members = declaration.as_object_mut().unwrap().shift_remove("anthropic");
    let custom = declaration.as_object_mut().unwrap().shift_remove("custom");
    Tool { cache_breakpoint: marked, anthropic_members: members, custom, ..Tool::new(name, declaration) }
}

/// For how long a mark wants something kept.
fn keep(mark: &Value) -> CacheTtl {
    if mark["ttl"] == "1h" { CacheTtl::Hour } else { CacheTtl::Minutes }
}

fn signed(value: &Value) -> SignedThought {
    let text = |name: &str| value[name].as_str().unwrap();
    SignedThought { signer: signer(text("model")), block: text("block").into() }
}

fn phase(value: &Value) -> TurnPhase {
    let letters_before = usize::try_from(value["letters_before"].as_u64().unwrap()).unwrap();
    TurnPhase { letters_before, parts_before: 0, word: value["word"].as_str().map(Into::into) }
}

fn message(value: &Value) -> Message {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let role = match value["role"].as_str().unwrap() {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Tool,
    };
    let content = list(&value["content"]).map(|part| match part {
        Value::String(text) => ContentPart::Text(text.clone()),
        Value::Null => ContentPart::CacheBreakpoint(CacheTtl::Minutes),
        Value::Object(mark) if mark.contains_key("ttl") => ContentPart::CacheBreakpoint(keep(part)),
        Value::Array(withheld) => ContentPart::AdditionStart {
            withheld: withheld.iter().map(|name| name.as_str().unwrap().into()).collect(),
        },
        _ => ContentPart::Other(part.clone()),
    });
    let calls = list(&value["tool_calls"]).map(|call| {
        let text = |name: &str| call[name].as_str().unwrap().to_owned();
        ToolCall { id: text("id"), name: text("name"), arguments: text("arguments") }
    });
    Message {
        role,
        content: content.collect(),
        thought: text("thought"),
        signed: list(&value["signed"]).map(signed).collect(),
        tool_calls: calls.collect(),
        tool_call_id: text("tool_call_id"),
        is_error: value["is_error"] == true,
        name: text("name"),
        phases: list(&value["phases"]).map(phase).collect(),
        unknown_members: value["passed"].as_object().cloned().unwrap_or_default(),
    }
}
