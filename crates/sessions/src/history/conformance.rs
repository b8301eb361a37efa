//! What every store must do: one suite for all of them.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use stint_types::catalog::{
    Candidate, ChoiceOutcome, ChoiceUsage, Decision, DecisionOutcome, EnforcementClass, LengthTails,
    LogNormal, MeasuredLengths, ModelConditions, ModelDemand, RequestTraits, SolutionStopReason, Stakes,
    TRAITS, TaskClass, ThinkingStopReason, Verdict, VerdictSource,
};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, Chance, Difficulty, Money, RequestId, Timestamp, Tokens};

use super::{HistoryStore, ReplicaId, ReplicaState, RequestRecord, WritableRecord};

const EVER: Timestamp = Timestamp(0);

/// Runs the whole suite on an empty store.
pub async fn conforms(store: &dyn HistoryStore) {
    a_story_comes_back_as_it_was(store).await;
    keeping_a_story_again_changes_nothing(store).await;
    a_verdict_replaces_the_one_of_its_source(store).await;
    a_verdict_may_come_before_its_story(store).await;
    what_is_too_old_counts_no_more(store).await;
    the_oldest_are_purged_first_with_what_was_said_of_them(store).await;
    what_is_beyond_the_latest_can_be_purged(store).await;
    what_was_learned_is_replaced_and_taken_over_once(store).await;
    what_cannot_be_read_is_forgotten(store).await;
}

/// A story of that time.
pub fn story(at: i64) -> RequestRecord {
    let (decision, outcome) = (decision(Timestamp(at)), outcome(Timestamp(at + 400)));
    let account = AccountId::new("acme/alice");
    RequestRecord {
        key: Some(KeyId::of_declared(&account)),
        account,
        decision,
        outcome,
        verdicts: Vec::new(),
    }
}

fn decision(at: Timestamp) -> Decision {
    Decision {
        id: RequestId::new(),
        at,
        route: "auto".into(),
        policy: "1".into(),
        class: TaskClass::Math,
        difficulty: Difficulty::new(0.31),
        confidence: Chance::new(0.8),
        context: RequestTraits { traits: [0.5; TRAITS], words: vec![7, 70], ..RequestTraits::default() },
        stakes: Stakes {
            worth: 0.05,
            second: 0.0005,
            shadow_price: 1.0,
            preference: None,
            success_min: None,
        },
        choices: 1,
        candidates: vec![candidate("one"), candidate("two")],
        chosen: 1,
        explored: true,
        why: "because".into(),
        episode: None,
    }
}

fn candidate(name: &str) -> Candidate {
    let belief = ModelDemand {
        thinking: LogNormal { mu: 3.25, sigma: 0.5 },
        solution: Tokens(7),
        prompt: Tokens(30),
        done: Chance::new(0.9),
        blind: Chance::new(0.1),
        bend: 1.5,
        saturation: 1.0,
        spread: 0.01,
        prompt_least: Tokens(3),
        prompt_usual: Tokens::ZERO,
        measured: MeasuredLengths { thinking: true, solution: false },
        tails: LengthTails::default(),
    };
    Candidate {
        model: name.into(),
        thinking: Tokens(64),
        solution: (name == "two").then_some(Tokens(32)),
        samples: 1,
        escalates: false,
        success_prior: Chance::new(0.5),
        success: Chance::new(0.75),
        cost: Money(80),
        worst: (name == "two").then_some(Money(110)),
        seconds: 0.4,
        value: 0.025,
        propensity: 0.5,
        conditions: (name == "two").then(ModelConditions::default),
        prior: belief.clone(),
        belief,
    }
}

