//! The keys of providers with APIs of their own: how each is told to think, and what else it is asked for.

use crate::backend::remote::{anthropic, gemini, responses};
use crate::catalog::{Class, HandOff, Model};
use crate::units::Tokens;

use super::backend::{Base, Source};
use super::efforts;
use super::kind::Kind;
use super::mistake::Wrong;
use super::model::Declared;
use super::reader::Section;

/// What is set aside for what a template puts around a thought that is not handed over.
const OVERHEAD: Tokens = Tokens(16);
/// The least budget that Anthropic takes.
const BUDGET_MIN: Tokens = Tokens(1024);

const ANTHROPIC: [(&str, anthropic::Thinking); 3] = [
    ("budget", anthropic::Thinking::Budget),
    ("adaptive", anthropic::Thinking::Adaptive),
    ("never", anthropic::Thinking::Never),
];
const OFF: [(&str, anthropic::Off); 2] =
    [("unsaid", anthropic::Off::Silence), ("disabled", anthropic::Off::Disabled)];
const GEMINI: [(&str, gemini::Thinking); 3] = [
    ("budget", gemini::Thinking::Budget),
    ("level", gemini::Thinking::Level),
    ("never", gemini::Thinking::Never),
];
const RESPONSES: [(&str, bool); 2] = [("effort", true), ("never", false)];

/// How a model is reached of which only the name is known; nothing for other kinds.
pub(super) fn source(kind: Kind, name: &str, base: &Base) -> Option<Source> {
    let (client, model) = (base.client.clone(), name.to_owned());
    Some(match kind {
        Kind::Anthropic => Source::Anthropic(anthropic::Settings {
            client,
            model,
            name: name.into(),
            ..anthropic::Settings::default()
        }),
        Kind::Gemini => Source::Gemini(gemini::Settings {
            client,
            model,
            name: name.into(),
            ..gemini::Settings::default()
        }),
        Kind::Responses => Source::Responses(responses::Settings {
            client,
            model,
            name: name.into(),
            ..responses::Settings::default()
        }),
        _ => return None,
    })
}

/// What closes a cut thought. Only Anthropic's are cut; there it is quoted, and the answer asked for.
pub(super) fn hand_off(source: &Source) -> Option<HandOff> {
    match source {
        Source::Anthropic(settings) => Some(quoting(settings)),
        Source::Gemini(_) | Source::Responses(_) => {
            Some(HandOff { text: String::new(), overhead: OVERHEAD, unthought: OVERHEAD })
        }
        _ => None,
    }
}

/// The words around a quoted thought, of a byte a token at least.
fn quoting(settings: &anthropic::Settings) -> HandOff {
    let words = settings.thought_so_far.len() + settings.answer_now.len();
    let overhead = OVERHEAD + Tokens(words as u64);
    HandOff { text: settings.answer_now.clone(), overhead, unthought: overhead }
}

/// Takes what a section says of a model of Anthropic's Messages, and tells how its thinking can be held.
pub(super) fn anthropic(
    section: &Section<'_>,
    settings: &mut anthropic::Settings,
    model: &mut Model,
) -> &'static [Class] {
    use anthropic::{Off, Thinking};
    // What was found out under the same word stays.
    let stated = section.word("thinking", &ANTHROPIC);
    if let Some(thinking) = stated.filter(|stated| *stated != settings.thinking) {
        settings.thinking = thinking;
        settings.asks_for_thoughts = thinking == Thinking::Adaptive;
        let least = if thinking == Thinking::Budget { BUDGET_MIN } else { Tokens::ZERO };
        turn_to(section, model, usual_classes_of(thinking), least, thinking == Thinking::Never);
    }
    if let Some(off) = section.word("thinking_off", &OFF) {
        settings.off = off;
    }
    if model.thinks_always {
        settings.off = Off::Never;
    }
    section.set("summaries", &mut settings.asks_for_thoughts);
    section.set("sampling", &mut settings.sampling);
    section.set("caches", &mut settings.caches);
    section.set("hand_off", &mut settings.answer_now);
    settings.output_max = model.output_max;
    settings.context = model.knows_context().then_some(model.context);
    model.hand_off = quoting(settings);
    take_efforts(section, model);
    match settings.thinking {
        Thinking::Budget => &[Class::Native, Class::Turn],
        Thinking::Adaptive => &[Class::Turn, Class::Effort],
        Thinking::Never => &[Class::Effort],
    }
}

