//! What was used, for those who pay; and the books in an operator's hands.

mod desk;
mod parts;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::{Process, World, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_types::catalog::{EnforcementClass, Model, Prices, Tariff};
use stint_types::units::{Money, Price, Tokens};

use desk::Desk;

fn question(model: &str) -> Value {
    json!({
        "model": model,
        "messages": [{ "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 10, "solution_tokens": 12 },
    })
}

/// `acme/alice` asks the small model thrice, `acme` the large one once, and `other` as well.
async fn asked() -> World {
    let script =
        || Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("3")).reading(Tokens(75)));
    let models = vec![
        (model("small", EnforcementClass::Inline), script()),
        (model("large", EnforcementClass::Inline), script()),
    ];
    let callers = ["acme", "acme/alice", "other"].map(|name| tenant(name, 1_000_000));
    let world = World::new(models, callers.into()).await;
    for (key, model) in [
        ("sk-acme/alice", "small"),
        ("sk-acme", "large"),
        ("sk-acme/alice", "small"),
        ("sk-other", "large"),
        ("sk-acme/alice", "small"),
    ] {
        world.ask(key, &question(model)).await.good();
    }
    world.settled().await;
    world
}

fn money(value: &Value) -> u64 {
    value.as_str().unwrap().parse::<Money>().unwrap().0
}

/// AU-05
#[tokio::test]
async fn a_key_sees_what_it_used_and_what_is_below_it_and_nothing_else() {
    let world = asked().await;
    let check = async |key: &str, query: &str, expected: &[(&str, &str, u64)]| {
        let page = world.get(key, &format!("/v1/usage?{query}")).await.good();
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let lines: Vec<_> = page["data"].as_array().unwrap().iter().collect();
        let lines: Vec<_> = lines
            .into_iter()
            .map(|line| (text(&line["key"]), text(&line["model"]), line["requests"].as_u64().unwrap()))
            .collect();
        let lines: Vec<_> = lines.iter().map(|(key, model, n)| (key.as_str(), model.as_str(), *n)).collect();
        assert_eq!(lines, expected, "{key} {query}");
    };
    check("sk-acme", "", &[("", "", 4)]).await;
    check("sk-acme", "group_by=model", &[("", "large", 1), ("", "small", 3)]).await;
    check("sk-acme", "group_by=key,model", &[("acme", "large", 1), ("acme/alice", "small", 3)]).await;
    check("sk-acme/alice", "group_by=key", &[("acme/alice", "", 3)]).await;
    check("sk-other", "group_by=key", &[("other", "", 1)]).await;
    check("sk-other", "from=2001-01-01&to=2002-01-01", &[]).await;
    let page = world.get("sk-other", "/v1/usage?group_by=day").await.good();
    let line = &page["data"][0];
    assert_eq!(money(&line["spent_usd"]), world.account("other").spent.money.0);
    assert_eq!((&line["prompt_tokens"], &line["thinking_tokens"]), (&json!(75), &json!(3)));
    assert!(page["to"].as_str().unwrap().starts_with(line["day"].as_str().unwrap()));
    assert_eq!(world.get("sk-nobody", "/v1/usage").await.status, 401);
}

#[tokio::test]
async fn pages_of_usage_come_to_the_whole() {
    let world = asked().await;
    let (mut after, mut keys, mut spent) = (String::new(), Vec::new(), 0);
    loop {
        let path = format!("/v1/usage?group_by=day,key,model&limit=1{after}");
        let page = world.get("sk-acme", &path).await.good();
        for line in page["data"].as_array().unwrap() {
            keys.push(line["key"].as_str().unwrap().to_owned());
            spent += money(&line["spent_usd"]);
        }
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(page["has_more"], true);
        after = format!("&after={next}");
    }
    assert_eq!(keys, ["acme", "acme/alice"]);
    assert_eq!(spent, world.account("acme").spent.money.0);
}

/// What an answer says that was used, and what the ledger says of it: (prompt, all tokens) each.
async fn counted(world: &World, body: &Value) -> [(u64, u64); 2] {
    let line = async || world.get("sk-key", "/v1/usage").await.good()["data"][0].clone();
    let tokens = |line: &Value, columns: &[&str]| -> u64 {
        columns.iter().map(|column| line[format!("{column}_tokens")].as_u64().unwrap_or(0)).sum()
    };
    let all = ["prompt", "thinking", "solution", "overhead", "other"];
    let before = line().await;
    let answer = world.ask("sk-key", body).await.good();
    let after = line().await;
    let number = |value: &Value| value.as_u64().unwrap();
    let reported = (
        number(&answer["usage"]["prompt_tokens"]),
        number(&answer["usage"]["total_tokens"]) + number(&answer["budget"]["other"]["tokens"]),
    );
    let added = |columns: &[&str]| tokens(&after, columns) - tokens(&before, columns);
    [reported, (added(&["prompt"]), added(&all))]
}

#[tokio::test]
async fn the_books_have_what_was_billed_and_answers_say_how_much_of_it_is_theirs() {
    let play = || ScriptedReply::new().thinks(20).answers("3").answers_when_cut("2");
    let scripts = [
        ScriptedBackend::always(play()),
        ScriptedBackend::always(play()),
        ScriptedBackend::in_turn(vec![
            ScriptedReply::new().thinks(2000).hides_thoughts(),
            ScriptedReply::new().answers("3"),
        ]),
    ];
    let classes = [EnforcementClass::Inline, EnforcementClass::Continue, EnforcementClass::Effort];
    let models = ["inline", "continue", "effort"].into_iter().zip(classes).zip(scripts);
    let models =
        models.map(|((name, class), script)| (model(name, class), Arc::new(script.reading(Tokens(75)))));
    let world = World::new(models.collect(), vec![tenant("key", 1_000_000_000)]).await;
    let ask = |model: &str, n: u64, thinking: u64| {
        let budget = json!({ "thinking_tokens": thinking, "solution_tokens": 12 });
        json!({ "model": model, "n": n, "messages": [{ "role": "user", "content": "What is 1+2?" }], "budget": budget })
    };
    assert_eq!(counted(&world, &ask("inline", 1, 30)).await, [(75, 75 + 20 + 2 + 1); 2]);
    let each = 75 + 20 + 2 + 1;
    assert_eq!(counted(&world, &ask("inline", 8, 30)).await, [(75, 8 * each), (8 * 75, 8 * each)]);
    for (name, n) in [("continue", 1), ("continue", 3), ("effort", 1)] {
        let [reported, billed] = counted(&world, &ask(name, n, 8)).await;
        assert_eq!((reported.0, reported.1), (75, billed.1), "{name}: all that was billed");
        assert!(billed.0 > n * 75, "{name}: a prompt was read again");
    }
}

#[tokio::test]
async fn the_books_have_what_was_given_up_for_another_model() {
    let gone = ScriptedReply::new().thinks(20).breaks_after(0, Failure::new(Fault::Backend, "gone"));
    let there = ScriptedReply::new().thinks(20).answers("3");
    let price = |nanos: u64| Price { per_million_tokens: Money(nanos * 1_000_000) };
    let priced = |name: &str, nanos| {
        let prices = Some(Prices { input: price(nanos), output: price(nanos) });
        Model { tariff: prices.map(Tariff::plain), ..model(name, EnforcementClass::Inline) }
    };
    let models = [(priced("cheap", 1), gone), (priced("dear", 2), there)];
    let models =
        models.map(|(model, play)| (model, Arc::new(ScriptedBackend::always(play).reading(Tokens(75)))));
    let world = World::new(models.into(), vec![tenant("key", 1_000_000_000)]).await;
    let body = json!({ "model": "auto", "messages": [{ "role": "user", "content": "What is 1+2?" }],
                       "budget": { "thinking_tokens": 30, "solution_tokens": 12 } });
    world.ask("sk-key", &body).await.good();
    let [reported, billed] = counted(&world, &body).await;
    assert_eq!((reported, billed), ((75, 2 * 75 + 20 + 2 + 1), (2 * 75, 2 * 75 + 20 + 2 + 1)));
}

/// AU-05, AU-04: a cursor and the parameters choose among a key's own lines, whichever replica wrote them. Lines of
/// another key are answered like lines that do not exist.
#[tokio::test]
async fn no_cursor_and_no_parameter_leads_to_lines_of_another() {
    let world = asked().await;
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    for group in [
        "[0,\"\",\"\"]",
        "[0,\"acme\",\"\"]",
        "[0,\"acme/alice\",\"m\"]",
        "[-9,\"oth\",\"\"]",
        "[0,\"%\",\"_\"]",
    ] {
        for by in ["key", "key,model", "day,key", "model"] {
            let path = format!("/v1/usage?group_by={by}&after={}", hex(group));
            let page = world.get("sk-other", &path).await.good();
            let lines = page["data"].as_array().unwrap();
            let theirs = |line: &&Value| line["key"].as_str().is_some_and(|key| key != "other");
            assert_eq!(lines.iter().find(theirs), None, "{group} by {by}");
            let requests: u64 = lines.iter().map(|line| line["requests"].as_u64().unwrap()).sum();
            assert!(requests <= 1, "{page}");
        }
    }
    for parameter in ["account", "key", "tenant", "user", "order", "sort"] {
        let mut said = Vec::new();
        for value in ["acme", "nobody", "other"] {
            let answer = world.get("sk-other", &format!("/v1/usage?{parameter}={value}")).await;
            assert_eq!(answer.status, 400);
            said.push(answer.text);
        }
        assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
    }
}

#[tokio::test]
async fn a_parameter_of_usage_that_is_wrong_is_named() {
    let world = asked().await;
    for (query, param) in [
        ("limit=0", "limit"),
        ("to=soon", "to"),
        ("group_by=tag", "group_by"),
        ("after=0", "after"),
        ("of=me", "of"),
    ] {
        let answer = world.get("sk-acme", &format!("/v1/usage?{query}")).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(param)), "{query}");
    }
}

