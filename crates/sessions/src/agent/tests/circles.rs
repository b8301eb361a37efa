//! Tests of what an episode's messages show, such as that it goes in circles.

use std::time::Instant;

use stint_types::chat::ContentPart;

use super::*;

fn found(turns: &[(&str, &str, &str)]) -> Option<DeadEnd> {
    let mut messages = vec![user("Who?")];
    for (at, (tool, arguments, said)) in turns.iter().enumerate() {
        messages.extend([calls(&at.to_string(), &[(tool, arguments)]), result(&format!("{at}0"), said)]);
    }
    History::read(&request(&[], messages), true, &Settings::default()).unwrap().dead_end
}

#[test]
fn the_same_call_with_the_same_result_three_times_is_a_circle() {
    let again = ("search", r#"{"q": "x", "n": 1}"#, "Nobody.");
    let written_otherwise = ("search", "{\"n\":1,\n\"q\":\"x\"}", "Nobody.");
    let other = ("browse", "{}", "A page.");
    let circle = Some(DeadEnd::Repeated { tool: "search".to_owned(), times: 3 });
    assert_eq!(found(&[again, other, written_otherwise, other, again]), circle);
    assert_eq!(found(&[again, other, again]), None);
    assert_eq!(found(&[again, again, again, other]), None, "it has gone on since");
    let news = |said: &'static str| ("test", "{}", said);
    assert_eq!(
        found(&[news("3 fail"), news("2 fail"), news("1 fails"), news("ok")]),
        None,
        "each says something new"
    );
}

#[test]
fn results_that_are_all_errors_or_all_the_same_are_one_too() {
    let call = |arguments: &'static str, said: &'static str| ("search", arguments, said);
    let failing = [call("1", "Error: no"), call("2", "ERROR 404"), call("3", r#"{"error": {"code": 1}}"#)];
    assert_eq!(found(&failing), Some(DeadEnd::Failing(3)));
    assert_eq!(found(&[call("1", "[]"), call("2", "[]"), call("3", "[]")]), Some(DeadEnd::Unchanging(3)));
    assert_eq!(
        found(&[call("1", "Errors: 0"), call("2", r#"{"error": null}"#), call("3", r#"{"error": ""}"#)]),
        None
    );
    assert_eq!(found(&[call("1", "error"), call("2", "found"), call("3", "error")]), None);
}

#[test]
fn the_same_words_with_another_image_or_file_are_no_circle() {
    let found = |arguments: [&str; 3], files: [&str; 3]| {
        let mut messages = vec![user("Who?")];
        for (at, (arguments, file)) in arguments.into_iter().zip(files).enumerate() {
            let mut result = result(&format!("{at}0"), "Read.");
            result.content.push(ContentPart::Other(json!({ "type": "file", "file": { "file_data": file } })));
            messages.extend([calls(&at.to_string(), &[("read", arguments)]), result]);
        }
        History::read(&request(&[], messages), true, &Settings::default()).unwrap().dead_end
    };
    let repeated = Some(DeadEnd::Repeated { tool: "read".to_owned(), times: 3 });
    assert_eq!(found(["1", "1", "1"], ["a", "a", "a"]), repeated);
    assert_eq!(found(["1", "1", "1"], ["a", "b", "c"]), None);
    assert_eq!(found(["1", "2", "3"], ["a", "a", "a"]), Some(DeadEnd::Unchanging(3)));
    assert_eq!(found(["1", "2", "3"], ["a", "a", "b"]), None);
}

#[test]
fn calls_and_turns_are_counted_as_they_stand_in_the_messages() {
    let mut messages =
        vec![user("Who?"), calls("a", &[("search", r#"{"queries":["x","y"]}"#), ("browse", "{}")])];
    messages.extend([
        result("a0", "?"),
        result("a1", "!"),
        Message::text(Role::Assistant, "Nobody."),
        user("And?"),
    ]);
    messages.extend([calls("b", &[("search", "{"), ("new", "{}")]), result("b0", "")]);
    let read = |named| History::read(&request(&[], messages.clone()), named, &settings()).unwrap();
    let (named, whole) = (read(true), read(false));
    assert_eq!(
        (named.turns, named.turns_since, named.tools),
        (Count(1), Count(1), counts(&[("search", 1), ("new", 1)]))
    );
    assert_eq!((whole.turns, whole.turns_since), (Count(3), Count(1)));
    assert_eq!(whole.tools, counts(&[("search", 3), ("browse", 1), ("new", 1)]));
}

#[test]
fn only_what_the_user_says_begins_a_task() {
    let mut messages = searched();
    messages.extend([
        user("(Reminder.)"),
        Message::text(Role::Assistant, "Hm."),
        calls("b", &[("search", "{}")]),
    ]);
    messages.extend([result("b0", "?"), user("(Reminder.)")]);
    let read = || History::read(&request(&[], messages.clone()), true, &settings()).unwrap();
    assert_eq!((read().turns_since, read().tools), (Count(2), counts(&[("search", 2)])));
    messages.extend([Message::text(Role::Assistant, "Nobody."), user("And now?")]);
    let read = History::read(&request(&[], messages), true, &settings()).unwrap();
    assert_eq!((read.turns_since, read.tools), (Count(0), ToolCounts::default()));
}

#[test]
fn ten_thousand_results_are_read_at_once_and_more_than_may_be_are_refused() {
    let mut messages = vec![user("Who?")];
    for turn in 0..10_000 {
        let id = format!("{turn}-");
        messages.push(calls(&id, &[("search", r#"{"queries": ["x", "y"]}"#)]));
        messages.push(result(&format!("{id}0"), &"word ".repeat(200)));
    }
    let mut settings = settings();
    let error = History::read(&request(&[], messages.clone()), true, &settings).unwrap_err();
    assert_eq!((error.messages, error.most), (20_001, 20_000));
    settings.messages_max = 30_000;
    let request = request(&[], messages);
    let began = Instant::now();
    let history = History::read(&request, true, &settings).unwrap();
    let chain = HashChain::read(&request.messages);
    assert_eq!((history.tools.all, chain.replies().len()), (Count(20_000), 10_000));
    // 9 ms and 42 ms without optimisation, where nothing else runs.
    assert!(began.elapsed().as_secs() < 20);
}
