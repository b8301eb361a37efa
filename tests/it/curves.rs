//! `stint curve`: a model measured on an operator's own tasks, through the running server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Folder, World, model, tenant};
use stint_backend::BackendCall;
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_types::catalog::{CurveRecord, EnforcementClass};
use stint_types::units::{Money, Tokens};

const KEY: &str = "sk-acme";

/// Thinks forty tokens and is right then.
fn script() -> ScriptedReply {
    ScriptedReply::new().thinks(40).answers("42").answers_when_cut("41")
}

async fn world(reply: ScriptedReply) -> (World, Arc<ScriptedBackend>) {
    world_by(ScriptedBackend::always(reply)).await
}

async fn world_by(script: ScriptedBackend) -> (World, Arc<ScriptedBackend>) {
    let script = Arc::new(script);
    let models = vec![(model("m", EnforcementClass::Inline), script.clone())];
    (World::new(models, vec![tenant("acme", 1_000_000_000)]).await, script)
}

/// So many tasks whose answer is 42.
fn tasks(folder: &Folder, count: u32) -> PathBuf {
    let mut lines = String::new();
    for number in 0..count {
        writeln!(lines, "{}", json!({ "prompt": format!("What is 42+{number}-{number}?"), "answer": 42 }))
            .unwrap();
    }
    let path = folder.path().join("tasks.jsonl");
    std::fs::write(&path, lines).unwrap();
    path
}

fn command(folder: &Folder, base: &str, name: &str, more: &[&str]) -> Command {
    let mut command = folder.stint("curve");
    command.args([name, "--url", base, "--tasks"]).arg(folder.path().join("tasks.jsonl")).args(more);
    command.env("STINT_KEY", KEY);
    command
}

