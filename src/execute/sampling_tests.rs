use std::sync::Arc;
use std::time::Duration;

use crate::execute::{ChoiceTerms, WholeAnswer};
use stint_backend::scripted::{CallState, PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_types::catalog::{self, Checker, EnforcementClass, LimitedBy};
use stint_types::chat::{CompletionKind, Message, Request, Role};
use stint_types::units::Tokens;

use super::*;

const TERMS: fn() -> ChoiceTerms = || ChoiceTerms {
    has_free_input: false,
    cache_ttl: stint_types::chat::CacheTtl::Minutes,
    class: EnforcementClass::Inline,
    resume: Some(EnforcementClass::Inline),
    thinking: Tokens(8),
    solution: Tokens(8),
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
    prompt: Tokens(9),
    stop: Vec::new(),
    kind: CompletionKind::Chat,
};

/// What a vote is held on, as far as these tests differ.
struct VoteFixture<'a> {
    most: usize,
    doubt: f64,
    second: f64,
    verifier: Option<&'a Verifier>,
}

const PLAIN: VoteFixture<'static> = VoteFixture { most: 5, doubt: 0.0, second: 0.0, verifier: None };

async fn hold(
    held: &VoteFixture<'_>,
    script: &Arc<ScriptedBackend>,
) -> (Result<SamplingResult, ChoiceError>, Vec<ChoiceProgress>) {
    let request = Request::new("m", vec![Message::text(Role::User, "6*7?")]);
    let job = ChoiceJob {
        backend: script.clone(),
        request: Arc::new(request),
        index: 0,
        seed: 7,
        deadline: Instant::now() + Duration::from_secs(60),
        cut_before: None,
    };
    let voting = VotingConfig {
        compare: &AnswerComparison::Number,
        majority: false,
        concurrency: 3,
        worth: 1.0,
        price: &|_| 0.0,
        cost_per_second: held.second,
        stop_probability: Chance::new(held.doubt),
        verifier: held.verifier.map(|verifier| (verifier, "6*7?")),
        on_verdict: &|_, _| (),
    };
    let mut progress: Vec<ChoiceProgress> = (0..held.most).map(|_| ChoiceProgress::new(TERMS())).collect();
    let sampled = sample_choice(&voting, &job, &mut progress).await;
    (sampled, progress)
}

fn verifier(script: &str, floor: f64) -> Verifier {
    Verifier::new(catalog::VerifierSettings {
        by: Checker::Command(vec!["sh".into(), "-c".into(), script.into()]),
        floor: Chance::new(floor),
        timeout: Duration::from_secs(20),
        concurrency: 1,
    })
}

fn says(answers: &'static [&'static str]) -> Arc<ScriptedBackend> {
    let play = |turn: usize| ScriptedReply::new().thinks(2).answers(answers[turn.min(answers.len() - 1)]);
    Arc::new(ScriptedBackend::each(move |_, turn| play(turn)))
}

/// How many were asked, what was elected, by how many, and why it ended.
fn check(sampled: &SamplingResult, asked: u32, elected: &str, votes: u32, ended: SamplingStopReason) {
    let sample = sampled.vote_winner().expect("somebody");
    assert_eq!(
        (sampled.asked, sample.answer().as_str(), sampled.votes(sample), sampled.ended),
        (asked, elected, votes, ended)
    );
}

#[tokio::test]
async fn no_more_samples_are_made_than_it_takes() {
    let same = says(&["it is 42"]);
    let (sampled, progress) = hold(&PLAIN, &same).await;
    check(&sampled.unwrap(), 3, "it is 42", 3, SamplingStopReason::Voted(VoteStopReason::Uncatchable));
    assert!(progress[3..].iter().all(|unasked| unasked.phases.spent() == ChoiceUsage::default()));

    let spread = says(&["41", "42", "43", "= 42", "44"]);
    let (sampled, _) = hold(&PLAIN, &spread).await;
    check(&sampled.unwrap(), 5, "42", 2, SamplingStopReason::Voted(VoteStopReason::Exhausted));

    let sure = VoteFixture { most: 9, doubt: 0.05, ..PLAIN };
    let (sampled, _) = hold(&sure, &same).await;
    check(&sampled.unwrap(), 3, "it is 42", 3, SamplingStopReason::Voted(VoteStopReason::NotWorth));
}

#[tokio::test]
async fn every_sample_has_a_draw_of_its_own_and_the_first_the_one_without_a_vote() {
    let script = says(&["1", "2", "3", "4", "5"]);
    hold(&PLAIN, &script).await.0.unwrap();
    let mut seeds: Vec<u64> = script.records().iter().map(|record| record.call.seed).collect();
    assert_eq!((seeds[0], seeds.len()), (7, 5));
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 5);
}

