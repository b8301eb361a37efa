//! Several answers to one choice, and one delivered: votes, cascades, verifiers, judges. What is billed is all of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Folder, World, model, tenant};
use stint_backend::scripted::{CallState, PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_types::catalog::{
    AnswerComparison, Checker, DifficultyProbe, EnforcementClass, Model, Prices, Route, Tariff,
    VerifierSettings, Vote, VoteAssumptions, VotePolicy,
};
use stint_types::units::{Chance, Money, Price, Tokens};

/// What every prompt takes.
const PROMPT: u64 = 75;

/// One nano-dollar a token, read or written, so that money counts tokens.
fn plain(name: &str, class: EnforcementClass) -> Model {
    let price = Price { per_million_tokens: Money(1_000_000) };
    Model { tariff: Some(Tariff::plain(Prices { input: price, output: price })), ..model(name, class) }
}

/// How much dearer a dear model is.
const DEAR: u64 = 100;

fn dear(name: &str) -> Model {
    let price = Price { per_million_tokens: Money(DEAR * 1_000_000) };
    let tariff = Tariff::plain(Prices { input: price, output: price });
    Model { tariff: Some(tariff), ..model(name, EnforcementClass::Inline) }
}

/// A route on which answers are worth so much that as many are made as it takes.
fn route(compare: AnswerComparison) -> Route {
    let scatter = VoteAssumptions { correlation: Chance::new(0.0), ..compare.default_assumptions() };
    let poll = VotePolicy { stop_probability: Chance::new(0.0), ..VotePolicy::default() };
    let vote = Vote::new(5, compare, scatter).with_policy(poll);
    Route {
        models: vec!["m".into()],
        worth: Money(1_000_000_000),
        cost_per_second: Money(0),
        vote: Some(vote),
        ..Route::with_defaults("v")
    }
}

/// Answers by turn; the last for ever.
fn says(answers: &'static [&'static str]) -> Arc<ScriptedBackend> {
    let play = |turn: usize| ScriptedReply::new().thinks(3).answers(answers[turn.min(answers.len() - 1)]);
    Arc::new(ScriptedBackend::each(move |_, turn| play(turn)).reading(Tokens(PROMPT)))
}

async fn world(class: EnforcementClass, script: &Arc<ScriptedBackend>, route: Route) -> World {
    World::routed(vec![(plain("m", class), script.clone())], vec![tenant("key", 1_000_000_000)], vec![route])
        .await
}

