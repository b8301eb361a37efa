//! A key's money, under concurrency.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{World, model, tenant};
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_types::catalog::{Capability, EnforcementClass, Model, OffPeak, Prices, Tariff};
use stint_types::tenant::{LimitSelector, TenantLimit};
use stint_types::units::{Amount, Money, Price, Timestamp, Tokens, Window};

/// One nano-dollar a token, read or written.
fn plain(name: &str) -> Model {
    let price = Price { per_million_tokens: Money(1_000_000) };
    Model {
        tariff: Some(Tariff::plain(Prices { input: price, output: price })),
        ..model(name, EnforcementClass::Inline)
    }
}

/// 10 thinking and 10 solution tokens: with a prompt of 75 and 5 of overhead, 100 nano-dollars at worst.
fn pinned() -> Value {
    json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 10, "solution_tokens": 10 },
    })
}

#[tokio::test]
async fn of_64_requests_at_once_10_are_served_and_one_more_when_those_have_given_back_what_they_held() {
    let gate = PieceGate::shut();
    let play = ScriptedReply::new().thinks(20).answers("3").waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    let world = World::new(vec![(plain("m"), script.clone())], vec![tenant("ten", 10 * 100)]).await;
    let world = Arc::new(world);
    let asking: Vec<_> = (0..64)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.ask("sk-ten", &pinned()).await })
        })
        .collect();
    script.until(|records| records.len() == 10).await;
    assert_eq!(world.account("ten").reserved.money, Money(1000), "ten worst cases and no more");
    gate.open();
    let mut served = 0;
    for answer in asking {
        let answer = answer.await.unwrap();
        if answer.status == 200 {
            served += 1;
            continue;
        }
        let error = answer.error();
        assert_eq!((answer.status, &error["code"]), (429, &json!("insufficient_quota")));
        assert_eq!(answer.headers["x-should-retry"], "false");
        assert_eq!(error["budget"]["limit"], "key money total");
    }
    assert_eq!(served, 11);
    world.settled().await;
    let account = world.account("ten");
    assert_eq!(account.reserved.money, Money::ZERO);
    // 75 read; 10 of thought, 4 of overhead and 1 of answer written.
    assert_eq!(account.spent.money, Money(11 * 90));
    assert_eq!(script.records().len(), 11, "nothing else reached the model");
}

/// LB-04, as callers see it.
#[tokio::test]
async fn what_was_not_used_is_there_for_the_next_request() {
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers("3")).reading(Tokens(75)));
    let world = World::new(vec![(plain("m"), script)], vec![tenant("two", 185)]).await;
    let first = world.ask("sk-two", &pinned()).await.good();
    assert_eq!(
        (&first["budget"]["cost_usd"], &first["budget"]["reserved_usd"]),
        (&json!("0.000000079"), &json!("0.0000001"))
    );
    world.ask("sk-two", &pinned()).await.good();
    let third = world.ask("sk-two", &pinned()).await;
    assert_eq!(third.error()["budget"]["left"], "0.000000027");
}

#[tokio::test]
async fn a_model_that_was_never_reached_costs_nothing() {
    let failure = Failure::new(Fault::Backend, "no connection to sk-secret@host").unsent();
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().refuses(failure)));
    let world = World::new(vec![(plain("m"), script)], vec![tenant("key", 1000)]).await;
    let answer = world.ask("sk-key", &pinned()).await;
    assert_eq!((answer.status, &answer.error()["code"]), (502, &json!("upstream_failed")));
    assert!(!answer.text.contains("sk-secret"), "callers never see our insides");
    world.settled().await;
    assert_eq!(world.account("key").spent.money, Money::ZERO);
}

#[tokio::test]
async fn another_model_takes_over_before_anything_was_delivered_and_only_if_it_fits() {
    let down = || {
        let failure = Failure::new(Fault::Overload, "full").unsent();
        Arc::new(ScriptedBackend::always(ScriptedReply::new().refuses(failure)).reading(Tokens(75)))
    };
    let up =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers("3")).reading(Tokens(75)));
    let dearer = |name: &str| {
        let price = Price { per_million_tokens: Money(2_000_000) };
        Model {
            tariff: Some(Tariff::plain(Prices { input: price, output: price })),
            ..model(name, EnforcementClass::Inline)
        }
    };
    let mut body = pinned();
    body["model"] = "auto".into();
    let models = vec![(plain("a"), down()), (dearer("b"), up.clone())];
    let world = World::new(models, vec![tenant("rich", 1000), tenant("poor", 150)]).await;
    let answer = world.ask("sk-rich", &body).await.good();
    assert_eq!((&answer["model"], &answer["budget"]["other"]["attempts"]), (&json!("b"), &json!(1)));
    let answer = world.ask("sk-poor", &body).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    world.settled().await;
    assert_eq!(world.account("poor").spent.money, Money::ZERO);
    assert_eq!(up.records().len(), 1);
}

#[tokio::test]
async fn an_allowance_says_what_is_left() {
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers("3")).reading(Tokens(75)));
    let world = World::new(vec![(plain("m"), script)], vec![tenant("key", 1000)]).await;
    world.ask("sk-key", &pinned()).await.good();
    let page = world.get("sk-key", "/v1/allowance").await.good();
    let limit = &page["limits"][0];
    assert_eq!(limit["limit"], "key money total");
    assert_eq!(
        (&limit["max"], &limit["spent"], &limit["left"]),
        (&json!("0.000001"), &json!("0.000000079"), &json!("0.000000921"))
    );
    assert_eq!(limit["reserved"], "0");
}

