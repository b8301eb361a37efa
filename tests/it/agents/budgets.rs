//! What a run may take, and what happens when it is used up.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::harness::patience::within;
use crate::harness::{Served, Stored, World, auto, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_backend::{Backend, Failure, Fault};
use stint_ledger::MemoryJournal;
use stint_sessions::agent::{self, ToolTerms, Tools};
use stint_types::chat::{Message, Role};
use stint_types::units::Money;

use super::{Agent, caller, calls, may_call, play, run, search, searching, world};

#[tokio::test]
async fn a_run_gets_the_calls_of_its_budget_and_is_then_asked_for_its_answer() {
    let script = searching(4);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "search": 6 } }));
    let first = agent.step(&world).await;
    assert_eq!((calls(&first), &first["choices"][0]["finish_reason"]), (4, &json!("tool_calls")), "{first}");
    assert_eq!(first["budget"]["tool_calls"]["used"], 4);
    assert_eq!(first["budget"]["episode"]["tool_calls"]["tools"]["search"], json!({ "used": 4, "left": 2 }));
    let second = agent.step(&world).await;
    assert_eq!((calls(&second), run(&second)), (2, run(&first)), "{second}");
    assert_eq!(second["budget"]["tool_calls"], json!({ "used": 2, "trimmed": 2 }));
    // The other tool is not limited, so the run goes on without the one that is used up.
    let third = agent.step(&world).await;
    assert_eq!(run(&third), run(&first));
    let asked = &script.records()[2].call.request;
    assert_eq!((asked.tools.len(), &*asked.withheld_tools), (2, &["search".into()][..]), "all stay declared");
    assert_eq!(calls(&third), 0, "a call of what is withheld does not pass: {third}");
    let page = world.get("sk-acme", &format!("/v1/episodes/{}", run(&first))).await.good();
    assert_eq!(page["tool_calls"]["tools"]["search"], json!({ "used": 6, "left": 0 }), "{page}");
    assert_eq!(
        (&page["turns"]["used"], &page["limits"]),
        (&json!(3), &json!({ "tool_calls": { "search": 6 } }))
    );
    assert_eq!(world.get("sk-other", &format!("/v1/episodes/{}", run(&first))).await.status, 404);
    let metrics = world.metrics_page();
    assert!(metrics.contains("stint_tool_calls_total{decision=\"passed\"} 6\n"), "{metrics}");
}

#[tokio::test]
async fn where_all_tools_are_used_up_none_may_be_called() {
    let script = searching(3);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 3 }, "episode": "task-1" }));
    let first = agent.ask(&world).await;
    assert_eq!(first.headers["x-episode-id"], "task-1");
    assert_eq!(calls(&agent.hear(&first)), 3);
    let last = agent.step(&world).await;
    let asked = &script.records()[1].call.request;
    assert_eq!(
        (asked.tool_choice.as_ref(), asked.tools.len()),
        (Some(&json!("none")), 2),
        "they stay declared"
    );
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["choices"][0]["message"]["content"].as_str().unwrap().trim(), "the answer");
    assert_eq!((&last["budget"]["episode"]["final"], run(&last)), (&json!(true), "task-1"));
    let expected = json!({ "used": 0, "left": 0, "withheld": ["search", "browse"] });
    assert_eq!(last["budget"]["tool_calls"], expected);
}