fn question(more: &Value) -> Value {
    let mut body = json!({ "model": "v", "messages": [{ "role": "user", "content": "What is 6*7?" }] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

/// One sample in full: prompt, three tokens of thought, tag, the words of the answer, end of text.
fn whole(words: u64) -> u64 {
    PROMPT + 3 + 1 + words + 1
}

#[tokio::test]
async fn the_answer_that_most_gave_is_delivered_and_all_are_billed() {
    let script = says(&["41", "it is 42", "42"]);
    let world = world(EnforcementClass::Inline, &script, route(AnswerComparison::Number)).await;
    let answer = world.ask("sk-key", &question(&json!({}))).await.good();
    assert_eq!(content(&answer), "it is 42", "the first of those that agree");
    let (budget, usage) = (&answer["budget"], &answer["usage"]);
    let samples = json!({ "most": 5, "asked": 4, "cancelled": 0, "agreed": 3, "chosen_by": "vote", "ended": "uncatchable" });
    assert_eq!(budget["samples"], samples, "{budget}");
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(PROMPT), &json!(3 + 1 + 3 + 1))
    );
    assert_eq!(budget["other"], json!({ "attempts": 0, "tokens": 3 * whole(1) }));
    world.settled().await;
    assert_eq!(world.account("key").spent.money, Money(whole(3) + 3 * whole(1)));
    assert_eq!(world.account("key").spent.thinking, Tokens(4 * 3));
    assert_eq!(script.records().len(), 4);
}

#[tokio::test]
async fn every_class_votes_and_its_books_are_exact() {
    for class in [
        EnforcementClass::Inline,
        EnforcementClass::Continue,
        EnforcementClass::Turn,
        EnforcementClass::Native,
        EnforcementClass::Effort,
    ] {
        let script = says(&["41", "42"]);
        let world = world(class, &script, route(AnswerComparison::Number)).await;
        let answer = world.ask("sk-key", &question(&json!({}))).await.good();
        assert_eq!(
            (content(&answer), &answer["budget"]["samples"]["agreed"]),
            ("42", &json!(3)),
            "{class:?}"
        );
        world.settled().await;
        let cost: Money = answer["budget"]["cost_usd"].as_str().unwrap().parse().unwrap();
        assert_eq!(world.account("key").spent.money, cost, "{class:?}");
        let tokens = |of: &Value| of.as_u64().unwrap();
        let told = tokens(&answer["usage"]["total_tokens"]) + tokens(&answer["budget"]["other"]["tokens"]);
        assert_eq!(cost.0, told, "{class:?}: {answer}");
    }
}

#[tokio::test]
async fn what_more_samples_would_hardly_change_is_not_asked_again() {
    let script = says(&["42"]);
    let mut sure = route(AnswerComparison::Number);
    sure.vote.as_mut().unwrap().policy.stop_probability = Chance::new(0.1);
    let world = world(EnforcementClass::Inline, &script, sure).await;
    let answer = world.ask("sk-key", &question(&json!({}))).await.good();
    assert_eq!(answer["budget"]["samples"]["ended"], "not_worth");
    assert_eq!(script.records().len(), 2);
}

#[tokio::test]
async fn samples_at_temperature_0_are_one_sample() {
    let script = says(&["41", "42"]);
    let world = world(EnforcementClass::Inline, &script, route(AnswerComparison::Number)).await;
    let answer = world.ask("sk-key", &question(&json!({ "temperature": 0 }))).await.good();
    assert_eq!((content(&answer), script.records().len()), ("41", 1));
    assert!(answer["budget"]["why"].as_str().unwrap().contains("no vote"), "{answer}");
    assert!(answer["budget"].get("samples").is_none());
}

#[tokio::test]
async fn votes_are_drawn_at_their_temperature_unless_the_caller_says_another() {
    let script = says(&["42"]);
    let mut warm = route(AnswerComparison::Number);
    warm.vote.as_mut().unwrap().policy.temperature = Some(1.5);
    let world = world(EnforcementClass::Inline, &script, warm).await;
    world.ask("sk-key", &question(&json!({}))).await.good();
    world.ask("sk-key", &question(&json!({ "temperature": 0.7 }))).await.good();
    let drawn: Vec<_> =
        script.records().iter().map(|record| record.call.request.sampling.temperature).collect();
    assert_eq!(drawn, [[Some(1.5); 3], [Some(0.7); 3]].concat());
}

#[tokio::test]
async fn a_stream_votes_only_where_its_route_holds_it_and_shows_only_the_answer_chosen() {
    for (holds, asked, shown) in [(false, 1, "41"), (true, 4, "42")] {
        let script = says(&["41", "42"]);
        let held = Route { buffers_streams: holds, ..route(AnswerComparison::Number) };
        let world = world(EnforcementClass::Inline, &script, held).await;
        let chunks = world.ask("sk-key", &question(&json!({ "stream": true }))).await.chunks();
        assert!(chunks.done);
        assert_eq!((script.records().len(), &*chunks.joined(0, "content")), (asked, shown));
        assert_eq!(chunks.joined(0, "reasoning_content"), "1 2 3 ");
    }
}

#[tokio::test]
async fn a_caller_of_several_choices_gets_each_and_no_vote() {
    let script = says(&["41", "42"]);
    let world = world(EnforcementClass::Inline, &script, route(AnswerComparison::Number)).await;
    let answer = world.ask("sk-key", &question(&json!({ "n": 2 }))).await.good();
    assert_eq!(answer["choices"].as_array().unwrap().len(), 2);
    assert!(answer["budget"]["choices"][0].get("samples").is_none(), "{answer}");
    assert_eq!(script.records().len(), 2);
}

#[tokio::test]
async fn hanging_up_stops_every_sample_and_what_they_took_is_settled() {
    let gate = PieceGate::shut();
    let play = ScriptedReply::new().thinks(3).answers("42").waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(PROMPT)));
    let world = world(EnforcementClass::Inline, &script, route(AnswerComparison::Number)).await;
    gate.let_through(3);
    let body = question(&json!({}));
    let asking = world.ask("sk-key", &body);
    let left = async {
        script.until(|records| records.iter().map(|record| record.delivered).sum::<usize>() == 3).await;
    };
    tokio::select! {
        _ = asking => panic!("it cannot end"),
        () = left => {}
    }
    let records =
        script.until(|records| records.iter().all(|record| record.state == CallState::Cancelled)).await;
    assert_eq!(records.len(), 3);
    world.settled().await;
    assert_eq!(world.account("key").spent.money, Money(3 * PROMPT + 3));
}

