//! What was learned, as plain data: written to the store, and read by other replicas.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::features::FEATURE_COUNT;
use super::model_state::ModelState;
use super::settings::Settings;
use super::token_ratios::TokenRatios;

/// The meaning of the numbers in a state; raised whenever it changes, and whenever a prior with other traits ships.
const VERSION: u32 = 6;

/// What one replica has learned from the outcomes that it saw itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedState {
    version: u32,
    features: usize,
    forget: f64,
    /// By model.
    pub(super) models: BTreeMap<Arc<str>, Arc<ModelState>>,
    /// How many tokens prompts have, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    prompts: BTreeMap<Arc<str>, TokenRatios>,
}

/// Why a state cannot be taken in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StateError {
    /// Written by another version of Stint.
    #[error(
        "learned state of version {found}, {features} features; this is version {VERSION}, {} features: let it be learned again, or run the version that wrote it",
        FEATURE_COUNT
    )]
    Version {
        /// Its version.
        found: u32,
        /// How many features it has.
        features: usize,
    },
    /// Learned at another rate of forgetting, so that its sums mean something else.
    #[error(
        "learned with forget = {found}; the settings say {expected}: set that again, or let it be learned again"
    )]
    Forget {
        /// Its rate.
        found: f64,
        /// Ours.
        expected: f64,
    },
    /// Damaged.
    #[error("what was learned about the model {0:?} is damaged: let it be learned again")]
    Damaged(Arc<str>),
    /// Not a state at all.
    #[error("what was learned cannot be read ({0}): let it be learned again")]
    Unreadable(String),
}

impl StateError {
    /// True if a gateway of another version, or with other settings, could take it in.
    pub fn is_of_others(&self) -> bool {
        match self {
            StateError::Version { .. } | StateError::Forget { .. } => true,
            StateError::Damaged(_) | StateError::Unreadable(_) => false,
        }
    }
}

/// What says whom a state is for, however the rest of it looks.
#[derive(Deserialize)]
struct StateHeader {
    version: u32,
    #[serde(default)]
    features: usize,
    #[serde(default)]
    forget: f64,
}

impl StateHeader {
    fn check(&self, settings: &Settings) -> Result<(), StateError> {
        if (self.version, self.features) != (VERSION, FEATURE_COUNT) {
            return Err(StateError::Version { found: self.version, features: self.features });
        }
        if (self.forget - settings.forget).abs() > 1e-9 {
            return Err(StateError::Forget { found: self.forget, expected: settings.forget });
        }
        Ok(())
    }
}

impl LearnedState {
    /// Nothing learned yet.
    pub(super) fn new(settings: &Settings) -> LearnedState {
        LearnedState {
            version: VERSION,
            features: FEATURE_COUNT,
            forget: settings.forget,
            models: BTreeMap::new(),
            prompts: BTreeMap::new(),
        }
    }

    /// Reads what was written down as JSON, where it can be taken in under these settings.
    ///
    /// # Errors
    /// When it cannot be read, or not be taken in: see [`LearnedState::check`].
    pub fn read(text: &str, settings: &Settings) -> Result<LearnedState, StateError> {
        let unreadable = |error: serde_json::Error| StateError::Unreadable(error.to_string());
        // Another version may have written all the rest in another form.
        serde_json::from_str::<StateHeader>(text).map_err(unreadable)?.check(settings)?;
        let state: LearnedState = serde_json::from_str(text).map_err(unreadable)?;
        state.check(settings)?;
        Ok(state)
    }

    /// Whether it can be taken in under these settings.
    ///
    /// # Errors
    /// When it was written by another version, at another rate of forgetting, or is damaged.
    pub fn check(&self, settings: &Settings) -> Result<(), StateError> {
        StateHeader { version: self.version, features: self.features, forget: self.forget }
            .check(settings)?;
        let models = self.models.iter().filter(|(_, model)| !model.is_sound()).map(|(name, _)| name);
        let prompts = self.prompts.iter().filter(|(_, ratios)| !ratios.is_sound()).map(|(name, _)| name);
        let damaged = models.chain(prompts).next();
        damaged.map_or(Ok(()), |name| Err(StateError::Damaged(name.clone())))
    }

    /// The same, with how many tokens prompts have.
    #[must_use]
    pub fn with_prompts(self, prompts: BTreeMap<Arc<str>, TokenRatios>) -> LearnedState {
        LearnedState { prompts, ..self }
    }

    /// How many tokens prompts have, by model.
    pub fn prompts(&self) -> &BTreeMap<Arc<str>, TokenRatios> {
        &self.prompts
    }

    /// Takes over what a replica has learned that is gone. Both must be sound: see [`LearnedState::check`].
    pub fn take_over(&mut self, gone: &LearnedState, settings: &Settings) {
        for (name, gone) in &gone.models {
            let own = self
                .models
                .entry(name.clone())
                .or_insert_with(|| Arc::new(ModelState::new(gone.prior_weight)));
            Arc::make_mut(own).take_over(gone, settings);
        }
        for (name, gone) in &gone.prompts {
            self.prompts.entry(name.clone()).or_default().merge(gone);
        }
    }
}
