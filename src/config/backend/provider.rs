//! The keys of providers with APIs of their own: how each is asked to think, and what else it takes.

use crate::config::reader::Section;
use stint_backend::remote::{CachePolicy, Caching, anthropic, gemini, responses};
use stint_types::catalog::{EnforcementClass, HandOff, Model};
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;
use super::effort_scale;
use super::model_source::ModelSource;

/// What is set aside for what a template puts around a thought that is not handed over.
const OVERHEAD: Tokens = Tokens(16);

const ANTHROPIC_THINKING: [(&str, anthropic::AnthropicThinking); 3] = [
    ("budget", anthropic::AnthropicThinking::Budget),
    ("adaptive", anthropic::AnthropicThinking::Adaptive),
    ("never", anthropic::AnthropicThinking::Never),
];
const ANTHROPIC_OFF: [(&str, anthropic::AnthropicThinkingOff); 3] = [
    ("unsaid", anthropic::AnthropicThinkingOff::Omitted),
    ("disabled", anthropic::AnthropicThinkingOff::Disabled),
    ("between_tools", anthropic::AnthropicThinkingOff::BetweenTools),
];
const GEMINI_THINKING: [(&str, gemini::GeminiThinking); 3] = [
    ("budget", gemini::GeminiThinking::Budget),
    ("level", gemini::GeminiThinking::Level),
    ("never", gemini::GeminiThinking::Never),
];
const RESPONSES_THINKING: [(&str, bool); 2] = [("effort", true), ("never", false)];

/// What closes a cut thought. Only Anthropic's are cut; there it is quoted, and the answer asked for.
pub(super) fn hand_off(source: &ModelSource) -> Option<HandOff> {
    match source {
        ModelSource::Anthropic(settings) => Some(quoting_hand_off(settings)),
        ModelSource::Gemini(_) | ModelSource::Responses(_) => {
            Some(HandOff { text: String::new(), overhead: OVERHEAD, overhead_without_thought: OVERHEAD })
        }
        ModelSource::Embedded(_)
        | ModelSource::File(..)
        | ModelSource::OpenAi(_)
        | ModelSource::Vllm(_)
        | ModelSource::LlamaCpp(_) => None,
    }
}

/// The words around a quoted thought, of a byte a token at least.
fn quoting_hand_off(settings: &anthropic::Settings) -> HandOff {
    let words = settings.thought_so_far.len() + settings.answer_now.len();
    let overhead = OVERHEAD + Tokens(words as u64);
    HandOff { text: settings.answer_now.clone(), overhead, overhead_without_thought: overhead }
}

/// Reads the keys of a model of Anthropic's Messages, and returns how its thinking can be enforced.
pub(super) fn anthropic(
    section: &Section<'_>,
    settings: &mut anthropic::Settings,
    model: &mut Model,
) -> &'static [EnforcementClass] {
    use anthropic::{AnthropicThinking, AnthropicThinkingOff, BUDGET_MIN};
    // What was found out under the same word stays.
    let stated = section.word("thinking", &ANTHROPIC_THINKING);
    if let Some(thinking) = stated.filter(|stated| *stated != settings.thinking) {
        settings.thinking = thinking;
        settings.asks_for_thoughts = thinking == AnthropicThinking::Adaptive;
        let least = if thinking == AnthropicThinking::Budget { BUDGET_MIN } else { Tokens::ZERO };
        switch_thinking(
            section,
            model,
            usual_classes_of(thinking),
            least,
            thinking == AnthropicThinking::Never,
        );
    }
    if let Some(off) = section.word("thinking_off", &ANTHROPIC_OFF) {
        settings.thinking_off = off;
    }
    if model.thinks_always {
        settings.thinking_off = AnthropicThinkingOff::Never;
    }
    section.set("summaries", &mut settings.asks_for_thoughts);
    section.set("sampling", &mut settings.sampling);
    cache_policy(section, model, &mut settings.cache);
    if let Some(tariff) = &model.tariff {
        settings.price_output = Some(tariff.rates.list.output);
    }
    settings.rules = model.conversation;
    section.set("hand_off", &mut settings.answer_now);
    settings.output_max = model.output_max;
    settings.context = model.knows_context().then_some(model.context);
    model.hand_off = quoting_hand_off(settings);
    take_efforts(section, model);
    match settings.thinking {
        AnthropicThinking::Budget => &[EnforcementClass::Native, EnforcementClass::Turn],
        AnthropicThinking::Adaptive => &[EnforcementClass::Turn, EnforcementClass::Effort],
        AnthropicThinking::Never => &[EnforcementClass::Effort],
    }
}

/// When prompts are marked for the provider's cache: as `caches` says, else where that pays by the model's prices.
pub(super) fn cache_policy(section: &Section<'_>, model: &Model, policy: &mut CachePolicy) {
    if let Some(caches) = section.get::<bool>("caches") {
        policy.caching = if caches { Caching::Always } else { Caching::Never };
    }
    if let Some(tariff) = &model.tariff {
        policy.break_even = tariff.rates.cache_break_even();
    }
}

