//! Engines that fail, and are started again.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::*;

/// The wait before the first start, and a start on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// An engine whose next so many starts fail, and what is told of it.
fn supervised(failing: u32, settings: &Settings) -> (SupervisedEngine, Receiver<EngineEvent>) {
    let (weights, listener, events) = failing_weights(failing);
    let engine = SupervisedEngine::start(&gguf(TensorType::F32), weights, settings, listener);
    (engine.unwrap(), events)
}

fn next(events: &Receiver<EngineEvent>) -> EngineEvent {
    events.recv_timeout(PATIENCE).expect("something happens to the engine")
}

fn restarts(engine: &SupervisedEngine, cause: FailureCause) -> u64 {
    engine.restarts().into_iter().find(|(known, _)| *known == cause).unwrap().1
}

/// A fault with a job in flight, which must hear of it in time. Another engine takes jobs soon after.
fn check(fault: InjectedFault, cause: FailureCause, heard_within: Duration) {
    let settings = Settings { step_timeout: Some(Duration::from_secs(1)), ..settings() };
    let (weights, listener, events) = failing_weights(0);
    // The next engine gets its weights once it was looked at how it is without one.
    let (release, released) = channel();
    let released = Mutex::new(released);
    let held: WeightsOpener = Box::new(move || {
        let _ = released.lock().unwrap().recv();
        weights()
    });
    let engine = SupervisedEngine::start(&gguf(TensorType::F32), held, &settings, listener).unwrap();
    assert_eq!((finish(engine.generate(job(2, 1, 1)).unwrap()).0.len(), engine.outage()), (5, None));
    let decoded = engine.load().counts.decoded;
    engine.inject(fault);
    let (job_in_flight, began) = (engine.generate(job(4, 60, 50)), Instant::now());
    // A thread that panicked may have left already.
    match job_in_flight.map(finish) {
        Ok((_, GenerationEvent::Failed(error))) => assert_eq!(FailureCause::of(&error), cause, "{error}"),
        Ok(done) => panic!("{done:?}"),
        Err(refused) => assert_eq!(refused, JobRejection::Restarting),
    }
    assert!(began.elapsed() < heard_within, "{:?}", began.elapsed());
    assert!(matches!(next(&events), EngineEvent::Failed { cause: reported, .. } if reported == cause));
    assert!(!engine.is_alive() && engine.outage().is_some_and(|outage| outage.cause == Some(cause)));
    assert_eq!(engine.generate(job(1, 1, 1)).unwrap_err(), JobRejection::Restarting);
    release.send(()).unwrap();
    assert!(matches!(next(&events), EngineEvent::Restarted { .. }));
    assert!(began.elapsed() < heard_within + Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(finish(engine.generate(job(2, 1, 1)).unwrap()).0.len(), 5);
    assert_eq!((restarts(&engine, cause), engine.outage()), (1, None));
    assert!(engine.load().counts.decoded > decoded, "what was counted is not counted away");
    engine.stop();
    assert!(!engine.is_alive());
}

#[test]
fn an_engine_that_loses_its_device_is_started_again() {
    check(InjectedFault::LoseDevice, FailureCause::Lost, Duration::from_secs(5));
}

#[test]
fn an_engine_whose_thread_panics_is_started_again() {
    check(InjectedFault::Panic, FailureCause::Panicked, Duration::from_secs(5));
}

#[test]
fn an_engine_whose_thread_hangs_is_given_up_and_another_one_started() {
    let forever = InjectedFault::Hang(Duration::from_mins(10));
    // A second for the step, two idle turns of half a second, and a look.
    check(forever, FailureCause::Hung, Duration::from_secs(6));
}

#[test]
fn a_device_that_is_lost_while_nobody_asks_is_noticed() {
    let (engine, events) = supervised(0, &settings());
    engine.inject(InjectedFault::LoseDevice);
    assert!(matches!(next(&events), EngineEvent::Failed { cause: FailureCause::Lost, .. }));
    assert!(matches!(next(&events), EngineEvent::Restarted { .. }));
    engine.stop();
}

#[test]
fn an_engine_that_cannot_be_started_again_is_tried_again_after_a_longer_wait() {
    let (engine, events) = supervised(1, &settings());
    engine.inject(InjectedFault::Panic);
    let wait = |event| match event {
        EngineEvent::Failed { wait, .. } | EngineEvent::StartFailed { wait, .. } => wait.as_secs(),
        EngineEvent::Restarted { outage } => outage.as_secs(),
        other => panic!("{other:?}"),
    };
    assert_eq!((wait(next(&events)), wait(next(&events))), (1, 2));
    assert!(engine.outage().unwrap().retry_in > Some(Duration::from_secs(1)));
    assert!(wait(next(&events)) >= 3);
    assert_eq!(restarts(&engine, FailureCause::Panicked), 2);
    engine.stop();
}

#[test]
fn an_engine_that_is_stopped_while_it_is_down_stays_so() {
    let (engine, events) = supervised(0, &settings());
    engine.inject(InjectedFault::Panic);
    next(&events);
    engine.stop();
    assert_eq!(engine.outage(), Some(EngineOutage { cause: None, retry_in: None }));
    let weak = engine.downgrade();
    drop(engine);
    // The watch lets go of it.
    while weak.upgrade().is_some() {
        std::thread::yield_now();
    }
}
