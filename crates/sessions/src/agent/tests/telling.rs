//! Tests of the tracker: what it tells the model, and where in the prompt.

use stint_types::chat::{CacheTtl, ContentPart};

use super::*;

fn sent(said: &str, messages: Vec<Message>, spent: &[(&str, u64)]) -> Request {
    let request = request(&["search", "browse"], messages);
    let (limits, settings) = (limits(said), Settings::default());
    let history = History::read(&request, true, &settings).unwrap();
    let mut standing = EpisodeBalance::default();
    standing.spent.tools = counts(spent);
    standing.spent.cost = Money(7_000_000);
    let asked = step_input(&request, &limits, &standing, &history);
    let StepDecision::Proceed(step) = decide_step(&asked, &settings) else { panic!("it may go") };
    step.applied(&request)
}

fn check(said: &str, spent: &[(&str, u64)], expected: &[&str]) {
    let sent = sent(said, searched(), spent);
    let text = sent.messages.last().unwrap().plain_text();
    let block = format!("Nobody.\n\n<budget>\n{}\n</budget>", expected.join("\n"));
    assert_eq!(text, block, "{said} {spent:?}");
}

#[test]
fn the_block_says_what_is_used_and_left_and_what_to_do() {
    let words = TrackerMessages::default();
    check("search 10", &[("search", 1)], &["search: 1 used, 9 left", &words.high]);
    check(
        "search 10, * 12",
        &[("search", 4)],
        &["search: 4 used, 6 left", "all tools: 4 used, 8 left", &words.medium],
    );
    check("search 10", &[("search", 8)], &["search: 8 used, 2 left", &words.low]);
    check("search 20", &[("search", 19)], &["search: 19 used, 1 left", &words.critical]);
    let used_up = format!("Used up: search. {}", words.spent);
    let spent = ["search: 3 used, 0 left", "browse: 0 used, 9 left", &used_up, &words.high];
    check("search 3, browse 9", &[("search", 3)], &spent);
    let alone = ["search: 3 used, 0 left", "turns: 1 used, 8 left", &used_up, &words.high];
    check("search 3, turns 9", &[("search", 3)], &alone);
    let both = ["search: 9 used, 1 left", "browse: 1 used, 39 left", &words.low];
    check("search 10, browse 40", &[("search", 9), ("browse", 1)], &both);
    let ruled_out = ["search: 1 used, 9 left", "browse: 0 used, 0 left", &words.high];
    check("search 10, browse 0", &[("search", 1)], &ruled_out);
    let money = "money: 0.007 USD used, 0.003 USD left";
    check("nanos 10000000, turns 9", &[], &["turns: 1 used, 8 left", money, &words.medium]);
}

#[test]
fn only_the_end_of_the_context_differs() {
    let mut messages = searched();
    let first = sent("search 10", messages.clone(), &[("search", 1)]);
    assert_eq!(first.messages[..2], messages[..2]);
    messages.extend([calls("b", &[("search", "{}")]), result("b0", "Somebody.")]);
    let second = sent("search 10", messages.clone(), &[("search", 2)]);
    assert_eq!(second.messages[..4], messages[..4], "what stands before is not touched");
    assert_eq!(second, sent("search 10", messages, &[("search", 2)]), "the same is rendered the same");
}

#[test]
fn what_a_client_says_beside_a_result_does_not_hide_it() {
    let mut messages = searched();
    messages.extend([user("(The plan is up to date.)"), Message::text(Role::System, "It is 12:01.")]);
    let sent = sent("search 10", messages.clone(), &[("search", 1)]);
    assert!(
        sent.messages[3].plain_text().starts_with("(The plan is up to date.)\n\n<budget>\nsearch: 1 used")
    );
    assert_eq!((&sent.messages[..3], &sent.messages[4]), (&messages[..3], &messages[4]));
}

#[test]
fn a_model_without_tools_gets_no_tracker_before_a_result() {
    let check = |messages: Vec<Message>, is_told: bool| {
        let plain = request(&[], messages);
        let (limits, settings, standing) =
            (limits("turns 9"), Settings::default(), EpisodeBalance::default());
        let history = History::read(&plain, true, &settings).unwrap();
        let asked = step_input(&plain, &limits, &standing, &history);
        let StepDecision::Proceed(step) = decide_step(&asked, &settings) else { panic!("it may go") };
        assert_eq!(step.applied(&plain) != plain, is_told);
    };
    check(vec![user("Who?")], false);
    check(searched(), true);
}