/// Runs it beside the server that this test is.
async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn record(path: &Path) -> CurveRecord {
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_curve_is_measured_written_and_drawn_and_a_second_run_asks_nothing_more() {
    let ((world, script), folder) = (world(script()).await, Folder::new(""));
    tasks(&folder, 12);
    let output = run(command(&folder, &world.base, "m", &[])).await;
    assert!(!output.status.success() && said(&output).contains("--budget-usd"), "{}", said(&output));
    let limits = ["--budget-usd", "0.01", "--samples", "2"];
    let output = run(command(&folder, &world.base, "m", &limits)).await;
    assert!(output.status.success(), "{}", said(&output));
    let measured = record(&folder.path().join("m.curve.toml"));
    let budgets: Vec<u64> = measured.points.iter().map(|point| point.budget.0).collect();
    assert_eq!(budgets, [0, 16, 32, 64], "doubling until nothing is cut");
    assert!(measured.points.iter().all(|point| point.answers == 24));
    let last = measured.points.last().unwrap();
    assert_eq!((last.right, measured.points[1].right), (24, 0), "{measured:?}");
    assert!(last.low > 0.8 && (last.thought - 40.0).abs() < 1e-9 && last.cost_usd > 0.0);
    assert!(
        measured.curve.done_shift > measured.curve.blind_shift + 4.0 && measured.curve.bend > 1.0,
        "{measured:?}"
    );
    let picture = std::fs::read_to_string(folder.path().join("m.curve.svg")).unwrap();
    assert!(picture.contains("<polyline") && picture.contains("accuracy against thinking budget"));
    let asked = script.records().len();
    let again =
        run(command(&folder, &world.base, "m", &["--budget-usd", "0.01", "--samples", "2", "--json"])).await;
    let json: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((script.records().len(), &json["point"][3]["right"]), (asked, &json!(24)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_spent_never_passes_the_stated_sum_and_a_larger_one_goes_on() {
    let ((world, script), folder) = (world(script()).await, Folder::new(""));
    tasks(&folder, 40);
    let most = Money(12_000);
    let limited = |sum: Money| {
        ["--budgets", "0,64", "--budget-usd"].map(str::to_owned).into_iter().chain([sum.to_string()])
    };
    let arguments: Vec<String> = limited(most).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run(command(&folder, &world.base, "m", &arguments)).await;
    world.settled().await;
    let (spent, asked) = (world.account("acme").spent.money, script.records().len());
    assert!(spent <= most && asked > 20 && asked < 80, "{spent} for {asked}: {}", said(&output));
    assert!(!output.status.success() && said(&output).contains("a larger --budget-usd goes on"));
    let arguments: Vec<String> = limited(Money(10_000_000)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run(command(&folder, &world.base, "m", &arguments)).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(script.records().len(), 80);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_goes_on_where_it_was() {
    let gate = PieceGate::shut();
    let held = gate.clone();
    let plays = move |_: &BackendCall, asked| match asked {
        0..35 => script(),
        _ => script().waits_at(&held),
    };
    let ((world, script), folder) = (world_by(ScriptedBackend::each(plays)).await, Folder::new(""));
    tasks(&folder, 30);
    let arguments = ["--budgets", "0,64", "--budget-usd", "0.1", "--at-once", "2"];
    let mut first = command(&folder, &world.base, "m", &arguments).spawn().unwrap();
    script.until(|records| records.len() > 35).await;
    first.kill().unwrap();
    tokio::task::spawn_blocking(move || first.wait()).await.unwrap().unwrap();
    gate.open();
    let before = script.records().len();
    assert!(before < 60, "{before}");
    let output = run(command(&folder, &world.base, "m", &arguments)).await;
    assert!(output.status.success(), "{}", said(&output));
    let asked = script.records().len();
    assert!((60..=62).contains(&asked), "{asked}: only what was under way is asked once more");
    let measured = record(&folder.path().join("m.curve.toml"));
    assert_eq!(measured.points.iter().map(|point| point.answers).sum::<u32>(), 60);
}

/// The embedded model, whose accuracy really depends on its thought; then the same file, to which its curve is told.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_model_is_measured_and_plans_go_by_what_was_measured() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let backend = |curve: &str| {
        format!(
            "[[backend]]\nkind = \"local\"\nfile = \"{file}\"\n[[backend.model]]\nname = \"own\"\nprice_input = \"0\"\n\
             price_output = \"0\"\n{curve}\n"
        )
    };
    let folder = Folder::new(&backend(""));
    let mut lines = String::new();
    for number in 0..24_i32 {
        let (a, b, c) = (12 + number * 3 % 17, 3 + number % 6, 20 + number * 7 % 23);
        writeln!(lines, "{}", json!({ "prompt": format!("{a}*{b}+{c}="), "answer": a * b + c })).unwrap();
    }
    std::fs::write(folder.path().join("tasks.jsonl"), lines).unwrap();
    let process = folder.serve();
    let quoted = json!({ "model": "own", "messages": [{ "role": "user", "content": "17*6-23=" }],
                         "budget": { "thinking_tokens": 256 } });
    let success = async |process: &crate::harness::Process| {
        let request = process.client.post(format!("{}/v1/plan", process.base));
        let request = request.header("content-type", "application/json").body(quoted.to_string());
        let quote = crate::harness::Answer::of(request).await.good();
        quote["offers"][0]["success"].as_f64().unwrap()
    };
    let before = success(&process).await;
    let base = process.base.clone();
    let output = run(command(&folder, &base, "own", &["--temperature", "0", "--at-once", "8"])).await;
    assert!(output.status.success(), "{}", said(&output));
    let measured = record(&folder.path().join("own.curve.toml"));
    let (first, last) = (&measured.points[0], measured.points.last().unwrap());
    assert!(first.right + 8 < last.right && last.cut < 0.03, "{measured:?}");
    assert!(last.budget >= Tokens(32) && measured.points.len() >= 3);
    drop(process);
    folder.write(&backend("curve = \"own.curve.toml\""));
    let checked = folder.stint("check").output().unwrap();
    assert!(said(&checked).contains("the curve of own was measured on 24 tasks"), "{}", said(&checked));
    let process = folder.serve();
    let now = success(&process).await;
    let reached = f64::from(last.right) / f64::from(last.answers);
    // So few tasks tell no less than a twentieth apart.
    assert!((now - reached).abs() < 0.05, "{before} before, {now} now, {reached} measured");
}

#[test]
fn a_file_that_is_no_curve_is_refused_with_its_remedy() {
    let folder = Folder::new(
        "[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\n[[backend.model]]\nname = \"m\"\ncurve = \"nothing.toml\"\n",
    );
    let output = folder.stint("check").output().unwrap();
    assert!(said(&output).contains("name a file that `stint curve` wrote"), "{}", said(&output));
    std::fs::write(folder.path().join("nothing.toml"), "model = \"m\"\n").unwrap();
    let output = folder.stint("check").output().unwrap();
    assert!(said(&output).contains("is no measured curve"), "{}", said(&output));
}
