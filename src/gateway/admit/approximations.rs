//! What a request asks for that no model of its own can do, and that is done in another way or left out: a schema is told in words to
//! a model that writes JSON, and penalties are left out. A model that was withdrawn from, since it refused, is not asked that way.

use std::sync::Arc;

use stint_types::catalog::{Capability, Model, Needs};
use stint_types::chat::Request;

/// A model as the operator declares it, and as it is known by now.
pub(super) type KnownModel<'m> = (&'m Arc<Model>, Arc<Model>);

/// The models as they are planned for a request.
pub(super) fn approximate(models: Vec<KnownModel<'_>>, needs: &Needs, request: &Request) -> Vec<Arc<Model>> {
    let is_held = |capability: Capability| models.iter().any(|(_, known)| known.has_capability(capability));
    let needed = needs.capabilities.iter().copied();
    let lacking: Vec<Capability> =
        needed.filter(|need| can_be_granted(*need, request) && !is_held(*need)).collect();
    models.into_iter().map(|(declared, known)| granted(declared, known, &lacking)).collect()
}

/// True if something else may stand for it. A bias says which tokens may come, so it is not left out.
fn can_be_granted(need: Capability, request: &Request) -> bool {
    match need {
        Capability::Schema => true,
        Capability::Penalties => {
            let bias = request.extra.get("logit_bias").and_then(serde_json::Value::as_object);
            bias.is_none_or(serde_json::Map::is_empty)
        }
        Capability::Tools | Capability::Images | Capability::Json | Capability::Logprobs => false,
    }
}

/// The model with what it does in another way.
fn granted(declared: &Model, known: Arc<Model>, lacking: &[Capability]) -> Arc<Model> {
    let does = |need: &Capability| {
        !declared.has_capability(*need)
            && (*need != Capability::Schema || known.has_capability(Capability::Json))
    };
    let more: Vec<Capability> = lacking.iter().copied().filter(does).collect();
    if more.is_empty() {
        return known;
    }
    let capabilities = known.capabilities.iter().copied().chain(more).collect();
    Arc::new(Model { capabilities, ..(*known).clone() })
}
