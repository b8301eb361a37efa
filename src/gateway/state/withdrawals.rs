//! Capabilities that are withdrawn from models for a while: an upstream refused them to a trial request of our own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use stint_types::catalog::{Capability, Catalog, Model};

/// How long a refused capability is not offered, and how long one that was not refused is not tried again.
const COOLDOWN: Duration = Duration::from_secs(600);

/// A feature that a model may turn out not to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SuspectFeature {
    /// That its upstream has a capability.
    Capability(Capability),
    /// That it takes a thinking budget of its own.
    Budget,
}

/// Which features were tried on which models, and which of them were refused.
#[derive(Debug, Default)]
pub(crate) struct Withdrawals {
    tried: DashMap<(Arc<str>, SuspectFeature), TrialState>,
    /// True once a capability was withdrawn, which stays. Every request asks, and to ask the map goes through its locks.
    any: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct TrialState {
    until: Instant,
    refused: bool,
}

impl Withdrawals {
    /// The model without the capabilities that are withdrawn now.
    pub(crate) fn apply(&self, model: Arc<Model>) -> Arc<Model> {
        let is_left = |capability: &Capability| !self.is_withdrawn(&model, *capability);
        if !self.any.load(Ordering::Acquire) || model.capabilities.iter().all(is_left) {
            return model;
        }
        let capabilities = model.capabilities.iter().copied().filter(is_left).collect();
        Arc::new(Model { capabilities, ..(*model).clone() })
    }

    fn is_withdrawn(&self, model: &Model, capability: Capability) -> bool {
        let tried = self.tried.get(&(model.name.clone(), SuspectFeature::Capability(capability)));
        tried.is_some_and(|tried| tried.refused && Instant::now() < tried.until)
    }

    /// Whether a doubted feature of a model may be tried now. After `true`, other callers get `false` for a while.
    pub(crate) fn may_try(&self, model: &Arc<str>, suspect: SuspectFeature) -> bool {
        let now = Instant::now();
        let mut tried =
            self.tried.entry((model.clone(), suspect)).or_insert(TrialState { until: now, refused: false });
        let may = tried.until <= now;
        if may {
            *tried = TrialState { until: now + COOLDOWN, refused: false };
        }
        may
    }

    /// Stops offering a capability for a while.
    pub(crate) fn withdraw(&self, model: &Arc<str>, capability: Capability) {
        let tried = TrialState { until: Instant::now() + COOLDOWN, refused: true };
        self.tried.insert((model.clone(), SuspectFeature::Capability(capability)), tried);
        self.any.store(true, Ordering::Release);
    }

    /// What was found out about models that are the same in both catalogues, for the gateway after a reload.
    pub(crate) fn carry_over(&self, before: &Catalog, after: &Catalog) -> Withdrawals {
        let is_same = |name: &str| before.models.get(name) == after.models.get(name);
        let same = self.tried.iter().filter(|entry| is_same(&entry.key().0));
        let tried: DashMap<_, _> = same.map(|entry| (entry.key().clone(), *entry.value())).collect();
        let any = tried.iter().any(|entry| entry.refused);
        Withdrawals { any: AtomicBool::new(any), tried }
    }
}
