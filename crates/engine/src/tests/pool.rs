//! Models that share the memory of one device.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// What a machine that is busy with other things may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// It is loaded by the first request, and stays for so long.
fn on_demand(keep_alive: Duration) -> Residency {
    Residency { load_on_startup: false, keep_alive: Some(keep_alive) }
}

const HOUR: Duration = Duration::from_hours(1);

/// Room for so many models like those of these tests, and half of one.
fn room_for(models: u64) -> Option<u64> {
    let size = EngineSize::measure(&gguf(TensorType::F32), &settings()).unwrap();
    Some(models * size.memory + size.memory / 2)
}

/// A model whose next so many loads fail, and what is told of it.
fn model(
    pool: &EnginePool,
    residency: Residency,
    memory_max: Option<u64>,
    failing: u32,
) -> (PooledEngine, Receiver<EngineEvent>) {
    let (weights, listener, events) = failing_weights(failing);
    let settings = Settings { memory_max, ..settings() };
    let spec = EngineSpec::new(&gguf(TensorType::F32), weights, settings, listener).unwrap();
    (pool.add(spec, residency), events)
}

fn lease(engine: &PooledEngine) -> Result<EngineLease, LeaseRefusal> {
    pollster::block_on(engine.lease())
}

/// Uses it once.
fn answer(engine: &PooledEngine) {
    let lease = lease(engine).unwrap();
    assert_eq!(finish(lease.engine().generate(job(2, 1, 1)).unwrap()).0.len(), 5);
}

fn in_background<T: Send + 'static>(
    engine: &PooledEngine,
    uses: impl FnOnce(&PooledEngine) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let engine = engine.clone();
    thread::spawn(move || uses(&engine))
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what} within {PATIENCE:?}");
        thread::yield_now();
    }
}

fn next(events: &Receiver<EngineEvent>) -> EngineEvent {
    events.recv_timeout(PATIENCE).expect("something happens to the model")
}

#[test]
fn a_model_is_loaded_by_the_first_request_and_let_go_when_nobody_has_used_it_for_its_time() {
    let pool = EnginePool::default();
    let (engine, events) = model(&pool, on_demand(Duration::from_millis(300)), None, 0);
    assert!(!engine.is_loaded() && engine.outage().is_none());
    assert!(engine.expected_wait() >= Duration::from_secs(1), "a guess, before it was ever loaded");
    let lease = lease(&engine).unwrap();
    assert!(matches!(next(&events), EngineEvent::Loaded { memory, .. } if memory == engine.memory_bytes()));
    assert_eq!((engine.is_loaded(), engine.expected_wait()), (true, Duration::ZERO));
    let mut tokens = lease.engine().generate(job(2, 20, 20)).unwrap();
    assert!(has_begun(&mut tokens));
    // A slow reader keeps it.
    thread::sleep(Duration::from_millis(700));
    assert!(engine.is_loaded());
    assert!(matches!(finish(tokens).1, GenerationEvent::Done(_)));
    let decoded = engine.load().counts.decoded;
    drop(lease);
    assert!(matches!(next(&events), EngineEvent::Unloaded { reason: UnloadReason::Idle }));
    assert!(!engine.is_loaded() && engine.expected_wait() > Duration::ZERO);
    assert_eq!(engine.load().counts.decoded, decoded, "what was counted is not counted away");
    answer(&engine);
    let totals = engine.totals();
    assert_eq!((totals.loads, totals.failed_loads, totals.unloads[1]), (2, 0, 0));
    assert!(totals.unloads[0] >= 1, "{totals:?}");
    pool.stop();
}

#[test]
fn the_least_recently_used_model_makes_room_for_another() {
    let (pool, most) = (EnginePool::default(), room_for(2));
    let models: Vec<_> = (0..3).map(|_| model(&pool, on_demand(HOUR), most, 0).0).collect();
    let loaded = || models.iter().map(PooledEngine::is_loaded).collect::<Vec<_>>();
    for place in [0, 1, 0] {
        answer(&models[place]);
    }
    assert_eq!(loaded(), [true, true, false]);
    answer(&models[2]);
    assert_eq!(loaded(), [true, false, true]);
    assert_eq!(models[1].totals().unloads, [0, 1]);
    pool.stop();
}

