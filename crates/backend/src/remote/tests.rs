//! Tests of what the adapters send and read, against a scripted upstream.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::{
    Backend, BackendCall, Failure, Fault, GenerationEnd, GenerationPart, Piece, TagEdge, Thought, TokenUsage,
};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{EmbeddingInputs, EmbeddingRequest, EpisodeLimits, short_tool_name};
use stint_types::units::Tokens;

use super::llamacpp::{self, LlamaCppBackend};
use super::openai::{self, Dialect, OpenAiBackend};
use super::responses::{self, OpenAiResponsesBackend};
use super::upstream::{AnswerStep, TestUpstream, answer, chunked, events, json, stream};
use super::vllm::VllmBackend;
use super::{Connections, LengthenedTimes, Secret, Settings, golden};

const CHAT: &str = "/v1/chat/completions";
const KEY: &str = "canary-0123456789";

fn settings(address: &str) -> Settings {
    Settings {
        base_url: address.to_owned(),
        api_key: Some(Secret::new(KEY)),
        connect: Duration::from_secs(2),
        first_byte: Duration::from_secs(20),
        idle: Duration::from_secs(10),
        total: Duration::from_secs(60),
        ..Settings::default()
    }
}

fn openai(address: &str) -> OpenAiBackend {
    openai_by(settings(&format!("{address}/v1/")))
}

fn openai_by(client: Settings) -> OpenAiBackend {
    OpenAiBackend::new(
        &Connections::default(),
        openai::Settings { client, model: "m".to_owned(), ..openai::Settings::default() },
    )
    .unwrap()
}

fn llamacpp(address: &str) -> LlamaCppBackend {
    LlamaCppBackend::new(
        &Connections::default(),
        llamacpp::Settings { client: settings(address), thinks: Some(true), ..llamacpp::Settings::default() },
    )
    .unwrap()
}

fn call(part: GenerationPart) -> BackendCall {
    golden::call(&json!({"messages": [{"role": "user", "content": ["12+30*4?"]}], "temperature": "0"}), part)
}

fn total() -> BackendCall {
    call(GenerationPart::Total { effort: None, tokens: Tokens(8) })
}

/// The pieces of a generation, and how it failed if it did, before or after them.
async fn run(backend: &dyn Backend, call: BackendCall) -> (Vec<Piece>, Option<Failure>) {
    let mut generation = match backend.generate(call).await {
        Ok(generation) => generation,
        Err(failure) => return (Vec::new(), Some(failure)),
    };
    let mut pieces = Vec::new();
    while let Some(piece) = generation.next().await {
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(failure) => {
                assert!(generation.next().await.is_none(), "nothing follows a failure");
                return (pieces, Some(failure));
            }
        }
    }
    (pieces, None)
}

async fn check(steps: Vec<AnswerStep>, pieces: usize, fault: Fault, message: &str, unsent: bool) -> Failure {
    let upstream = TestUpstream::start(vec![(CHAT, steps)]).await;
    let (seen, failure) = run(&openai(&upstream.address), total()).await;
    let failure = failure.expect("a failure");
    assert_eq!((seen.len(), failure.fault, failure.unsent), (pieces, fault, unsent), "{failure:?}");
    assert_eq!(failure.for_caller(), message);
    assert!(!format!("{failure:?} {:?}", failure.upstream_message).contains("canary"), "{failure:?}");
    failure
}

