//! The defaults of a model of which only the name and the backend are known.

use stint_backend::local;
use stint_backend::remote::openai::LimitMember;
use stint_backend::remote::{anthropic, gemini, llamacpp, openai, responses};
use stint_types::catalog::{ConversationRules, EnforcementClass, GoesOn, Model};
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;
use super::defaults::BackendDefaults;
use super::hand_off::{END_TAG, HAND_OFF, START_TAG, hand_off, overhead_bound};
use super::host::limits_by_max_tokens;
use super::kind::BackendKind;
use super::loading::Loading;
use super::model_config::ModelConfig;
use super::model_source::{LocalModelSettings, ModelSource};
use super::{dialect, provider};

/// What holds for a model of which only the name is known.
pub(super) fn default_model(name: &str, base: &BackendDefaults, line: Option<usize>) -> DeclaredModel {
    let classes = base.kind.default_classes();
    let source = source(name, base);
    let class = classes.first().copied().unwrap_or(EnforcementClass::Effort);
    let thinks = class != EnforcementClass::Effort;
    let model = Model {
        name: name.into(),
        tariff: None,
        context: Model::CONTEXT_UNKNOWN,
        context_limited_by: None,
        classes: classes.to_vec(),
        thinking_min: if base.kind == BackendKind::Anthropic { anthropic::BUDGET_MIN } else { Tokens::ZERO },
        thinks_always: false,
        never_thinks: false,
        thinking_ruled_out: None,
        thinking_max: if thinks { Tokens(8192) } else { Tokens::ZERO },
        thinking_usual: None,
        solution_max: None,
        output_max: None,
        output_min: base.kind.output_min(),
        hand_off: provider::hand_off(&source).unwrap_or_else(|| {
            hand_off(class, HAND_OFF.to_owned(), overhead_bound(classes, HAND_OFF, openai::NEW_TURN_PROMPT))
        }),
        services: base.kind.default_services().to_vec(),
        capabilities: base.kind.capabilities(base.is_self_hosted_server()).to_vec(),
        efforts: Vec::new(),
        members: base.client.members,
        resumes_tools: false,
        goes_on: GoesOn::Never,
        stops_billing: base.kind.stops_billing(),
        reference: None,
        ability_guess: None,
        specialty: None,
        conversation: ConversationRules::default(),
    };
    DeclaredModel {
        kind: base.kind,
        config: ModelConfig {
            name: model.name.clone(),
            kind: Some(base.kind.as_str()),
            upstream: name.to_owned(),
            host: base.host(),
            possible_classes: possible_classes(base.kind),
            source,
            ability: None,
            curve: None,
            context: None,
            deployments: base.deployments.clone(),
            reads_alike: None,
        },
        model,
        is_thinking_known: false,
        is_price_listed: false,
        line,
    }
}

/// Every way in which a kind of backend can hold a thought.
fn possible_classes(kind: BackendKind) -> Vec<EnforcementClass> {
    match kind {
        BackendKind::Local
        | BackendKind::LlamaCpp
        | BackendKind::Anthropic
        | BackendKind::Gemini
        | BackendKind::Responses => kind.default_classes().to_vec(),
        BackendKind::OpenAi
        | BackendKind::DeepSeek
        | BackendKind::DashScope
        | BackendKind::OpenRouter
        | BackendKind::Vllm
        | BackendKind::Sglang
        | BackendKind::Mistral
        | BackendKind::Xai
        | BackendKind::Ollama => {
            dialect::possible_classes(&dialect::dialect_of(kind), kind == BackendKind::Vllm)
        }
    }
}

/// How a model is reached that only has a name.
fn source(name: &str, base: &BackendDefaults) -> ModelSource {
    let (client, model) = (base.client.clone(), name.to_owned());
    match base.kind {
        BackendKind::Local => {
            let settings = local::Settings { hand_off: HAND_OFF.to_owned(), ..local::Settings::default() };
            let (start_tag, end_tag) = (START_TAG.to_owned(), END_TAG.to_owned());
            let Loading { load_on_startup, keep_alive } = base.loading;
            let local = LocalModelSettings {
                start_tag,
                end_tag,
                tags_are_stated: false,
                settings,
                calls_tools: false,
                load_on_startup,
                keep_alive,
            };
            ModelSource::File(base.file.clone(), local)
        }
        BackendKind::LlamaCpp => ModelSource::LlamaCpp(llamacpp::Settings {
            client,
            hand_off: HAND_OFF.to_owned(),
            ..llamacpp::Settings::default()
        }),
        BackendKind::Anthropic => ModelSource::Anthropic(anthropic::Settings {
            client,
            model,
            name: name.into(),
            ..anthropic::Settings::default()
        }),
        BackendKind::Gemini => ModelSource::Gemini(gemini::Settings {
            client,
            model,
            name: name.into(),
            ..gemini::Settings::default()
        }),
        BackendKind::Responses => ModelSource::Responses(responses::Settings {
            client,
            model,
            name: name.into(),
            ..responses::Settings::default()
        }),
        BackendKind::Vllm => ModelSource::Vllm(chat(name, base)),
        BackendKind::OpenAi
        | BackendKind::DeepSeek
        | BackendKind::DashScope
        | BackendKind::OpenRouter
        | BackendKind::Sglang
        | BackendKind::Mistral
        | BackendKind::Xai
        | BackendKind::Ollama => ModelSource::OpenAi(chat(name, base)),
    }
}

fn chat(name: &str, base: &BackendDefaults) -> openai::Settings {
    let mut dialect = dialect::dialect_of(base.kind);
    if limits_by_max_tokens(base.host().as_deref()) {
        dialect.limit = LimitMember::MaxTokens;
    }
    dialect.limit = base.limit.unwrap_or(dialect.limit);
    openai::Settings {
        client: base.client.clone(),
        name: name.into(),
        model: name.to_owned(),
        dialect,
        hand_off: HAND_OFF.to_owned(),
        ..openai::Settings::default()
    }
}