/// Takes what a section says of a model of Gemini's own API.
pub(super) fn gemini(
    section: &Section<'_>,
    settings: &mut gemini::Settings,
    model: &mut Model,
) -> &'static [Class] {
    use gemini::Thinking;
    let stated = section.word("thinking", &GEMINI);
    if let Some(thinking) = stated.filter(|stated| *stated != settings.thinking) {
        settings.thinking = thinking;
        // Models with levels refuse calls that nobody has signed.
        settings.stand_in = (thinking == Thinking::Level).then(|| gemini::STAND_IN.to_owned());
        let class = if thinking == Thinking::Budget { Class::Native } else { Class::Effort };
        turn_to(section, model, vec![class], Tokens::ZERO, thinking == Thinking::Never);
    }
    section.set("summaries", &mut settings.summaries);
    take_efforts(section, model);
    if settings.thinking == Thinking::Budget { &[Class::Native] } else { &[Class::Effort] }
}

/// Takes what a section says of a model of OpenAI's Responses.
pub(super) fn responses(
    section: &Section<'_>,
    settings: &mut responses::Settings,
    model: &mut Model,
) -> &'static [Class] {
    let stated = section.word("thinking", &RESPONSES);
    if let Some(reasons) = stated.filter(|stated| *stated != settings.reasons) {
        settings.reasons = reasons;
        turn_to(section, model, vec![Class::Effort], Tokens::ZERO, !reasons);
    }
    section.set("summaries", &mut settings.summaries);
    take_efforts(section, model);
    &[Class::Effort]
}

impl Source {
    /// The word of `thinking` that says how it is told to think, where its kind of backend has words for that.
    pub fn thinking(&self) -> Option<&'static str> {
        match self {
            Source::Anthropic(settings) => word(&ANTHROPIC, settings.thinking),
            Source::Gemini(settings) => word(&GEMINI, settings.thinking),
            Source::Responses(settings) => word(&RESPONSES, settings.reasons),
            _ => None,
        }
    }
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> Option<&'static str> {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| *word)
}

/// How thinking is held where nothing is said of it.
fn usual_classes_of(thinking: anthropic::Thinking) -> Vec<Class> {
    match thinking {
        anthropic::Thinking::Budget => vec![Class::Native, Class::Turn],
        anthropic::Thinking::Adaptive | anthropic::Thinking::Never => vec![Class::Effort],
    }
}

/// A model thinks in another way than was known: what hangs on that changes with it, where the section says nothing else.
fn turn_to(section: &Section<'_>, model: &mut Model, classes: Vec<Class>, least: Tokens, never: bool) {
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
        model.efforts = efforts::levels(section);
    }
}

/// Leaves a model the classes that go with how it is told to think: what was found out or shipped may have been said of
/// it when that was another. Where the operator says one that does not, that is a mistake.
pub(super) fn fit(section: Option<&Section<'_>>, Declared { kind, served, model, .. }: &mut Declared) {
    if !matches!(kind, Kind::Anthropic | Kind::Gemini | Kind::Responses) {
        return;
    }
    let wrong = model.classes.iter().find(|class| !served.possible.contains(class));
    if let Some((class, section)) = wrong.zip(section.filter(|section| section.has("classes"))) {
        let what = format!("\"{}\" does not go with how it is told to think", class.word());
        section.wrong("classes", Wrong::new(what, "write another, or say it by thinking = \"…\""));
    }
    model.classes.retain(|class| served.possible.contains(class));
    if model.classes.is_empty() {
        model.classes.clone_from(&served.possible);
    }
}
