//! What an operator sees of votes and second opinions.

use std::time::Duration;

use stint_types::catalog::{AnswerComparison, Checker, Route, TrialBounds};
use stint_types::units::{Chance, Tokens};

use super::*;

fn route(keys: &str) -> Route {
    let settings = load_text(&format!("[[route]]\nname = \"r\"\n{keys}\n")).unwrap();
    settings.catalog.routes["r"].clone()
}

#[test]
fn a_route_may_vote_and_ask_for_second_opinions() {
    let route = route(
        "vote = { samples_max = 9, compare = \"json:/a/0\", at_once = 2, temperature = 1.5, doubt = 0 }\n\
         cascade = true\nverifier = { command = [\"check\", \"-x\"], floor = 0.8, timeout = \"2s\" }\n\
         judge = \"reasoner\"\nprobe = { model = \"reasoner\" }",
    );
    let vote = route.vote.unwrap();
    assert_eq!((vote.samples_max, vote.policy.concurrency, vote.policy.temperature), (9, 2, Some(1.5)));
    assert_eq!(
        (vote.compare, vote.policy.stop_probability, vote.assumptions.distinct_wrong),
        (AnswerComparison::Json("/a/0".into()), Chance::ZERO, 12)
    );
    let verifier = route.verifier.unwrap();
    assert_eq!(verifier.by, Checker::Command(vec!["check".into(), "-x".into()]));
    assert_eq!((verifier.floor, verifier.timeout), (Chance::new(0.8), Duration::from_secs(2)));
    let probe = route.probe.unwrap();
    assert_eq!(
        (route.judge.as_deref(), &*probe.model, probe.drafts, probe.tokens),
        (Some("reasoner"), "reasoner", 3, Tokens(16))
    );
    assert!(route.cascade && !route.buffers_streams);
}

#[test]
fn a_route_without_them_has_none() {
    let route = route("worth = \"0.01\"");
    assert_eq!((route.vote, route.verifier, route.judge, route.probe), (None, None, None, None));
    assert!(!route.worth_by_task, "its worth is written");
}

#[test]
fn mistakes_in_them_are_reported_with_their_remedies() {
    check(
        "[[route]]\nname = \"r\"\nvote = { samples_max = 1, compare = \"meaning\" }\nverifier = { url = \"ftp://x\" }\n\
         judge = \"raesoner\"\nprobe = { drafts = 1 }\n",
        &[
            "line 3: route.vote.compare: \"meaning\" is unknown; write \"number\", \"choice\", \"exact\", \"json\" or \"json:/member\"",
            "line 3: route.vote.samples_max: 1 is out of range; write 2 to 15",
            "line 4: route.verifier.url: not an address; write it like \"http://127.0.0.1:9000/score\"",
            "line 5: route.judge: no model \"raesoner\"; did you mean \"reasoner\"?",
            "line 6: route.probe.model: missing; name a small model, whose drafts cost little",
            "line 6: route.probe.drafts: 1 is out of range; write 2 to 8",
        ],
    );
}

#[test]
fn a_share_that_is_none_is_one_mistake_and_two_of_one_route_are_another() {
    check(
        "[[route]]\nname = \"r\"\nenforce = false\n[[route.shares]]\nroute = \"s\"\nshare = -0.7\n\
         [[route]]\nname = \"t\"\nshares = [{ route = \"s\", share = 0.1 }, { route = \"s\", share = 0.2 }]\n\
         [[route]]\nname = \"s\"\n",
        &[
            "line 3: route.enforce: false is not one of its words; write \"on\" or \"observe\" or \"off\"",
            "line 6: route.shares.share: -0.7 is out of range; write 0 to 1",
            "line 9: route.shares.route: \"s\" stands twice; write one share for both",
        ],
    );
}

#[test]
fn what_of_votes_can_never_take_effect_is_told_with_its_remedy() {
    let check = |text: &str, expected: &[&str]| {
        let warnings = load_text(text).unwrap().warnings;
        let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let told: Vec<&str> = told.iter().map(|told| &**told).filter(|told| told.contains("route")).collect();
        assert_eq!(told, expected, "{text}");
    };
    check(
        "[[route]]\nname = \"r\"\ncascade = true\njudge = \"reasoner\"\n",
        &[
            "line 3: route.cascade: of no effect on a route without a vote; write vote = { compare = \"number\" } or \
             the like, or take it out",
            "line 4: route.judge: of no effect on a route without a vote; write vote = { compare = \"number\" } or the \
             like, or take it out",
        ],
    );
    let vote = "[[route]]\nname = \"r\"\nvote = {}\n";
    check(
        &format!("{vote}cascade = true\n"),
        &[
            "line 4: route.cascade: there is one model only, and no other to go on to; add a stronger model to the route, \
           or take the cascade out",
        ],
    );
    let remedy = "name a program that this user may run; until then every verdict fails and the vote decides";
    let verifier = |program: &str| format!("{vote}verifier = {{ command = [\"{program}\"] }}\n");
    check(
        &verifier("no-such-program-here"),
        &[&format!("line 4: route.verifier: there is no program no-such-program-here on the PATH; {remedy}")],
    );
    check(
        &verifier("./Cargo.toml"),
        &[&format!("line 4: route.verifier: ./Cargo.toml cannot be run: it is no program; {remedy}")],
    );
    check(&verifier("sh"), &[]);
    let vectors = "[engine]\nembedded = false\n[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                   [[backend.model]]\nname = \"v\"\nserves = [\"embeddings\"]\nprice_input = \"1\"\nprice_output = \"0\"\n";
    check(
        &format!("{vectors}[[route]]\nname = \"r\"\nvote = {{}}\n"),
        &[
            "line 12: route.vote: none of the route's models gives answers to vote among; add a model that serves \
           \"chat\", or take the vote out",
        ],
    );
}

#[test]
fn auto_tries_other_models_unless_it_is_written_or_that_is_turned_off() {
    let trials = |text: &str| load_text(text).unwrap().catalog.routes["auto"].trials;
    assert_eq!(trials(""), Some(TrialBounds::usual()));
    assert_eq!(trials("[plan]\nauto_explores = false\n"), None);
    assert_eq!(trials("[[route]]\nname = \"auto\"\n"), None);
    let other = load_text("[[route]]\nname = \"r\"\n").unwrap().catalog.routes["r"].trials;
    assert_eq!(other, None);
}