/// The columns of a file without quotes in it, by name.
fn columns(csv: &str) -> BTreeMap<String, Vec<String>> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    let column = |place: usize| rows.iter().map(|row| row[place].to_owned()).collect();
    head.iter().enumerate().map(|(place, name)| ((*name).to_owned(), column(place))).collect()
}

async fn spent(process: &Process) -> u64 {
    let page = process.get("sk-test", "/v1/allowance").await.good();
    assert_eq!(page["limits"][0]["reserved"], "0");
    money(&page["limits"][0]["spent"])
}

/// The sum of an export is what balances and `/v1/usage` say, to the last nano-dollar, sealed or not.
async fn an_export_comes_to_the_balances(desk: &Desk) {
    let check = async |process: &Process| {
        let sum = |columns: &BTreeMap<String, Vec<String>>| -> u64 {
            columns["spent_usd"].iter().map(|text| text.parse::<Money>().unwrap().0).sum()
        };
        let spent = spent(process).await;
        let mut columns = BTreeMap::new();
        // A settlement that stalls is told before it is written down.
        until("all is written down", async || {
            columns = self::columns(&desk.ledger(&["export"]));
            sum(&columns) == spent
        })
        .await;
        let exported = sum(&columns);
        let page = process.get("sk-test", "/v1/usage?group_by=model&from=2026-01-01").await.good();
        assert_eq!((exported, money(&page["data"][0]["spent_usd"])), (spent, spent));
        assert_eq!(page["data"][0]["requests"], columns["request"].len());
        let table = desk.run("usage", &["--by", "key,model"]);
        assert!(table.contains(&Money(spent).to_string()), "{table}");
        assert_eq!(columns["outcome"].len(), columns["request"].len());
        spent
    };
    for told in
        [desk.refused("ledger", &["verify"]), desk.refused("usage", &[]), desk.refused("ledger", &["seal"])]
    {
        assert!(told.contains("there are no books at"), "{told}");
    }
    let mut process = desk.serve();
    for budget in [0, 8, 60] {
        let body = json!({ "model": "reasoner", "messages": [{ "role": "user", "content": "What is 12+34*2?" }],
                           "budget": { "thinking_tokens": budget, "solution_tokens": 12 } });
        process.ask("sk-test", &body).await.good();
    }
    let before = check(&process).await;
    assert!(before > 0);
    if desk.url.is_none() {
        assert!(desk.refused("ledger", &["seal"]).contains("another stint process"));
        process.signal("TERM");
        assert!(process.ended().success());
    }
    assert!(desk.ledger(&["seal"]).starts_with("seal 1: 3 resolutions"));
    assert!(desk.ledger(&["seal"]).contains("everything is sealed already"));
    assert!(desk.ledger(&["verify"]).contains("the books are right"));
    if desk.url.is_some() {
        assert_eq!(check(&process).await, before);
        process.signal("TERM");
        assert!(process.ended().success());
    }
    let process = desk.serve();
    assert_eq!(check(&process).await, before);
    process.ask("sk-test", &question("reasoner")).await.good();
    assert!(check(&process).await > before, "what is sealed and what is not");
    assert!(desk.ledger(&["verify"]).contains("; 1 seals cover 3; 0 open"));
}

