//! Counts the tokens of a request's prompt, for callers that ask for the count alone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use stint_backend::fleet::Fleet;
use stint_prompt as prompt;
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::Tokens;

use super::request::needs;
use super::{Gateway, RequestRefusal, key_scope};

/// How long an upstream may take to count. It is short, since a caller that counts does so before every turn.
const PATIENCE: Duration = Duration::from_secs(2);

/// A prompt's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptCount {
    /// How many.
    pub tokens: Tokens,
    /// True if nobody could count them: they are guessed by the length of the text.
    pub is_estimated: bool,
}

impl Gateway {
    /// The tokens of a request's prompt, as its model's tokenizer or its upstream counts them; a guess where neither can in
    /// time. Of several models that may serve it, those that are counted here decide, by the most; no upstream is asked then, nor where
    /// the tenant has nothing left.
    ///
    /// # Errors
    /// Where the key may name no such model.
    pub async fn count(&self, tenant: &Tenant, request: Request) -> Result<PromptCount, RequestRefusal> {
        let _place = self.state.acquire_admission()?;
        let catalog = &self.state.parts.catalog;
        let route = key_scope::route(catalog, &tenant.access, &request.model)
            .ok_or_else(|| self.state.unknown(tenant, &request.model))?;
        let needs = needs::of(&request);
        let able = catalog.candidates(&route).filter(|model| model.services.contains(&needs.service));
        let fleets: Vec<&Arc<Fleet>> =
            able.filter_map(|model| self.state.parts.fleets.get(&model.name)).collect();
        let request = Arc::new(request);
        // Who has nothing left, or is paused, sends no provider anything by this either.
        let may_ask = self.spent(tenant).await.is_none();
        let counted = match fleets[..] {
            [one] if may_ask => timeout(PATIENCE, one.count_prompt(&request)).await.ok().flatten(),
            _ => counted_here(&fleets, &request),
        };
        let guess =
            || PromptCount { tokens: prompt::token_estimate::prompt_tokens(&request), is_estimated: true };
        Ok(counted.map_or_else(guess, |tokens| PromptCount { tokens, is_estimated: false }))
    }
}

/// The most of those whose tokenizers are here.
fn counted_here(fleets: &[&Arc<Fleet>], request: &Request) -> Option<Tokens> {
    let exact = fleets.iter().filter(|fleet| fleet.counts_exactly());
    exact.map(|fleet| fleet.prompt_tokens(request)).max()
}
