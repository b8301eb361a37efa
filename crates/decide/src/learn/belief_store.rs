//! All that was learned, by model.

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_types::catalog::Demand;
use stint_types::units::Chance;

use super::belief_snapshot::BeliefSnapshot;
use super::model_belief::{ModelBelief, prior_weight};
use super::model_state::ModelState;
use super::observation::{self, Beliefs, JudgementMark};
use super::outcome_sample::OutcomeSample;
use super::repeats::Repeats;
use super::settings::Settings;
use super::shared_sums::SharedSums;
use super::state::{LearnedState, StateError};

/// What this replica has learned, what others have learned, and what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct BeliefStore {
    settings: Settings,
    own: LearnedState,
    /// What the others have learned, added up.
    others: BTreeMap<Arc<str>, Arc<ModelState>>,
    /// What all outcomes say of the weights that all models share.
    shared: SharedSums,
    repeats: Repeats,
    believed: BeliefSnapshot,
}

impl BeliefStore {
    /// Nothing learned yet: the prior is believed.
    pub fn new(settings: Settings) -> BeliefStore {
        BeliefStore {
            settings,
            own: LearnedState::new(&settings),
            others: BTreeMap::new(),
            shared: SharedSums::new(&settings),
            repeats: Repeats::default(),
            believed: BeliefSnapshot::new(settings),
        }
    }

    /// Goes on from what this replica had learned before.
    ///
    /// # Errors
    /// When the state cannot be taken in: see [`LearnedState::check`].
    pub fn resume(settings: Settings, own: LearnedState) -> Result<BeliefStore, StateError> {
        own.check(&settings)?;
        let mut store = BeliefStore { own, ..BeliefStore::new(settings) };
        store.update_all_beliefs();
        Ok(store)
    }

    /// Turns the prior's predictions into what is believed now: see [`BeliefSnapshot::adjust`].
    pub fn adjust(&self, demand: &mut Demand) {
        self.believed.adjust(demand);
    }

    /// What is believed now. It shares what does not change, so that it is cheap to hand out after every outcome.
    pub fn snapshot(&self) -> BeliefSnapshot {
        self.believed.clone()
    }

    /// Takes in one outcome.
    pub fn observe(&mut self, sample: &OutcomeSample) {
        self.learn(sample);
    }

    fn learn(&mut self, sample: &OutcomeSample) -> Option<JudgementMark> {
        let name = &sample.model;
        if !self.own.models.contains_key(name) {
            let weight = prior_weight(&sample.predicted, &self.settings);
            self.own.models.insert(name.clone(), Arc::new(ModelState::new(weight)));
            self.update_belief(name);
        }
        let (state, model) = (self.own.models.get_mut(name)?, self.believed.models.get(name)?);
        let beliefs = Beliefs { model, shared: self.believed.shared() };
        let sample = (sample, self.repeats.note(sample));
        let mark = observation::observe(Arc::make_mut(state), sample, beliefs, &self.settings);
        match mark {
            Some(_) => self.model_updated(name),
            None => self.update_lengths(name),
        }
        mark
    }

    /// Learns a verdict on an answer whose own outcome was learned before; the mark by which it can be taken back
    /// comes back. A sample without a word on success changes nothing.
    pub fn judge(&mut self, sample: &OutcomeSample) -> Option<JudgementMark> {
        let name = &sample.model;
        let (Some(state), Some(model)) = (self.own.models.get_mut(name), self.believed.models.get(name))
        else {
            // Another replica had the outcome, or it was long ago.
            return self.learn(sample);
        };
        let beliefs = Beliefs { model, shared: self.believed.shared() };
        let mark = observation::observe_judgement(Arc::make_mut(state), sample, beliefs, &self.settings);
        self.model_updated(name);
        mark
    }

    /// Replaces the verdict `before` of the same source by a new verdict on the same answer, with the mark of that, where
    /// it is known. False if that changes nothing: there is no word on success, it weighs nothing, or nothing is left of
    /// what was said before.
    pub fn amend(&mut self, sample: &OutcomeSample, before: Chance, mark: Option<JudgementMark>) -> bool {
        let name = &sample.model;
        let (Some(state), Some(model)) = (self.own.models.get_mut(name), self.believed.models.get(name))
        else {
            return false;
        };
        let (state, beliefs) = (Arc::make_mut(state), Beliefs { model, shared: self.believed.shared() });
        let is_amended = observation::amend(state, sample, before, mark, beliefs, &self.settings);
        self.model_updated(name);
        is_amended
    }

    /// Takes over what replicas have learned that are gone. What cannot be taken in is left out.
    pub fn take_over(&mut self, gone: &[LearnedState]) {
        for state in gone.iter().filter(|state| state.check(&self.settings).is_ok()) {
            self.own.take_over(state, &self.settings);
        }
        self.update_all_beliefs();
    }