#[test]
fn a_model_in_use_is_not_let_go_and_another_waits_for_its_room() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let held = lease(&first).unwrap();
    let waits = in_background(&second, answer);
    until("the second one is waited for", || second.load().waiting == 1);
    assert!(second.expected_wait() > Duration::ZERO);
    // Longer than a load takes: from then on the first takes no more, and ends what it has begun.
    thread::sleep(Duration::from_millis(1500));
    let last = finish(held.engine().generate(job(2, 40, 40)).unwrap()).1;
    assert!(matches!(last, GenerationEvent::Done(_)), "nothing of it was cut: {last:?}");
    assert!(first.is_loaded() && !second.is_loaded());
    drop(held);
    waits.join().unwrap();
    assert!(!first.is_loaded() && second.is_loaded());
    pool.stop();
}

/// What it says, where it says that without a wait.
fn at_once<T>(mut future: Pin<&mut impl Future<Output = Result<T, LeaseRefusal>>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(leased) => Some(leased.unwrap()),
        Poll::Pending => None,
    }
}

fn lease_at_once(engine: &PooledEngine) -> Option<EngineLease> {
    at_once(pin!(engine.lease()))
}

#[test]
fn a_model_that_is_always_in_use_keeps_no_other_out() {
    check_always_in_use(HOUR);
}

#[test]
fn a_model_whose_loading_takes_as_long_as_a_request_waits_is_not_kept_out_either() {
    check_always_in_use(Duration::from_secs(1));
}

fn check_always_in_use(wait_max: Duration) {
    let (pool, most) = (EnginePool::default(), room_for(1));
    pool.set_wait_max(wait_max);
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let mut held = lease(&first).unwrap();
    let waits = in_background(&second, answer);
    let began = Instant::now();
    // Before one use ends another has begun.
    while let Some(next) = lease_at_once(&first) {
        held = next;
        assert!(began.elapsed() < PATIENCE, "the first one never yields");
        thread::sleep(Duration::from_millis(5));
    }
    let again = in_background(&first, answer);
    drop(held);
    waits.join().unwrap();
    again.join().unwrap();
    assert_eq!((first.totals().loads, second.totals().loads), (2, 1));
    pool.stop();
}

#[test]
fn a_model_that_was_loaded_is_there_for_those_who_wait_for_it() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let mut wanted = pin!(first.lease());
    assert!(at_once(wanted.as_mut()).is_none());
    until("it is loaded", || first.is_loaded());
    let other = in_background(&second, answer);
    until("the other is waited for", || second.load().waiting == 1);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(first.totals().unloads, [0, 0]);
    let held = at_once(wanted.as_mut()).expect("it was not let go before it was used");
    assert_eq!(finish(held.engine().generate(job(2, 1, 1)).unwrap()).0.len(), 5);
    drop(held);
    other.join().unwrap();
    pool.stop();
}

#[test]
fn a_request_that_comes_back_for_the_rest_of_its_answer_finds_its_model_there() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let (first, _) = model(&pool, on_demand(Duration::ZERO), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let mut thought = lease(&first).unwrap();
    let other = in_background(&second, answer);
    until("the first one yields", || lease_at_once(&first).is_none());
    thought.set_may_resume(true);
    drop(thought);
    thread::sleep(Duration::from_millis(100));
    let answer = at_once(pin!(first.lease_to_resume())).expect("it is there, and takes what it had begun");
    assert_eq!((first.totals().loads, first.totals().unloads), (1, [0, 0]));
    drop(answer);
    other.join().unwrap();
    assert!(!first.is_loaded(), "nobody has come back for more");
    pool.stop();
}

#[test]
fn models_that_are_loaded_at_the_start_do_not_let_each_other_go() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let residency = Residency { load_on_startup: true, keep_alive: Some(HOUR) };
    let models: Vec<_> = (0..2).map(|_| model(&pool, residency, most, 0).0).collect();
    assert!(models[0].load_now().unwrap() && !models[1].load_now().unwrap());
    assert!(models[0].is_loaded());
    answer(&models[1]);
    // What stays for good comes before what does not.
    let (stays, _) = model(&pool, Residency::default(), most, 0);
    assert!(stays.load_now().unwrap() && !models[1].is_loaded());
    pool.stop();
}

#[test]
fn the_memory_of_a_configuration_counts_once_that_is_in_force() {
    let pool = EnginePool::default();
    let models: Vec<_> = (0..2).map(|_| model(&pool, on_demand(HOUR), room_for(1), 0).0).collect();
    answer(&models[0]);
    let (newer, _) = model(&pool, on_demand(HOUR), room_for(2), 0);
    answer(&models[1]);
    assert!(!models[0].is_loaded(), "there is room for one");
    newer.activate(on_demand(HOUR)).unwrap();
    answer(&models[0]);
    assert!(models[1].is_loaded(), "there is room for two");
    pool.stop();
}

