//! How many tokens a conversation would be read as.

use crate::chat::Request;
use crate::tenant::Tenant;
use crate::units::Tokens;

use super::{Gateway, Refusal, needs, scope};

impl Gateway {
    /// The tokens of a request's prompt, an upper bound where a model's tokenizer is not known: the most of all models
    /// that may serve it.
    ///
    /// # Errors
    /// Where the key may name no such model.
    pub fn count(&self, tenant: &Tenant, request: &Request) -> Result<Tokens, Refusal> {
        let _place = self.place()?;
        let catalog = &self.parts.catalog;
        let route = scope::route(catalog, &tenant.access, &request.model)
            .ok_or_else(|| self.unknown(tenant, &request.model))?;
        let needs = needs::of(request);
        let able = catalog.candidates(&route).filter(|model| model.services.contains(&needs.service));
        let fleets = able.filter_map(|model| self.parts.fleets.get(&model.name));
        Ok(fleets.map(|fleet| fleet.prompt_tokens(request)).max().unwrap_or(Tokens::ZERO))
    }
}
