//! Tests of the driver's timing. The clock is tokio's, and paused.

use std::sync::Arc;

use crate::execute::{ChoiceTerms, EventLimits, ReservedOutput, WholeAnswer, event_channel};
use stint_backend::Backend;
use stint_backend::fleet::{AffinityKey, Fleet, FlowId, PermitRequest, RetrySettings, Settings, Target};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{EnforcementClass, LimitedBy, SolutionStopReason, ThinkingStopReason};
use stint_types::chat::{Message, Request, Role};
use stint_types::metrics::Metrics;
use stint_types::units::{Priority, Tokens};

use super::*;

/// Room for all events of these tests.
const EVENTS: EventLimits = EventLimits { events: 4096, bytes: 1 << 20 };

fn request() -> Arc<Request> {
    Arc::new(Request::new("m", vec![Message::text(Role::User, "What is 1+2?")]))
}

/// Budgets without anything particular about them.
fn terms(class: EnforcementClass) -> ChoiceTerms {
    ChoiceTerms {
        class,
        resume: (class != EnforcementClass::Effort).then_some(class),
        thinking: Tokens(2000),
        solution: Tokens(100),
        answer_takes_rest: false,
        solution_by: LimitedBy::Caller,
        whole: WholeAnswer::Never,
        tells_limit: true,
        output_min: Tokens(1),
        overhead: Tokens(5),
        effort: None,
        visible_max: None,
        limits_thoughts: false,
        continuation: None,
        rescue: false,
        effort_least: None,
        prompt: Tokens(10),
        has_free_input: false,
        cache_ttl: stint_types::chat::CacheTtl::Minutes,
        stop: Vec::new(),
        kind: stint_types::chat::CompletionKind::Chat,
    }
}

/// Runs a model that thinks for 5 s, a token every 5 ms, with a second to do it in, and answers with as many
/// tokens as said.
async fn run_within_a_second(
    class: EnforcementClass,
    answer: usize,
    cut_before: Option<Duration>,
) -> (FinishReason, ChoiceProgress) {
    let answer = vec!["word"; answer].join(" ");
    let play = ScriptedReply::new().thinks(1000).answers(&answer).pauses(Duration::from_millis(5));
    let backend = Arc::new(ScriptedBackend::always(play));
    let deadline = Instant::now() + Duration::from_secs(1);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before };
    let mut progress = ChoiceProgress::new(terms(class));
    let (events, seen) = event_channel::<IndexedEvent>(EVENTS);
    let finish = generate_choice(&job, &mut progress, &events).await.unwrap();
    assert!(Instant::now() <= deadline + Duration::from_millis(5));
    drop(seen);
    (finish, progress)
}