fn chunk(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

fn with(mut steps: Vec<AnswerStep>, more: impl IntoIterator<Item = AnswerStep>) -> Vec<AnswerStep> {
    steps.extend(more);
    steps
}

#[tokio::test]
async fn a_vllm_server_that_counts_no_tokens_is_asked_for_them_once_and_serves_by_its_chat() {
    let refusals = [
        ("403 Forbidden", ""),
        ("404 Not Found", r#"{"detail":"Not Found"}"#),
        ("405 Method Not Allowed", "<html>"),
    ];
    for (status, body) in refusals {
        let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        let text = events(&[chunk("4"), chunk("2"), finish]) + "data: [DONE]\n\n";
        let said = || (CHAT, stream(&text));
        let upstream =
            TestUpstream::start(vec![("/tokenize", answer(status, "", body)), said(), said(), said()]).await;
        let client = settings(&format!("{}/v1/", upstream.address));
        let settings = openai::Settings { client, dialect: Dialect::vllm(), ..openai::Settings::default() };
        let backend = VllmBackend::new(&Connections::default(), settings).unwrap();
        let thought = GenerationPart::Thought { thinking: Tokens(8), solution: Tokens(8) };
        let resumed = BackendCall { class: EnforcementClass::Continue, ..call(thought) };
        for call in [total(), total(), resumed] {
            assert_eq!(backend.count_prompt(call.request.clone()).await, None, "it is estimated");
            let (pieces, failure) = run(&backend, call).await;
            assert!(failure.is_none() && !pieces.is_empty(), "{status}: {failure:?}");
        }
        let counted = upstream.asked().iter().filter(|asked| asked.head.contains("tokenize")).count();
        assert_eq!(counted, 1, "{status}");
    }
}

#[tokio::test]
async fn a_tool_s_long_name_is_sent_short_and_called_by_its_own() {
    let long = "mcp__a_server_of_tools__".repeat(4);
    let short = short_tool_name(&long).into_owned();
    assert!((long.len(), short.len()) == (96, 64));
    let tool = json!({"id": "a", "type": "function", "function": {"name": short, "arguments": "{}"}});
    let delta =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": short, "arguments": "{}"}}]});
    let streamed = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]});
    let choice = json!({"index": 0, "message": {"tool_calls": [tool]}, "finish_reason": "tool_calls"});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 5});
    let whole = json!({"object": "chat.completion", "choices": [choice], "usage": usage});
    for is_whole in [false, true] {
        let steps = if is_whole { json(&whole) } else { stream(&events(std::slice::from_ref(&streamed))) };
        let upstream = TestUpstream::start(vec![(CHAT, steps)]).await;
        let declared = json!({"type": "function", "function": {"name": long}});
        let asked = json!({"messages": [{"role": "user", "content": ["go"]}], "tools": [declared]});
        let part = GenerationPart::Total { effort: None, tokens: Tokens(8) };
        let call = BackendCall { whole: is_whole, ..golden::call(&asked, part) };
        let (pieces, _) = run(&openai(&upstream.address), call).await;
        let called = pieces.iter().find_map(|piece| match piece {
            Piece::ToolCall(call) => call.name.as_deref(),
            _ => None,
        });
        assert_eq!(called, Some(&*long), "{pieces:?}");
        assert_eq!(upstream.asked()[0].body["tools"][0]["function"]["name"], *short);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_with_an_error_in_any_form_is_no_whole_answer() {
    for error in [
        "data: {\"object\":\"error\",\"message\":\"boom\",\"type\":\"InternalServerError\",\"code\":500}\n\n",
        "event: error\ndata: {\"message\":\"boom\"}\n\n",
        "error: {\"code\":500,\"message\":\"boom\"}\n\n",
        "data: {\"detail\":\"boom\"}\n\n",
        "data: {\"errors\":[{\"message\":\"boom\"}]}\n\n",
    ] {
        let text = events(&[chunk("half")]) + error + "data: [DONE]\n\n";
        check(stream(&text), 1, Fault::Backend, "the upstream's stream ended in an error 500", false).await;
    }
    let ended = events(&[chunk("half")]);
    check(stream(&ended), 1, Fault::Backend, "the upstream's stream broke off: upstream_truncated", false)
        .await;
}

#[tokio::test]
async fn an_answer_in_one_piece_is_read_as_a_stream_s_chunks_are() {
    let tool = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let message =
        json!({"role": "assistant", "reasoning_content": "hm", "content": "42", "tool_calls": [tool]});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 5});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let body = json!({"object": "chat.completion", "choices": [choice], "usage": usage});
    let upstream = TestUpstream::start(vec![(CHAT, json(&body))]).await;
    let whole = BackendCall { whole: true, ..total() };
    let (pieces, failure) = run(&openai(&upstream.address), whole).await;
    assert_eq!(failure, None);
    assert!(matches!(&pieces[0], Piece::Thought { text, .. } if text == "hm"), "{pieces:?}");
    assert!(matches!(&pieces[1], Piece::Answer { text, .. } if text == "42"), "{pieces:?}");
    assert!(matches!(&pieces[2], Piece::ToolCall(call) if call.arguments == "{}"), "{pieces:?}");
    assert!(matches!(&pieces[3], Piece::Usage(usage) if usage.completion == Tokens(5)), "{pieces:?}");
    assert_eq!(pieces[4..], [Piece::End(GenerationEnd::ToolCalls)]);
    let asked = upstream.asked();
    assert_eq!(asked[0].body["stream"], false);
    assert!(
        asked[0].body.get("stream_options").is_none() && asked[0].head.contains("accept: application/json")
    );
}

