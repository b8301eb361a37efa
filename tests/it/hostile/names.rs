//! Names.

use serde_json::{Value, json};

use super::world;
use crate::harness::{Answer, Folder, Process};

/// Names that are no model's.
fn strange() -> Vec<String> {
    let mut names: Vec<String> =
        ["../../etc/passwd", "/etc/passwd", "m\0", "m\r\nx: y", "\u{ff4d}", "M", "m ", "m/../m", "\u{202e}m"]
            .map(str::to_owned)
            .into();
    names.extend(["\u{1b}[31mred".to_owned(), "m".repeat(1 << 20), "x\n".repeat(1_000)]);
    names
}

fn question(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "hi" }], "user": model })
}

/// IN-12: a name that is no model's is not found, whatever it looks like, and is not repeated at length.
#[tokio::test]
async fn a_name_that_is_no_models_is_not_found() {
    let (world, script) = world().await;
    for name in strange() {
        let answer = world.ask("sk-key", &question(&name)).await;
        let error = answer.error();
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (404, &json!("model_not_found"), &json!("model")),
            "{error}"
        );
        assert!(answer.text.len() < 20 << 10, "{} bytes", answer.text.len());
    }
    assert!(script.records().is_empty());
    let series: Vec<String> = world
        .metrics_page()
        .lines()
        .filter(|line| line.contains("passwd") || line.contains("red"))
        .map(str::to_owned)
        .collect();
    assert!(series.iter().all(|line| line.starts_with('#') || !line.contains("passwd")), "{series:?}");
}

/// Everything that it logged, once so many lines have these words.
async fn logged(process: &Process, words: &str, count: usize) -> Vec<String> {
    process.logged_times(words, count).await;
    process.lines("")
}

/// IN-20, IN-12: whatever a caller writes is one short line of the log, and none of its bytes reaches a terminal as they are.
#[tokio::test]
async fn what_a_caller_writes_is_one_line_of_the_log() {
    for format in ["text", "json"] {
        let process = Folder::new(&format!("[log]\nformat = '{format}'\n")).serve();
        // The last line of a start.
        let before = logged(&process, "try it: ", 1).await.len();
        let names = strange();
        for name in &names {
            assert_eq!(process.ask("", &question(name)).await.status, 404);
        }
        for path in ["/v1/%0aFORGED%20line", "/v1/models/%1b%5b31m", "/v1/models/%0d%0aFORGED"] {
            let request = process.client.get(format!("{}{path}", process.base));
            assert_eq!(Answer::of(request).await.status, 404, "{path}");
        }
        let lines = logged(&process, "stint::requests", names.len() + 3).await;
        for line in &lines[before..] {
            assert!(line.contains("stint::requests"), "a line of its own: {line:?}");
            assert!(line.len() < 2_000 && !line.chars().any(char::is_control), "{line:?}");
            if format == "json" {
                serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            }
        }
        assert_eq!(lines.len() - before, names.len() + 3, "{format}");
    }
}

/// What is no text is nobody's id, and is answered as one: clients read JSON.
#[tokio::test]
async fn an_id_that_is_not_utf_8_is_not_found_like_any_other() {
    let (world, _) = world().await;
    let paths = ["episodes/%ff", "responses/%ff", "models/%ff", "requests/%ff", "conversations/%ff/items"];
    for path in paths.into_iter().chain(["conversations/a/items/%ff", "responses/%c3%28/input_items"]) {
        let answer = world.get("sk-key", &format!("/v1/{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        assert!(answer.error()["message"].as_str().unwrap().contains("UTF-8"), "{path}: {}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/json", "{path}");
    }
}
