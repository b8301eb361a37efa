use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use crate::fleet::{AffinityKey, BreakerSettings, ConcurrencySettings, FlowId, PlannedCalls, RetrySettings};
use crate::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use crate::{BackendCall, Fault, GenerationPart};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{Message, Role};
use stint_types::tasks::Tasks;
use stint_types::units::Priority;

use super::*;

fn request() -> Arc<Request> {
    Arc::new(Request::new("m", vec![Message::text(Role::User, "Hello")]))
}

fn fleet(backends: &[Arc<ScriptedBackend>], settings: Settings) -> Arc<Fleet> {
    let target = |(place, backend): (usize, &Arc<ScriptedBackend>)| Target {
        name: format!("target {place}").into(),
        backend: backend.clone(),
        tokenizer_id: None,
    };
    let targets = backends.iter().enumerate().map(target).collect();
    Fleet::new("m".into(), targets, Arc::new(Metrics::new().unwrap()), settings, 7)
}

fn places(count: u32) -> Settings {
    let concurrency =
        ConcurrencySettings { min: count, start: count, max: count, ..ConcurrencySettings::default() };
    Settings { concurrency: Some(concurrency), ..Settings::default() }
}

fn want(priority: Priority, seconds: u64) -> PermitRequest {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    PermitRequest { affinity: AffinityKey::of(&request()), flow: FlowId(0), calls: 1, priority, deadline }
}

fn works() -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::always(
        ScriptedReply::new().answers("a b c").pauses(Duration::from_millis(100)),
    ))
}

fn fails(fault: Fault) -> Arc<ScriptedBackend> {
    let failure = Failure::new(fault, "no");
    Arc::new(ScriptedBackend::always(ScriptedReply::new().refuses(failure)))
}

/// Makes one call to its end; true if it works.
async fn call(permit: &Permit) -> bool {
    let part = GenerationPart::Total { effort: None, tokens: Tokens(9) };
    let backend = permit.backend();
    let Ok(mut generation) = backend
        .generate(BackendCall {
            request: request(),
            class: EnforcementClass::Effort,
            part,
            seed: 1,
            hidden: false,
            whole: false,
            tells_limit: true,
            effort: None,
            effort_least: None,
        })
        .await
    else {
        return false;
    };
    while let Some(piece) = generation.next().await {
        if piece.is_err() {
            return false;
        }
    }
    true
}