#[tokio::test]
async fn an_answer_that_is_no_json_or_has_no_end_is_a_failure_and_one_that_streams_all_the_same_is_read() {
    let whole = || BackendCall { whole: true, ..total() };
    for body in ["{", "no json", r#"{"choices":[{"index":0,"message":{"content":"4"}}]}"#] {
        let steps = answer("200 OK", "content-type: application/json\r\n", body);
        let upstream = TestUpstream::start(vec![(CHAT, steps)]).await;
        let (_, failure) = run(&openai(&upstream.address), whole()).await;
        assert_eq!(failure.map(|failure| failure.fault), Some(Fault::Backend), "{body}");
    }
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let text = events(&[chunk("4"), finish]) + "data: [DONE]\n\n";
    let upstream = TestUpstream::start(vec![(CHAT, stream(&text))]).await;
    let (pieces, failure) = run(&openai(&upstream.address), whole()).await;
    assert_eq!((pieces.len(), failure), (2, None));
}

#[tokio::test]
async fn an_answer_comes_piece_by_piece_and_only_our_credentials_are_sent() {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let text = events(&[chunk("4"), chunk("2"), finish]) + ": bye\n\ndata: [DONE]";
    let upstream = TestUpstream::start(vec![(CHAT, stream(&text))]).await;
    let (pieces, failure) = run(&openai(&upstream.address), total()).await;
    let answer = |text: &str| Piece::Answer { text: text.to_owned(), tokens: Tokens::ZERO };
    let end = Piece::End(GenerationEnd::Stop { tokens: Tokens::ZERO });
    assert_eq!((pieces, failure), (vec![answer("4"), answer("2"), end], None));
    let asked = upstream.asked();
    assert!(asked[0].head.contains(&format!("authorization: Bearer {KEY}")), "{}", asked[0].head);
    assert!(!asked[0].head.contains("accept-encoding"), "{}", asked[0].head);
    assert_eq!(asked[0].body["max_completion_tokens"], 8);
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_whole_answer() {
    const ANSWERS: usize = 10;
    let text = events(&[chunk("42")]) + "data: [DONE]\n\n";
    let upstream = TestUpstream::start(vec![(CHAT, chunked(&text)); ANSWERS]).await;
    // A busy machine has no say in whether the end comes in time.
    let client = settings(&format!("{}/v1/", upstream.address));
    let backend = openai_by(Settings { release_wait: Duration::from_secs(5), ..client });
    for _ in 0..ANSWERS {
        assert_eq!(run(&backend, total()).await.1, None);
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_stream_that_does_not_end_behind_its_last_event_keeps_nobody_waiting() {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let mut steps = chunked(&(events(&[chunk("42"), finish]) + "data: [DONE]\n\n"));
    steps.truncate(1);
    let upstream = TestUpstream::start(vec![(CHAT, with(steps, [AnswerStep::Hang]))]).await;
    let mut generation = openai(&upstream.address).generate(total()).await.unwrap();
    // All of it came in one piece. From here on time passes only where it is waited for.
    let mut pieces = vec![generation.next().await.unwrap().unwrap()];
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    while let Some(piece) = generation.next().await {
        pieces.push(piece.unwrap());
    }
    assert!(matches!(pieces.last(), Some(Piece::End(_))), "{pieces:?}");
    let took = began.elapsed();
    assert!((20..=22).contains(&took.as_millis()), "{took:?}");
    drop(generation);
    upstream.left().await;
}

#[tokio::test]
async fn a_refused_connection_was_never_sent_and_names_no_address() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let failure = run(&openai(&address), total()).await.1.unwrap();
    assert_eq!((failure.fault, failure.unsent), (Fault::Backend, true));
    assert_eq!(failure.message, "the upstream could not be connected to: connection refused");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_never_answers_times_out_at_the_first_byte() {
    let start = tokio::time::Instant::now();
    let told = "the model's server sent nothing for 20.0 s; first_byte_timeout of its [[backend]] in the gateway's configuration \
                allows more";
    check(vec![AnswerStep::Hang], 0, Fault::Timeout, told, false).await;
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[test]
fn a_callers_deadline_lengthens_the_times_that_nobody_set() {
    let lengthened = LengthenedTimes { first_byte: true, total: true };
    let [stated, less] = [1_800, 5].map(|seconds| Some(Duration::from_secs(seconds)));
    let unset = Settings { lengthened, ..Settings::default() };
    assert_eq!(
        (unset.first_byte_within(stated), unset.total_within(stated)),
        (stated.unwrap(), stated.unwrap())
    );
    assert_eq!((unset.first_byte_within(less), unset.total_within(None)), (unset.first_byte, unset.total));
    let set = Settings::default();
    assert_eq!((set.first_byte_within(stated), set.total_within(stated)), (set.first_byte, set.total));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_falls_silent_times_out_between_pieces() {
    let steps = with(stream(&events(&[chunk("4")])), [AnswerStep::Hang]);
    check(steps, 1, Fault::Timeout, "the upstream fell silent", false).await;
    check(with(stream(""), [AnswerStep::Hang]), 0, Fault::Timeout, "the upstream fell silent", false).await;
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_trickles_is_ended_by_the_total_time() {
    let trickle =
        (0..20).flat_map(|_| [AnswerStep::Sleep(Duration::from_secs(9)), AnswerStep::Send(b":\n".to_vec())]);
    let steps = with(stream(""), trickle);
    check(steps, 0, Fault::Timeout, "the upstream took too long altogether", false).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_never_a_clean_end() {
    let truncated = "the upstream's stream broke off: upstream_truncated";
    let whole = events(&[chunk("4"), chunk("2")]);
    check(stream(&whole), 2, Fault::Backend, truncated, false).await;
    check(stream(&whole[..whole.len() - 2]), 2, Fault::Backend, truncated, false).await;
    check(stream(&whole[..whole.len() - 3]), 1, Fault::Backend, truncated, false).await;
    check(broken(&whole), 2, Fault::Backend, "the connection to the upstream broke", false).await;
    for word in ["", "stop"] {
        let said = json!({"choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": word}]});
        let steps = broken(&events(&[said.clone(), said]));
        check(steps, 2, Fault::Backend, "the connection to the upstream broke", false).await;
    }
}

/// A stream whose connection breaks.
fn broken(text: &str) -> Vec<AnswerStep> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    vec![AnswerStep::Send(format!("{head}{text}").into_bytes())]
}

/// Answers, says that it is done, and counts.
fn whole_answer() -> String {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let counts = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    events(&[chunk("42"), finish, counts])
}

#[tokio::test]
async fn an_answer_that_is_whole_is_kept_however_its_stream_ends() {
    let whole = whole_answer();
    for (steps, pieces) in [
        (broken(&whole), 3),
        (stream(&whole[..whole.len() - 1]), 3),
        (stream(&whole[..whole.len() - 3]), 2),
        (stream(&format!("{whole}data: [DO")), 3),
    ] {
        let upstream = TestUpstream::start(vec![(CHAT, steps)]).await;
        let (seen, failure) = run(&openai(&upstream.address), total()).await;
        assert_eq!((seen.len(), failure), (pieces, None), "{seen:?}");
        assert!(matches!(seen.last(), Some(Piece::End(GenerationEnd::Stop { .. }))), "{seen:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_whole_and_counted_does_not_wait_long_for_the_end_of_its_stream() {
    let steps = with(stream(&whole_answer()), [AnswerStep::Hang]);
    let upstream = TestUpstream::start(vec![(CHAT, steps)]).await;
    let mut generation = openai(&upstream.address).generate(total()).await.unwrap();
    let mut pieces = vec![generation.next().await.unwrap().unwrap()];
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    while let Some(piece) = generation.next().await {
        pieces.push(piece.unwrap());
    }
    assert!(matches!(pieces.last(), Some(Piece::End(_))), "{pieces:?}");
    assert_eq!(began.elapsed().as_secs(), 5);
    drop(generation);
    upstream.left().await;
}

#[tokio::test]
async fn a_failure_that_is_counted_is_told_behind_its_usage_and_without_its_text() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
    let gave_up = json!({"index": 0, "delta": {"content": "2"}, "finish_reason": "error"});
    let failing = [
        json!({"choices": [gave_up], "usage": usage}),
        json!({"error": {"message": "boom", "type": "server_error"}, "usage": usage}),
    ];
    for event in failing {
        let upstream = TestUpstream::start(vec![(CHAT, stream(&events(&[chunk("4"), event])))]).await;
        let (pieces, failure) = run(&openai(&upstream.address), total()).await;
        assert!(matches!(&pieces[0], Piece::Answer { text, .. } if text == "4"), "{pieces:?}");
        assert!(
            matches!(&pieces[1..], [Piece::Usage(it)] if (it.prompt, it.completion) == (Tokens(10), Tokens(5))),
            "{pieces:?}"
        );
        assert_eq!(failure.map(|failure| (failure.fault, failure.unsent)), Some((Fault::Backend, false)));
    }
}

#[tokio::test]
async fn an_error_in_a_stream_in_which_nothing_was_written_or_counted_costs_nothing() {
    let message = "the upstream's stream ended in an error 502";
    let error = || json!({"error": {"code": 502, "message": "gone"}});
    let silent = format!(": OPENROUTER PROCESSING\n\n{}", events(&[error()]));
    check(stream(&silent), 0, Fault::Backend, message, true).await;
    let counted = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    // Behind something that was written nobody knows what is billed.
    for (first, reported) in [(counted, true), (chunk("4"), false)] {
        let failure = check(stream(&events(&[first, error()])), 1, Fault::Backend, message, false).await;
        assert_eq!(failure.reported, reported);
    }
    let late = events(&[json!({"error": {"code": 504, "message": "too late"}})]);
    let message = "the upstream's stream ended in an error 504";
    check(stream(&late), 0, Fault::Backend, message, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_hidden_thought_behind_some_of_the_answer_may_be_silent_too() {
    let said = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
    let item = json!({"type": "reasoning"});
    let thinks = json!({"type": "response.output_item.added", "output_index": 1, "item": item});
    let ends = json!({"type": "response.completed", "response": {"status": "completed"}});
    let rest = events(&[said("It is 42."), ends]);
    for (first, fault) in
        [(vec![said("I look. "), thinks], None), (vec![said("I look. ")], Some(Fault::Timeout))]
    {
        let silent = AnswerStep::Sleep(Duration::from_secs(30));
        let steps = with(stream(&events(&first)), [silent, AnswerStep::Send(rest.clone().into_bytes())]);
        let upstream = TestUpstream::start(vec![("/v1/responses", steps)]).await;
        let client = settings(&format!("{}/v1/", upstream.address));
        let settings =
            responses::Settings { client, model: "m".to_owned(), ..responses::Settings::default() };
        let backend = OpenAiResponsesBackend::new(&Connections::default(), settings).unwrap();
        let (_, failure) = run(&backend, total()).await;
        assert_eq!(failure.map(|failure| failure.fault), fault);
    }
}

#[tokio::test]
async fn a_character_that_is_cut_or_broken_does_not_end_the_answer() {
    let raw = |text: &[u8]| {
        let event = [&b"data: {\"choices\":[{\"delta\":{\"content\":\""[..], text, b"\"}}]}\n\n"];
        AnswerStep::Send(event.concat())
    };
    let cut =
        [raw(br"h\ud83d"), raw(br"\ude00x"), raw(b"a\xffb"), AnswerStep::Send(b"data: [DONE]\n\n".to_vec())];
    let upstream = TestUpstream::start(vec![(CHAT, with(stream(""), cut))]).await;
    let (pieces, failure) = run(&openai(&upstream.address), total()).await;
    assert_eq!(failure, None);
    let texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Answer { text, .. } => Some(&**text),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), "h\u{1f600}xa\u{fffd}b");
}

#[tokio::test]
async fn something_other_than_a_stream_is_the_backends_fault() {
    let message = "the upstream answered with something other than a stream";
    let text = answer("200 OK", "content-type: text/plain\r\n", "42");
    check(text, 0, Fault::Backend, message, false).await;
    let truncated = "the upstream's stream broke off: upstream_truncated";
    check(json(&json!({"choices": []})), 0, Fault::Backend, truncated, false).await;
}

#[tokio::test]
async fn a_success_that_is_no_answer_costs_nothing() {
    let html = || answer("200 OK", "content-type: text/html\r\n", "<html>login</html>");
    let empty = || answer("204 No Content", "", "");
    let full = json!({"error": {"message": "slow down", "code": 429}});
    let overloaded = "the upstream answered with an error 429";
    check(html(), 0, Fault::Backend, "the upstream answered with a page of HTML", true).await;
    check(empty(), 0, Fault::Backend, "the upstream answered with nothing", true).await;
    check(json(&full), 0, Fault::Overload, overloaded, true).await;
    for steps in [html(), empty(), json(&full)] {
        let upstream = TestUpstream::start(vec![(CHAT, steps.clone()), ("/v1/embeddings", steps)]).await;
        let backend = openai(&upstream.address);
        let whole = run(&backend, BackendCall { whole: true, ..total() }).await.1;
        let inputs = EmbeddingInputs::Texts(vec!["a".to_owned()]);
        let (episode, episode_limits, extra) = (None, EpisodeLimits::default(), Map::new());
        let unknown_members = Map::new();
        let ask = EmbeddingRequest {
            model: "m".to_owned(),
            inputs,
            episode,
            episode_limits,
            extra,
            unknown_members,
        };
        let embedded = backend.embed(Arc::new(ask)).await.err();
        assert_eq!([whole, embedded].map(|failure| failure.map(|failure| failure.unsent)), [Some(true); 2]);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_to_who_asked_for_a_stream_is_read() {
    let choice = json!({"index": 0, "message": {"content": "42"}, "finish_reason": "stop"});
    let upstream =
        TestUpstream::start(vec![(CHAT, json(&json!({"choices": [choice], "error": null})))]).await;
    let (pieces, failure) = run(&openai(&upstream.address), total()).await;
    assert_eq!((pieces.len(), failure), (2, None));
    assert!(matches!(&pieces[0], Piece::Answer { text, .. } if text == "42"), "{pieces:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let steps = answer("307 Temporary Redirect", "location: http://127.0.0.1:9/v1\r\n", "");
    check(steps, 0, Fault::Backend, "the upstream answered 307", true).await;
}

#[tokio::test]
async fn a_refusal_is_told_without_our_key() {
    let body = json!({"error": {"message": format!("bad key {KEY} or ({KEY}) at https://x.example/{KEY}")}});
    let failure = check(
        answer("401 Unauthorized", "", &body.to_string()),
        0,
        Fault::Credential,
        "the upstream answered 401",
        true,
    )
    .await;
    assert_eq!(failure.retry_after, None);
}

#[tokio::test]
async fn our_key_is_in_nothing_that_the_caller_reads() {
    let error = json!({"error": {"code": 400, "message": format!("no ({KEY}) at https://x.example/{KEY}")}});
    let refused = answer("400 Bad Request", "", &error.to_string());
    check(refused, 0, Fault::Caller, "no (…) at …", true).await;
    check(stream(&events(&[error])), 0, Fault::Caller, "no (…) at …", true).await;
}

#[tokio::test]
async fn an_overloaded_upstream_says_when_to_come_back() {
    let steps = answer("429 Too Many Requests", "retry-after: 2\r\n", "");
    let failure = check(steps, 0, Fault::Overload, "the upstream answered 429", true).await;
    assert_eq!(failure.retry_after, Some(Duration::from_secs(2)));
}

#[tokio::test]
async fn an_event_without_end_is_cut_off() {
    let steps = with(stream("data: "), (0..129).map(|_| AnswerStep::Send(vec![b'x'; 32 << 10])));
    let message = "the upstream sent a line of more than 4194304 bytes: upstream_event_too_large";
    check(steps, 0, Fault::Backend, message, false).await;
}

#[tokio::test]
async fn hanging_up_hangs_up_on_the_upstream() {
    let steps = with(stream(&events(&[chunk("4")])), [AnswerStep::Hang]);
    let upstream = TestUpstream::start(vec![(CHAT, steps)]).await;
    let mut generation = openai(&upstream.address).generate(total()).await.unwrap();
    generation.next().await.unwrap().unwrap();
    drop(generation);
    upstream.left().await;
}

const PROMPT: &str = "<|im_start|>user\n12+30*4?<|im_end|>\n<|im_start|>assistant\n<think>\n";
const CLOSED: &str = "<|im_start|>user\n12+30*4?<|im_end|>\n<|im_start|>assistant\n<think>\n</think>\n\n";

fn token(text: &str, id: u32) -> Value {
    json!({"index": 0, "content": text, "tokens": [id], "stop": false})
}

fn last(stop_type: &str, predicted: u64, evaluated: u64) -> Value {
    json!({"index": 0, "content": "", "tokens": [], "stop": true, "stop_type": stop_type, "truncated": false,
        "tokens_predicted": predicted, "tokens_evaluated": evaluated})
}

/// A server that renders `prompts` in turn, knows the tokens of our texts, and completes as told.
async fn server(prompts: &[&str], completion: &[Value]) -> TestUpstream {
    server_and(prompts, completion, Vec::new()).await
}

/// The same, with more to say.
async fn server_and(
    prompts: &[&str],
    completion: &[Value],
    more: Vec<(&'static str, Vec<AnswerStep>)>,
) -> TestUpstream {
    let rendered = prompts.iter().map(|prompt| ("/apply-template", json(&json!({"prompt": prompt}))));
    let known = [json!([26, 4, 8]), json!([3]), json!([4])];
    let known = known.map(|ids| ("/tokenize", json(&json!({"tokens": ids}))));
    let completion = ("/completion", stream(&events(completion)));
    TestUpstream::start(rendered.chain(known).chain([completion]).chain(more).collect()).await
}

fn thought(text: &str, id: u32) -> Piece {
    Piece::Thought { text: text.to_owned(), tokens: Tokens(1), ids: vec![id] }
}

fn written(text: &str) -> Piece {
    Piece::Answer { text: text.to_owned(), tokens: Tokens(1) }
}

fn usage(prompt: u64, completion: u64) -> Piece {
    Piece::Usage(TokenUsage {
        prompt: Tokens(prompt),
        completion: Tokens(completion),
        ..TokenUsage::default()
    })
}

#[tokio::test]
async fn a_thought_that_the_model_closes_ends_with_its_tag() {
    let said = [token("1", 65), token("\n", 26), token("", 4), last("word", 3, 18)];
    let upstream = server(&[PROMPT], &said).await;
    let part = GenerationPart::Thought { thinking: Tokens(40), solution: Tokens(8) };
    let (pieces, failure) = run(&llamacpp(&upstream.address), call(part)).await;
    let tag = Piece::Tag { tokens: Tokens(1), edge: TagEdge::End };
    let end = Piece::End(GenerationEnd::Stop { tokens: Tokens::ZERO });
    assert_eq!(pieces, [thought("1", 65), thought("\n", 26), tag, usage(18, 3), end]);
    assert_eq!(failure, None);
    assert_eq!(upstream.asked().last().unwrap().body["prompt"], PROMPT);
}

#[tokio::test]
async fn a_cut_thought_is_closed_by_our_hand_off() {
    let said = [token("1", 65), token("2", 66), token("", 2), last("eos", 3, 23)];
    let upstream = server(&[PROMPT], &said).await;
    let thought = Thought { ids: vec![67, 64], text: "30".to_owned(), closed: false };
    let part = GenerationPart::after_thought(thought, Tokens(9));
    let (pieces, failure) = run(&llamacpp(&upstream.address), call(part)).await;
    let (hand_off, end) =
        (Piece::HandOff { tokens: Tokens(3) }, Piece::End(GenerationEnd::Stop { tokens: Tokens(1) }));
    assert_eq!(pieces, [hand_off, written("1"), written("2"), usage(23, 3), end]);
    assert_eq!(failure, None);
    let asked = upstream.asked();
    let body = &asked.last().unwrap().body;
    assert_eq!(body["prompt"], json!([PROMPT, 67, 64, "\n</think>\n\n"]));
    assert_eq!(body["logit_bias"], json!([[3, false], [4, false]]));
}

#[tokio::test]
async fn a_thought_that_is_cut_behind_what_looks_like_the_tag_is_whole() {
    let said = || [token("1", 65), token("", 76), last("limit", 2, 18)];
    let part = || GenerationPart::Thought { thinking: Tokens(2), solution: Tokens(8) };
    let known = [json!({"content": "<"}), json!({"content": "\u{fffd}"})].map(|answer| json(&answer));
    let broken = answer("500 Internal Server Error", "", "");
    for (answer, text) in known.into_iter().chain([broken]).zip(["<", "", ""]) {
        let upstream = server_and(&[PROMPT], &said(), vec![("/detokenize", answer)]).await;
        let (pieces, failure) = run(&llamacpp(&upstream.address), call(part())).await;
        let end = Piece::End(GenerationEnd::Limit);
        assert_eq!((pieces, failure), (vec![thought("1", 65), thought(text, 76), usage(18, 2), end], None));
        assert_eq!(upstream.asked().last().unwrap().body, json!({"tokens": [76]}));
    }
}

#[tokio::test]
async fn a_closed_thought_is_resumed_after_its_tag() {
    let said = [token("\n\n", 8), token("42", 66), last("limit", 2, 23)];
    let upstream = server(&[PROMPT], &said).await;
    let thought = Thought { ids: vec![67], text: "3".to_owned(), closed: true };
    let part = GenerationPart::after_thought(thought, Tokens(2));
    let (pieces, _) = run(&llamacpp(&upstream.address), call(part)).await;
    assert_eq!(pieces, [written("\n\n"), written("42"), usage(23, 2), Piece::End(GenerationEnd::Limit)]);
    assert_eq!(upstream.asked().last().unwrap().body["prompt"], json!([PROMPT, 67, "</think>"]));
}

#[tokio::test]
async fn no_thought_at_all_is_closed_by_the_template_where_it_can() {
    let part = || GenerationPart::after_thought(Thought::default(), Tokens(2));
    let said = [token("42", 66), last("limit", 1, 20)];
    let upstream = server(&[PROMPT, CLOSED], &said).await;
    let (pieces, _) = run(&llamacpp(&upstream.address), call(part())).await;
    assert_eq!(pieces, [written("42"), usage(20, 1), Piece::End(GenerationEnd::Limit)]);
    assert_eq!(upstream.asked().last().unwrap().body["prompt"], CLOSED);

    let upstream = server(&["user: hi", "user: hi"], &said).await;
    let (pieces, _) = run(&llamacpp(&upstream.address), call(part())).await;
    assert_eq!(pieces[0], Piece::HandOff { tokens: Tokens(3) });
    // One text: several would be several prompts.
    let prompt = "user: hi<think>\n\n</think>\n\n";
    assert_eq!(upstream.asked().last().unwrap().body["prompt"], prompt);
}

#[tokio::test]
async fn a_prompt_beyond_the_context_has_its_own_code() {
    let body = json!({"error": {"code": 400, "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error", "n_prompt_tokens": 90, "n_ctx": 64}});
    let rendered = ("/apply-template", json(&json!({"prompt": PROMPT})));
    let known = || ("/tokenize", json(&json!({"tokens": [4]})));
    let refused =
        ("/completion", answer("400 Bad Request", "content-type: application/json\r\n", &body.to_string()));
    let upstream = TestUpstream::start(vec![rendered, known(), known(), known(), refused]).await;
    let failure = run(
        &llamacpp(&upstream.address),
        call(GenerationPart::Thought { thinking: Tokens(4), solution: Tokens(8) }),
    )
    .await
    .1
    .unwrap();
    assert_eq!((failure.fault, failure.unsent), (Fault::Caller, true));
    assert_eq!(failure.code, Some("context_length_exceeded"));
}

/// The real one closes connections without having said so.
#[tokio::test]
async fn every_request_to_a_llama_cpp_server_has_a_connection_of_its_own() {
    let rendered = || ("/apply-template", json(&json!({"prompt": PROMPT})));
    let known = || ("/tokenize", json(&json!({"tokens": [4]})));
    let said = || ("/completion", chunked(&events(&[token("1", 65), last("limit", 1, 18)])));
    let says = vec![rendered(), known(), known(), known(), said(), rendered(), said()];
    let upstream = TestUpstream::start(says).await;
    let backend = llamacpp(&upstream.address);
    for _ in 0..2 {
        assert_eq!(
            run(&backend, call(GenerationPart::Thought { thinking: Tokens(1), solution: Tokens(8) })).await.1,
            None
        );
    }
    assert_eq!(upstream.connections(), upstream.asked().len());
}

#[tokio::test]
async fn a_server_that_dies_while_thinking_is_a_failure() {
    let upstream = server(&[PROMPT], &[token("1", 65)]).await;
    let part = GenerationPart::Thought { thinking: Tokens(4), solution: Tokens(8) };
    let (pieces, failure) = run(&llamacpp(&upstream.address), call(part)).await;
    assert_eq!(pieces, [thought("1", 65)]);
    assert_eq!(failure.unwrap().fault, Fault::Backend);
}
