//! Fleets that a reload replaced and whose last answers still run: their calls are under way like any others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use stint_backend::fleet::Fleet;
use stint_types::metrics::Metrics;

/// A target of a model, as series are labelled.
type TargetLabels = (Arc<str>, Arc<str>);

/// The fleets of earlier configurations. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct RetiredFleets(Arc<Mutex<Vec<RetiredFleet>>>);

#[derive(Debug)]
struct RetiredFleet {
    model: Arc<str>,
    targets: Vec<Arc<str>>,
    /// Its calls keep it.
    fleet: Weak<Fleet>,
}

impl RetiredFleets {
    /// One that gets no more calls.
    pub(super) fn add(&self, model: &Arc<str>, fleet: &Arc<Fleet>) {
        let targets = fleet.in_flight().map(|(target, _)| target).collect();
        let retired = RetiredFleet { model: model.clone(), targets, fleet: Arc::downgrade(fleet) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
    }

    /// Shows the calls that are under way on them together with those of the fleets that took their place. Without any such
    /// fleet their series end with their calls.
    pub(super) fn refresh(&self, current: &BTreeMap<Arc<str>, Arc<Fleet>>, metrics: &Metrics) {
        let mut retired = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls = BTreeMap::<TargetLabels, Option<u32>>::new();
        for gone in retired.iter() {
            gone.targets.iter().for_each(|target| {
                calls.entry((gone.model.clone(), target.clone())).or_default();
            });
            let Some(fleet) = gone.fleet.upgrade() else { continue };
            add_calls(&mut calls, &gone.model, &fleet);
        }
        for (model, fleet) in
            current.iter().filter(|(model, _)| retired.iter().any(|gone| gone.model == **model))
        {
            add_calls(&mut calls, model, fleet);
        }
        for ((model, target), calls) in &calls {
            let (gauge, labels) = (&metrics.backends.in_flight, &[&**model, &**target]);
            match calls {
                Some(calls) => gauge.with_label_values(labels).set(i64::from(*calls)),
                // A series that was never set need not be removed.
                None => drop(gauge.remove_label_values(labels)),
            }
        }
        retired.retain(|gone| gone.fleet.strong_count() > 0);
    }
}

fn add_calls(calls: &mut BTreeMap<TargetLabels, Option<u32>>, model: &Arc<str>, fleet: &Fleet) {
    for (target, more) in fleet.in_flight() {
        *calls.entry((model.clone(), target)).or_default().get_or_insert_default() += more;
    }
}
