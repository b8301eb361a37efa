//! What an operator says about agents.

use std::time::Duration;

use stint_types::catalog::TurnRule;
use stint_types::units::{Count, Money};

use super::*;

#[test]
fn agents_are_held_as_the_file_says() {
    let text = r#"
[agents]
tracker = false
high = 0.8
calls_per_answer = 3
wait_max = "5s"
[agents.words]
last = "Answer."
policy = ""
[tools.search]
price_usd = "0.001"
counts = "queries"
[tools."mcp.files/read"]
price_usd = 0
[[route]]
name = "short"
turns = 12
tracker = false
[[route]]
name = "learned"
turns = true
"#;
    let settings = load_text(text).unwrap();
    let agents = &settings.agents;
    assert_eq!((agents.tracker, agents.calls_per_answer), (false, Count(3)));
    assert_eq!((agents.wait_max, agents.thresholds.high.get()), (Duration::from_secs(5), 0.8));
    assert_eq!(
        (agents.tracker_messages.last.as_str(), agents.tracker_messages.policy.as_str()),
        ("Answer.", "")
    );
    assert_eq!(agents.tools.price("search"), Money(1_000_000));
    assert_eq!(agents.tools.count("search", r#"{"queries": ["a", "b"]}"#), Count(2));
    assert_eq!(agents.tools.0.len(), 2);
    let routes = &settings.catalog.routes;
    assert_eq!((routes["short"].turns, routes["short"].tracker), (TurnRule::Fixed(Count(12)), false));
    assert_eq!((routes["learned"].turns, routes["learned"].tracker), (TurnRule::Learned, true));
    assert_eq!(routes["auto"].turns, TurnRule::Free);
}

#[test]
fn a_long_name_of_a_tool_is_known_shortened_too() {
    let long = format!("mcp__{}__send", "mail".repeat(20));
    let tools = load_text(&format!("[tools.{long}]\nprice_usd = 1\n")).unwrap().agents.tools;
    let short = stint_types::chat::short_tool_name(&long);
    assert_ne!(short, long);
    assert_eq!((tools.price(&long), tools.price(&short)), (Money(1_000_000_000), Money(1_000_000_000)));
}

#[test]
fn what_is_wrong_with_tools_and_agents_is_said_with_its_line() {
    check(
        "[tools.search]\nprice_usd = \"-0.1\"\ncount = \"queries\"\n",
        &[
            "line 2: tools.search.price_usd: negative: it must be zero or more; write dollars as text, like \"0.02\": a float is not exact",
            "line 3: tools.search.count: unknown key; did you mean counts?",
        ],
    );
    check(
        "[tools]\nsearch = \"0.1\"\n[tools.\"*\"]\nprice_usd = \"1\"\n[tools.\"two words\"]\n",
        &[
            "line 2: tools.search: not a section; write [tools.search]",
            "line 3: tools.*: all tools have no price together; write the name of one tool; callers limit all with \"*\"",
            "line 5: tools.two words: not the name of a tool; write it as callers declare it: at most 128 bytes, without blanks",
        ],
    );
    check(
        "[agents]\nmedium = 0.9\ncalls_per_answer = 0\n[[route]]\nname = \"a\"\nturns = 0\n[[route]]\nname = \"b\"\nturns = \"many\"\n",
        &[
            "line 1: agents: shares out of order; write high above medium, and medium above low",
            "line 3: agents.calls_per_answer: 0 is out of range; write 1 to 1000",
            "line 6: route.turns: no turn at all; write true for as many as such tasks usually take, or a number from 1",
            "line 9: route.turns: not a number of turns; write true for as many as such tasks usually take, or a number from 1",
        ],
    );
}

#[test]
fn what_does_not_go_together_or_says_nothing_is_found() {
    check(
        "[gateway]\ntime_max = \"20s\"\n[agents]\nwait_max = \"21s\"\n[tools.search]\n",
        &[
            "line 4: agents.wait_max: longer than a request may run; write at most time_max of [gateway], or raise that",
            "line 5: tools.search: says nothing of the tool; write price_usd or counts, or take it out",
        ],
    );
    assert!(load_text("[gateway]\ntime_max = \"20s\"\n").is_ok(), "nobody wrote wait_max");
}

#[test]
fn words_with_something_to_fill_in_are_doubted_since_nothing_is() {
    let settings =
        load_text("[agents.words]\nlow = \"{left} calls left\"\nlast = \"As JSON: {\\\"a\\\": 1}\"\n")
            .unwrap();
    let said: Vec<String> = settings.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("line 2: agents.words.low: {left} is sent to the model as written; "),
        "{said:?}"
    );
}
