//! Anthropic's models that accept each thought only behind what it was thought behind: whole runs with limits, retries,
//! parallel calls and further questions.

use serde_json::{Value, json};

use crate::harness::World;
use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::{Emulator, Turn};
use stint_backend::remote::anthropic::{AnthropicBackend, AnthropicThinking, AnthropicThinkingOff, Settings};
use stint_backend::remote::{CachePolicy, Caching, Connections};
use stint_types::catalog::{ConversationRules, EffortLevel, EnforcementClass, Model};
use stint_types::units::Tokens;

use super::{client, large, message, message_of_chunks, world};

const EPISODES: u64 = 20;
const TURNS_MAX: usize = 12;

/// What a model says is the same for the same run and turn.
fn turn(body: &Value) -> Turn {
    let text = body["messages"].to_string();
    let run: u64 =
        text.split("run ").nth(1).and_then(|rest| rest.split('.').next()?.parse().ok()).unwrap_or(0);
    let messages = body["messages"].as_array().unwrap();
    let taken = messages.iter().filter(|message| message["role"] == "assistant").count() as u64;
    let luck = (run * 31 + taken * 17) % 7;
    if body["tool_choice"]["type"] == "none" || taken % 5 == 4 {
        return Turn::answers(20 + luck, "it is a cat");
    }
    // Some call one tool alone, also when it is used up; some several at once, beyond what is left.
    let name =
        |at: u64| if run.is_multiple_of(3) || (luck + at).is_multiple_of(2) { "search" } else { "browse" };
    let calls: Vec<_> =
        (0..1 + luck % 4).map(|at| (name(at), json!({ "q": format!("{taken}.{at}") }))).collect();
    let answer = if luck.is_multiple_of(2) { "I look for it" } else { "" };
    Turn { answer: answer.to_owned(), ..Turn::calls(if luck == 3 { 0 } else { 10 + luck }, &calls) }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_whole_runs_no_thought_is_refused_and_each_prompt_finds_what_was_kept_of_the_one_before() {
    let emulator = Emulator::start_by(Provider::default(), turn);
    let settings = Settings {
        client: client(&emulator),
        model: "claude-bound".to_owned(),
        name: "m".into(),
        thinking: AnthropicThinking::Adaptive,
        thinking_off: AnthropicThinkingOff::Never,
        asks_for_thoughts: true,
        sampling: false,
        cache: CachePolicy { caching: Caching::Always, ..CachePolicy::default() },
        rules: ConversationRules {
            thoughts_bound: true,
            late_instructions: true,
            late_tools: true,
            ..ConversationRules::default()
        },
        ..Settings::default()
    };
    let efforts = vec![EffortLevel { word: "high".to_owned(), usual: Tokens(2000) }];
    let model = Model { efforts, thinks_always: true, ..large("m", &[EnforcementClass::Effort]) };
    let backend = AnthropicBackend::new(&Connections::default(), settings).unwrap();
    let world = world(vec![(model, std::sync::Arc::new(backend))]).await;
    futures_util::future::join_all((0..EPISODES).map(|run| go(&world, run))).await;
    assert_eq!(
        emulator.refused(),
        [],
        "no thought stood behind anything else than what it was thought behind"
    );
    let bills = emulator.bills();
    let (read, prompt): (u64, u64) =
        (bills.iter().map(|bill| bill.cache_read).sum(), bills.iter().map(|bill| bill.prompt).sum());
    assert!(bills.len() >= 100 && 10 * read > 6 * prompt, "{read} of {prompt} in {}", bills.len());
}

/// A run up to the answer to its second question.
async fn go(world: &World, run: u64) {
    let mut messages = vec![json!({ "role": "user", "content": format!("What is behind run {run}. ?") })];
    let mut questions = 1;
    for turn in 0..TURNS_MAX {
        let body = json!({
            "model": "m", "messages": messages, "tools": [tool("search"), tool("browse")],
            "reasoning_effort": "high", "stream": turn % 2 == 1,
            "budget": { "tool_calls": { "search": 3, "*": 8 } },
        });
        let answer = world.ask("sk-acme", &body).await;
        let said = if turn % 2 == 1 { message_of_chunks(&answer) } else { message(&answer) };
        let calls = said["tool_calls"].as_array().cloned().unwrap_or_default();
        messages.push(said);
        if calls.is_empty() && questions == 2 {
            return;
        }
        if calls.is_empty() {
            questions += 1;
            messages.push(json!({ "role": "user", "content": "And before that?" }));
        }
        messages.extend(calls.iter().map(
            |call| json!({ "role": "tool", "tool_call_id": call["id"], "content": format!("a dog {turn}") }),
        ));
    }
}

fn tool(name: &str) -> Value {
    let parameters = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    json!({ "type": "function", "function": { "name": name, "description": "it finds things ".repeat(20), "parameters": parameters } })
}
