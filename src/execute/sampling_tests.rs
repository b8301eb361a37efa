use std::time::Duration;

use super::*;
use crate::backend::scripted::{Gate, Play, Scripted, State};
use crate::backend::{Failure, Fault};
use crate::catalog::{self, Checker, Class, LimitedBy};
use crate::chat::{Form, Message, Request, Role};
use crate::execute::Terms;
use crate::units::Tokens;

const TERMS: fn() -> Terms = || Terms {
    reads_free: false,
    keep: crate::chat::Keep::Minutes,
    class: Class::Inline,
    resume: Some(Class::Inline),
    thinking: Tokens(8),
    solution: Tokens(8),
    answer_takes_rest: false,
    solution_by: LimitedBy::Caller,
    tells_limit: true,
    overhead: Tokens(5),
    effort: None,
    visible_max: None,
    further: None,
    rescue: false,
    effort_least: None,
    prompt: Tokens(9),
    stop: Vec::new(),
    form: Form::Chat,
};

/// What a vote is held on, as far as these tests differ.
struct Held<'a> {
    most: usize,
    doubt: f64,
    second: f64,
    verifier: Option<&'a Verifier>,
}

const PLAIN: Held<'static> = Held { most: 5, doubt: 0.0, second: 0.0, verifier: None };

async fn hold(held: &Held<'_>, script: &Arc<Scripted>) -> (Result<Sampled, Halt>, Vec<Progress>) {
    let request = Request::new("m", vec![Message::text(Role::User, "6*7?")]);
    let job = Job {
        backend: script.clone(),
        request: Arc::new(request),
        index: 0,
        seed: 7,
        deadline: Instant::now() + Duration::from_secs(60),
        cut_before: None,
    };
    let panel = Panel {
        compare: &Compare::Number,
        majority: false,
        at_once: 3,
        worth: 1.0,
        price: &|_| 0.0,
        second: held.second,
        doubt: Chance::new(held.doubt),
        verifier: held.verifier.map(|verifier| (verifier, "6*7?")),
        checked: &|_, _| (),
    };
    let mut progress: Vec<Progress> = (0..held.most).map(|_| Progress::new(TERMS())).collect();
    let sampled = sample(&panel, &job, &mut progress).await;
    (sampled, progress)
}

fn verifier(script: &str, floor: f64) -> Verifier {
    Verifier::new(catalog::Verifier {
        by: Checker::Command(vec!["sh".into(), "-c".into(), script.into()]),
        floor: Chance::new(floor),
        timeout: Duration::from_secs(20),
        concurrency: 1,
    })
}

fn says(answers: &'static [&'static str]) -> Arc<Scripted> {
    let play = |turn: usize| Play::new().thinks(2).answers(answers[turn.min(answers.len() - 1)]);
    Arc::new(Scripted::each(move |_, turn| play(turn)))
}

/// How many were asked, what was elected, by how many, and why it ended.
fn check(sampled: &Sampled, asked: u32, elected: &str, votes: u32, ended: Ended) {
    let sample = sampled.elected().expect("somebody");
    assert_eq!(
        (sampled.asked, sample.answer().as_str(), sampled.votes(sample), sampled.ended),
        (asked, elected, votes, ended)
    );
}

#[tokio::test]
async fn no_more_samples_are_made_than_it_takes() {
    let same = says(&["it is 42"]);
    let (sampled, progress) = hold(&PLAIN, &same).await;
    check(&sampled.unwrap(), 3, "it is 42", 3, Ended::Voted(Decided::Uncatchable));
    assert!(progress[3..].iter().all(|unasked| unasked.phases.spent() == Spent::default()));

    let spread = says(&["41", "42", "43", "= 42", "44"]);
    let (sampled, _) = hold(&PLAIN, &spread).await;
    check(&sampled.unwrap(), 5, "42", 2, Ended::Voted(Decided::Exhausted));

    let sure = Held { most: 9, doubt: 0.05, ..PLAIN };
    let (sampled, _) = hold(&sure, &same).await;
    check(&sampled.unwrap(), 3, "it is 42", 3, Ended::Voted(Decided::NotWorth));
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
    let gate = Gate::shut();
    let script = {
        let gate = gate.clone();
        let slow = move || Play::new().thinks(4).answers("42").waits_at(&gate);
        let play = move |turn| if turn == 2 { Play::new().thinks(2).answers("42") } else { slow() };
        Arc::new(Scripted::each(move |_, turn| play(turn)))
    };
    gate.let_through(2);
    let accepts = verifier("cat > /dev/null; echo '{\"score\": 1}'", 0.9);
    let (sampled, progress) = hold(&Held { verifier: Some(&accepts), ..PLAIN }, &script).await;
    let sampled = sampled.unwrap();
    check(&sampled, 3, "42", 1, Ended::Accepted);
    assert_eq!(sampled.cancelled, 2);
    let records = script.until(|records| records.iter().all(|record| record.state != State::Running)).await;
    assert_eq!((records[0].state, records[1].state), (State::Cancelled, State::Cancelled));
    let taken: Tokens = progress[..2].iter().map(|sample| sample.phases.spent().thinking).sum();
    assert_eq!(taken, Tokens(2), "what they took is known");
}