/// Takes what a section says of a model of Gemini's own API.
pub(super) fn gemini(
    section: &Section<'_>,
    settings: &mut gemini::Settings,
    model: &mut Model,
) -> &'static [EnforcementClass] {
    use gemini::GeminiThinking;
    let stated = section.word("thinking", &GEMINI_THINKING);
    if let Some(thinking) = stated.filter(|stated| *stated != settings.thinking) {
        settings.thinking = thinking;
        // Models with levels refuse calls that nobody has signed.
        settings.placeholder_signature =
            (thinking == GeminiThinking::Level).then(|| gemini::PLACEHOLDER_SIGNATURE.to_owned());
        let class = if thinking == GeminiThinking::Budget {
            EnforcementClass::Native
        } else {
            EnforcementClass::Effort
        };
        switch_thinking(section, model, vec![class], Tokens::ZERO, thinking == GeminiThinking::Never);
    }
    section.set("summaries", &mut settings.summaries);
    take_efforts(section, model);
    if settings.thinking == GeminiThinking::Budget {
        &[EnforcementClass::Native]
    } else {
        &[EnforcementClass::Effort]
    }
}

/// Takes what a section says of a model of OpenAI's Responses.
pub(super) fn responses(
    section: &Section<'_>,
    settings: &mut responses::Settings,
    model: &mut Model,
) -> &'static [EnforcementClass] {
    let stated = section.word("thinking", &RESPONSES_THINKING);
    if let Some(reasons) = stated.filter(|stated| *stated != settings.can_reason) {
        settings.can_reason = reasons;
        switch_thinking(section, model, vec![EnforcementClass::Effort], Tokens::ZERO, !reasons);
    }
    section.set("summaries", &mut settings.summaries);
    settings.rules = model.conversation;
    cache_policy(section, model, &mut settings.cache);
    take_efforts(section, model);
    &[EnforcementClass::Effort]
}

/// The word of `thinking` by which a model is asked to think, where its kind of backend has such words.
pub fn thinking_word(source: &ModelSource) -> Option<&'static str> {
    match source {
        ModelSource::Anthropic(settings) => word(&ANTHROPIC_THINKING, settings.thinking),
        ModelSource::Gemini(settings) => word(&GEMINI_THINKING, settings.thinking),
        ModelSource::Responses(settings) => word(&RESPONSES_THINKING, settings.can_reason),
        ModelSource::Embedded(_)
        | ModelSource::File(..)
        | ModelSource::OpenAi(_)
        | ModelSource::Vllm(_)
        | ModelSource::LlamaCpp(_) => None,
    }
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> Option<&'static str> {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| *word)
}

/// The default of how thinking is enforced.
fn usual_classes_of(thinking: anthropic::AnthropicThinking) -> Vec<EnforcementClass> {
    match thinking {
        anthropic::AnthropicThinking::Budget => vec![EnforcementClass::Native, EnforcementClass::Turn],
        anthropic::AnthropicThinking::Adaptive | anthropic::AnthropicThinking::Never => {
            vec![EnforcementClass::Effort]
        }
    }
}

/// A model thinks in another way than was known: what hangs on that changes with it, where the section says nothing else.
fn switch_thinking(
    section: &Section<'_>,
    model: &mut Model,
    classes: Vec<EnforcementClass>,
    least: Tokens,
    never: bool,
) {
    if !section.has("classes") {
        model.classes = classes;
    }
    if !section.has("thinking_min") {
        model.thinking_min = least;
    }
    if never && !section.has("thinking_max") {
        model.thinking_max = Tokens::ZERO;
    }
}

fn take_efforts(section: &Section<'_>, model: &mut Model) {
    if section.has("efforts") {
        model.efforts = effort_scale::levels(section);
    }
}

/// Leaves a model the classes that fit how it is asked to think: what was probed or shipped may have been said of
/// it when that was another. Where the operator says one that does not, that is a mistake.
pub(super) fn adjust_classes(
    section: Option<&Section<'_>>,
    DeclaredModel { kind, config: served, model, .. }: &mut DeclaredModel,
) {
    if !kind.has_own_api() {
        return;
    }
    let wrong = model.classes.iter().find(|class| !served.possible_classes.contains(class));
    if let Some((class, section)) = wrong.zip(section.filter(|section| section.has("classes"))) {
        let what = format!("\"{}\" does not fit the way it is asked to think", class.as_str());
        section.reject("classes", what, "write another, or say it by thinking = \"…\"");
    }
    model.classes.retain(|class| served.possible_classes.contains(class));
    if model.classes.is_empty() {
        model.classes.clone_from(&served.possible_classes);
    }
}