#[tokio::test]
async fn an_export_comes_to_what_the_ledger_says() {
    an_export_comes_to_the_balances(&Desk::file()).await;
}

#[tokio::test]
async fn an_export_of_postgres_comes_to_what_the_ledger_says() {
    an_export_comes_to_the_balances(&Desk::server()).await;
}

/// Asks until it is stopped.
async fn load(process: Arc<Process>, stop: tokio_util::sync::CancellationToken) {
    while !stop.is_cancelled() {
        process.ask("sk-test", &question("reasoner")).await.good();
    }
}

/// CR-14: a backup that is taken under load is right, and what is restored from it starts.
#[tokio::test]
async fn a_backup_taken_under_load_is_right_and_starts() {
    let (desk, other) = (Desk::file(), Desk::file());
    let backup = &desk.path("backup.db");
    let process = Arc::new(desk.serve());
    let stop = tokio_util::sync::CancellationToken::new();
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(load(process.clone(), stop.clone()))).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let desk = tokio::task::spawn_blocking({
        let backup = backup.to_owned();
        move || {
            assert!(desk.ledger(&["backup", &backup]).contains("the books are right"));
            assert!(desk.ledger(&["verify"]).contains("the books are right"));
            assert!(desk.refused("ledger", &["backup", &backup]).contains("no such file"));
            let refused = desk.refused("ledger", &["restore", &backup, "--force"]);
            assert!(refused.contains("another stint process"));
            desk
        }
    })
    .await
    .unwrap();
    stop.cancel();
    for caller in callers {
        caller.await.unwrap();
    }
    let at_last = spent(&process).await;
    drop(process);
    assert!(desk.refused("ledger", &["restore", backup]).contains("--force"));
    assert!(other.ledger(&["restore", backup]).contains("the books are right"));
    let restored = other.serve();
    let is_sealed = async || other.ledger(&["verify"]).contains("; 1 seals cover");
    until("a day was missed, so it is sealed", is_sealed).await;
    let copied = spent(&restored).await;
    assert!(copied > 0 && copied <= at_last + 4 * 50_000, "{copied} of {at_last}");
    restored.ask("sk-test", &question("reasoner")).await.good();
}

