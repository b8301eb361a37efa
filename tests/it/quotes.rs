//! `POST /v1/plan` and `stint plan`: what a request would be planned as, before anything is spent.

use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Answer, Folder, Process, World, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{EnforcementClass, Prices, Tariff};
use stint_types::units::{Money, Price};

fn question(budget: &Value) -> Value {
    json!({ "model": "auto", "messages": [{ "role": "user", "content": "What is 12+34+5?" }], "budget": budget })
}

fn chosen(quote: &Value) -> &Value {
    let at = usize::try_from(quote["chosen"].as_u64().expect("a chosen one")).unwrap();
    &quote["offers"][at]
}

/// Two models of one script, the second ten times as dear, and a caller with 0.02 dollars.
async fn world() -> (World, Arc<ScriptedBackend>) {
    let script = Arc::new(ScriptedBackend::always(
        ScriptedReply::new().thinks(20).answers("51").answers_when_cut("50"),
    ));
    let mut dear = model("dear", EnforcementClass::Continue);
    let price = |per_million: u64| Price { per_million_tokens: Money(per_million) };
    dear.tariff = Some(Tariff::plain(Prices { input: price(1_000_000_000), output: price(4_000_000_000) }));
    let models = vec![(model("cheap", EnforcementClass::Inline), script.clone()), (dear, script.clone())];
    (World::new(models, vec![tenant("user", 20_000_000)]).await, script)
}

async fn quote(world: &World, body: &Value) -> Answer {
    world.post("/v1/plan", "sk-user", body).await
}

#[tokio::test]
async fn a_quote_is_what_the_request_then_gets_and_spends_nothing() {
    let (world, _) = world().await;
    let quoted = quote(&world, &question(&json!({}))).await.good();
    assert_eq!(world.account("user").reserved.requests.0, 0);
    assert_eq!(world.account("user").spent.money, Money::ZERO);
    assert!(quoted["note"].as_str().unwrap().contains("no probe bought, nothing reserved or spent"));
    let answer = world.ask("sk-user", &question(&json!({}))).await.good();
    let (offer, budget) = (chosen(&quoted), &answer["budget"]);
    assert_eq!(offer["model"], budget["model"]);
    assert_eq!(offer["thinking_tokens"], budget["thinking"]["budget"]);
    assert_eq!(offer["solution_tokens"], budget["solution"]["budget"]);
    assert_eq!(offer["worst_case_usd"], budget["reserved_usd"]);
    assert_eq!(quoted["why"], budget["why"]);
}

#[tokio::test]
async fn a_quote_shows_every_offer_with_what_it_reaches_and_takes() {
    let (world, _) = world().await;
    let quoted = quote(&world, &question(&json!({}))).await.good();
    assert_eq!(quoted["demand"]["class"], "math");
    let offers = quoted["offers"].as_array().unwrap();
    for name in ["cheap", "dear"] {
        assert!(offers.iter().filter(|offer| offer["model"] == name).count() > 3, "{name}");
    }
    let number = |offer: &Value, name: &str| -> f64 {
        offer[name]
            .as_f64()
            .or_else(|| offer[name].as_str()?.parse().ok())
            .unwrap_or_else(|| panic!("{offer}"))
    };
    for offer in offers {
        assert!((0.0..=1.0).contains(&number(offer, "success")));
        assert!(number(offer, "cost_usd") <= number(offer, "worst_case_usd") + 1e-9);
        // A smaller cap that reaches as much within a thousandth is taken: of five cents, what an answer is worth here.
        assert!(number(chosen(&quoted), "value_usd") >= number(offer, "value_usd") - 0.001 * 0.05);
        assert_eq!(offer["samples"], 1);
    }
    let chances: f64 =
        quoted["contenders"].as_array().unwrap().iter().map(|one| number(one, "propensity")).sum();
    assert!((chances - 1.0).abs() < 1e-9);
}

