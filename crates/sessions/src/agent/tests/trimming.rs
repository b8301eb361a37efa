//! Tests of which tool calls of an answer pass.

use std::sync::Arc;

use proptest::prelude::*;

use stint_types::chat::{
    ChoiceEvent, FinishReason, SignedThought, SigningDomain, ThoughtSigner, ToolCallDelta, ToolLimits,
};

use super::*;

/// An answer's calls: tool and arguments.
type TestCalls = Vec<(String, String)>;

/// A step that lets so much pass.
fn step(limits: ToolLimits, calls: Option<u64>) -> StepPlan {
    let pass = AnswerCallLimits { tools: limits, calls: calls.map(Count) };
    let request = request(&["search", "browse"], vec![user("?")]);
    let (limits, history, standing) =
        (EpisodeLimits::default(), History::default(), EpisodeBalance::default());
    let asked = StepInput { is_named: false, ..step_input(&request, &limits, &standing, &history) };
    let StepDecision::Proceed(step) = decide_step(&asked, &settings()) else { panic!("nothing is limited") };
    StepPlan { call_limits: pass, ..*step }
}

/// The events of an answer, its arguments cut at these places.
fn events(made: &TestCalls, cuts: &[usize]) -> Vec<ChoiceEvent> {
    let mut events = vec![ChoiceEvent::Answer("So: ".to_owned())];
    let mut cuts = cuts.iter().cycle();
    for (at, (name, arguments)) in made.iter().enumerate() {
        let index = u32::try_from(at).unwrap() * 2;
        let (id, name) = (Some(format!("id{at}")), Some(name.clone()));
        events.push(ChoiceEvent::ToolCall(ToolCallDelta { index, id, name, arguments: String::new() }));
        let mut rest = arguments.as_str();
        while !rest.is_empty() {
            let mut cut = cuts.next().map_or(rest.len(), |cut| (*cut).clamp(1, rest.len()));
            while !rest.is_char_boundary(cut) {
                cut += 1;
            }
            let (piece, after) = rest.split_at(cut);
            let arguments = piece.to_owned();
            events.push(ChoiceEvent::ToolCall(ToolCallDelta { index, id: None, name: None, arguments }));
            rest = after;
        }
    }
    events
}

/// What reaches the reader: the calls put together, and what is said of them.
fn trimmed(step: &StepPlan, events: Vec<ChoiceEvent>) -> (Vec<ToolCall>, TrimResult) {
    let mut trim = ToolCallTrimmer::new(step, Arc::new(settings().tools));
    let mut seen: Vec<ChoiceEvent> = events.into_iter().flat_map(|event| trim.push(event)).collect();
    let (rest, trimmed) = trim.finish(FinishReason::ToolCalls);
    seen.extend(rest);
    let mut calls: Vec<ToolCall> = Vec::new();
    for event in seen {
        let ChoiceEvent::ToolCall(delta) = event else { continue };
        let index = usize::try_from(delta.index).unwrap();
        if let (Some(id), Some(name)) = (delta.id, delta.name) {
            assert_eq!(index, calls.len(), "indices follow one another");
            calls.push(ToolCall { id, name, arguments: String::new() });
        }
        calls[index].arguments.push_str(&delta.arguments);
    }
    (calls, trimmed)
}

fn check(
    limits: &EpisodeLimits,
    calls: Option<u64>,
    made: &[(&str, &str)],
    expected: &[(&str, &str)],
    dropped: u64,
) {
    let made: TestCalls =
        made.iter().map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned())).collect();
    let (seen, trimmed) = trimmed(&step(limits.tools.clone(), calls), events(&made, &[3]));
    let seen: Vec<(&str, &str)> = seen.iter().map(|call| (&*call.name, &*call.arguments)).collect();
    assert_eq!((seen.as_slice(), trimmed.dropped), (expected, Count(dropped)), "{made:?}");
}

