//! About how many tokens prompts have for each model, by what upstreams reported of others. Each replica
//! learns for itself; what it learned is saved with the beliefs, and the next process begins with what all have saved.

use std::collections::BTreeMap;
use std::sync::Arc;

use dashmap::DashMap;

use stint_decide::learn::TokenRatios;
use stint_types::catalog::PromptText;
use stint_types::units::Tokens;

/// The ratios of all models. No lock is held across anything that waits.
#[derive(Debug, Default)]
pub(crate) struct PromptRatios(DashMap<Arc<str>, TokenRatios>);

impl PromptRatios {
    /// About how many tokens a prompt has for a model.
    pub(crate) fn expected(&self, model: &str, text: &PromptText) -> Tokens {
        let known = self.0.get(model).map(|known| *known);
        known.unwrap_or_default().expected(text)
    }

    /// What is known now.
    pub(super) fn snapshot(&self) -> BTreeMap<Arc<str>, TokenRatios> {
        self.0.iter().map(|known| (known.key().clone(), *known.value())).collect()
    }

    /// Takes in what another process had learned that is gone.
    pub(super) fn take_over(&self, gone: &BTreeMap<Arc<str>, TokenRatios>) {
        for (model, ratios) in gone {
            self.0.entry(model.clone()).or_default().merge(ratios);
        }
    }

    /// A model of the catalog has reported so many tokens of a prompt.
    pub(crate) fn record(&self, model: &Arc<str>, text: &PromptText, reported: Tokens) {
        self.0.entry(model.clone()).or_default().record(text, reported);
    }
}