#[tokio::test(start_paused = true)]
async fn a_deadline_cuts_a_thought_early_enough_for_its_answer() {
    for class in [EnforcementClass::Inline, EnforcementClass::Continue] {
        let (finish, progress) = run_within_a_second(class, 20, Some(Duration::from_millis(200))).await;
        let spent = progress.phases.spent();
        assert_eq!(
            (finish, spent.thinking_ended),
            (FinishReason::Stop, ThinkingStopReason::Cut),
            "{class:?}"
        );
        assert!((150..=160).contains(&spent.thinking.0), "{} tokens in 800 ms", spent.thinking);
        assert_eq!(spent.solution, Tokens(20));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_answer_ends_it_as_length() {
    let (finish, progress) =
        run_within_a_second(EnforcementClass::Inline, 90, Some(Duration::from_millis(200))).await;
    assert_eq!(finish, FinishReason::Length);
    assert!(progress.phases.spent().solution < Tokens(90));
}

#[tokio::test(start_paused = true)]
async fn without_a_stated_deadline_the_last_resort_is_the_end() {
    let (finish, progress) = run_within_a_second(EnforcementClass::Inline, 20, None).await;
    assert_eq!((finish, progress.phases.spent().solution), (FinishReason::Length, Tokens::ZERO));
}

/// Runs a model that hides a thought of 50 tokens, and goes on for so many words after its stop text, a word every 100 ms.
async fn run_past_a_stop_text(words: usize) -> (Duration, FinishReason, ChoiceProgress) {
    let answer = format!("one two STOP {}", "more ".repeat(words));
    let play =
        ScriptedReply::new().thinks(50).hides_thoughts().answers(&answer).pauses(Duration::from_millis(100));
    let backend = Arc::new(ScriptedBackend::always(play));
    let deadline = Instant::now() + Duration::from_secs(600);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before: None };
    let stop = vec!["STOP".to_owned()];
    let mut progress =
        ChoiceProgress::new(ChoiceTerms { rescue: true, stop, ..terms(EnforcementClass::Effort) });
    let (events, mut seen) = event_channel::<IndexedEvent>(EVENTS);
    let began = Instant::now();
    let finish = generate_choice(&job, &mut progress, &events).await.unwrap();
    let took = began.elapsed();
    drop(events);
    let mut said = String::new();
    while let Some((_, event)) = seen.recv().await {
        if let ChoiceEvent::Answer(text) = event {
            said += &text;
        }
    }
    assert_eq!(said, "one two ");
    (took, finish, progress)
}

#[tokio::test(start_paused = true)]
async fn an_upstream_is_heard_out_after_a_stop_text_but_not_for_ever() {
    let (_, finish, progress) = run_past_a_stop_text(20).await;
    let spent = progress.phases.spent();
    assert_eq!((finish, spent.thinking, spent.output()), (FinishReason::Stop, Tokens(50), Tokens(50 + 24)));
    let (took, finish, progress) = run_past_a_stop_text(1000).await;
    assert!((10..12).contains(&took.as_secs()), "{took:?}");
    let most = Tokens(2000 + 100 + 5);
    assert_eq!(
        (finish, progress.phases.spent().output()),
        (FinishReason::Stop, most),
        "the rest is not known"
    );
}

/// Runs a model that answers with a word every 10 ms, of which so many tokens are covered; returns what was shown by then.
async fn run_covered(cover: &ReservedOutput, words: usize) -> (FinishReason, ChoiceProgress, String) {
    let play = ScriptedReply::new().answers(&"word ".repeat(words)).pauses(Duration::from_millis(10));
    let backend = Arc::new(ScriptedBackend::always(play));
    let deadline = Instant::now() + Duration::from_secs(600);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before: None };
    let terms =
        ChoiceTerms { thinking: Tokens::ZERO, overhead: Tokens::ZERO, ..terms(EnforcementClass::Native) };
    let mut progress = ChoiceProgress::new(terms).with_reserved_output(cover, Tokens::ZERO);
    let (events, mut seen) = event_channel::<IndexedEvent>(EVENTS);
    let finish = generate_choice(&job, &mut progress, &events).await.unwrap();
    drop(events);
    let mut said = String::new();
    while let Some((_, event)) = seen.recv().await {
        if let ChoiceEvent::Answer(text) = event {
            said += &text;
        }
    }
    (finish, progress, said)
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_what_is_not_covered_yet_and_goes_on() {
    let cover = ReservedOutput::new(Tokens(20));
    let began = Instant::now();
    let more = async {
        cover.half_used().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        cover.extend(Tokens(20));
    };
    let ((finish, progress, said), ()) = tokio::join!(run_covered(&cover, 30), more);
    let spent = progress.spent();
    assert_eq!(
        (finish, spent.solution, spent.solution_ended),
        (FinishReason::Stop, Tokens(30), SolutionStopReason::Stop)
    );
    assert_eq!(said.split_whitespace().count(), 30);
    assert!(began.elapsed() > Duration::from_secs(3), "it stood still meanwhile");
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_at_what_is_covered_where_there_is_no_more() {
    for ended in [SolutionStopReason::Money, SolutionStopReason::Ledger] {
        let cover = ReservedOutput::new(Tokens(20));
        cover.end(ended);
        let (finish, progress, said) = run_covered(&cover, 30).await;
        let spent = progress.spent();
        assert_eq!((finish, spent.solution_ended, spent.output()), (FinishReason::Length, ended, Tokens(20)));
        assert_eq!(said.split_whitespace().count(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_hidden_thought_no_more_is_booked_than_can_have_been_written() {
    let play = ScriptedReply::new().thinks(50).hides_thoughts().answers("3").pauses(Duration::from_secs(60));
    let backend = Arc::new(ScriptedBackend::always(play));
    let deadline = Instant::now() + Duration::from_secs(600);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before: None };
    let mut progress = ChoiceProgress::new(ChoiceTerms { rescue: true, ..terms(EnforcementClass::Effort) });
    let (events, _seen) = event_channel::<IndexedEvent>(EVENTS);
    let left =
        tokio::time::timeout(Duration::from_millis(500), generate_choice(&job, &mut progress, &events)).await;
    assert!(left.is_err());
    let spent = progress.spent();
    assert_eq!(
        (spent.thinking, spent.estimated),
        (Tokens(500), true),
        "half a second, where nothing is known"
    );
}

/// How much is read of an answer of two long words whose caller takes so many events, and then nothing for a second.
async fn read_of_two_long_words(taken: usize) -> Tokens {
    let answer = ["x".repeat(40_000), "y".repeat(40_000)].join(" ");
    let backend = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers(&answer)));
    let deadline = Instant::now() + Duration::from_secs(600);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before: None };
    let terms = ChoiceTerms { solution: Tokens(1_000_000), ..terms(EnforcementClass::Inline) };
    let mut progress = ChoiceProgress::new(terms);
    let (events, mut seen) = event_channel::<IndexedEvent>(EventLimits { events: 64, bytes: 16 << 10 });
    let taking = async {
        for _ in 0..taken {
            seen.recv().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        _ = generate_choice(&job, &mut progress, &events) => {}
        () = taking => {}
    }
    progress.phases.spent().solution
}

#[tokio::test(start_paused = true)]
async fn after_a_long_event_the_next_is_read_once_its_caller_has_taken_that_one() {
    // The thought, and three of five pieces of the first word: there is room for the other two.
    let (stalled, all) = (read_of_two_long_words(4).await, read_of_two_long_words(11).await);
    assert!(stalled > Tokens::ZERO && stalled.0 * 2 <= all.0 + 1, "{stalled} of {all} tokens were read");
}

/// What is booked of a call that thinks unseen, and fails after half a second.
async fn booked_of_failed(failure: Failure) -> (Tokens, usize) {
    let play = ScriptedReply::new().thinks(50).hides_thoughts().answers("3");
    let play = play.pauses(Duration::from_millis(500)).breaks_after(0, failure);
    let backend = Arc::new(ScriptedBackend::always(play));
    let deadline = Instant::now() + Duration::from_secs(600);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before: None };
    let mut progress = ChoiceProgress::new(ChoiceTerms { rescue: true, ..terms(EnforcementClass::Effort) });
    let (events, _seen) = event_channel::<IndexedEvent>(EVENTS);
    let failed = generate_choice(&job, &mut progress, &events).await;
    assert!(matches!(failed, Err(ChoiceError::Failed(_))), "{failed:?}");
    let spent = progress.spent();
    (spent.thinking, spent.calls.len())
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_reports_its_own_failure_has_thought_nothing_unseen() {
    let failure = Failure::new(Fault::Backend, "gone");
    assert_eq!(booked_of_failed(failure.clone()).await, (Tokens(500), 1));
    assert_eq!(booked_of_failed(Failure { reported: true, ..failure.clone() }).await, (Tokens::ZERO, 1));
    assert_eq!(booked_of_failed(failure.unsent()).await, (Tokens::ZERO, 0), "no model saw it");
}

/// A thought and an answer behind it, which is refused so often.
fn refused(times: usize) -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::each(move |_, turn| {
        if (1..=times).contains(&turn) {
            ScriptedReply::new().refuses(Failure::new(Fault::Overload, "full").unsent())
        } else {
            ScriptedReply::new().thinks(1000).answers("word word")
        }
    }))
}

/// Runs an answer behind a thought.
async fn run_behind_thought(
    backend: Arc<dyn Backend>,
) -> (Result<FinishReason, ChoiceError>, ChoiceProgress) {
    let deadline = Instant::now() + Duration::from_secs(600);
    let job = ChoiceJob { backend, request: request(), index: 0, seed: 0, deadline, cut_before: None };
    let mut progress = ChoiceProgress::new(terms(EnforcementClass::Continue));
    let (events, _seen) = event_channel::<IndexedEvent>(EVENTS);
    let ended = generate_choice(&job, &mut progress, &events).await;
    (ended, progress)
}

async fn run_refused(times: usize) -> (Result<FinishReason, ChoiceError>, ChoiceProgress, usize) {
    let script = refused(times);
    let (ended, progress) = run_behind_thought(script.clone()).await;
    (ended, progress, script.records().len())
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_asked_for_again_only_where_a_retry_is_left() {
    for (attempts_max, calls) in [(1, 2), (3, 3)] {
        let script = refused(1);
        let target = Target { name: "t".into(), backend: script.clone(), tokenizer_id: None };
        let retry = RetrySettings { attempts_max, ..RetrySettings::default() };
        let settings = Settings { retry, ..Settings::default() };
        let fleet = Fleet::new("m".into(), vec![target], Arc::new(Metrics::new().unwrap()), settings, 7);
        let want = PermitRequest {
            affinity: AffinityKey::of(&request()),
            flow: FlowId(0),
            calls: 1,
            priority: Priority::Interactive,
            deadline: Instant::now() + Duration::from_secs(600),
        };
        let permit = fleet.acquire(want).await.unwrap();
        let (ended, _) = run_behind_thought(permit.backend()).await;
        assert_eq!((ended.is_ok(), script.records().len()), (attempts_max > 1, calls));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_behind_a_thought_is_asked_for_again_where_it_is_refused_for_a_moment() {
    let began = Instant::now();
    let (ended, progress, calls) = run_refused(2).await;
    assert_eq!((ended.unwrap(), calls), (FinishReason::Stop, 4));
    let spent = progress.spent();
    assert_eq!((spent.thinking, spent.solution, spent.calls.len()), (Tokens(1000), Tokens(2), 2));
    assert!(began.elapsed() >= 2 * REPEAT_WAIT, "it was left alone for a moment");
    let (ended, progress, calls) = run_refused(3).await;
    assert!(matches!(ended, Err(ChoiceError::Failed(failure)) if failure.unsent));
    assert_eq!((progress.spent().thinking, calls), (Tokens(1000), 4));
}
