//! The keys that tell of a model, in the operator's own section and in an entry of the catalogue's files alike.

use crate::config::reader::Section;
use stint_backend::remote::responses;
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_types::catalog::{Capability, EnforcementClass, Model, Service};
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;
use super::hand_off::{END_TAG, HAND_OFF, overhead_bound, read_hand_off, take_hand_off};
use super::kind::BackendKind;
use super::model_source::ModelSource;
use super::{ability, conversation, dialect, effort_scale, images, provider, tariff};

/// The most tokens that anything here may count, which is less than what stands for an unknown context.
const TOKENS_MAX: Tokens = Tokens(10_000_000);

const SERVICES: [(&str, Service); 3] =
    [("chat", Service::Chat), ("completions", Service::Completions), ("embeddings", Service::Embeddings)];

const CAPABILITIES: [(&str, Capability); 7] = [
    ("tools", Capability::Tools),
    ("images", Capability::Images),
    ("documents", Capability::Documents),
    ("json", Capability::Json),
    ("schema", Capability::Schema),
    ("penalties", Capability::Penalties),
    ("logprobs", Capability::Logprobs),
];

const SYNTAXES: [(&str, ToolCallSyntax); 6] = [
    ("hermes", ToolCallSyntax::Hermes),
    ("mistral", ToolCallSyntax::Mistral),
    ("llama", ToolCallSyntax::Llama),
    ("coder", ToolCallSyntax::Coder),
    ("deepseek", ToolCallSyntax::DeepSeek),
    ("harmony", ToolCallSyntax::Harmony),
];

/// Puts what a section says in place of what was known before: an entry of the catalogue's files, or the operator's
/// own section.
pub(super) fn apply(section: &Section<'_>, declared: &mut DeclaredModel) {
    if let Some(evidence) = ability::read(section) {
        declared.config.ability = Some(evidence);
        declared.model.ability_guess = None;
    }
    if let Some(reads_alike) = section.get("reads_alike") {
        declared.config.reads_alike = Some(reads_alike);
    }
    apply_model_keys(section, declared);
    conversation::apply(section, &mut declared.model.conversation);
    apply_source_keys(section, declared);
    images::apply(section, declared);
    let overhead = declared.model.hand_off.overhead;
    declared.model.hand_off.overhead = count(section, "overhead", 0, overhead);
}

/// A count of tokens, or what was known before.
fn count(section: &Section<'_>, key: &'static str, least: u64, known: Tokens) -> Tokens {
    section.within(key, Tokens(least)..=TOKENS_MAX).unwrap_or(known)
}

/// What is said of the model itself.
fn apply_model_keys(section: &Section<'_>, DeclaredModel { kind, model, .. }: &mut DeclaredModel) {
    tariff::apply(section, *kind, &mut model.tariff);
    if section.has("classes") {
        model.classes = classes(section, *kind);
    }
    model.context = count(section, "context", 16, model.context);
    model.thinking_min = count(section, "thinking_min", 0, model.thinking_min);
    model.thinking_max = count(section, "thinking_max", 0, model.thinking_max);
    let limits = [
        ("thinking_usual", &mut model.thinking_usual),
        ("solution_max", &mut model.solution_max),
        ("output_max", &mut model.output_max),
    ];
    for (key, limit) in limits {
        *limit = section.within(key, Tokens(1)..=TOKENS_MAX).or(*limit);
    }
    if section.has("serves") {
        model.services = section.words("serves", &SERVICES);
    }
    section.set("thinks_always", &mut model.thinks_always);
    section.set("stops_billing", &mut model.stops_billing);
    if section.has("capabilities") {
        model.capabilities = section.words("capabilities", &CAPABILITIES);
    }
}

/// What is said of how it is reached and spoken to.
fn apply_source_keys(
    section: &Section<'_>,
    DeclaredModel { kind, config: served, model, .. }: &mut DeclaredModel,
) {
    match &mut served.source {
        ModelSource::Embedded(_) => {}
        ModelSource::Anthropic(settings) => {
            served.possible_classes = provider::anthropic(section, settings, model).to_vec();
        }
        ModelSource::Gemini(settings) => {
            served.possible_classes = provider::gemini(section, settings, model).to_vec();
        }
        ModelSource::Responses(settings) => {
            served.possible_classes = provider::responses(section, settings, model).to_vec();
        }
        ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => {
            if section.has("efforts") {
                model.efforts = effort_scale::levels(section);
            }
            dialect::apply(section, settings);
            if !settings.responses.is_unused() {
                model.output_min = responses::LIMIT_MIN;
            }
            settings.rules = model.conversation;
            settings.thinks_always = model.thinks_always;
            provider::cache_policy(section, model, &mut settings.cache);
            if *kind == BackendKind::Vllm {
                syntax(section, &mut settings.tool_syntax, model);
            }
            read_hand_off(section, &mut settings.hand_off);
            let is_empty = settings.hand_off.is_empty();
            if !section.has("hand_off") && !is_empty && !settings.hand_off.contains(&settings.end_tag) {
                settings.hand_off = HAND_OFF.replace(END_TAG, &settings.end_tag);
            }
            let is_stated = ["hand_off", "turn", "classes"].into_iter().any(|key| section.has(key));
            take_hand_off(section, model, &settings.hand_off, &settings.end_tag);
            if is_stated {
                model.hand_off.overhead =
                    overhead_bound(&model.classes, &settings.hand_off, &settings.new_turn_prompt);
            }
        }
        ModelSource::LlamaCpp(settings) => {
            section.set("start_tag", &mut settings.start_tag);
            section.set("end_tag", &mut settings.end_tag);
            read_hand_off(section, &mut settings.hand_off);
            syntax(section, &mut settings.tool_syntax, model);
            take_hand_off(section, model, &settings.hand_off, &settings.end_tag);
        }
        ModelSource::File(_, local) => {
            section.set("start_tag", &mut local.start_tag);
            section.set("end_tag", &mut local.end_tag);
            read_hand_off(section, &mut local.settings.hand_off);
            syntax(section, &mut local.settings.tool_syntax, model);
            local.calls_tools = model.has_capability(Capability::Tools);
            take_hand_off(section, model, &local.settings.hand_off, &local.end_tag);
        }
    }
}

/// The ways in which its thinking is held, the strongest first, whatever their order here.
fn classes(section: &Section<'_>, kind: BackendKind) -> Vec<EnforcementClass> {
    let words: Vec<(&str, EnforcementClass)> =
        kind.possible_classes().iter().map(|class| (class.as_str(), *class)).collect();
    let mut classes = section.words("classes", &words);
    if classes.is_empty() {
        section.reject("classes", "none", "leave it out for all that this kind of backend has");
        return kind.default_classes().to_vec();
    }
    classes.sort_unstable_by(|one, other| other.cmp(one));
    classes
}

/// How calls are written, where they can be read: then an answer that was resumed may be one.
fn syntax(section: &Section<'_>, known: &mut Option<ToolCallSyntax>, model: &mut Model) {
    if let Some(stated) = section.word("tool_syntax", &SYNTAXES) {
        *known = Some(stated);
        model.resumes_tools = true;
    }
}