/// OB-07: the headers of an answer say of the tightest limit what the allowance says of it at that moment.
#[tokio::test]
async fn the_headers_of_an_answer_say_what_the_ledger_has() {
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers("3")).reading(Tokens(75)));
    let world = World::new(vec![(plain("m"), script)], vec![tenant("key", 1000).per_day(500)]).await;
    let mut left = Vec::new();
    for _ in 0..3 {
        let answer = world.ask("sk-key", &pinned()).await;
        answer.good();
        world.settled().await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        let page = world.get("sk-key", "/v1/allowance").await.good();
        let limits = page["limits"].as_array().unwrap();
        let limit = limits.iter().find(|limit| limit["limit"] == "key money day").unwrap();
        assert_eq!(header("x-ratelimit-name"), "key money day", "the one of which the least is left");
        assert_eq!(limit["max"], header("x-ratelimit-limit-usd").as_str());
        assert_eq!(limit["left"], header("x-ratelimit-remaining-usd").as_str());
        assert_eq!(world.account("key").spent.money.to_string(), limit["spent"].as_str().unwrap());
        left.push(header("x-ratelimit-remaining-usd"));
        let reset = header("x-ratelimit-reset-usd");
        let seconds: i64 = reset.strip_suffix('s').unwrap().parse().unwrap();
        assert!((0..=86_400).contains(&seconds), "{reset}");
        // promptfoo takes this for a number of requests: at 0.9 dollars it waited for more.
        assert!(!answer.headers.contains_key("x-ratelimit-remaining"));
    }
    left.dedup();
    assert_eq!(left.len(), 3, "it becomes less: {left:?}");
}

#[tokio::test]
async fn the_headers_of_an_answer_name_no_limit_on_another_model_or_tag() {
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers("3")).reading(Tokens(75)));
    let mut caller = tenant("key", 1_000_000);
    for (max, selector) in [
        (150, LimitSelector::Tag("batch".into())),
        (500, LimitSelector::EachUser),
        (0, LimitSelector::Model("n".into())),
    ] {
        let limit = TenantLimit::new(Window::Day, Amount::Money(Money(max)));
        caller.terms.limits.push(limit.with_selector(selector));
    }
    let world = World::new(vec![(plain("m"), script)], vec![caller]).await;
    for (more, expected) in [
        (json!({}), "key money day of unnamed users"),
        (json!({ "user": "u" }), "key money day of user u"),
        (json!({ "user": "u", "metadata": { "tag": "batch" } }), "key money day of tag batch"),
    ] {
        let mut asked = pinned();
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = world.ask("sk-key", &asked).await;
        answer.good();
        assert_eq!(answer.headers["x-ratelimit-name"], expected);
    }
}

#[tokio::test]
async fn a_request_may_limit_its_own_cost() {
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(20).answers("3")).reading(Tokens(75)));
    let world = World::new(vec![(plain("m"), script)], Vec::new()).await;
    let mut body = pinned();
    body["budget"]["cost_usd"] = "0.000000095".into();
    let answer = world.ask("", &body).await.good();
    assert_eq!(answer["budget"]["thinking"]["budget"], 5, "a stated cap lowers a stated budget");
    body["budget"]["cost_usd"] = "0.00000005".into();
    let answer = world.ask("", &body).await;
    assert_eq!((answer.status, &answer.error()["code"]), (400, &json!("budget_too_small")));
}

/// Of issue 17, item 4, and IN-15: the model bills 49,152 tokens for each image, and says so only afterwards.
#[tokio::test]
async fn six_images_are_refused_where_their_model_may_bill_more_for_them_than_is_left() {
    let seeing =
        || Model { capabilities: vec![Capability::Images], context: Model::CONTEXT_UNKNOWN, ..plain("m") };
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("six")));
    let tenants = vec![tenant("poor", 100_000), tenant("rich", 1_000_000)];
    let world = World::new(vec![(seeing(), script.clone())], tenants).await;
    let image = json!({ "type": "image_url", "image_url": { "url": "https://example.com/large.png" } });
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": vec![image; 6] }] });
    let refused = world.ask("sk-poor", &request).await;
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("insufficient_quota")));
    assert_eq!(script.records().len(), 0, "nothing reached the model");
    assert_eq!(world.account("poor").spent.money, Money::ZERO);
    world.ask("sk-rich", &request).await.good();
}

/// The same model, with a peak in the hours that lie so far from now. A request takes a few minutes at most.
pub(crate) fn with_peak(hours_from_now: i64) -> Model {
    let now = Timestamp::now().as_seconds().div_euclid(3600);
    let peak_hours = [0, 1].map(|more| (now + hours_from_now + more).rem_euclid(24)).into_iter();
    let peak_hours = peak_hours.fold(0, |all, hour| all | 1 << hour);
    let price = Price { per_million_tokens: Money(2_000_000) };
    let off_peak = Some(OffPeak { percent: 50, peak_hours, weekends: false });
    let tariff = Tariff { off_peak, ..Tariff::plain(Prices { input: price, output: price }) };
    Model { tariff: Some(tariff), ..plain("m") }
}

#[tokio::test]
async fn outside_its_providers_peak_a_request_costs_less_and_reserves_as_much_as_in_it() {
    for (hours_from_now, cost) in [(12, "0.000000079"), (0, "0.000000158")] {
        let play = ScriptedReply::new().thinks(1).answers("3");
        let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
        let world = World::new(vec![(with_peak(hours_from_now), script)], vec![tenant("acme", 1000)]).await;
        let answer = world.ask("sk-acme", &pinned()).await.good();
        let costs = [&answer["budget"]["cost_usd"], &answer["budget"]["reserved_usd"]];
        assert_eq!(costs, [&json!(cost), &json!("0.0000002")], "{answer}");
        world.settled().await;
        assert_eq!(world.account("acme").spent.money.to_string(), cost);
    }
}
