//! `models` and `[[backend.model]]`: the models of a backend, over what its kind and the catalogue's files say of them.

use crate::config::reader::Section;
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;
use super::default_model::default_model;
use super::defaults::BackendDefaults;
use super::kind::BackendKind;
use super::known_models::KnownModels;
use super::model_source::ModelSource;
use super::{capabilities, coherence, curve, dialect, model_keys, non_thinking, provider};

/// The keys that models of only some kinds have.
const KIND_SPECIFIC_KEYS: [&str; 9] = [
    "efforts",
    "upstream",
    "start_tag",
    "end_tag",
    "starts_in_thinking",
    "thoughts_back",
    "thought_missing",
    "hand_off",
    "tool_syntax",
];

/// The models of a backend: the bare names of `models`, and each `[[backend.model]]`.
pub(super) fn read_models(
    backend: &Section<'_>,
    base: &BackendDefaults,
    known: &KnownModels<'_>,
) -> Vec<DeclaredModel> {
    let bare = backend.get_or("models", Vec::<String>::new());
    let mut models: Vec<DeclaredModel> = bare
        .iter()
        .map(|name| known.apply_known(default_model(name, base, backend.line_of("models")), base, name))
        .map(|mut declared| {
            non_thinking::adjust_hand_off(None, &mut declared);
            declared
        })
        .collect();
    models.extend(backend.sections("model").iter().filter_map(|section| read_model(section, base, known)));
    let models: Vec<DeclaredModel> = models.into_iter().map(capabilities::settle).collect();
    if models.is_empty() && !backend.has("models") && !backend.has("model") {
        let remedy = "name them, models = [\"…\"], or declare each as [[backend.model]]";
        backend.reject("models", "no models", remedy);
    }
    models
}

fn read_model(
    section: &Section<'_>,
    base: &BackendDefaults,
    known: &KnownModels<'_>,
) -> Option<DeclaredModel> {
    let name = section.require::<String>("name", "write the name that callers use");
    let line = section.line_of("name");
    if base.is_guess {
        section.allow(&KIND_SPECIFIC_KEYS);
    }
    let called = name.as_deref().unwrap_or_default();
    let upstream = section.get::<String>("upstream");
    let mut declared =
        known.apply_known(default_model(called, base, line), base, upstream.as_deref().unwrap_or(called));
    let upstream = upstream.unwrap_or_else(|| called.to_owned());
    if let Some(model) = declared.config.source.model_mut() {
        model.clone_from(&upstream);
    }
    declared.config.upstream = upstream;
    model_keys::apply(section, &mut declared);
    if let ModelSource::File(_, local) = &mut declared.config.source {
        local.tags_are_stated = section.has("start_tag") || section.has("end_tag");
    }
    declared.config.curve = curve::read(section);
    declared.config.context = section.has("context").then_some(declared.model.context);
    // An effort scale comes with the most that it thinks, and only this kind can be said to think never.
    let is_told =
        section.has("thinking_max") || (base.kind == BackendKind::Responses && section.has("thinking"));
    declared.is_thinking_known |= is_told;
    declared.model.never_thinks = section.has("thinking_max") && declared.model.thinking_max == Tokens::ZERO;
    non_thinking::adjust_hand_off(Some(section), &mut declared);
    provider::adjust_classes(Some(section), &mut declared);
    dialect::adjust_classes(Some(section), &mut declared);
    dialect::goes_on(&mut declared);
    coherence::check(section, &declared);
    if let Some(settings) = declared.config.source.chat_mut() {
        declared.config.possible_classes =
            dialect::possible_classes(&settings.dialect, base.kind == BackendKind::Vllm);
        dialect::check(section, &mut declared.model, &declared.config.possible_classes);
    }
    name.map(|_| declared)
}
