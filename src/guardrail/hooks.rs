//! All hooks of a configuration.

use std::sync::Arc;

use stint_types::metrics::Metrics;
use stint_types::units::AccountId;

use super::chain::GuardrailChain;
use super::hook::Hook;
use super::settings::GuardrailSettings;

/// The hooks that judge requests and answers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Guardrails {
    hooks: Arc<[Arc<Hook>]>,
}

/// Why hooks cannot be called.
#[derive(Debug, thiserror::Error)]
#[error("the client that calls guardrails cannot be made")]
pub struct GuardrailsError(#[source] reqwest::Error);

impl Guardrails {
    /// These hooks, in their order.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn new(
        settings: &[GuardrailSettings],
        metrics: &Arc<Metrics>,
    ) -> Result<Guardrails, GuardrailsError> {
        let hooks = settings.iter().map(|one| Hook::new(one.clone(), metrics.clone()).map(Arc::new));
        Ok(Guardrails { hooks: hooks.collect::<Result<_, _>>().map_err(GuardrailsError)? })
    }

    /// Those that judge a request of this account for this name.
    pub fn chain(&self, account: &AccountId, model: &str) -> Option<GuardrailChain> {
        let is_judge = |hook: &&Arc<Hook>| {
            let GuardrailSettings { models, accounts, .. } = &hook.settings;
            (models.is_empty() || models.iter().any(|name| name == model))
                && (accounts.is_empty() || accounts.iter().any(|tree| tree.contains(account)))
        };
        let hooks: Vec<_> = self.hooks.iter().filter(is_judge).cloned().collect();
        (!hooks.is_empty()).then(|| GuardrailChain { account: account.clone(), hooks })
    }
}
