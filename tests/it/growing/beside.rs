//! Answers that grow beside their siblings: another attempt, other samples, other steps of the same run.

use stint_backend::Backend;
use stint_backend::fleet;
use stint_types::catalog::{AnswerComparison, Route, Vote, VoteAssumptions, VotePolicy};
use stint_types::units::Chance;

use super::*;

fn backend(script: &Arc<ScriptedBackend>) -> Arc<dyn Backend> {
    script.clone()
}

async fn serving(journal: &Arc<Counting>, served: Served, routes: Vec<Route>) -> World {
    World::agents(vec![served], vec![tenant("key", 1_000_000)], routes, Stored::alone(journal.clone())).await
}

#[tokio::test]
async fn a_second_attempt_grows_beside_one_that_is_let_go() {
    for stream in [false, true] {
        let (journal, gate) = (Counting::new(), PieceGate::shut());
        let silent = ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("3").waits_at(&gate));
        let silent = Arc::new(silent.reading(Tokens(75)));
        let targets = vec![backend(&silent), backend(&script(6_000))];
        let resilience =
            fleet::Settings { hedge_after: Some(Duration::from_millis(50)), ..fleet::Settings::default() };
        let served = Served { resilience, ..Served::by(unlimited("m"), targets) };
        let world = serving(&journal, served, vec![crate::harness::auto()]).await;
        let mut cost = Money::ZERO;
        let mut hedged = 0;
        // Who is asked first goes by the conversation.
        for number in 0..6 {
            let mut body = question(stream);
            body["messages"][0]["content"] = format!("What is 1+{number}?").into();
            let asked = world.ask("sk-key", &body).await;
            let budget = budget(&asked);
            assert_eq!(
                (&budget["solution"]["ended"], &budget["solution"]["used"]),
                (&json!("stop"), &json!(6_000))
            );
            hedged += budget["other"]["attempts"].as_u64().unwrap();
            cost += budget["cost_usd"].as_str().unwrap().parse().unwrap();
        }
        assert!(hedged > 0, "none was silent");
        assert!(journal.extensions() > 0);
        assert_eq!(exact(&world, &*journal, "key").await, cost);
    }
}

#[tokio::test]
async fn the_samples_of_a_vote_grow_together() {
    let (journal, script) = (Counting::new(), script(12_000));
    let scatter =
        VoteAssumptions { correlation: Chance::new(0.0), ..AnswerComparison::Exact.default_assumptions() };
    let vote = Vote::new(5, AnswerComparison::Exact, scatter)
        .with_policy(VotePolicy { stop_probability: Chance::new(0.0), ..VotePolicy::default() });
    let route = Route {
        models: vec!["m".into()],
        worth: Money(1_000_000_000),
        cost_per_second: Money(0),
        vote: Some(vote),
        ..Route::with_defaults("v")
    };
    let served = Served::by(unlimited("m"), vec![backend(&script)]);
    let world = serving(&journal, served, vec![crate::harness::auto(), route]).await;
    let mut body = question(false);
    body["model"] = "v".into();
    let answer = world.ask("sk-key", &body).await.good();
    let budget = &answer["budget"];
    assert!(budget["samples"]["asked"].as_u64().unwrap() >= 3, "{budget}");
    assert_eq!((&budget["solution"]["ended"], &budget["solution"]["used"]), (&json!("stop"), &json!(12_000)));
    assert!((1..=8).contains(&journal.extensions()), "{} extensions", journal.extensions());
    assert_eq!(exact(&world, &*journal, "key").await.to_string(), budget["cost_usd"]);
}

/// A step of a run that may take so much.
fn step(dollars: &str) -> Value {
    let mut body = question(false);
    body["budget"]["episode"] = json!({ "id": "run-1", "cost_usd": dollars });
    body
}

#[tokio::test]
async fn steps_of_one_run_grow_side_by_side_within_what_it_may_take() {
    let (journal, script) = (Counting::new(), script(6_000));
    let served = Served::by(unlimited("m"), vec![backend(&script)]);
    let world = serving(&journal, served, vec![crate::harness::auto()]).await;
    let step = step("0.00005");
    let steps = futures_util::future::join_all((0..3).map(|_| world.ask("sk-key", &step))).await;
    let mut cost = Money::ZERO;
    for answer in steps {
        let budget = budget(&answer);
        assert_eq!(
            (&budget["solution"]["ended"], &budget["solution"]["used"]),
            (&json!("stop"), &json!(6_000)),
            "{budget}"
        );
        cost += budget["cost_usd"].as_str().unwrap().parse().unwrap();
    }
    assert!(journal.extensions() >= 3);
    assert_eq!(exact(&world, &*journal, "key").await, cost);
    let run = "run-1".parse::<EpisodeId>().unwrap();
    let used = journal.episode_usage(&AccountId::new("key"), &run).await.unwrap();
    assert_eq!(used.cost, cost);
    let page = world.get("sk-key", "/v1/episodes/run-1").await.good();
    assert_eq!(page["cost_usd"].as_str().unwrap().parse::<Money>().unwrap(), cost, "{page}");
}

#[tokio::test]
async fn an_answer_ends_at_the_money_of_its_run() {
    let (journal, script) = (Counting::new(), script(6_000));
    let served = Served::by(unlimited("m"), vec![backend(&script)]);
    let world = serving(&journal, served, vec![crate::harness::auto()]).await;
    let answer = world.ask("sk-key", &step("0.000003")).await.good();
    assert_eq!(answer["budget"]["solution"]["ended"], "money", "{}", answer["budget"]);
    let spent = exact(&world, &*journal, "key").await;
    assert!(spent <= Money(3_000), "{spent} of 3,000");
}

#[tokio::test]
async fn more_that_was_late_is_not_asked_for_twice() {
    let (journal, gate) = (Counting::new(), PieceGate::shut());
    let play = ScriptedReply::new().thinks(3).answers(&words(6_000)).waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    // The journal is silent for three times as long as is waited for it, while there is enough for what is written.
    let world = world(&journal, &script, vec![tenant("key", 1_000_000)]).await;
    journal.open.send_replace(false);
    let question = question(false);
    let asked = world.ask("sk-key", &question);
    let held = || world.account("key").reserved.money;
    let watched = async {
        while held() == Money::ZERO {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let opening = held();
        // The thought, its tag, and a little more than half of the answer that is set aside.
        gate.let_through(usize::try_from(opening.0 / 2).unwrap());
        journal.extending().await;
        let extended = held();
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(held(), extended, "{opening} at first");
        journal.open.send_replace(true);
        gate.open();
    };
    let (answer, ()) = tokio::join!(asked, watched);
    let answer = answer.good();
    assert_eq!(answer["budget"]["solution"]["ended"], "stop", "{}", answer["budget"]);
    exact(&world, &*journal, "key").await;
}