const ONE: (&str, &str) = ("search", r#"{"queries":["a"]}"#);
const TWO: (&str, &str) = ("search", r#"{"queries":["b","c"]}"#);
const PAGE: (&str, &str) = ("browse", r#"{"url":"u"}"#);

#[test]
fn the_first_calls_that_fit_pass() {
    check(&limits(""), None, &[ONE, TWO, PAGE], &[ONE, TWO, PAGE], 0);
    check(&limits("search 3"), None, &[ONE, TWO, PAGE, ONE], &[ONE, TWO, PAGE], 1);
    check(&limits("browse 1"), None, &[PAGE, PAGE, ONE, PAGE], &[PAGE, ONE], 2);
    check(&limits("* 2"), None, &[PAGE, ONE, PAGE], &[PAGE, ONE], 1);
    check(&limits(""), Some(1), &[TWO, PAGE], &[TWO], 1);
    check(&limits("* 0"), Some(0), &[TWO, PAGE], &[], 3);
}

#[test]
fn of_a_list_the_first_elements_that_fit_pass() {
    check(&limits("search 2"), None, &[ONE, TWO], &[ONE, ("search", r#"{"queries":["b"]}"#)], 1);
    check(&limits("* 1"), None, &[TWO, PAGE], &[("search", r#"{"queries":["b"]}"#)], 2);
}

#[test]
fn a_call_that_cannot_be_read_counts_one_and_an_unknown_tool_counts_among_all() {
    check(
        &limits("search 1"),
        None,
        &[("search", r#"{"queries":["a""#), ONE],
        &[("search", r#"{"queries":["a""#)],
        1,
    );
    check(
        &limits("search 1"),
        None,
        &[("guess", "{}"), ("guess", "{}")],
        &[("guess", "{}"), ("guess", "{}")],
        0,
    );
    check(&limits("* 1"), None, &[("guess", "{}"), ONE], &[("guess", "{}")], 1);
    let limits = limits("* 3");
    let (_, trimmed) = trimmed(&step(limits.tools, None), events(&vec![("guess".into(), "{}".into())], &[1]));
    assert_eq!((trimmed.passed.all, trimmed.passed.each.len()), (Count(1), 0));
}

#[test]
fn an_answer_whose_calls_were_all_taken_out_has_stopped() {
    let finish = |limits: EpisodeLimits, made: &[(&str, &str)]| {
        let made: TestCalls =
            made.iter().map(|(name, arguments)| ((*name).into(), (*arguments).into())).collect();
        trimmed(&step(limits.tools, None), events(&made, &[4])).1.finish
    };
    assert_eq!(finish(limits("* 0"), &[ONE, PAGE]), FinishReason::Stop);
    assert_eq!(finish(limits("search 0"), &[ONE, PAGE]), FinishReason::ToolCalls);
    assert_eq!(finish(limits(""), &[ONE]), FinishReason::ToolCalls);
}

#[test]
fn only_calls_whose_elements_are_counted_are_held_back() {
    let made: TestCalls = vec![(PAGE.0.into(), PAGE.1.into()), (TWO.0.into(), TWO.1.into())];
    let mut trim = ToolCallTrimmer::new(&step(limits("search 9").tools, None), Arc::new(settings().tools));
    let events = events(&made, &[2]);
    let whole = events.len();
    let at_once: Vec<usize> = events.into_iter().map(|event| trim.push(event).len()).collect();
    let pieces = 2 + PAGE.1.len().div_ceil(2);
    assert!(at_once[..pieces].iter().all(|count| *count == 1), "{at_once:?}");
    assert_eq!(at_once.iter().sum::<usize>(), pieces + 1, "the list comes in one piece when it is there");
    assert_eq!(at_once[whole - 1], 1);
}

#[test]
fn a_list_without_end_does_not_pass() {
    let long = format!("{{\"queries\":[\"{}\"]}}", "x".repeat(2 << 20));
    let made: TestCalls = vec![("search".into(), long), (PAGE.0.into(), PAGE.1.into())];
    for cut in [1 << 16, 4 << 20] {
        let (seen, trimmed) = trimmed(&step(limits("search 9").tools, None), events(&made, &[cut]));
        assert_eq!((seen.len(), trimmed.dropped, &*seen[0].name), (1, Count(1), "browse"));
    }
}

fn call() -> impl Strategy<Value = (String, String)> {
    let word = "[a-z\"\\\\{}\\[\\]é ]{0,6}";
    let queries = prop::collection::vec(word, 0..5)
        .prop_map(|queries| ("search".to_owned(), json!({"queries": queries, "lang": "en"}).to_string()));
    let browse = word.prop_map(|url| ("browse".to_owned(), json!({"url": url}).to_string()));
    let other = word.prop_map(|text| ("other".to_owned(), json!([text]).to_string()));
    prop_oneof![3 => queries, 2 => browse, 1 => other]
}

fn most() -> impl Strategy<Value = Option<Count>> {
    prop::option::of((0..7_u64).prop_map(Count))
}

proptest! {
    #[test]
    fn however_a_stream_is_cut_the_same_passes_and_never_more_than_was_set_aside(
        made in prop::collection::vec(call(), 0..8),
        cuts in prop::collection::vec(1..9_usize, 1..12),
        (all, search, browse, calls) in (most(), most(), most(), most()),
    ) {
        let each = [("search", search), ("browse", browse)];
        let each = each.into_iter().filter_map(|(tool, most)| Some((tool.into(), most?)));
        let step = step(ToolLimits { all, each: each.collect() }, calls.map(|calls| calls.0));
        let whole = trimmed(&step, events(&made, &[usize::MAX]));
        let (seen, told) = trimmed(&step, events(&made, &cuts));
        prop_assert_eq!(&(seen.clone(), told.clone()), &whole);
        let tools = settings().tools;
        let count = |name: &str| seen.iter().filter(|call| call.name == name)
            .fold(Count::ZERO, |sum, call| sum + tools.count(name, &call.arguments));
        let total = count("search") + count("browse") + count("other");
        prop_assert!(all.is_none_or(|all| total <= all) && told.passed.all == total);
        prop_assert!(search.is_none_or(|most| count("search") <= most));
        prop_assert!(browse.is_none_or(|most| count("browse") <= most));
        prop_assert!(calls.is_none_or(|calls| u64::try_from(seen.len()).unwrap() <= calls.0));
        for call in &seen {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&call.arguments).is_ok(), "{}", call.arguments);
        }
        let asked = made.iter().fold(Count::ZERO, |sum, (name, arguments)| sum + tools.count(name, arguments));
        prop_assert_eq!(told.dropped + total, asked);
    }
}

#[test]
fn what_was_signed_behind_a_call_that_is_dropped_goes_with_it() {
    let signed = |block: &str| {
        let signer = ThoughtSigner { model: "m".into(), domain: SigningDomain(1) };
        ChoiceEvent::Signed(SignedThought { signer, block: block.into() })
    };
    let call = |index: u32, name: &str, arguments: &str| {
        let (id, name) = (Some(format!("id{index}")), Some(name.to_owned()));
        ChoiceEvent::ToolCall(ToolCallDelta { index, id, name, arguments: arguments.to_owned() })
    };
    let most =
        ToolLimits { all: None, each: [("search".into(), Count(1)), ("browse".into(), Count(0))].into() };
    let mut trimmer = ToolCallTrimmer::new(&step(most, None), settings().tools.into());
    let mut shown = Vec::new();
    for event in [
        signed("first"),
        // Its list is not closed yet, so that nobody knows whether it passes.
        call(0, "search", r#"{"queries": ["x"]"#),
        signed("second"),
        ChoiceEvent::ToolCall(ToolCallDelta { index: 0, id: None, name: None, arguments: "}".to_owned() }),
        call(1, "browse", "{}"),
        signed("third"),
    ] {
        shown.extend(trimmer.push(event));
    }
    let blocks = shown.iter().filter_map(|event| match event {
        ChoiceEvent::Signed(signed) => Some(&*signed.block),
        _ => None,
    });
    assert_eq!(blocks.collect::<Vec<_>>(), ["first", "second"]);
    let mut retry = trimmer.for_retry(&AnswerCallLimits::default());
    assert_eq!(retry.push(signed("fourth")), [], "nor is it kept of another try");
}

#[test]
fn where_no_tool_is_declared_nothing_passes_that_something_must_be_set_aside_for() {
    let tools = Arc::new(settings().tools);
    let priced = tools.priced().next().expect("one that costs something").to_string();
    let made: TestCalls =
        vec![(priced, "{}".into()), ("look".into(), "{}".into()), ("look".into(), "{}".into())];
    let passed = |change: fn(&mut Request), are_calls_limited| {
        let mut request = request(&[], vec![user("?")]);
        change(&mut request);
        let limits = AnswerCallLimits::undeclared(&request, &tools, are_calls_limited);
        let mut trim = ToolCallTrimmer::within(limits, tools.clone());
        for event in events(&made, &[]) {
            trim.push(event);
        }
        trim.finish(FinishReason::ToolCalls).1.passed.all.0
    };
    assert_eq!(passed(|_| (), false), 2, "what costs nothing passes");
    assert_eq!(passed(|_| (), true), 0);
    assert_eq!(passed(|request| request.budget.tool_calls_max = Some(Count(1)), false), 1);
    let one_at_a_time =
        |request: &mut Request| drop(request.extra.insert("parallel_tool_calls".into(), false.into()));
    assert_eq!(passed(one_at_a_time, false), 1);
}