#[tokio::test]
async fn a_call_with_four_queries_counts_for_four_and_costs_four() {
    let script = Arc::new(ScriptedBackend::each(|call, _| match may_call(&call.request) {
        true => ScriptedReply::new().calls(search(
            &call.request,
            0,
            &json!({ "queries": ["a", "b", "c", "d"], "n": 5 }),
        )),
        false => ScriptedReply::new().answers("the answer"),
    }));
    let terms = ToolTerms { price: Money(1_000), counts: Some("queries".into()) };
    let tools = Tools([("search".into(), terms)].into());
    let world = world(&script, agent::Settings { tools, ..agent::Settings::default() }).await;
    let budget =
        json!({ "tool_calls": { "search": 6, "*": 6 }, "episode": { "id": "e", "cost_usd": "0.01" } });
    let mut agent = Agent::new("sk-acme", &budget);
    let first = agent.step(&world).await;
    assert_eq!(first["budget"]["episode"]["tool_calls"]["tools"]["search"], json!({ "used": 4, "left": 2 }));
    let cost: f64 = first["budget"]["cost_usd"].as_str().unwrap().parse().unwrap();
    assert!(cost >= 0.000_004, "four queries are paid: {first}");
    let second = agent.step(&world).await;
    let arguments =
        second["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(arguments, json!({ "queries": ["a", "b"], "n": 5 }), "only two were left");
    let last = agent.step(&world).await;
    assert_eq!((calls(&last), &last["budget"]["episode"]["tool_calls"]["used"]), (0, &json!(6)), "{last}");
    let all = &last["budget"]["episode"];
    let spent: f64 = all["cost_usd"].as_str().unwrap().parse().unwrap();
    let left: f64 = all["left_usd"].as_str().unwrap().parse().unwrap();
    assert!((spent + left - 0.01).abs() < 1e-9 && spent > 0.000_006, "{all}");
}

/// The tracker is for the model alone. What it was told once stands in every later prompt, and what is new behind all of that.
#[tokio::test]
async fn what_is_left_is_told_at_the_end_of_the_context_and_stays_there() {
    let script = searching(1);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 2 }, "turns": 9 }));
    for _ in 0..3 {
        let answer = agent.step(&world).await;
        assert!(!answer.to_string().contains("<budget>"), "{answer}");
    }
    let sent: Vec<_> = script.records().into_iter().map(|record| record.call.request).collect();
    for (request, used) in sent.iter().zip(0..) {
        let last = request.messages.last().unwrap().plain_text();
        assert!(last.ends_with("</budget>"), "{last:?}");
        assert!(last.contains(&format!("all tools: {used} used, {} left", 2 - used)), "{last:?}");
    }
    for (before, after) in sent.iter().zip(&sent[1..]) {
        assert_eq!(before.messages, after.messages[..before.messages.len()]);
        assert_eq!(before.tools, after.tools);
    }
    assert_eq!(sent[1].messages.last().unwrap().role, Role::Tool);
    assert_eq!(
        run(&agent.step(&world).await),
        run(&agent.step(&world).await),
        "it is no part of the history"
    );
}

#[tokio::test]
async fn a_run_keeps_the_price_of_its_answer() {
    // A word is a token, which costs four; a prompt is read at a nano-dollar for each.
    let script = Arc::new(ScriptedBackend::each(|call, _| play(&call.request, 1)));
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "episode": { "id": "poor", "cost_usd": "0.000006" } }));
    let mut steps = 0;
    let last = loop {
        let answer = agent.ask(&world).await;
        assert_eq!(answer.status, 200, "no step is refused before the answer: {}", answer.text);
        let answer = agent.hear(&answer);
        steps += 1;
        assert!(steps < 60, "{answer}");
        if calls(&answer) == 0 {
            break answer;
        }
    };
    assert!(steps > 1, "there was money for more than the answer");
    assert_eq!(last["budget"]["episode"]["final"], true, "{last}");
    assert_eq!(last["choices"][0]["message"]["content"].as_str().unwrap().trim(), "the answer");
    let spent: f64 = last["budget"]["episode"]["cost_usd"].as_str().unwrap().parse().unwrap();
    assert!(spent <= 0.000_006, "{last}");
    let mut refused = agent.ask(&world).await;
    for _ in 0..20 {
        if refused.status != 200 {
            break;
        }
        refused = agent.ask(&world).await;
    }
    let error = refused.error();
    assert_eq!((refused.status, &error["budget"]["limit"]), (429, &json!("episode money")), "{error}");
    assert_eq!(refused.headers["x-should-retry"], "false");
}

#[tokio::test]
async fn the_last_turn_is_the_answer_and_after_it_there_is_none() {
    let script = searching(2);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "episode": { "id": "short", "turns": 2 } }));
    assert_eq!(calls(&agent.step(&world).await), 2);
    let last = agent.step(&world).await;
    assert_eq!(last["budget"]["episode"]["turns"], json!({ "used": 2, "left": 0 }), "{last}");
    assert_eq!((calls(&last), &last["budget"]["episode"]["final"]), (0, &json!(true)));
    let refused = agent.ask(&world).await;
    assert_eq!((refused.status, &refused.error()["budget"]["limit"]), (429, &json!("episode turns")));
    let story = world.get("sk-acme", "/v1/allowance").await;
    assert_eq!(story.status, 200);
}

#[tokio::test]
async fn a_quote_is_made_on_what_the_run_leaves() {
    let script = searching(3);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 3 }, "episode": "q" }));
    let quoted = world.post("/v1/plan", "sk-acme", &agent.body()).await.good();
    assert!(!quoted["why"].as_str().unwrap().contains("final answer"), "{quoted}");
    assert_eq!(world.get("sk-acme", "/v1/episodes/q").await.status, 404, "nothing is begun");
    agent.step(&world).await;
    let quoted = world.post("/v1/plan", "sk-acme", &agent.body()).await.good();
    assert!(quoted["why"].as_str().unwrap().contains("final answer"), "{quoted}");
}

