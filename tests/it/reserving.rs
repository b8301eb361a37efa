//! What is reserved for a request, and what becomes of it: caps, tries, prices, and agents that do not end.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::harness::{Answer, Folder, Process, World, model, tenant};
use crate::operating::silent_upstream;
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_types::catalog::{EnforcementClass, Model, Prices, Tariff};
use stint_types::tenant::{AccountTerms, TenantLimit};
use stint_types::units::{Amount, Count, Money, Price, Tokens, Window};

/// One nano-dollar a token, read or written.
fn plain(class: EnforcementClass) -> Model {
    let price = Price { per_million_tokens: Money(1_000_000) };
    Model { tariff: Some(Tariff::plain(Prices { input: price, output: price })), ..model("m", class) }
}

fn question(more: &Value) -> Value {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 1+2?" }] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn world(class: EnforcementClass, play: ScriptedReply, nanos: u64) -> (World, Arc<ScriptedBackend>) {
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    let models = vec![(plain(class), script.clone())];
    (World::new(models, vec![tenant("key", nanos)]).await, script)
}

fn nanos(value: &Value) -> u64 {
    value.as_str().unwrap_or_else(|| panic!("{value}")).parse::<Money>().unwrap().0
}

/// LB-15: what is no cap is refused by name, and nothing is reserved for it.
#[tokio::test]
async fn caps_that_are_none_are_refused_by_name() {
    let (world, script) =
        world(EnforcementClass::Inline, ScriptedReply::new().thinks(3).answers("3"), 1_000_000).await;
    for member in ["max_tokens", "max_completion_tokens"] {
        for cap in [
            "0",
            "-1",
            "1.5",
            "1e400",
            "NaN",
            "\"64\"",
            "[64]",
            "18446744073709551616",
            "-9223372036854775808",
        ] {
            let body =
                format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"{member}":{cap}}}"#);
            let request = world.client.post(format!("{}/v1/chat/completions", world.base));
            let request = request.bearer_auth("sk-key").header("content-type", "application/json");
            let answer = Answer::of(request.body(body)).await;
            assert_eq!(answer.status, 400, "{member} = {cap}: {}", answer.text);
            // What is no JSON has no members.
            let is_json = !matches!(cap, "NaN" | "1e400");
            assert!(!is_json || answer.error()["param"] == member, "{member} = {cap}: {}", answer.text);
        }
    }
    for (more, param) in [
        (json!({ "n": 128 }), "n"),
        (json!({ "n": 1_u64 << 40 }), "n"),
        (json!({ "n": -1 }), "n"),
        (json!({ "best_of": 4 }), "best_of"),
    ] {
        let answer = world.ask("sk-key", &question(&more)).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(param)), "{more}");
    }
    assert_eq!((script.records().len(), world.account("key").spent.money), (0, Money::ZERO));
}

/// LB-15: what is reserved is the enforced cap, for each choice: the lesser of two, and none beyond what the model has.
#[tokio::test]
async fn what_is_reserved_is_the_cap_that_is_enforced() {
    let (world, _) =
        world(EnforcementClass::Inline, ScriptedReply::new().thinks(3).answers("3"), 10_000_000).await;
    let reserved = async |more: Value| {
        let answer = world.ask("sk-key", &question(&more)).await.good();
        let (reserved, cost) = (&answer["budget"]["reserved_usd"], &answer["budget"]["cost_usd"]);
        assert!(nanos(reserved) >= nanos(cost), "{answer}");
        nanos(reserved)
    };
    let prompt = 75;
    assert_eq!(
        reserved(json!({ "max_completion_tokens": 100, "budget": { "thinking_tokens": 500 } })).await,
        prompt + 100
    );
    assert_eq!(
        reserved(
            json!({ "max_tokens": 90, "max_completion_tokens": 100, "budget": { "thinking_tokens": 500 } })
        )
        .await,
        prompt + 90
    );
    let one = json!({ "budget": { "thinking_tokens": 10, "solution_tokens": 20 } });
    let each = reserved(one.clone()).await;
    assert_eq!(each, prompt + 10 + 5 + 20);
    for n in [2, 8] {
        let mut more = one.clone();
        more["n"] = json!(n);
        assert_eq!(reserved(more).await, n * each);
    }
    let huge = json!({ "max_completion_tokens": i64::MAX as u64 + 1 });
    let context = plain(EnforcementClass::Inline).context.0;
    assert!(reserved(huge).await <= context, "a cap beyond the context is the context");
    assert!(reserved(json!({})).await <= context, "so is none");
}