    /// How many alarms that a model has changed were raised or heeded here.
    pub fn alarms(&self, model: &str) -> u32 {
        self.own.models.get(model).map_or(0, |state| state.alarms)
    }

    /// What this replica has learned itself: to be stored, and shown to others.
    pub fn own_state(&self) -> LearnedState {
        self.own.clone()
    }

    /// Takes in what the others have learned, in any order, in place of what was known of them. What cannot be taken
    /// in is left out.
    ///
    /// # Errors
    /// The first state that was left out: see [`LearnedState::check`].
    pub fn with_others(&mut self, others: Vec<LearnedState>) -> Result<(), StateError> {
        let (mut sound, mut checked) = (Vec::new(), Ok(()));
        for state in others {
            match state.check(&self.settings) {
                Ok(()) => sound.push(state),
                Err(fault) => checked = checked.and(Err(fault)),
            }
        }
        self.others.clear();
        let names: Vec<Arc<str>> = sound
            .iter()
            .flat_map(|state| state.models.keys().cloned())
            .chain(self.own.models.keys().cloned())
            .collect();
        for name in names {
            if !self.others.contains_key(&name) {
                self.merge_others(&name, &sound);
            }
        }
        self.update_all_beliefs();
        checked
    }

    /// Adds up what others know of a model, and lets what is known here fade by what they saw meanwhile. The last alarm that
    /// any of them has raised is heeded by all.
    fn merge_others(&mut self, name: &Arc<str>, others: &[LearnedState]) {
        let mut known: Vec<ModelState> =
            others.iter().filter_map(|state| state.models.get(name).map(|known| (**known).clone())).collect();
        let forget = self.settings.forget();
        let least = known.iter().map(|state| state.prior_weight).fold(self.settings.prior_weight, f64::min);
        let own = self.own.models.entry(name.clone()).or_insert_with(|| Arc::new(ModelState::new(least)));
        let own = Arc::make_mut(own);
        let alarms = known.iter().map(|state| state.alarms).fold(own.alarms, u32::max);
        own.apply_alarm(alarms, &self.settings);
        known.iter_mut().for_each(|state| state.apply_alarm(alarms, &self.settings));
        let judged = own.judged.merged(known.iter().map(|state| &state.judged), forget);
        let seen = own.seen.merged(known.iter().map(|state| &state.seen), forget);
        own.apply_remote_ticks(&judged, &seen, forget);
        if known.is_empty() {
            return;
        }
        let others = ModelState { judged, seen, prior_weight: own.prior_weight, alarm: own.alarm, alarms };
        self.others.insert(name.clone(), Arc::new(others));
    }

    /// Something was learned here: an alarm may have been raised, which goes for what others know too.
    fn model_updated(&mut self, name: &Arc<str>) {
        if let (Some(own), Some(others)) = (self.own.models.get(name), self.others.get_mut(name)) {
            Arc::make_mut(others).apply_alarm(own.alarms, &self.settings);
        }
        self.update_belief(name);
    }

    /// An outcome was seen that nobody has judged: nothing follows from it but lengths.
    fn update_lengths(&mut self, name: &Arc<str>) {
        let (Some(state), Some(believed)) = (self.own.models.get(name), self.believed.models.get_mut(name))
        else {
            return;
        };
        if !believed.lengths_are_due(state) {
            return;
        }
        let others = self.others.get(name).map(|others| &**others);
        let levels = Arc::make_mut(&mut self.believed.levels);
        let mut updated = believed.with_lengths(state, others, &self.settings);
        levels.replace(name, Some(&believed.evidence()), &updated.evidence());
        updated.update_tails(levels);
        *believed = Arc::new(updated);
    }

    /// What one model's outcomes say of others goes into all of them only after everything was added up, so that no order matters.
    fn update_all_beliefs(&mut self) {
        let names: Vec<Arc<str>> = self.own.models.keys().cloned().collect();
        names.iter().for_each(|name| self.update_belief(name));
        let levels = &self.believed.levels;
        self.believed.models.values_mut().for_each(|believed| Arc::make_mut(believed).update_tails(levels));
    }

    fn update_belief(&mut self, name: &Arc<str>) {
        let Some(state) = self.own.models.get(name) else { return };
        let others = self.others.get(name).map(|others| &**others);
        let mut updated = ModelBelief::of(state, others, &self.settings);
        let before = self.believed.models.get(name);
        let levels = Arc::make_mut(&mut self.believed.levels);
        levels.replace(name, before.map(|before| before.evidence()).as_ref(), &updated.evidence());
        updated.update_tails(levels);
        let shared = Arc::make_mut(&mut self.believed.success);
        self.shared.replace(before.map(|before| &*before.success), &updated.success, shared);
        self.believed.models.insert(name.clone(), Arc::new(updated));
    }
}