#[tokio::test]
async fn a_sample_that_fails_ends_the_asking_and_the_others_decide() {
    let broken = Failure::new(Fault::Backend, "gone");
    let script = Arc::new(Scripted::each(move |_, turn| match turn {
        0 => Play::new().thinks(2).breaks_after(1, broken.clone()),
        turn => Play::new().thinks(2).answers(if turn == 1 { "1" } else { "2" }),
    }));
    let (sampled, progress) = hold(&PLAIN, &script).await;
    check(&sampled.unwrap(), 3, "1", 1, Ended::Failed);
    assert_eq!(progress[0].phases.spent().thinking, Tokens(1));

    let down =
        Arc::new(Scripted::always(Play::new().refuses(Failure::new(Fault::Overload, "full").unsent())));
    let (sampled, progress) = hold(&PLAIN, &down).await;
    assert!(matches!(sampled, Err(Halt::Failed(failure)) if failure.unsent));
    assert!(progress.iter().all(|sample| sample.phases.spent().calls.is_empty()), "refused is not billed");
}

#[tokio::test]
async fn half_an_answer_counts_for_nothing() {
    let script = says(&["so the answer to all of this is clearly 43", "42", "42", "42"]);
    let (sampled, _) = hold(&Held { most: 3, ..PLAIN }, &script).await;
    check(&sampled.unwrap(), 2, "42", 1, Ended::Voted(Decided::Uncatchable));
}

#[tokio::test(start_paused = true)]
async fn time_is_part_of_a_samples_price() {
    let play = |turn| Play::new().answers(if turn == 0 { "1" } else { "2" }).pauses(Duration::from_secs(2));
    let script = || Arc::new(Scripted::each(move |_, turn| play(turn)));
    let (patient, _) = hold(&PLAIN, &script()).await;
    let (hasty, _) = hold(&Held { second: 0.1, ..PLAIN }, &script()).await;
    assert_eq!((patient.unwrap().asked, hasty.unwrap().asked), (4, 3));
}

#[tokio::test]
async fn a_verifier_ends_it_with_the_first_good_answer_and_else_chooses_the_best() {
    let knows = verifier(r#"grep -q '"answer":"42"' && echo '{"score": 1}' || echo '{"score": 0.1}'"#, 0.9);
    let (sampled, _) = hold(&Held { verifier: Some(&knows), ..PLAIN }, &says(&["1", "2", "42"])).await;
    let sampled = sampled.unwrap();
    assert_eq!(
        (sampled.ended, sampled.verified().map(Sample::answer)),
        (Ended::Accepted, Some("42".to_owned()))
    );

    let unsure = verifier(r#"grep -q '"answer":"3"' && echo '{"score": 0.5}' || echo '{"score": 0.1}'"#, 0.9);
    let spread = says(&["1", "2", "3", "4", "5"]);
    let (sampled, _) = hold(&Held { verifier: Some(&unsure), ..PLAIN }, &spread).await;
    assert_eq!(sampled.unwrap().verified().map(Sample::answer), Some("3".to_owned()));

    let broken = verifier("exit 1", 0.9);
    let (sampled, _) = hold(&Held { verifier: Some(&broken), ..PLAIN }, &says(&["1", "2", "2"])).await;
    let sampled = sampled.unwrap();
    assert!(sampled.verified().is_none());
    assert_eq!(sampled.elected().map(Sample::answer), Some("2".to_owned()));
}