async fn refused(fleet: &Arc<Fleet>, want: PermitRequest) -> Failure {
    let failure = fleet.acquire(want).await.expect_err("no permit");
    assert_eq!((failure.fault, failure.unsent), (Fault::Overload, true));
    failure
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_places_and_interactive_ones_go_first() {
    let (fleet, tasks) = (fleet(&[works()], places(1)), Tasks::default());
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    let (say, mut said) = tokio::sync::mpsc::channel(9);
    for (priority, name) in
        [(Priority::Batch, "b"), (Priority::Interactive, "i"), (Priority::Interactive, "j")]
    {
        let (fleet, say) = (fleet.clone(), say.clone());
        tasks.spawn(async move {
            let _permit = fleet.acquire(want(priority, 60)).await.unwrap();
            say.send(name).await.unwrap();
        });
        tokio::task::yield_now().await;
    }
    assert_eq!(fleet.status().1, 3);
    drop(permit);
    assert_eq!([said.recv().await, said.recv().await, said.recv().await], [Some("i"), Some("j"), Some("b")]);
    assert!(tasks.drain(Duration::from_secs(1)).await);
    assert_eq!(fleet.status().0[0].in_flight, 0);
}

// OV-03
#[tokio::test(start_paused = true)]
async fn who_waits_too_long_or_comes_to_a_full_queue_is_refused_with_a_time_to_come_back() {
    let settings = Settings { queue_max: 1, wait_max: Duration::from_secs(10), ..places(1) };
    let fleet = fleet(&[works()], settings);
    let _permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    let began = Instant::now();
    let (waits, full) = tokio::join!(refused(&fleet, want(Priority::Interactive, 3)), async {
        tokio::task::yield_now().await;
        refused(&fleet, want(Priority::Interactive, 60)).await
    });
    assert_eq!(began.elapsed(), Duration::from_secs(3), "its own deadline");
    assert!(waits.retry_after.is_some());
    let back = full.retry_after.unwrap();
    assert!(back >= Duration::from_secs(1) && back <= Duration::from_secs(2), "{back:?}");
    refused(&fleet, want(Priority::Interactive, 60)).await;
    assert_eq!(began.elapsed(), Duration::from_secs(13), "the longest wait");
}

#[tokio::test(start_paused = true)]
async fn where_the_longest_wait_is_short_a_full_queue_still_tells_a_whole_second() {
    let settings = Settings { queue_max: 1, wait_max: Duration::from_millis(500), ..places(1) };
    let fleet = fleet(&[works()], settings);
    let _permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    let (_, full) = tokio::join!(refused(&fleet, want(Priority::Interactive, 60)), async {
        tokio::task::yield_now().await;
        refused(&fleet, want(Priority::Interactive, 60)).await
    });
    let back = full.retry_after.unwrap();
    assert!(back >= Duration::from_secs(1) && back <= Duration::from_secs(2), "{back:?}");
}

#[tokio::test(start_paused = true)]
async fn where_the_line_is_longer_than_the_deadline_nobody_joins_it() {
    let fleet = fleet(&[works()], places(1));
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    drop(permit);
    let _permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    let began = Instant::now();
    let hopeless = refused(&fleet, want(Priority::Interactive, 15)).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "at once");
    assert!(hopeless.retry_after.unwrap() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_place_given_to_somebody_who_left_is_given_to_the_next() {
    let (fleet, tasks) = (fleet(&[works()], places(1)), Tasks::default());
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    {
        let left = fleet.acquire(want(Priority::Interactive, 60));
        tokio::pin!(left);
        assert!(futures_util::poll!(&mut left).is_pending());
    }
    let stays = fleet.clone();
    tasks.spawn(async move { drop(stays.acquire(want(Priority::Interactive, 60)).await.unwrap()) });
    tokio::task::yield_now().await;
    drop(permit);
    assert!(tasks.drain(Duration::from_secs(1)).await);
    assert_eq!((fleet.status().0[0].in_flight, fleet.status().1), (0, 0));
}

// UP-15
#[tokio::test(start_paused = true)]
async fn once_every_target_is_left_alone_nobody_waits_and_those_who_do_are_told() {
    let (fleet, tasks) = (fleet(&[fails(Fault::Backend)], places(1)), Tasks::default());
    for _ in 0..4 {
        assert!(!call(&fleet.acquire(want(Priority::Interactive, 60)).await.unwrap()).await);
    }
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    let waiting = fleet.clone();
    tasks.spawn(async move { drop(refused(&waiting, want(Priority::Interactive, 60)).await) });
    tokio::task::yield_now().await;
    let began = Instant::now();
    assert!(!call(&permit).await);
    assert!(tasks.drain(Duration::from_secs(1)).await);
    let failure = refused(&fleet, want(Priority::Interactive, 60)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    let rest = BreakerSettings::default().rest_min;
    let back = failure.retry_after.unwrap();
    assert!(back >= rest && back <= rest.mul_f64(1.4), "{back:?}");
    assert!(!fleet.conditions().healthy);
    let trips = fleet.metrics.backends.trips.with_label_values(&["m", "target 0", "failures"]);
    assert_eq!(trips.get(), 1);
}

// UP-13
#[tokio::test(start_paused = true)]
async fn one_account_whose_calls_fail_does_without_the_target_and_others_have_it() {
    let failure = || ScriptedReply::new().refuses(Failure::new(Fault::Backend, "no"));
    let replies = (0..5).map(|_| failure()).chain([ScriptedReply::new().answers("a")]).chain([failure()]);
    let fleet = fleet(&[Arc::new(ScriptedBackend::in_turn(replies.collect()))], Settings::default());
    let of = |account| PermitRequest { flow: FlowId(account), ..want(Priority::Interactive, 60) };
    for _ in 0..5 {
        assert!(!call(&fleet.acquire(of(1)).await.unwrap()).await);
    }
    refused(&fleet, of(1)).await;
    assert!(!fleet.conditions().healthy && !fleet.conditions_for(FlowId(1)).healthy);
    assert!(fleet.conditions_for(FlowId(2)).healthy);
    assert!(call(&fleet.acquire(of(2)).await.unwrap()).await);
    refused(&fleet, of(1)).await;
    assert!(fleet.conditions().healthy, "it answers others");
    assert_eq!((fleet.unavailable_for(), fleet.unavailable_for_account(FlowId(2))), (None, None));
    assert!(fleet.unavailable_for_account(FlowId(1)).is_some());
}

#[tokio::test(start_paused = true)]
async fn who_comes_while_our_credential_is_refused_is_told_so_and_not_to_come_back_soon() {
    let fleet = fleet(&[fails(Fault::Credential)], Settings::default());
    assert!(!call(&fleet.acquire(want(Priority::Interactive, 60)).await.unwrap()).await);
    let told = fleet.acquire(want(Priority::Interactive, 60)).await.expect_err("it is left alone");
    assert_eq!((told.fault, told.unsent, told.retry_after), (Fault::Credential, true, None));
    assert_eq!(told.retry, crate::Retry::Elsewhere, "another model may serve it");
    assert!(fleet.has_refused_credential(FlowId(0)) && !fleet.has_refused_credential(FlowId(1)));
    tokio::time::advance(BreakerSettings::default().credential_rest).await;
    assert!(fleet.acquire(want(Priority::Interactive, 60)).await.is_ok(), "somebody finds out");
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_leaves_lets_the_next_one_find_out() {
    let plays = (0..5).map(|_| ScriptedReply::new().refuses(Failure::new(Fault::Backend, "no")));
    let plays = plays.chain([ScriptedReply::new().answers("a").pauses(Duration::from_secs(1))]).collect();
    let fleet = fleet(&[Arc::new(ScriptedBackend::in_turn(plays))], Settings::default());
    for _ in 0..5 {
        assert!(!call(&fleet.acquire(want(Priority::Interactive, 60)).await.unwrap()).await);
    }
    tokio::time::advance(Duration::from_secs(3)).await;
    let probe = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    refused(&fleet, want(Priority::Interactive, 60)).await;
    drop(probe);
    let probe = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    assert!(call(&probe).await);
    let (one, other) =
        (fleet.acquire(want(Priority::Interactive, 60)), fleet.acquire(want(Priority::Interactive, 60)));
    let permits = tokio::join!(one, other);
    assert!(permits.0.is_ok() && permits.1.is_ok(), "it works again");
}

#[tokio::test(start_paused = true)]
async fn a_callers_fault_says_nothing_of_the_target_and_neither_does_one_who_leaves_early() {
    let fleet = fleet(&[fails(Fault::Caller)], Settings::default());
    for _ in 0..20 {
        assert!(!call(&fleet.acquire(want(Priority::Interactive, 60)).await.unwrap()).await);
    }
    assert!(fleet.conditions().healthy);
    let lacking = self::fleet(&[fails(Fault::Gateway)], Settings::default());
    for _ in 0..20 {
        assert!(!call(&lacking.acquire(want(Priority::Interactive, 60)).await.unwrap()).await);
    }
    assert!(lacking.conditions().healthy, "the gateway's own lack is no fault of the target");
    let slow = self::fleet(&[works()], Settings::default());
    for _ in 0..20 {
        let permit = slow.acquire(want(Priority::Interactive, 60)).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), call(&permit)).await.is_err());
    }
    assert!(slow.conditions().healthy);
}

/// Takes a permit and waits so long for what never comes.
async fn waits_in_vain(fleet: &Arc<Fleet>, seconds: u64) -> usize {
    let permit = fleet.acquire(want(Priority::Interactive, 600)).await.unwrap();
    let place = permit.target_index();
    let _ = tokio::time::timeout(Duration::from_secs(seconds), call(&permit)).await;
    place
}

// UP-02
#[tokio::test(start_paused = true)]
async fn one_that_is_silent_until_its_caller_leaves_is_avoided_at_once() {
    let silent = Arc::new(ScriptedBackend::always(ScriptedReply::new().begins_at(&PieceGate::shut())));
    let fleet = fleet(&[silent.clone(), silent.clone(), works()], Settings::default());
    let mut places = Vec::new();
    for _ in 0..5 {
        places.push(waits_in_vain(&fleet, 3).await);
    }
    let silences = places.iter().filter(|place| **place < 2).count();
    assert!(silences <= 2, "each is waited for once: {places:?}");
    assert!(
        fleet.status().0.iter().all(|standing| standing.is_available),
        "three seconds are nobody's fault"
    );
}

// UP-02
#[tokio::test(start_paused = true)]
async fn a_call_that_is_silent_for_unusually_long_has_failed_whatever_ends_it() {
    let gate = PieceGate::shut();
    let play = ScriptedReply::new().answers("a").pauses(Duration::from_millis(100));
    let silent = play.clone().begins_at(&gate);
    let plays = vec![play.clone(), play.clone(), play, silent];
    let fleet = fleet(&[Arc::new(ScriptedBackend::in_turn(plays))], Settings::default());
    for _ in 0..3 {
        assert!(call(&fleet.acquire(want(Priority::Interactive, 60)).await.unwrap()).await);
    }
    for _ in 0..5 {
        waits_in_vain(&fleet, 4).await;
    }
    assert!(fleet.conditions().healthy, "four seconds may be anybody's impatience");
    for _ in 0..5 {
        waits_in_vain(&fleet, 6).await;
    }
    assert!(!fleet.conditions().healthy);
    let trips = fleet.metrics.backends.trips.with_label_values(&["m", "target 0", "failures"]);
    assert_eq!(trips.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_shows_in_the_conditions() {
    let (fleet, tasks) = (fleet(&[works()], places(1)), Tasks::default());
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(permit);
    assert!(fleet.conditions().queue < 1e-9);
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    for _ in 0..3 {
        let waiting = fleet.clone();
        tasks.spawn(async move { drop(waiting.acquire(want(Priority::Interactive, 60)).await) });
    }
    tokio::task::yield_now().await;
    assert!((fleet.conditions().queue - 6.0).abs() < 1e-9, "{:?}", fleet.conditions());
    drop(permit);
    assert!(tasks.drain(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_as_long_as_the_targets_rest_but_not_too_long() {
    let failure = |seconds| Failure {
        retry_after: Some(Duration::from_secs(seconds)),
        ..Failure::new(Fault::Overload, "busy")
    };
    let plays = [3, 30].map(|seconds| ScriptedReply::new().refuses(failure(seconds)));
    let fleet = fleet(&[Arc::new(ScriptedBackend::in_turn(plays.to_vec()))], Settings::default());
    let want = want(Priority::Interactive, 60);
    let permit = fleet.acquire(want).await.unwrap();
    assert!(!call(&permit).await);
    drop(permit);
    assert!(fleet.acquire_retry(&want, &[]).is_none(), "it wants to be left alone");
    let wait = fleet.retry_wait(1, &want).unwrap();
    assert!(wait >= Duration::from_secs(3) && wait <= Duration::from_millis(3_200), "{wait:?}");
    assert_eq!(fleet.retry_wait(3, &want), None, "three attempts are enough");
    tokio::time::advance(wait).await;
    let permit = fleet.acquire_retry(&want, &[]).unwrap();
    assert!(!call(&permit).await);
    assert_eq!(fleet.retry_wait(2, &want), None, "half a minute is too long");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_again_within_an_answer_takes_one_of_the_retries() {
    let limited = |attempts_max| {
        let retry = RetrySettings { attempts_max, share: 0.0, per_second: 2, ..RetrySettings::default() };
        Settings { retry, ..Settings::default() }
    };
    let fleet = fleet(&[works()], limited(3));
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    assert_eq!([(); 3].map(|()| permit.backend().take_retry()), [true, true, false]);
    assert_eq!(fleet.metrics.backends.retries.with_label_values(&["m", "target 0"]).get(), 2);
    fleet.reconfigure(limited(1));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!permit.backend().take_retry(), "one attempt is all that is wanted");
}

#[tokio::test(start_paused = true)]
async fn a_short_pause_is_waited_for_in_turn_and_a_long_one_is_told() {
    let failure = |seconds| Failure {
        retry_after: Some(Duration::from_secs(seconds)),
        ..Failure::new(Fault::Overload, "busy")
    };
    let plays = [2, 30].map(|seconds| ScriptedReply::new().refuses(failure(seconds)));
    let (fleet, tasks) =
        (fleet(&[Arc::new(ScriptedBackend::in_turn(plays.to_vec()))], places(1)), Tasks::default());
    let first = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    let (say, mut said) = tokio::sync::mpsc::channel(9);
    for (flow, name) in [(1, "a"), (1, "b"), (2, "c")] {
        let (fleet, say) = (fleet.clone(), say.clone());
        tasks.spawn(async move {
            let want = PermitRequest { flow: FlowId(flow), ..want(Priority::Interactive, 60) };
            let permit = fleet.acquire(want).await.unwrap();
            say.send((name, Instant::now())).await.unwrap();
            drop(permit);
        });
        tokio::task::yield_now().await;
    }
    assert!(!call(&first).await);
    let paused = Instant::now();
    drop(first);
    assert!(!fleet.conditions().healthy, "others go first");
    assert!((fleet.conditions_after_pause(FlowId(0)).unwrap().queue - 2.0).abs() < 1e-9);
    for expected in ["a", "c", "b"] {
        let (name, at) = said.recv().await.unwrap();
        assert_eq!((name, at.duration_since(paused).as_secs()), (expected, 2), "each flow in turn");
    }
    assert!(tasks.drain(Duration::from_secs(1)).await);
    let permit = fleet.acquire(want(Priority::Interactive, 60)).await.unwrap();
    assert!(!call(&permit).await);
    drop(permit);
    assert!(fleet.is_rate_limited(FlowId(0)) && fleet.conditions_after_pause(FlowId(0)).is_none());
    let told = refused(&fleet, want(Priority::Interactive, 60)).await;
    assert_eq!(told.code, Some(crate::UPSTREAM_RATE_LIMITED));
    assert!(told.retry_after.unwrap() >= Duration::from_secs(29), "{told:?}");
}

/// How long the requests of the second flow wait, the longest wait of a hundred but one, beside so many callers of the
/// first, each of whom asks again as soon as it is answered.
async fn waits_beside(others: u64) -> Duration {
    let (fleet, tasks) = (fleet(&[works()], Settings { queue_max: 512, ..places(8) }), Tasks::default());
    let until = Instant::now() + Duration::from_secs(30);
    let of = |flow| PermitRequest { flow: FlowId(flow), ..want(Priority::Interactive, 3_600) };
    for _ in 0..others {
        let fleet = fleet.clone();
        tasks.spawn(async move {
            while Instant::now() < until {
                let Ok(permit) = fleet.acquire(of(1)).await else { continue };
                tokio::time::sleep(Duration::from_millis(400)).await;
                drop(permit);
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut waits = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        let permit = fleet.acquire(of(2)).await.unwrap();
        waits.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(400)).await;
        drop(permit);
    }
    assert!(tasks.drain(Duration::from_secs(60)).await);
    waits.sort_unstable();
    waits[waits.len() * 99 / 100]
}

// OV-04
#[tokio::test(start_paused = true)]
async fn one_who_sends_nearly_all_requests_makes_the_others_wait_for_one_place_at_most() {
    assert_eq!(waits_beside(4).await, Duration::ZERO, "there is room");
    // All places are taken by the first flow; the next that comes free is the second's.
    for others in [19, 190] {
        let wait = waits_beside(others).await;
        assert!(wait <= Duration::from_millis(400), "{wait:?} beside {others}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_planned_after_others_waits_behind_their_work_until_it_is_done() {
    let fleet = fleet(&[Arc::new(ScriptedBackend::always(ScriptedReply::new()).with_places(2))], places(8));
    let planned = PlannedCalls { calls: 1, whole: Duration::from_secs(4), least: Duration::from_secs(1) };
    let first = fleet.plan_work(planned);
    assert!(fleet.conditions().queue < 1e-9, "the other place is free");
    let second = fleet.plan_work(planned);
    let conditions = fleet.conditions();
    assert!((conditions.queue - 4.0).abs() < 1e-9 && (conditions.queue_least - 1.0).abs() < 1e-9);
    assert!((fleet.rounds() - 1.0).abs() < 1e-9);
    drop((first, second));
    assert!(fleet.conditions().queue < 1e-9);
}