/// LB-16: whatever the model does, and however it was asked, a request costs at most what was reserved for it, or the
/// rest is booked as overrun.
#[tokio::test]
async fn whatever_a_model_does_it_costs_what_was_reserved_at_most() {
    let budgets = prop_oneof![1 => Just(0), 4 => 0..300_u64];
    let corpus = (0..400_usize, 0..60_usize, budgets, 1..80_u64, 1..3_u64, 0..4_usize, any::<bool>());
    let (mut runner, mut whole) = (TestRunner::deterministic(), 0);
    for case in 0..200_usize {
        let (thinks, words, budget, solution, n, ending, stream) =
            corpus.new_tree(&mut runner).unwrap().current();
        let class = [
            EnforcementClass::Inline,
            EnforcementClass::Continue,
            EnforcementClass::Effort,
            EnforcementClass::Native,
        ][case % 4];
        let play = ScriptedReply::new()
            .thinks(thinks)
            .answers(&"word ".repeat(words))
            .answers_when_cut(&"cut ".repeat(words));
        let play = match ending {
            0 => play.stops_thinking(),
            1 => play.breaks_after(thinks / 2 + 1, Failure::new(Fault::Backend, "gone")),
            2 if class == EnforcementClass::Effort => play.hides_thoughts(),
            _ => play,
        };
        let (world, _) = world(class, play, u64::MAX / 1_000_000).await;
        let body = question(&json!({
            "n": n, "stream": stream, "budget": { "thinking_tokens": budget, "solution_tokens": solution },
        }));
        let answer = world.ask("sk-key", &body).await;
        world.settled().await;
        let account = world.account("key");
        let told = match stream {
            false if answer.status == 200 => Some(answer.json()["budget"].clone()),
            true if answer.status == 200 && answer.text.contains("[DONE]") => {
                Some(answer.chunks().budget().clone())
            }
            _ => None,
        };
        if let Some(budget) = told {
            whole += 1;
            assert_eq!(nanos(&budget["cost_usd"]), account.spent.money.0);
            let reserved = nanos(&budget["reserved_usd"]);
            assert_eq!(account.overrun.0, account.spent.money.0.saturating_sub(reserved), "{body}");
        }
        assert_eq!(account.overrun, Money::ZERO, "case {case}: {body} took {account:?}");
        assert_eq!(account.reserved.money, Money::ZERO);
    }
    assert!(whole > 100, "{whole} came to their end");
}

/// LB-10: SDKs try again under no idempotency key; each try is a request of its own, and costs what it took.
#[tokio::test]
async fn each_try_of_a_client_is_counted_for_itself() {
    let broken = || ScriptedReply::new().thinks(9).breaks_after(4, Failure::new(Fault::Backend, "gone"));
    // The gateway asks three times for one try of the client's.
    let plays = vec![broken(), broken(), broken(), ScriptedReply::new().thinks(3).answers("3")];
    let script = Arc::new(ScriptedBackend::in_turn(plays).reading(Tokens(75)));
    let world =
        World::new(vec![(plain(EnforcementClass::Inline), script.clone())], vec![tenant("key", 1_000)]).await;
    let body = question(&json!({ "budget": { "thinking_tokens": 10, "solution_tokens": 10 } }));
    let (mut spent, mut ids) = (0, std::collections::BTreeSet::new());
    for (count, status) in [("0", 502), ("1", 200)] {
        let answer = world.ask_with("sk-key", &body, &[("x-stainless-retry-count", count)]).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        world.settled().await;
        let account = world.account("key");
        assert!(account.spent.money.0 > spent && account.reserved.money == Money::ZERO);
        spent = account.spent.money.0;
        ids.insert(answer.headers["x-request-id"].clone());
    }
    assert_eq!((world.account("key").settled, ids.len(), script.records().len()), (2, 2, 4));
    assert_eq!(spent, 3 * (75 + 4) + 75 + 3 + 2 + 1);
}

/// LB-18: an agent that sends its growing history again and again is stopped by its key's limit, with an answer after
/// which no SDK tries again; nothing more reaches the model.
#[tokio::test]
async fn an_agent_that_does_not_end_is_ended_by_its_limit() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("again")));
    let models = vec![(plain(EnforcementClass::Inline), script.clone())];
    let world = World::new(models, vec![tenant("key", 20_000)]).await;
    let mut messages = vec![json!({ "role": "user", "content": "Go on." })];
    let mut served = 0;
    let refused = loop {
        let body = question(
            &json!({ "messages": messages, "budget": { "thinking_tokens": 10, "solution_tokens": 10 } }),
        );
        let answer = world.ask("sk-key", &body).await;
        if answer.status != 200 {
            break answer;
        }
        served += 1;
        messages.push(answer.json()["choices"][0]["message"].clone());
        messages.push(json!({ "role": "user", "content": "Go on, and think of all that was said before." }));
    };
    assert!(served > 3, "{}", refused.text);
    for _ in 0..3 {
        refused_for_good(&world.ask("sk-key", &question(&json!({ "messages": messages }))).await);
    }
    refused_for_good(&refused);
    assert_eq!(script.records().len(), served, "nothing else reached the model");
    assert!(world.account("key").spent.money <= Money(20_000));
}

