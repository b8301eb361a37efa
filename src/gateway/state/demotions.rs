//! Corrected descriptions of models that do not behave as configured. If a model's own thinking budget did not hold, the
//! model is offered with the next strongest enforcement class. If a model thinks although its configuration does not say
//! so, it is offered with room for the thought.
//!
//! A provider's budget is trusted only while the counted tokens agree with it: engines drop the parameter silently when a
//! flag, a parser or a model changes. A demotion lasts until the gateway restarts, or until the configuration of the model
//! changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;

use stint_types::catalog::{Catalog, EnforcementClass, HandOff, Model};
use stint_types::units::Tokens;

/// The room for the thoughts of a model that is known to think, and nothing more.
const THINKING_HEADROOM: Tokens = Tokens(2048);

/// The corrected models, by name.
#[derive(Debug, Default)]
pub(crate) struct Demotions {
    models: DashMap<Arc<str>, Arc<Model>>,
    /// True once there is one, which stays. Every request asks, and to ask the map goes through all of its locks.
    any: AtomicBool,
}

impl Demotions {
    /// The model as it may be offered now.
    pub(crate) fn apply(&self, model: &Arc<Model>) -> Arc<Model> {
        if !self.any.load(Ordering::Acquire) {
            return model.clone();
        }
        self.models.get(&model.name).map_or_else(|| model.clone(), |demoted| demoted.clone())
    }

    /// What was found out about models that are the same in both catalogues.
    pub(crate) fn carry_over(&self, before: &Catalog, after: &Catalog) -> Demotions {
        let is_same = |name: &str| before.models.get(name) == after.models.get(name);
        let same = self.models.iter().filter(|entry| is_same(entry.key()));
        let models: DashMap<_, _> = same.map(|entry| (entry.key().clone(), entry.value().clone())).collect();
        Demotions { any: AtomicBool::new(!models.is_empty()), models }
    }

    /// Corrects a model; true if it was not corrected before.
    fn insert(&self, name: &Arc<str>, corrected: Model) -> bool {
        let is_new = self.models.insert(name.clone(), Arc::new(corrected)).is_none();
        self.any.store(true, Ordering::Release);
        is_new
    }

    /// The native budget of a model did not hold. The class that holds it from now on, where this is news and there
    /// is another.
    pub(crate) fn demote(&self, model: &Model) -> Option<EnforcementClass> {
        if self.models.contains_key(&model.name) {
            return None;
        }
        let classes: Vec<EnforcementClass> =
            model.classes.iter().copied().filter(|class| *class != EnforcementClass::Native).collect();
        let next = *classes.first()?;
        self.insert(&model.name, Model { classes, ..model.clone() }).then_some(next)
    }

    /// The chat template of a model knows of no thoughts: it is offered as one that has none from now on. True if this is
    /// news.
    pub(crate) fn mark_non_thinking(&self, model: &Model) -> bool {
        if model.thinking_max == Tokens::ZERO || self.models.contains_key(&model.name) {
            return false;
        }
        let mut classes = model.classes.clone();
        if classes.iter().any(|class| *class != EnforcementClass::Continue) {
            classes.retain(|class| *class != EnforcementClass::Continue);
        }
        let hand_off =
            HandOff { text: String::new(), overhead: Tokens::ZERO, overhead_without_thought: Tokens::ZERO };
        let plain = Model { thinking_max: Tokens::ZERO, classes, hand_off, ..model.clone() };
        self.insert(&model.name, plain)
    }

    /// A model that was not known to think thinks: if this is new, so much is reserved for its thoughts from now on.
    pub(crate) fn mark_thinking(&self, model: &Model, used: Tokens) -> Option<Tokens> {
        let found = self.models.get(&model.name).map(|found| found.clone());
        let known = found.as_deref().unwrap_or(model);
        if known.thinking_max > Tokens::ZERO {
            return None;
        }
        let thinking_max = (used * 2).max(THINKING_HEADROOM);
        let mut classes = known.classes.clone();
        if found.is_some() && classes.contains(&EnforcementClass::Turn) {
            // A server whose template has no words for a thought does not hold one.
            classes.retain(|class| *class != EnforcementClass::Native);
        }
        let hand_off = model.hand_off.clone();
        let discovered = Model { thinking_max, classes, hand_off, ..known.clone() };
        self.insert(&model.name, discovered);
        Some(thinking_max)
    }
}