fn outcome(at: Timestamp) -> DecisionOutcome {
    let spent = ChoiceUsage {
        prompt: Tokens(28),
        thinking: Tokens(64),
        solution: Tokens(3),
        thinking_ended: ThinkingStopReason::Cut,
        solution_ended: SolutionStopReason::Stop,
        ..ChoiceUsage::default()
    };
    DecisionOutcome {
        at,
        ended: "finished".into(),
        error: None,
        model: "two".into(),
        enforced: EnforcementClass::Inline,
        thinking: Tokens(64),
        solution: Tokens(32),
        effort: Some(1.0),
        choices: vec![ChoiceOutcome::new(&spent, false)],
        cost: Money(77),
        unbooked: false,
        reserved: Money(110),
        attempts: 1,
        given_up: Tokens(12),
        fell_back: false,
        seconds: 0.41,
        first_token: Some(0.1),
        first_answer: None,
    }
}

/// What a source says of a story.
pub fn verdict(story: &RequestRecord, source: VerdictSource, success: f64) -> Verdict {
    let at = story.decision.at;
    Verdict { id: story.decision.id, source, at, success: Chance::new(success), weight: 0.5 }
}

fn writable(story: &RequestRecord) -> Arc<WritableRecord> {
    WritableRecord::new(Arc::new(story.clone()))
}

async fn check(store: &dyn HistoryStore, story: &RequestRecord) {
    let found = store.find(story.decision.id, EVER).await.unwrap();
    assert_eq!(found.as_ref(), Some(story));
}

async fn a_story_comes_back_as_it_was(store: &dyn HistoryStore) {
    let plain = RequestRecord { key: None, ..story(1_000) };
    let mut judged = story(2_000);
    judged.set_verdict(verdict(&judged, VerdictSource::Ending, 0.0));
    judged.set_verdict(verdict(&judged, VerdictSource::Form, 1.0));
    judged.outcome.error = Some("upstream".into());
    store.insert(&[writable(&plain), writable(&judged)]).await.unwrap();
    check(store, &plain).await;
    check(store, &judged).await;
    assert_eq!(store.find(RequestId::new(), EVER).await.unwrap(), None);
}

async fn keeping_a_story_again_changes_nothing(store: &dyn HistoryStore) {
    let mut first = story(1_000);
    first.set_verdict(verdict(&first, VerdictSource::Ending, 0.0));
    store.insert(&[writable(&first)]).await.unwrap();
    let later = verdict(&first, VerdictSource::Ending, 1.0);
    store.set_verdict(&later).await.unwrap();
    store.insert(&[writable(&first)]).await.unwrap();
    first.set_verdict(later);
    check(store, &first).await;
}

async fn a_verdict_replaces_the_one_of_its_source(store: &dyn HistoryStore) {
    let mut known = story(1_000);
    store.insert(&[writable(&known)]).await.unwrap();
    let (wrong, right) =
        (verdict(&known, VerdictSource::Feedback, 0.0), verdict(&known, VerdictSource::Feedback, 1.0));
    let other = verdict(&known, VerdictSource::Verifier, 0.5);
    assert_eq!(store.set_verdict(&wrong).await.unwrap(), None);
    assert_eq!(store.set_verdict(&other).await.unwrap(), None);
    assert_eq!(store.set_verdict(&right).await.unwrap(), Some(wrong));
    known.set_verdict(other);
    known.set_verdict(right);
    check(store, &known).await;
}

async fn a_verdict_may_come_before_its_story(store: &dyn HistoryStore) {
    let mut late = story(1_000);
    let early = verdict(&late, VerdictSource::Feedback, 1.0);
    assert_eq!(store.set_verdict(&early).await.unwrap(), None);
    assert_eq!(store.find(late.decision.id, EVER).await.unwrap(), None);
    store.insert(&[writable(&late)]).await.unwrap();
    late.set_verdict(early);
    check(store, &late).await;
}

async fn what_is_too_old_counts_no_more(store: &dyn HistoryStore) {
    let old = story(5_000);
    store.insert(&[writable(&old)]).await.unwrap();
    assert_eq!(store.find(old.decision.id, Timestamp(5_001)).await.unwrap(), None);
    assert!(store.find(old.decision.id, Timestamp(5_000)).await.unwrap().is_some());
}