/// LB-21: a budget that is spent is no reason to try again soon; SDKs heed it (see `sdk`).
fn refused_for_good(answer: &Answer) {
    let error = answer.error();
    assert_eq!(
        (answer.status, &error["type"], &error["code"]),
        (429, &json!("insufficient_quota"), &json!("insufficient_quota"))
    );
    assert_eq!(answer.headers["x-should-retry"], "false");
    assert!(!answer.headers.contains_key("retry-after"));
    assert!(error["budget"]["needed"].is_string() && error["budget"]["left"].is_string(), "{error}");
}

/// LB-21: a window that ends within a minute is one.
#[tokio::test]
async fn a_rate_says_when_to_come_again() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("3")));
    let mut caller = tenant("key", 1_000_000);
    caller.terms = AccountTerms {
        limits: vec![TenantLimit::new(Window::Minute, Amount::Requests(Count(0)))],
        ..caller.terms
    };
    let world = World::new(vec![(plain(EnforcementClass::Inline), script)], vec![caller]).await;
    let answer = world.ask("sk-key", &question(&json!({}))).await;
    assert_eq!((answer.status, answer.headers.get("x-should-retry")), (429, None));
    let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

/// Three streams at once under one limit of 40 thinking tokens: how many were served, and what they thought. So
/// many fit under it at once; the others wait until these are done.
async fn thought_at_once(more: Value, at_once: u64) -> (usize, u64) {
    let gate = PieceGate::shut();
    let play = ScriptedReply::new().thinks(900).answers("3").answers_when_cut("2").waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play));
    let mut caller = tenant("key", 0);
    caller.terms = AccountTerms {
        limits: vec![TenantLimit::new(Window::Total, Amount::Thinking(Tokens(40)))],
        ..caller.terms
    };
    let world = World::new(vec![(plain(EnforcementClass::Inline), script.clone())], vec![caller]).await;
    let body = question(&more);
    let ask = || world.ask("sk-key", &body);
    let opened = async {
        world.decided("m", at_once).await;
        gate.open();
    };
    let (one, two, three, ()) = tokio::join!(ask(), ask(), ask(), opened);
    let served: Vec<Answer> = [one, two, three].into_iter().filter(|answer| answer.status == 200).collect();
    let used: u64 =
        served.iter().map(|answer| answer.chunks().budget()["thinking"]["used"].as_u64().unwrap()).sum();
    world.settled().await;
    assert_eq!(world.account("key").spent.thinking, Tokens(used));
    (served.len(), used)
}

/// LB-19: however many streams think at once, together they think no token more than their limit has.
#[tokio::test]
async fn streams_that_share_a_thinking_budget_do_not_pass_it() {
    assert_eq!(
        thought_at_once(json!({ "stream": true, "budget": { "thinking_tokens": 20 } }), 2).await,
        (2, 40)
    );
    assert_eq!(
        thought_at_once(json!({ "stream": true, "budget": { "thinking_tokens": 13 } }), 3).await,
        (3, 39)
    );
    let (served, used) = thought_at_once(json!({ "stream": true, "reasoning_effort": "high" }), 1).await;
    assert!(served >= 1 && used <= 40, "{used} tokens by {served}");
}

/// LB-13: what was reserved at one price is posted at it, though it is found open under another.
#[tokio::test]
async fn what_was_reserved_at_one_price_is_charged_at_it() {
    let (base, asked) = silent_upstream();
    let configuration = |price: &str| {
        let hash = stint_types::tenant::hash_key("sk-test");
        format!(
            "[engine]\nembedded = false\n[[backend]]\nbase_url = '{base}'\n[[backend.model]]\nname = 'm'\n\
             price_input = '{price}'\nprice_output = '{price}'\n\
             [[key]]\nname = 'test'\nhash = '{hash}'\nlimits = [{{ money = '5', per = 'total' }}]\n"
        )
    };
    let folder = Folder::new(&configuration("1"));
    let mut process = folder.serve();
    let body =
        question(&json!({ "stream": true, "budget": { "thinking_tokens": 0, "solution_tokens": 100 } }));
    let request = tokio::spawn(process.request("sk-test", &body, &[]).send());
    let _upstream = tokio::task::spawn_blocking(move || asked.recv().unwrap()).await.unwrap();
    let limit =
        async |process: &Process| process.get("sk-test", "/v1/allowance").await.good()["limits"][0].clone();
    let reserved = limit(&process).await["reserved"].clone();
    assert!(nanos(&reserved) > 0, "{reserved}");
    process.signal("KILL");
    process.ended();
    let _ = request.await;
    std::fs::write(folder.path().join("stint.toml"), configuration("1000")).unwrap();
    let process = folder.serve();
    let after = limit(&process).await;
    // For the time that passed, and never at the new price.
    let spent = nanos(&after["spent"]);
    assert!(spent > 0 && spent <= nanos(&reserved), "{after}");
    assert_eq!(after["reserved"], "0");
}
