//! Records whether targets obey the limits they are given, and what follows for those that do not.

use tokio::time::Instant;

use crate::{BehaviorObservation, TargetBehavior};
use stint_types::units::Tokens;

use super::{Fleet, FlowId};

impl Fleet {
    /// What is known of a target's behavior, as it counts for the calls of this account.
    pub(super) fn behavior(&self, place: usize, flow: FlowId) -> TargetBehavior {
        let (seen, is_measured) = {
            let state = self.lock();
            let seen = state.behaviors.get(place).copied().unwrap_or_default().behavior(flow);
            (seen, state.targets.is_measured(place, Instant::now()))
        };
        let TargetBehavior { turns, never_thinks, answers_whole, .. } = self.backend(place).behavior();
        TargetBehavior { turns, never_thinks, answers_whole, is_measured, ..seen }
    }

    /// True if none of its targets has a chat template that knows of thoughts.
    pub fn never_thinks(&self) -> bool {
        (0..self.targets.len()).all(|place| self.backend(place).behavior().never_thinks)
    }

    /// The largest context among its targets, once each of them has reported its own.
    pub fn context(&self) -> Option<Tokens> {
        let each = (0..self.targets.len()).map(|place| self.backend(place).context());
        each.collect::<Option<Vec<Tokens>>>()?.into_iter().max()
    }

    /// A call of this account has shown something of its target.
    pub(super) fn observe(&self, place: usize, flow: FlowId, observation: BehaviorObservation) {
        if let Some(observed) = self.lock().behaviors.get_mut(place) {
            observed.record(flow, observation);
        }
        let (model, target) = (&*self.model, &**self.name(place));
        match observation {
            BehaviorObservation::Overran { written, limit, is_counted } => {
                self.metrics.backends.overruns.with_label_values(&[model, target]).inc();
                tracing::warn!(
                    model,
                    target,
                    written = written.0,
                    limit = limit.0,
                    "disconnected: it wrote beyond its limit; other targets are preferred from now on"
                );
                self.lock().targets.record_overrun(place, (!is_counted).then_some(flow), Instant::now());
            }
            BehaviorObservation::Counted { .. }
            | BehaviorObservation::ShowsThoughts
            | BehaviorObservation::ThinkingSwitched(_) => {}
        }
    }
}