#[tokio::test]
async fn a_vote_whose_samples_all_fail_is_tried_again_like_any_other() {
    let broken = Failure::new(Fault::Overload, "full").unsent();
    let script = Arc::new(
        ScriptedBackend::each(move |_, turn| match turn {
            0..3 => ScriptedReply::new().refuses(broken.clone()),
            _ => ScriptedReply::new().thinks(3).answers("42"),
        })
        .reading(Tokens(PROMPT)),
    );
    let world = world(EnforcementClass::Inline, &script, route(AnswerComparison::Number)).await;
    let answer = world.ask("sk-key", &question(&json!({}))).await.good();
    assert_eq!((content(&answer), &answer["budget"]["samples"]["asked"]), ("42", &json!(3)));
    world.settled().await;
    assert_eq!(world.account("key").spent.money, Money(3 * whole(1)), "what was refused is not billed");
}

/// A cheap model that hardly thinks and a dear one, and a route that goes from one to the other.
async fn steps(small: &Arc<ScriptedBackend>, big: &Arc<ScriptedBackend>) -> World {
    let dear = Price { per_million_tokens: Money(100_000_000) };
    let tariff = Some(Tariff::plain(Prices { input: dear, output: dear }));
    let cheap = Model { thinking_max: Tokens(16), ..plain("m", EnforcementClass::Inline) };
    let better = Model { tariff, ..model("n", EnforcementClass::Inline) };
    let scatter =
        VoteAssumptions { correlation: Chance::new(0.0), ..AnswerComparison::Number.default_assumptions() };
    let route = Route {
        models: vec!["m".into(), "n".into()],
        cascade: true,
        vote: Some(Vote::new(2, AnswerComparison::Number, scatter)),
        ..route(AnswerComparison::Number)
    };
    let models = vec![(cheap, small.clone()), (better, big.clone())];
    World::routed(models, vec![tenant("key", 1_000_000_000)], vec![route]).await
}