#[test]
fn each_request_waits_for_room_for_its_own_time() {
    const WAIT_MAX: Duration = Duration::from_millis(400);
    let (pool, most) = (EnginePool::default(), room_for(1));
    pool.set_wait_max(WAIT_MAX);
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let _held = lease(&first).unwrap();
    let waits = |engine: &PooledEngine| {
        let began = Instant::now();
        assert!(matches!(lease(engine), Err(LeaseRefusal::NoRoom)));
        began.elapsed()
    };
    let early = in_background(&second, waits);
    thread::sleep(WAIT_MAX / 2);
    let late = in_background(&second, waits);
    for waited in [early.join().unwrap(), late.join().unwrap()] {
        assert!(waited >= WAIT_MAX, "{waited:?}");
    }
    pool.stop();
}

#[test]
fn who_has_waited_for_room_for_too_long_is_told() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    pool.set_wait_max(Duration::from_millis(200));
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let held = lease(&first).unwrap();
    assert!(matches!(lease(&second), Err(LeaseRefusal::NoRoom)));
    drop(held);
    answer(&second);
    pool.stop();
}

#[test]
fn what_does_not_fit_beside_a_model_that_stays_is_refused_at_once() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let (other, _) = model(&pool, on_demand(HOUR), most, 0);
    let (stays, _) = model(&pool, Residency::default(), most, 0);
    assert!(stays.load_now().unwrap());
    let began = Instant::now();
    assert!(matches!(lease(&other), Err(LeaseRefusal::NoRoom)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!other.fits_beside(stays.memory_bytes()) && other.fits_beside(0));
    assert!(stays.is_loaded());
    pool.stop();
}

#[test]
fn a_model_that_cannot_be_loaded_says_so_and_is_tried_again_by_a_later_request() {
    let pool = EnginePool::default();
    let (engine, events) = model(&pool, on_demand(HOUR), None, 1);
    assert!(matches!(lease(&engine), Err(LeaseRefusal::Failed { error: EngineError::NoDevice, .. })));
    assert!(matches!(next(&events), EngineEvent::LoadFailed { .. }));
    let outage = engine.outage().unwrap();
    assert!(outage.retry_in.unwrap() <= Duration::from_secs(1), "{outage:?}");
    assert!(matches!(lease(&engine), Err(LeaseRefusal::Failed { .. })), "nobody tries meanwhile");
    until("it may be tried again", || engine.outage().is_none());
    answer(&engine);
    assert_eq!((engine.totals().loads, engine.totals().failed_loads), (1, 1));
    pool.stop();
}

#[test]
fn a_request_that_gives_its_wait_up_has_nothing_loaded() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let held = lease(&first).unwrap();
    assert!(lease_at_once(&second).is_none());
    assert_eq!(second.load().waiting, 0);
    drop(held);
    answer(&first);
    assert_eq!((first.totals().loads, second.totals().loads), (1, 0));
    pool.stop();
}

#[test]
fn the_end_of_the_pool_ends_those_who_wait() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let (first, _) = model(&pool, on_demand(HOUR), most, 0);
    let (second, _) = model(&pool, on_demand(HOUR), most, 0);
    let held = lease(&first).unwrap();
    let waits = in_background(&second, |engine| lease(engine).map(drop));
    until("the second one is waited for", || second.load().waiting == 1);
    pool.stop();
    assert!(matches!(waits.join().unwrap(), Err(LeaseRefusal::Stopped)));
    assert!(matches!(lease(&first), Err(LeaseRefusal::Stopped)));
    assert!(!first.is_alive() && !held.engine().is_alive());
}

#[test]
fn loaded_and_let_go_again_and_again_every_block_is_free_and_nothing_counted_is_lost() {
    let (pool, most) = (EnginePool::default(), room_for(1));
    let models: Vec<_> = (0..2).map(|_| model(&pool, on_demand(HOUR), most, 0).0).collect();
    for round in 0..6_u64 {
        for engine in &models {
            answer(engine);
            let load = engine.load();
            assert_eq!((load.running, load.waiting), (0, 0));
            assert_eq!(load.blocks_free, load.blocks_total);
            assert_eq!(engine.totals().loads, round + 1);
            assert!(load.counts.decoded > round, "{:?}", load.counts);
        }
    }
    assert_eq!(models.iter().filter(|engine| engine.is_loaded()).count(), 1);
    assert!(models.iter().all(PooledEngine::is_alive));
    pool.stop();
}