#[tokio::test]
async fn samples_that_still_run_when_it_is_decided_are_stopped_and_accounted_for() {
    let gate = PieceGate::shut();
    let script = {
        let gate = gate.clone();
        let slow = move || ScriptedReply::new().thinks(4).answers("42").waits_at(&gate);
        let play = move |turn| if turn == 2 { ScriptedReply::new().thinks(2).answers("42") } else { slow() };
        Arc::new(ScriptedBackend::each(move |_, turn| play(turn)))
    };
    gate.let_through(2);
    let accepts = verifier("cat > /dev/null; echo '{\"score\": 1}'", 0.9);
    let (sampled, progress) = hold(&VoteFixture { verifier: Some(&accepts), ..PLAIN }, &script).await;
    let sampled = sampled.unwrap();
    check(&sampled, 3, "42", 1, SamplingStopReason::Accepted);
    assert_eq!(sampled.cancelled, 2);
    let records =
        script.until(|records| records.iter().all(|record| record.state != CallState::Running)).await;
    assert_eq!((records[0].state, records[1].state), (CallState::Cancelled, CallState::Cancelled));
    let taken: Tokens = progress[..2].iter().map(|sample| sample.phases.spent().thinking).sum();
    assert_eq!(taken, Tokens(2), "what they took is known");
}

#[tokio::test]
async fn a_sample_that_fails_ends_the_asking_and_the_others_decide() {
    let broken = Failure::new(Fault::Backend, "gone");
    let script = Arc::new(ScriptedBackend::each(move |_, turn| match turn {
        0 => ScriptedReply::new().thinks(2).breaks_after(1, broken.clone()),
        turn => ScriptedReply::new().thinks(2).answers(if turn == 1 { "1" } else { "2" }),
    }));
    let (sampled, progress) = hold(&PLAIN, &script).await;
    check(&sampled.unwrap(), 3, "1", 1, SamplingStopReason::Failed);
    assert_eq!(progress[0].phases.spent().thinking, Tokens(1));

    let down = Arc::new(ScriptedBackend::always(
        ScriptedReply::new().refuses(Failure::new(Fault::Overload, "full").unsent()),
    ));
    let (sampled, progress) = hold(&PLAIN, &down).await;
    assert!(matches!(sampled, Err(ChoiceError::Failed(failure)) if failure.unsent));
    assert!(progress.iter().all(|sample| sample.phases.spent().calls.is_empty()), "refused is not billed");
}

#[tokio::test]
async fn half_an_answer_counts_for_nothing() {
    let script = says(&["so the answer to all of this is clearly 43", "42", "42", "42"]);
    let (sampled, _) = hold(&VoteFixture { most: 3, ..PLAIN }, &script).await;
    check(&sampled.unwrap(), 2, "42", 1, SamplingStopReason::Voted(VoteStopReason::Uncatchable));
}

#[tokio::test(start_paused = true)]
async fn time_is_part_of_a_samples_price() {
    let play =
        |turn| ScriptedReply::new().answers(if turn == 0 { "1" } else { "2" }).pauses(Duration::from_secs(2));
    let script = || Arc::new(ScriptedBackend::each(move |_, turn| play(turn)));
    let (patient, _) = hold(&PLAIN, &script()).await;
    let (hasty, _) = hold(&VoteFixture { second: 0.1, ..PLAIN }, &script()).await;
    assert_eq!((patient.unwrap().asked, hasty.unwrap().asked), (4, 3));
}

#[tokio::test]
async fn a_verifier_ends_it_with_the_first_good_answer_and_else_chooses_the_best() {
    let knows = verifier(r#"grep -q '"answer":"42"' && echo '{"score": 1}' || echo '{"score": 0.1}'"#, 0.9);
    let (sampled, _) = hold(&VoteFixture { verifier: Some(&knows), ..PLAIN }, &says(&["1", "2", "42"])).await;
    let sampled = sampled.unwrap();
    assert_eq!(
        (sampled.ended, sampled.best_verified().map(AnswerSample::answer)),
        (SamplingStopReason::Accepted, Some("42".to_owned()))
    );

    let unsure = verifier(r#"grep -q '"answer":"3"' && echo '{"score": 0.5}' || echo '{"score": 0.1}'"#, 0.9);
    let spread = says(&["1", "2", "3", "4", "5"]);
    let (sampled, _) = hold(&VoteFixture { verifier: Some(&unsure), ..PLAIN }, &spread).await;
    assert_eq!(sampled.unwrap().best_verified().map(AnswerSample::answer), Some("3".to_owned()));

    let broken = verifier("exit 1", 0.9);
    let (sampled, _) = hold(&VoteFixture { verifier: Some(&broken), ..PLAIN }, &says(&["1", "2", "2"])).await;
    let sampled = sampled.unwrap();
    assert!(sampled.best_verified().is_none());
    assert_eq!(sampled.vote_winner().map(AnswerSample::answer), Some("2".to_owned()));
}