#[tokio::test]
async fn a_cascade_goes_on_where_the_answers_do_not_agree_and_only_there() {
    for (said, delivered, asked) in [(&["41", "40"], "42", 1), (&["40", "40"], "40", 0)] {
        let (small, big) = (says(said), says(&["42"]));
        let world = steps(&small, &big).await;
        let answer = world.ask("sk-key", &question(&json!({}))).await.good();
        assert_eq!((content(&answer), big.records().len()), (delivered, asked), "{answer}");
        assert_eq!(small.records().len(), 2);
        world.settled().await;
        let cost = 2 * whole(1) + 100 * u64::try_from(asked).unwrap() * whole(1);
        assert_eq!(world.account("key").spent.money, Money(cost), "{answer}");
        if asked > 0 {
            assert_eq!(
                (&answer["model"], &answer["budget"]["other"]["tokens"]),
                (&json!("n"), &json!(2 * whole(1)))
            );
            assert_eq!(answer["budget"]["other"]["attempts"], 0, "nothing failed");
            assert!(answer["budget"]["why"].as_str().unwrap().contains("m was in doubt"), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_cascade_whose_second_step_fails_delivers_the_first() {
    let small = says(&["41", "40"]);
    let broken = Failure::new(Fault::Backend, "gone");
    let big = ScriptedReply::new().thinks(3).answers("42").breaks_after(2, broken);
    let big = Arc::new(ScriptedBackend::always(big).reading(Tokens(PROMPT)));
    let world = steps(&small, &big).await;
    let answer = world.ask("sk-key", &question(&json!({}))).await.good();
    assert_eq!((content(&answer), &answer["model"]), ("41", &json!("m")), "{answer}");
    world.settled().await;
    let lost = 100 * (PROMPT + 2);
    assert_eq!(
        world.account("key").spent.money,
        Money(2 * whole(1) + lost),
        "what the second wrote is billed"
    );
}

#[tokio::test]
async fn a_judge_chooses_where_no_two_answers_are_alike_and_is_paid() {
    for (reply, chosen, by) in [("2", "green", "judge"), ("I like them all", "red", "vote")] {
        let script = says(&["red", "green", "blue", "grey", "pink"]);
        let judge =
            Arc::new(ScriptedBackend::always(ScriptedReply::new().answers(reply)).reading(Tokens(200)));
        let models = vec![
            (plain("m", EnforcementClass::Inline), script.clone()),
            (plain("j", EnforcementClass::Inline), judge.clone()),
        ];
        let route = Route { judge: Some("j".into()), ..route(AnswerComparison::Exact) };
        let world = World::routed(models, vec![tenant("key", 1_000_000_000)], vec![route]).await;
        let answer = world.ask("sk-key", &question(&json!({}))).await.good();
        assert_eq!((content(&answer), &answer["budget"]["samples"]["chosen_by"]), (chosen, &json!(by)));
        let asked = &judge.records()[0].call.request;
        let data: Value = serde_json::from_str(&asked.messages[1].plain_text()).unwrap();
        assert_eq!((&data["answers"]["2"], &data["question"]), (&json!("green"), &json!("What is 6*7?")));
        world.settled().await;
        let words = reply.split(' ').count() as u64;
        let judged = 200 + 3 + words + 1;
        assert_eq!(world.account("key").spent.money, Money(5 * whole(1) + judged));
    }
}

#[tokio::test]
async fn a_verifier_chooses_and_no_verdict_is_no_bad_one() {
    let verifier = |script: &str| VerifierSettings {
        by: Checker::Command(vec!["sh".into(), "-c".into(), script.into()]),
        floor: Chance::new(0.9),
        timeout: Duration::from_secs(20),
        concurrency: 2,
    };
    let knows = r#"grep -q '"answer":"42"' && echo '{"score":1}' || echo '{"score":0}'"#;
    for (script, chosen, by) in [(knows, "42", "verifier"), ("exit 1", "7", "vote")] {
        let said = says(&["7", "7", "42", "7", "7"]);
        let route = Route { verifier: Some(verifier(script)), ..route(AnswerComparison::Number) };
        let world = world(EnforcementClass::Inline, &said, route).await;
        let answer = world.ask("sk-key", &question(&json!({}))).await.good();
        assert_eq!(
            (content(&answer), &answer["budget"]["samples"]["chosen_by"]),
            (chosen, &json!(by)),
            "{answer}"
        );
    }
}

/// Drafts of a small model are bought where they may change the plan, in the request's own reservation, and only there.
#[tokio::test]
async fn a_probe_is_bought_where_it_may_change_the_plan_and_is_paid() {
    for (more, asked) in [(json!({}), 3), (json!({ "budget": { "thinking_tokens": 9 } }), 0)] {
        let script = says(&["42"]);
        let small =
            Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("42")).reading(Tokens(PROMPT)));
        let models = vec![(dear("m"), script.clone()), (plain("p", EnforcementClass::Inline), small.clone())];
        let (drafts, tokens) = (3, Tokens(16));
        let probe = Some(DifficultyProbe { model: "p".into(), drafts, thinking: Tokens::ZERO, tokens });
        // So much is a right answer worth that whether to think at all is open.
        let worth = Money(640_000);
        let route = Route { probe, worth, vote: None, ..route(AnswerComparison::Number) };
        let world = World::routed(models, vec![tenant("key", 1_000_000_000)], vec![route]).await;
        let answer = world.ask("sk-key", &question(&more)).await.good();
        assert_eq!((content(&answer), small.records().len()), ("42", asked), "{answer}");
        world.settled().await;
        let draft = PROMPT + 3 + 1 + 1;
        let probed = u64::try_from(asked).unwrap() * draft;
        let cost = Money(DEAR * whole(1) + probed);
        assert_eq!(world.account("key").spent.money, cost, "{answer}");
        assert_eq!(answer["budget"]["other"], json!({ "attempts": 0, "tokens": probed }));
        assert_eq!(answer["budget"]["cost_usd"], cost.to_string());
    }
}

/// The real binary and the embedded model, which is asked at a temperature at which it errs.
#[tokio::test]
async fn the_embedded_model_votes() {
    let folder = Folder::new(
        "[[route]]\nname = \"vote\"\nmodels = [\"reasoner\"]\nworth = \"1\"\nsecond = \"0\"\n\
         vote = { samples_max = 9, compare = \"number\", temperature = 1.8, alike = 0, doubt = 0.01 }\n",
    );
    let server = folder.serve();
    let mut right = 0;
    for (seed, (asked, expected)) in
        [("What is 12+34*2?", "80"), ("82 - 73 + 48 = ?", "57"), ("What is 8 * 41?", "328")]
            .iter()
            .enumerate()
    {
        let body =
            json!({ "model": "vote", "seed": seed, "messages": [{ "role": "user", "content": asked }] });
        let answer = server.ask("", &body).await.good();
        let samples = &answer["budget"]["samples"];
        assert!((3..=9).contains(&samples["asked"].as_u64().unwrap()), "{answer}");
        right += u32::from(content(&answer).trim() == *expected);
    }
    assert!(right >= 2, "{right} of 3");
    let metrics = server.get("", "/metrics").await.text;
    for series in ["stint_samples_total{model=\"reasoner\",outcome=\"asked\"}", "stint_votes_total{ended="] {
        assert!(metrics.contains(series), "{series}");
    }
    let usage = server.get("", "/v1/allowance").await;
    assert_eq!(usage.status, 200);
}
