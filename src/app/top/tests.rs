//! What is seen of a snapshot, on terminals of several sizes and as plain text.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::controls::Pane;
use super::plain;
use super::screen::View;
use super::snapshot::Snapshot;

fn snapshot() -> Snapshot {
    let now = json!({
        "version": "1.2.3", "not_ready": null, "in_flight": 2, "queued": 1, "connections": 7, "reserved_usd": 0.5,
        "counters": { "at": 1000, "requests": 41, "refused": 3, "thinking_tokens": 900, "solution_tokens": 300, "usd": 1.25 },
        "targets": [
            { "model": "gpt-5", "target": "eu", "available": false, "why": "the key is refused", "in_flight": 0,
              "limit": 8, "queue": 0, "failures": { "credential": 4 } },
            { "model": "reasoner", "target": "reasoner", "available": true, "in_flight": 2, "limit": null, "queue": 1,
              "failures": {} },
            { "model": "qwen3-8b", "target": "desk", "available": true, "loaded": false, "in_flight": 0, "limit": null,
              "queue": 0, "failures": {} },
        ],
    });
    let requests = json!({ "requests_count": 2, "requests": [
        { "id": "req_1", "account": "acme/alice", "route": "auto", "seconds": 12.34, "attempt": {
            "model": "reasoner", "answers": 2, "reserved_usd": 0.25,
            "thinking": { "budget": 100, "used": 150 }, "solution": { "budget": 64, "used": 0 } } },
        { "id": "req_2", "account": "bob", "route": "reasoner", "seconds": 0.2, "attempt": null },
    ] });
    let money = json!({ "now": "2026-11-24T12:00:00Z", "accounts": [{ "account": "acme", "limits": [
        { "unit": "money", "window": "day", "about": null, "max": 20.0, "spent": 15.0, "reserved": 0.5,
          "runs_out_at": "2026-11-24T14:00:00Z" },
        { "unit": "requests", "window": "minute", "about": "model gpt-5", "max": 60, "spent": 2, "reserved": 0,
          "runs_out_at": null },
    ] }] });
    Snapshot::of(&now, &requests, &money)
}

/// The lines of a terminal of that size.
fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(line).collect()
}

fn check(lines: &[String], words: &[&str]) {
    let all = lines.join("\n");
    for word in words {
        assert!(all.contains(word), "{word} is not in\n{all}");
    }
}

#[test]
fn a_wide_terminal_shows_requests_backends_and_limits() {
    let view = View { snapshot: Some(snapshot()), ..View::default() };
    let lines = drawn(&view, 220, 30);
    check(
        &lines,
        &[
            "stint 1.2.3  ready",
            "41 requests  3 refused",
            "requests (2)",
            "acme/alice",
            "reasoner ×2",
            "12.3s",
            "█████████░░░ 150/200",
            "0/128",
            "waits",
            "the key is refused",
            "money per day",
            "██████░░ $15.5",
            "2h",
            "requests per minute, model gpt-5",
            "q quit",
        ],
    );
}

#[test]
fn a_small_terminal_shows_what_there_is_room_for() {
    let mut view =
        View { snapshot: Some(snapshot()), trouble: Some("no server answers".into()), ..View::default() };
    check(
        &drawn(&view, 60, 20),
        &["stint 1.2.3", "requests (2)", "backends", "money and other limits", "no server answers"],
    );
    for (width, height) in [(20, 6), (8, 2), (1, 1)] {
        drawn(&view, width, height);
    }
    view.controls.pane = Pane::Requests;
    view.controls.first = [1, 0, 0];
    let lines = drawn(&view, 100, 30).join("\n");
    assert!(!lines.contains("acme/alice") && lines.contains("bob"), "{lines}");
}

#[test]
fn before_the_first_answer_it_says_that_it_asks() {
    check(&drawn(&View::default(), 60, 20), &["asking the server"]);
}

#[test]
fn once_is_plain_text_for_scripts() {
    let text = plain::text(&snapshot());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "stint 1.2.3  ready");
    check(
        &lines.iter().map(ToString::to_string).collect::<Vec<_>>(),
        &["150/200", "the key is refused", "$15.5", "$20"],
    );
    assert!(!text.contains('\u{1b}') && !text.contains('█'), "{text}");
}

/// CF-14: `stint top` shows names without the bytes that steer a terminal.
#[test]
fn names_cannot_steer_the_terminal() {
    let now = json!({ "version": "1\u{1b}[2J", "counters": {} });
    let requests = json!({ "requests": [{ "account": "a\u{1b}]0;owned\u{7}", "route": "r" }] });
    let text = plain::text(&Snapshot::of(&now, &requests, &json!({})));
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
}
