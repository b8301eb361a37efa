//! The model that ships with the binary: all that is known about it apart from its weights.

use std::sync::Arc;

use stint_backend::local;
use stint_types::catalog::{
    ConversationRules, EnforcementClass, GoesOn, HandOff, Model, Prices, Service, Specialty, Tariff,
};
use stint_types::units::{Money, Price, Tokens};

use super::declared_model::DeclaredModel;
use super::kind::BackendKind;
use super::members;
use super::model_config::{BackendConfig, ModelConfig};
use super::model_source::{LocalModelSettings, ModelSource};

/// What closes a cut thought: three tokens.
const HAND_OFF: &str = "\n</think>\n\n";

/// Its backend and itself. It has a small price, so that everything can be seen working.
pub(super) fn embedded() -> (BackendConfig, DeclaredModel) {
    let name: Arc<str> = "reasoner".into();
    let model = Model {
        name: name.clone(),
        tariff: Some(Tariff::plain(Prices {
            input: dollars_per_million(100_000_000),
            output: dollars_per_million(400_000_000),
        })),
        context: Tokens(512),
        context_limited_by: None,
        classes: vec![EnforcementClass::Inline],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        never_thinks: false,
        thinking_ruled_out: None,
        thinking_max: Tokens(256),
        thinking_usual: None,
        solution_max: Some(Tokens(64)),
        output_max: None,
        output_min: Tokens(1),
        // The hand-off, the start tag, and the end of the text.
        hand_off: HandOff {
            text: HAND_OFF.to_owned(),
            overhead: Tokens(5),
            overhead_without_thought: Tokens(1),
        },
        services: vec![Service::Chat, Service::Completions],
        capabilities: BackendKind::Local.capabilities(false).to_vec(),
        efforts: Vec::new(),
        members: members::local_rules(),
        resumes_tools: false,
        goes_on: GoesOn::Never,
        stops_billing: true,
        reference: None,
        ability_guess: None,
        specialty: Some(Specialty::Arithmetic),
        conversation: ConversationRules::default(),
    };
    let (source, deployments) = (ModelSource::Embedded(local_settings()), Vec::new());
    let served = ModelConfig {
        upstream: name.to_string(),
        name,
        kind: None,
        host: None,
        possible_classes: vec![EnforcementClass::Inline],
        source,
        ability: None,
        curve: None,
        reads_alike: None,
        context: None,
        deployments,
    };
    let backend = BackendConfig { name: "embedded".into(), models: vec![served.clone()] };
    let declared = DeclaredModel {
        kind: BackendKind::Local,
        config: served,
        model,
        is_thinking_known: true,
        is_price_listed: false,
        line: None,
    };
    (backend, declared)
}

fn local_settings() -> LocalModelSettings {
    // Arithmetic has one right answer: drawing among tokens only makes mistakes.
    let settings =
        local::Settings { hand_off: HAND_OFF.to_owned(), temperature: 0.0, ..local::Settings::default() };
    LocalModelSettings {
        start_tag: "<think>".to_owned(),
        end_tag: "</think>".to_owned(),
        tags_are_stated: false,
        settings,
        calls_tools: false,
        load_on_startup: true,
        keep_alive: None,
    }
}

fn dollars_per_million(nanos: u64) -> Price {
    Price { per_million_tokens: Money(nanos) }
}