#[test]
fn the_policy_comes_once_at_the_first_turn() {
    let first = sent("search 10", vec![user("Who?")], &[]);
    let text = first.messages[0].plain_text();
    assert!(
        text.starts_with("Who?\n\n<budget>\n") && text.contains(&TrackerMessages::default().policy),
        "{text}"
    );
    let mut later = searched();
    later.extend([Message::text(Role::Assistant, "Nobody."), user("And who else?")]);
    assert_eq!(sent("search 10", later.clone(), &[]).messages, later);
}

#[test]
fn a_result_that_is_no_text_keeps_what_it_is() {
    let mut messages = searched();
    messages[2].content = vec![ContentPart::Other(json!({"type": "image_url"}))];
    let sent = sent("search 10", messages, &[]);
    let content = &sent.messages[2].content;
    assert_eq!(content[0], ContentPart::Other(json!({"type": "image_url"})));
    assert!(matches!(&content[2], ContentPart::Text(text) if text.starts_with("<budget>")));
    assert_eq!(sent.messages[2].tool_call_id.as_deref(), Some("a0"));
}

#[test]
fn what_the_caller_marked_for_a_cache_stays_as_it_is() {
    let mut messages = searched();
    messages[2].content.push(ContentPart::CacheBreakpoint(CacheTtl::Minutes));
    let sent = sent("search 10", messages.clone(), &[]);
    let (before, block) = sent.messages[2].content.split_at(2);
    assert_eq!(before, messages[2].content);
    assert!(
        matches!(block, [ContentPart::AdditionStart { .. }, ContentPart::Text(text)] if text.starts_with("\n\n<budget>")),
        "{block:?}"
    );
}

/// What a step adds after so many bytes of additions, the last of which said that.
fn addition(spent: u64, added_bytes: usize, last_added: &str) -> Option<String> {
    let request = request(&["search"], searched());
    let (limits, settings) = (limits("search 10"), Settings::default());
    let history = History::read(&request, true, &settings).unwrap();
    let mut standing = EpisodeBalance::default();
    standing.spent.tools = counts(&[("search", spent)]);
    let asked = StepInput {
        added_bytes,
        last_added: Some(&AddedWords { text: last_added.into(), ..AddedWords::default() }),
        ..step_input(&request, &limits, &standing, &history)
    };
    let StepDecision::Proceed(step) = decide_step(&asked, &settings) else { panic!("it may go") };
    step.addition().filter(|words| !words.text.is_empty()).map(|words| words.text.to_string())
}

#[test]
fn what_is_added_to_an_episode_is_bounded_so_that_the_tracker_becomes_rarer_and_not_longer() {
    let most = Settings::default().additions_max;
    let plenty = addition(1, 0, "").unwrap();
    assert!(addition(2, most / 4, &plenty).is_some(), "while there is room each step is told");
    assert_eq!(addition(2, most / 2, &plenty), None, "then only news: another number is none");
    assert!(addition(5, most / 2, &plenty).is_some(), "another level is");
    assert_eq!(addition(5, most - most / 8, &plenty), None, "the last part is the final answer's");
    assert!(addition(10, most - most / 8, &plenty).unwrap().contains("Give the final answer now"));
    assert_eq!(addition(10, most, &plenty), None);
}

#[test]
fn tools_stay_declared_for_an_answer_whose_calls_did_not_pass() {
    let settings = Settings::default();
    let retries = |spent: &[(&str, u64)]| {
        let request = request(&["search", "browse"], searched());
        let (limits, mut standing) = (limits("search 3, browse 9"), EpisodeBalance::default());
        standing.spent.tools = counts(spent);
        let history = History::read(&request, true, &settings).unwrap();
        let asked = step_input(&request, &limits, &standing, &history);
        let StepDecision::Proceed(step) = decide_step(&asked, &settings) else { panic!("it may go") };
        let sent = step.applied(&request);
        let retries = step.retries(&sent, &settings);
        for StepRetry { request, .. } in &retries {
            assert_eq!(request.tools, sent.tools);
            let (last, before) = (request.messages[2].plain_text(), sent.messages[2].plain_text());
            assert!(last.starts_with(&before) && last.len() > before.len(), "only the end grows: {last}");
        }
        let choice =
            |retry: StepRetry| (retry.request.tool_choice, retry.call_limits == AnswerCallLimits::none());
        retries.into_iter().map(choice).collect::<Vec<_>>()
    };
    let (others, without) = ((None, false), (Some("none".into()), true));
    assert_eq!(retries(&[("search", 3)]), [others, without.clone()]);
    assert_eq!(retries(&[("search", 3), ("browse", 9)]), [without]);
}
