//! One backend from its configuration: a client of an upstream, or a local model in its engine. The model registry makes fleets
//! of them; `stint probe` makes one alone.

use std::sync::Arc;

use crate::config::{Deployment, EngineSettings, ModelConfig, ModelSource};
use stint_backend::Backend;
use stint_backend::fleet;
use stint_backend::remote::Connections;
use stint_backend::remote::anthropic::AnthropicBackend;
use stint_backend::remote::gemini::GeminiBackend;
use stint_backend::remote::llamacpp::LlamaCppBackend;
use stint_backend::remote::openai::OpenAiBackend;
use stint_backend::remote::responses::OpenAiResponsesBackend;
use stint_backend::remote::vllm::VllmBackend;
use stint_types::catalog::Model;

use super::engine_limits;
use super::engines::{self, EngineContext, EngineRegistry, LoadedModel, WeightsSpec};
use super::error::ModelError;

/// Where a model's answers come from at one of its deployments.
pub(super) fn deployment_source(
    model: &ModelConfig,
    deployment: &Deployment,
    resilience: &fleet::Settings,
) -> ModelSource {
    let mut deployment = deployment.clone();
    deployment.client.sent_too = resilience.retry.sent_too;
    model.source.at_deployment(&deployment)
}

/// The backend of one model alone, at its first deployment; and the model, with the limits of its engine. It is for questions of
/// our own, so its failures have the upstream's words.
pub(super) fn single_backend(
    engine: &EngineSettings,
    served: &ModelConfig,
    model: &Arc<Model>,
) -> Result<(Arc<dyn Backend>, Arc<Model>), ModelError> {
    let source = match served.deployments.first() {
        Some(deployment) => {
            let mut deployment = deployment.clone();
            deployment.client.logs_messages = true;
            served.source.at_deployment(&deployment)
        }
        None => served.source.clone(),
    };
    let (mut local, mut model) = (None, model.clone());
    let engines = EngineRegistry::default();
    let context = EngineContext { settings: engine, engines: &engines, metrics: None, memory_taken: 0 };
    let backend = build_backend(context, &served.name, &source, &mut local, &Connections::default())?;
    if let Some(local) = local {
        engine_limits::apply_engine_limits(Arc::make_mut(&mut model), served.context, local.limits);
    }
    Ok((backend, model))
}

/// A local model runs in the engine that is given; where none is, in a new one, which is given back.
pub(super) fn build_backend(
    context: EngineContext<'_>,
    name: &Arc<str>,
    source: &ModelSource,
    loaded: &mut Option<LoadedModel>,
    connections: &Connections,
) -> Result<Arc<dyn Backend>, ModelError> {
    Ok(match source {
        ModelSource::OpenAi(upstream) => Arc::new(OpenAiBackend::new(connections, upstream.clone())?),
        ModelSource::Vllm(upstream) => Arc::new(VllmBackend::new(connections, upstream.clone())?),
        ModelSource::LlamaCpp(upstream) => Arc::new(LlamaCppBackend::new(connections, upstream.clone())?),
        ModelSource::Anthropic(upstream) => Arc::new(AnthropicBackend::new(connections, upstream.clone())?),
        ModelSource::Gemini(upstream) => Arc::new(GeminiBackend::new(connections, upstream.clone())?),
        ModelSource::Responses(upstream) => {
            Arc::new(OpenAiResponsesBackend::new(connections, upstream.clone())?)
        }
        ModelSource::Embedded(local) => {
            engines::load_local(context, WeightsSpec::embedded(context.settings), name, local, loaded)?
        }
        ModelSource::File(path, local) => {
            engines::load_local(context, WeightsSpec::in_file(path, context.settings), name, local, loaded)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn check(toml: &str, sent_too: bool) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let backend = "[[backend]]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"m\"]\n";
        std::fs::write(file.path(), format!("{toml}\n[engine]\nembedded = false\n{backend}")).unwrap();
        let ledger = |name: &str| (name == "STINT_LEDGER").then(|| ":memory:".to_owned());
        let settings = config::load(Some(file.path()), &ledger).unwrap();
        let model = &settings.backends[0].models[0];
        let ModelSource::OpenAi(upstream) =
            deployment_source(model, &model.deployments[0], &settings.resilience)
        else {
            panic!("{model:?}")
        };
        assert_eq!(upstream.client.sent_too, sent_too);
    }

    #[test]
    fn what_may_be_billed_twice_is_sent_once_where_the_operator_wants_that() {
        check("", true);
        check("[resilience]\nretry_sent = false", false);
    }
}