#[tokio::test]
async fn a_run_in_circles_saves_only_money_that_somebody_limited() {
    let world = world(&searching(1), agent::Settings::default()).await;
    let quoted = async |budget: serde_json::Value| {
        let mut agent = Agent::new("sk-acme", &budget);
        for turn in 0..3 {
            let id = format!("c{turn}");
            let function = json!({ "name": "search", "arguments": "{}" });
            let call = json!({ "id": id, "type": "function", "function": function });
            agent.messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
            agent.messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "1 failed" }));
        }
        let quoted = world.post("/v1/plan", "sk-acme", &agent.body()).await.good();
        quoted["why"].as_str().unwrap().to_owned()
    };
    let why = quoted(json!({})).await;
    assert!(!why.contains("dollar"), "{why}");
    let why = quoted(json!({ "episode": { "id": "poor", "cost_usd": "0.5" } })).await;
    assert!(why.contains("a dollar of the run's budget counts twice, since it goes in circles"), "{why}");
}

/// AGENT: ten thousand results are read at every step, and bound the calls where nobody else has counted them.
#[tokio::test]
async fn ten_thousand_results_are_read() {
    let script = searching(8);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "search": 10_005, "browse": 0 } }));
    for turn in 0..1_000 {
        let call = |index| {
            let function = json!({ "name": "search", "arguments": format!("{{\"q\":{turn}}}") });
            json!({ "id": format!("c{turn}_{index}"), "type": "function", "function": function })
        };
        let calls: Vec<_> = (0..10).map(call).collect();
        agent.messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        for index in 0..10 {
            let id = format!("c{turn}_{index}");
            agent
                .messages
                .push(json!({ "role": "tool", "tool_call_id": id, "content": format!("{turn} {index}") }));
        }
    }
    let answer = within(Duration::from_secs(20), agent.step(&world)).await.expect("in a moment");
    assert_eq!(calls(&answer), 5, "{}", answer["budget"]);
}

fn nanos(answer: &serde_json::Value, member: &str) -> u64 {
    let dollars: Money = answer["budget"][member].as_str().and_then(|text| text.parse().ok()).unwrap();
    dollars.0
}

/// Four bytes of a prompt are a token there, which only its provider knows.
#[tokio::test]
async fn what_was_counted_of_a_run_s_last_prompt_bounds_the_next_one() {
    let script = ScriptedBackend::each(|call, _| play(&call.request, 1)).of_bytes(4);
    let world = world(&Arc::new(script), agent::Settings::default()).await;
    let budget = json!({ "tool_calls": { "search": 9 }, "episode": { "id": "long", "cost_usd": "0.01" } });
    let mut agent = Agent::new("sk-acme", &budget).about(&"Who was it? ".repeat(2_000));
    let first = agent.step(&world).await;
    assert!(nanos(&first, "reserved_usd") > 24_000, "of the first prompt only the bytes are known: {first}");
    for turn in 0..5 {
        let answer = agent.step(&world).await;
        let (reserved, cost) = (nanos(&answer, "reserved_usd"), nanos(&answer, "cost_usd"));
        assert!(reserved < 12_000 && cost <= reserved, "turn {turn}: {answer}");
    }
    // The same conversation under other instructions: they are taken by their bytes, and all else as it was counted.
    let mut body = agent.body();
    let told = json!({ "role": "system", "content": "It is noon.".repeat(1_000) });
    body["messages"].as_array_mut().unwrap().insert(0, told);
    let answer = world.ask("sk-acme", &body).await.good();
    assert!((17_000..28_000).contains(&nanos(&answer, "reserved_usd")), "{answer}");
}

/// Two targets of one model that take turns: of one, four bytes are a token, of the other each byte.
#[tokio::test]
async fn what_one_tokenizer_counted_bounds_no_prompt_of_another() {
    let target = |own: usize, bytes| -> Arc<dyn Backend> {
        let script = ScriptedBackend::each(move |call, _| {
            let is_reply = |message: &&Message| message.role == Role::Assistant;
            match call.request.messages.iter().filter(is_reply).count() % 2 == own {
                true => play(&call.request, 1),
                false => ScriptedReply::new().refuses(Failure::new(Fault::Backend, "it is not my turn")),
            }
        });
        Arc::new(script.of_bytes(bytes))
    };
    let targets = vec![target(0, 4), target(1, 1)];
    let served = Served { readers: vec!["four", "one"], ..Served::by(caller("m"), targets) };
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    let world = World::agents(vec![served], vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await;
    let budget = json!({ "tool_calls": { "search": 9 } });
    let mut agent = Agent::new("sk-acme", &budget).about(&"Who was it? ".repeat(2_000));
    for turn in 0..4 {
        let answer = agent.step(&world).await;
        let (reserved, cost) = (nanos(&answer, "reserved_usd"), nanos(&answer, "cost_usd"));
        assert!(cost <= reserved, "turn {turn}: {cost} of {reserved}: {answer}");
    }
}