#[tokio::test]
async fn a_quote_keeps_to_what_the_caller_states_and_has_and_refuses_as_the_request_would_be() {
    let (world, _) = world().await;
    let stated = quote(&world, &question(&json!({ "thinking_tokens": 9 }))).await.good();
    assert!(stated["offers"].as_array().unwrap().iter().all(|offer| offer["thinking_tokens"] == 9));
    for (budget, status) in [
        (json!({ "cost_usd": "0.000000001" }), 400),
        (json!({ "thinking_tokens": 4000, "solution_tokens": 100_000 }), 200),
        (json!({ "what": 1 }), 400),
    ] {
        let (quoted, asked) =
            (quote(&world, &question(&budget)).await, world.ask("sk-user", &question(&budget)).await);
        assert_eq!((quoted.status, asked.status), (status, status), "{budget}: {}", quoted.text);
        if status != 200 {
            assert_eq!(quoted.error()["code"], asked.error()["code"], "{budget}");
        }
    }
    for n in [100_000_u64, 1_000_000_000_000] {
        let many = json!({ "model": "auto", "n": n, "messages": [{ "role": "user", "content": "1+2" }] });
        for answer in [quote(&world, &many).await, world.ask("sk-user", &many).await] {
            let error = answer.error();
            assert_eq!((answer.status, &error["param"]), (400, &json!("n")), "{error}");
            assert!(error["message"].as_str().unwrap().starts_with("n may be 8 at most"), "{error}");
        }
    }
}

/// The verb's output for these words.
fn printed(folder: &Folder, process: &Process, words: &[&str]) -> Output {
    let mut command = folder.stint("plan");
    command.args(["--url", &process.base]).args(words).env("STINT_KEY", "sk-test").output().unwrap()
}

#[tokio::test]
async fn the_verb_prints_the_offers_of_a_running_server_the_chosen_one_marked_and_why() {
    let hash = stint_types::tenant::hash_key("sk-test");
    let key = format!(
        "[[key]]\nname = \"test\"\nhash = \"{hash}\"\nlimits = [{{ money = \"1\", per = \"day\" }}]\n"
    );
    let folder = Folder::new(&key);
    let process = folder.serve();
    let run = |words: Vec<&'static str>| {
        let output = printed(&folder, &process, &words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = run(vec!["What is 12+34+5?"]);
    let marked: Vec<&str> = table.lines().filter(|line| line.starts_with('→')).collect();
    assert_eq!(marked.len(), 1, "{table}");
    assert!(
        marked[0].contains("reasoner") && table.contains("at most") && table.contains("math, difficulty"),
        "{table}"
    );
    let stated = run(vec!["What is 12+34+5?", "--thinking", "7", "--json"]);
    let stated: Value = serde_json::from_str(&stated).unwrap();
    assert_eq!(chosen(&stated)["thinking_tokens"], 7);
    let frugal = run(vec!["What is 12+34+5?", "--preference", "0", "--model", "reasoner", "--all"]);
    assert!(frugal.lines().filter(|line| line.contains("reasoner")).count() > 5, "{frugal}");
    let swept = run(vec!["What is 12+34+5?", "--route", "auto", "--sweep", "worth"]);
    assert!(swept.contains("worth from") && swept.contains("a right answer is worth 0.3 dollars"), "{swept}");
    assert_eq!(swept.lines().filter(|line| line.starts_with("→ ")).count(), 1, "{swept}");
    let explained = run(vec!["What is 12+34+5?", "--explain"]);
    for expected in ["counted: ", "numbers 3", "fitted on its answers", "thought p50/p90/p99", "at most"] {
        assert!(explained.contains(expected), "{expected} is not in {explained}");
    }
    // What was asked cost nothing.
    let page = process.get("sk-test", "/v1/allowance").await.good();
    assert_eq!((&page["limits"][0]["spent"], &page["limits"][0]["reserved"]), (&json!("0"), &json!("0")));
    let refused = printed(&folder, &process, &["1+2", "--model", "nobody"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nobody"), "{refused:?}");
    let mut nameless = folder.stint("plan");
    let nameless = nameless.args(["--url", &process.base, "1+2"]).env_remove("STINT_KEY").output().unwrap();
    assert!(String::from_utf8_lossy(&nameless.stderr).contains("STINT_KEY"), "{nameless:?}");
}
