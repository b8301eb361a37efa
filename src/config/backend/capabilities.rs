//! What follows from a model's capabilities, when all that is said of it has been read.

use stint_types::catalog::Capability;

use super::declared_model::DeclaredModel;
use super::kind::BackendKind;
use super::model_source::ModelSource;

/// Adds what a capability implies, and tells who speaks to the model what it can be sent.
pub(super) fn settle(mut declared: DeclaredModel) -> DeclaredModel {
    let DeclaredModel { kind, config, model, .. } = &mut declared;
    // Every Claude writes JSON where it is asked to in words.
    let writes_json = *kind == BackendKind::Anthropic || model.has_capability(Capability::Json);
    if writes_json && !model.capabilities.contains(&Capability::Json) {
        model.capabilities.push(Capability::Json);
    }
    let upstream = config.source.model_mut().cloned().unwrap_or_default();
    let reads_files =
        model.has_capability(Capability::Images) && kind.reads_files(config.host.as_deref(), &upstream);
    if reads_files && !model.has_capability(Capability::Documents) {
        model.capabilities.push(Capability::Documents);
    }
    let schemas = model.has_capability(Capability::Schema);
    // These two take penalties, and only no biases.
    let penalties = model.has_capability(Capability::Penalties)
        || matches!(kind, BackendKind::DeepSeek | BackendKind::Mistral);
    match &mut config.source {
        ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => {
            (settings.schemas, settings.penalties) = (schemas, penalties);
        }
        ModelSource::Anthropic(settings) => settings.schemas = schemas,
        ModelSource::Gemini(settings) => settings.penalties = penalties,
        ModelSource::Embedded(_)
        | ModelSource::File(..)
        | ModelSource::LlamaCpp(_)
        | ModelSource::Responses(_) => {}
    }
    declared
}
