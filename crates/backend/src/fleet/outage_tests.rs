//! Targets that say themselves that they are not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::time::Instant;

use crate::{Backend, BackendCall, Failure, Fault, Generation, TargetOutage};
use stint_types::catalog::ModelConditions;
use stint_types::chat::{Message, Request, Role};
use stint_types::metrics::Metrics;
use stint_types::units::{Priority, Tokens};

use super::{AffinityKey, Fleet, FlowId, Permit, PermitRequest, Settings, Target};

/// A target that fails all calls, and may say that it is gone for a minute.
#[derive(Debug, Default)]
struct Comes(AtomicBool);

impl Backend for Comes {
    fn generate(&self, _: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        ready(Err(Failure::new(Fault::Backend, "no"))).boxed()
    }

    fn prompt_tokens(&self, _: &Request) -> Tokens {
        Tokens(1)
    }

    fn conditions(&self) -> ModelConditions {
        ModelConditions::default()
    }

    fn outage(&self) -> Option<TargetOutage> {
        let outage = TargetOutage { reason: "gone".into(), retry_in: Some(Duration::from_secs(60)) };
        self.0.load(Ordering::Relaxed).then_some(outage)
    }
}

fn fleet(targets: &[Arc<Comes>]) -> Arc<Fleet> {
    let target = |(place, backend): (usize, &Arc<Comes>)| Target {
        name: place.to_string().into(),
        backend: backend.clone(),
        tokenizer_id: None,
    };
    let targets = targets.iter().enumerate().map(target).collect();
    Fleet::new("m".into(), targets, Arc::new(Metrics::new().unwrap()), Settings::default(), 7)
}

fn want() -> PermitRequest {
    let request = Request::new("m", vec![Message::text(Role::User, "Hello")]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let (affinity, priority) = (AffinityKey::of(&request), Priority::Interactive);
    PermitRequest { affinity, flow: FlowId(0), calls: 1, priority, deadline }
}

async fn fail(permit: &Permit) {
    let request = Arc::new(Request::new("m", vec![Message::text(Role::User, "Hello")]));
    assert!(permit.backend().generate(BackendCall::for_counting(&request)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_not_there_gets_no_calls_and_others_get_them() {
    let targets = [Arc::new(Comes::default()), Arc::new(Comes::default())];
    let fleet = fleet(&targets);
    targets[0].0.store(true, Ordering::Relaxed);
    assert_eq!((fleet.outage(), fleet.unavailable_for()), (None, None));
    for _ in 0..20 {
        assert_eq!(fleet.acquire(want()).await.unwrap().target_index(), 1);
    }
    assert!(fleet.acquire_retry(&want(), &[1]).is_none() && fleet.acquire_hedge(&want(), &[1]).is_none());
    let statuses = fleet.status().0;
    assert_eq!((statuses[0].is_available, statuses[1].is_available), (false, true));
}

#[tokio::test(start_paused = true)]
async fn without_any_target_callers_are_refused_at_once_until_one_is_back() {
    let target = Arc::new(Comes::default());
    let fleet = fleet(std::slice::from_ref(&target));
    let in_flight: Vec<Permit> =
        [fleet.acquire(want()).await, fleet.acquire(want()).await].map(Result::unwrap).into();
    target.0.store(true, Ordering::Relaxed);
    // More failures in a row than would leave it alone.
    for permit in in_flight.iter().cycle().take(20) {
        fail(permit).await;
    }
    let began = Instant::now();
    let refused = fleet.acquire(want()).await.unwrap_err();
    assert_eq!((refused.fault, refused.unsent, began.elapsed()), (Fault::Overload, true, Duration::ZERO));
    assert!(refused.retry_after >= Some(Duration::from_secs(60)), "{refused:?}");
    assert!(fleet.unavailable_for() >= Some(Duration::from_secs(60)));
    assert_eq!(&*fleet.outage().unwrap().reason, "gone");
    target.0.store(false, Ordering::Relaxed);
    assert!(fleet.acquire(want()).await.is_ok(), "it is asked as soon as it is back");
}

#[tokio::test(start_paused = true)]
async fn a_fleet_is_unavailable_while_every_target_says_so_or_is_left_alone_and_not_after_the_rest() {
    let targets = [Arc::new(Comes::default()), Arc::new(Comes::default())];
    let fleet = fleet(&targets);
    assert_eq!(fleet.unavailability(), None);
    targets[0].0.store(true, Ordering::Relaxed);
    let permit = fleet.acquire(want()).await.unwrap();
    assert_eq!(fleet.unavailability(), None, "one may be called");
    for _ in 0..5 {
        fail(&permit).await;
    }
    drop(permit);
    let outage = fleet.unavailability().expect("one is gone and one is left alone");
    assert_eq!(&*outage.reason, "it failed lately and is left alone for another 3 s");
    targets[1].0.store(true, Ordering::Relaxed);
    assert_eq!(&*fleet.unavailability().expect("both are gone").reason, "gone");
    targets[1].0.store(false, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(fleet.unavailability(), None, "its rest is over, though nobody called it");
}