/// A copy of the one file that the ledger's name says has all that was booked, once its gateway has stopped.
#[tokio::test]
async fn a_clean_stop_leaves_the_books_in_one_file() {
    let desk = Desk::file();
    let mut process = desk.serve();
    for _ in 0..3 {
        process.ask("sk-test", &question("reasoner")).await.good();
    }
    process.signal("TERM");
    assert!(process.ended().success());
    std::fs::copy(desk.path("ledger.db"), desk.path("copy.db")).unwrap();
    let verified =
        desk.stint("ledger").arg("verify").env("STINT_LEDGER", desk.path("copy.db")).output().unwrap();
    let told = String::from_utf8_lossy(&verified.stdout);
    assert!(told.contains("the books are right") && told.contains("3 resolutions, "), "{verified:?}");
}

/// What was printed and did not arrive is an error, and none of the ledger's.
#[tokio::test]
async fn a_full_disk_under_what_is_printed_is_said() {
    let desk = Desk::file();
    let mut process = desk.serve();
    process.ask("sk-test", &question("reasoner")).await.good();
    process.signal("TERM");
    assert!(process.ended().success());
    for verb in [&["keys", "list"][..], &["usage"], &["ledger", "export"], &["config", "show"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = desk.stint(verb[0]);
        let output = command.args(&verb[1..]).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && told.contains("cannot write to standard output"),
            "{verb:?}: {told}"
        );
        assert!(!told.contains("backup"), "{verb:?}: {told}");
    }
}
