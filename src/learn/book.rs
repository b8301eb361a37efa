//! All that was learned, by model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Demand, ModelDemand, TaskClass};
use crate::units::Chance;

use super::model::{self, Believed, Mark};
use super::state::{ModelState, State, StateError};
use super::{Context, Lesson, Settings};

/// What this replica has learned, what it has heard of others, and what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    settings: Settings,
    own: State,
    /// What the others have learned, added up.
    others: BTreeMap<Arc<str>, ModelState>,
    believed: BTreeMap<Arc<str>, Believed>,
}

impl Book {
    /// Nothing learned yet: the prior is believed.
    pub fn new(settings: Settings) -> Book {
        Book { settings, own: State::new(&settings), others: BTreeMap::new(), believed: BTreeMap::new() }
    }

    /// Goes on from what this replica had learned before.
    ///
    /// # Errors
    /// When the state cannot be taken in: see [`State::check`].
    pub fn resume(settings: Settings, own: State) -> Result<Book, StateError> {
        own.check(&settings)?;
        let mut book = Book { own, ..Book::new(settings) };
        book.believe_all();
        Ok(book)
    }

    /// Turns the prior's predictions into what is believed now, and sets each model's `spread`. A model without
    /// outcomes keeps its prediction, with a spread as wide as its prior is unsure: it is worth a try. Allocates
    /// nothing.
    pub fn adjust(&self, demand: &mut Demand) {
        let context = Context::of(demand);
        let class = demand.class;
        for (name, model) in &mut demand.models {
            match self.believed.get(name) {
                Some(believed) => believed.adjust(&context, class, model),
                None => model.spread = self.ignorance(&context, class, model),
            }
        }
    }

    /// Takes in one outcome.
    pub fn observe(&mut self, lesson: &Lesson) {
        self.take_in(lesson);
    }

    fn take_in(&mut self, lesson: &Lesson) -> Option<Mark> {
        let name = &lesson.model;
        if !self.own.models.contains_key(name) {
            let weight =
                model::prior_weight(&lesson.context, lesson.class, &lesson.predicted, &self.settings);
            self.own.models.insert(name.clone(), ModelState::new(weight));
            self.believe(name);
        }
        let (state, believed) = (self.own.models.get_mut(name)?, self.believed.get(name)?);
        let mark = state.observe(lesson, believed, &self.settings);
        self.learned(name);
        mark
    }

    /// Takes in what is said of an answer whose own outcome was taken in before; the mark by which it can be taken back
    /// comes back. A lesson without a word on success changes nothing.
    pub fn judge(&mut self, lesson: &Lesson) -> Option<Mark> {
        let name = &lesson.model;
        let (Some(state), Some(believed)) = (self.own.models.get_mut(name), self.believed.get(name)) else {
            // Another replica had the outcome, or it was long ago.
            return self.take_in(lesson);
        };
        let mark = state.judged_later(lesson, believed, &self.settings);
        self.learned(name);
        mark
    }

    /// Puts what is said of an answer in place of what the same source said of it `before`, with the mark of that, where it
    /// is known. False where that changes nothing: there is no word on success, it weighs nothing, or nothing is left of what
    /// was said before.
    pub fn amend(&mut self, lesson: &Lesson, before: Chance, mark: Option<Mark>) -> bool {
        let name = &lesson.model;
        let (Some(state), Some(believed)) = (self.own.models.get_mut(name), self.believed.get(name)) else {
            return false;
        };
        let is_amended = state.amend(lesson, before, mark, believed, &self.settings);
        self.learned(name);
        is_amended
    }

    /// Takes over what replicas have learned that are gone. What cannot be taken in is left out.
    pub fn take_over(&mut self, gone: &[State]) {
        for state in gone.iter().filter(|state| state.check(&self.settings).is_ok()) {
            self.own.take_over(state, &self.settings);
        }
        self.believe_all();
    }

    /// What this replica has learned itself: to be stored, and shown to others.
    pub fn own(&self) -> State {
        self.own.clone()
    }

    /// Takes in what the others have learned, in any order, in place of what was known of them. What cannot be taken
    /// in is left out.
    ///
    /// # Errors
    /// The first state that was left out: see [`State::check`].
    pub fn with_others(&mut self, others: Vec<State>) -> Result<(), StateError> {
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
                self.hear(&name, &sound);
            }
        }
        self.believe_all();
        checked
    }

    /// Adds up what others know of a model, and lets what is known here fade by what they saw meanwhile. The last alarm that
    /// any of them has raised is heeded by all.
    fn hear(&mut self, name: &Arc<str>, others: &[State]) {
        let mut known: Vec<ModelState> =
            others.iter().filter_map(|state| state.models.get(name).cloned()).collect();
        let forget = self.settings.forget();
        let least = known.iter().map(|state| state.prior_weight).fold(self.settings.prior_weight, f64::min);
        let own = self.own.models.entry(name.clone()).or_insert_with(|| ModelState::new(least));
        let alarms = known.iter().map(|state| state.alarms).fold(own.alarms, u32::max);
        own.heed(alarms, &self.settings);
        known.iter_mut().for_each(|state| state.heed(alarms, &self.settings));
        let judged = own.judged.gathered(known.iter().map(|state| &state.judged), forget);
        let seen = own.seen.gathered(known.iter().map(|state| &state.seen), forget);
        own.hear(&judged, &seen, forget);
        self.others.insert(name.clone(), ModelState { judged, seen, ..own.clone() });
    }

    /// Something was learned here: an alarm may have been raised, which goes for what others know too.
    fn learned(&mut self, name: &Arc<str>) {
        if let (Some(own), Some(others)) = (self.own.models.get(name), self.others.get_mut(name)) {
            others.heed(own.alarms, &self.settings);
        }
        self.believe(name);
    }

    fn believe_all(&mut self) {
        let names: Vec<Arc<str>> = self.own.models.keys().cloned().collect();
        names.iter().for_each(|name| self.believe(name));
    }

    fn believe(&mut self, name: &Arc<str>) {
        if let Some(state) = self.own.models.get(name) {
            let believed = Believed::of(state, self.others.get(name), &self.settings);
            self.believed.insert(name.clone(), believed);
        }
    }

    fn ignorance(&self, context: &Context, class: TaskClass, model: &ModelDemand) -> f64 {
        let square: f64 = context.row(class, model, 1.0).iter().map(|x| x * x).sum();
        let outcomes = model::prior_weight(context, class, model, &self.settings);
        self.settings.boldness(outcomes) * (0.25 * square / outcomes).sqrt()
    }
}
