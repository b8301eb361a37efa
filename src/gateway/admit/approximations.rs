//! What a request asks for that no model of its own can do, and that is done in another way or left out: a schema is told in words to
//! a model that writes JSON, and penalties are left out. A model that was withdrawn from, since it refused, is not asked that way.

use std::sync::Arc;

use stint_types::catalog::{Capability, Model, Needs};
use stint_types::chat::Request;

/// The models as they are planned for a request, given each as the operator declares it and as it is known by now.
pub(super) fn approximate(
    models: Vec<(&Arc<Model>, Arc<Model>)>,
    needs: &Needs,
    request: &Request,
) -> Vec<Arc<Model>> {
    let needed = || needs.capabilities.iter().copied();
    let is_able = |known: &Model| needed().all(|need| known.has_capability(need));
    if models.iter().any(|(_, known)| is_able(known)) {
        return models.into_iter().map(|(_, known)| known).collect();
    }
    let granted: Vec<Capability> = needed().filter(|need| can_be_granted(*need, request)).collect();
    models.into_iter().map(|(declared, known)| grant(declared, known, &granted)).collect()
}

/// True if something else may stand for it. A bias says which tokens may come, so it is not left out.
fn can_be_granted(need: Capability, request: &Request) -> bool {
    match need {
        Capability::Schema => true,
        Capability::Penalties => {
            let bias = request.extra.get("logit_bias").and_then(serde_json::Value::as_object);
            bias.is_none_or(serde_json::Map::is_empty)
        }
        Capability::Tools
        | Capability::Images
        | Capability::Documents
        | Capability::Json
        | Capability::Logprobs => false,
    }
}

/// The model with what it does in another way.
fn grant(declared: &Model, known: Arc<Model>, granted: &[Capability]) -> Arc<Model> {
    let does = |need: &Capability| {
        !declared.has_capability(*need)
            && (*need != Capability::Schema || known.has_capability(Capability::Json))
    };
    let more: Vec<Capability> = granted.iter().copied().filter(does).collect();
    if more.is_empty() {
        return known;
    }
    let capabilities = known.capabilities.iter().copied().chain(more).collect();
    Arc::new(Model { capabilities, ..(*known).clone() })
}