async fn the_oldest_are_purged_first_with_what_was_said_of_them(store: &dyn HistoryStore) {
    assert!(store.purge(Timestamp(10_000), 100).await.unwrap() > 0, "what the tests above kept");
    let stories = [50, 70, 60, 90].map(|at| writable(&story(at)));
    store.insert(&stories).await.unwrap();
    store.set_verdict(&verdict(stories[0].record(), VerdictSource::Feedback, 1.0)).await.unwrap();
    assert_eq!(store.purge(Timestamp(90), 2).await.unwrap(), 2);
    let mut there = Vec::new();
    for story in &stories {
        there.push(store.find(story.record().decision.id, EVER).await.unwrap().is_some());
    }
    assert_eq!(there, [false, true, false, true]);
    store.insert(&stories[..1]).await.unwrap();
    check(store, stories[0].record()).await;
    assert_eq!(store.purge(Timestamp(91), 10).await.unwrap(), 3);
    assert_eq!(store.purge(Timestamp(91), 10).await.unwrap(), 0);
}

async fn what_is_beyond_the_latest_can_be_purged(store: &dyn HistoryStore) {
    assert_eq!(store.retention_cutoff(0).await.unwrap(), None, "nothing is left of the tests above");
    let stories = [40, 30, 20, 30, 10].map(|at| writable(&story(at)));
    store.insert(&stories).await.unwrap();
    let mut beyond = Vec::new();
    for most in 0..=5 {
        beyond.push(store.retention_cutoff(most).await.unwrap().map(|at| at.0));
    }
    assert_eq!(beyond, [Some(40), Some(30), Some(30), Some(20), Some(10), None]);
    assert_eq!(store.purge(Timestamp(21), 10).await.unwrap(), 2);
    assert_eq!(store.retention_cutoff(3).await.unwrap(), None);
    assert_eq!(store.purge(Timestamp(41), 10).await.unwrap(), 3);
}

fn saved(replica: &ReplicaId, at: i64, state: &str) -> ReplicaState {
    ReplicaState { replica: replica.clone(), at: Timestamp(at), is_final: at % 2 == 1, state: state.into() }
}

async fn learned(store: &dyn HistoryStore) -> Vec<ReplicaState> {
    let mut learned = store.replica_states().await.unwrap();
    learned.sort_by(|a, b| a.replica.cmp(&b.replica));
    learned
}

async fn what_was_learned_is_replaced_and_taken_over_once(store: &dyn HistoryStore) {
    let [one, two, three] = ["one", "two", "three"].map(ReplicaId::named);
    assert_eq!(learned(store).await, []);
    let (first, second) = (saved(&one, 10, "a"), saved(&two, 11, "b"));
    assert!(store.save_state(&saved(&one, 8, "before"), &[]).await.unwrap());
    assert!(store.save_state(&first, &[]).await.unwrap());
    assert!(store.save_state(&second, &[]).await.unwrap());
    assert_eq!(learned(store).await, [first.clone(), second.clone()]);
    // It has said more since, so it is still there.
    let stale = saved(&one, 8, "before");
    assert!(!store.save_state(&saved(&three, 12, "c"), &[second.clone(), stale]).await.unwrap());
    assert_eq!(learned(store).await, [first.clone(), second.clone()]);
    let both = saved(&three, 14, "a and b");
    assert!(store.save_state(&both, &[first.clone(), second]).await.unwrap());
    assert!(!store.save_state(&saved(&two, 16, "again"), &[first]).await.unwrap());
    assert_eq!(learned(store).await, [both]);
}

async fn what_cannot_be_read_is_forgotten(store: &dyn HistoryStore) {
    store.delete_state(&ReplicaId::named("nobody")).await.unwrap();
    store.delete_state(&ReplicaId::named("three")).await.unwrap();
    assert_eq!(learned(store).await, []);
}
