//! `[[backend.model]]`: what is known about a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::local;
use crate::backend::remote::openai::{Dialect, ThoughtsBack};
use crate::backend::remote::{llamacpp, openai};
use crate::catalog::{Capability, Class, EffortLevel, HandOff, Model, Prices, Tariff};
use crate::units::{Money, Price, Tokens};

use super::backend::{Base, Kind, Manner, Served, Source};
use super::mistake::Wrong;
use super::reader::{Document, Section};
use super::route::Models;

/// A model as its backend declares it.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) served: Served,
    pub(super) model: Model,
    /// Where; none for the embedded one.
    pub(super) line: Option<usize>,
}

/// The hand-off where none is configured: the sentence that Qwen's makers recommend.
const HAND_OFF: &str = "\n\nConsidering the limited time by the user, I have to give the solution based on \
                        the thinking directly now.\n</think>\n\n";
const START_TAG: &str = "<think>";
const END_TAG: &str = "</think>";

/// The most tokens that anything here may count.
const TOKENS_MAX: Tokens = Tokens(10_000_000);

const CAPABILITIES: [(&str, Capability); 4] = [
    ("tools", Capability::Tools),
    ("images", Capability::Images),
    ("schema", Capability::Schema),
    ("penalties", Capability::Penalties),
];

/// The models of a backend: the bare names of `models`, and each `[[backend.model]]`.
pub(super) fn declared(backend: &Section<'_>, base: &Base) -> Vec<Declared> {
    let bare = backend.or("models", Vec::<String>::new());
    let mut models: Vec<Declared> =
        bare.iter().map(|name| usual(name, base, backend.line_of("models"))).collect();
    models.extend(backend.sections("model").iter().filter_map(|section| declare(section, base)));
    if models.is_empty() && !backend.has("models") && !backend.has("model") {
        let remedy = "name them, models = [\"…\"], or declare each as [[backend.model]]";
        backend.wrong("models", Wrong::new("no models", remedy));
    }
    models
}

/// The catalog's models by name; two of one name are a mistake.
pub(super) fn catalog<'m>(document: &Document<'_>, all: impl Iterator<Item = &'m Declared>) -> Models {
    let mut catalog = BTreeMap::new();
    for Declared { model, line, .. } in all {
        if catalog.insert(model.name.clone(), Arc::new(model.clone())).is_some() {
            let what = format!("a second model \"{}\"", model.name);
            let remedy = "give it another name, and say upstream = \"…\" for its name there";
            document.add(*line, "backend.model.name".to_owned(), Wrong::new(what, remedy));
        }
    }
    catalog
}

/// What holds for a model of which only the name is known.
fn usual(name: &str, base: &Base, line: Option<usize>) -> Declared {
    let class = match base.kind {
        Kind::Local => Class::Inline,
        Kind::LlamaCpp => Class::Continue,
        Kind::OpenAi => Class::Effort,
    };
    let thinks = class != Class::Effort;
    let model = Model {
        name: name.into(),
        tariff: None,
        context: Tokens(32_768),
        classes: vec![class],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        thinking_max: if thinks { Tokens(8192) } else { Tokens::ZERO },
        solution_default: Tokens(1024),
        hand_off: hand_off(class, HAND_OFF.to_owned()),
        capabilities: match base.kind {
            Kind::OpenAi | Kind::LlamaCpp => vec![Capability::Penalties],
            Kind::Local => Vec::new(),
        },
        efforts: Vec::new(),
        resumes_tools: false,
        stops_billing: class != Class::Effort,
    };
    Declared { served: Served { name: model.name.clone(), source: source(name, base) }, model, line }
}

fn source(name: &str, base: &Base) -> Source {
    match base.kind {
        Kind::Local => {
            let settings = local::Settings { hand_off: HAND_OFF.to_owned(), ..local::Settings::default() };
            let (start_tag, end_tag) = (START_TAG.to_owned(), END_TAG.to_owned());
            Source::File(base.file.clone(), Manner { start_tag, end_tag, settings })
        }
        Kind::OpenAi => Source::OpenAi(openai::Settings {
            client: base.client.clone(),
            name: name.into(),
            model: name.to_owned(),
            dialect: Dialect { limit: base.limit, ..Dialect::openai() },
            ..openai::Settings::default()
        }),
        Kind::LlamaCpp => Source::LlamaCpp(llamacpp::Settings {
            client: base.client.clone(),
            hand_off: HAND_OFF.to_owned(),
            ..llamacpp::Settings::default()
        }),
    }
}

fn declare(section: &Section<'_>, base: &Base) -> Option<Declared> {
    let name = section.need::<String>("name", "write the name that callers use");
    let line = section.line_of("name");
    let Declared { mut served, mut model, .. } = usual(name.as_deref().unwrap_or_default(), base, line);
    let count = |key, least, usual| section.within(key, Tokens(least)..=TOKENS_MAX).unwrap_or(usual);
    model.tariff = prices(section).map(Tariff::plain);
    model.context = count("context", 16, model.context);
    model.thinking_max = count("thinking_max", 0, model.thinking_max);
    model.solution_default = count("solution_default", 1, model.solution_default);
    section.set("stops_billing", &mut model.stops_billing);
    if section.has("capabilities") {
        model.capabilities = section.words("capabilities", &CAPABILITIES);
        if base.kind == Kind::Local && model.capabilities.contains(&Capability::Penalties) {
            let what = "the local engine takes no penalties";
            section.wrong("capabilities", Wrong::new(what, "take \"penalties\" out"));
        }
    }
    match &mut served.source {
        Source::Embedded(_) => {}
        Source::OpenAi(settings) => {
            model.efforts = efforts(section);
            section.set("upstream", &mut settings.model);
            section.set("start_tag", &mut settings.start_tag);
            section.set("end_tag", &mut settings.end_tag);
            section.set("starts_in_thinking", &mut settings.starts_in_thinking);
            if section.get("thoughts_back") == Some(true) {
                settings.dialect.thoughts_back = ThoughtsBack::Said("reasoning_content");
            }
        }
        Source::LlamaCpp(settings) => {
            section.set("start_tag", &mut settings.start_tag);
            section.set("end_tag", &mut settings.end_tag);
            section.set("hand_off", &mut settings.hand_off);
            model.hand_off = closing(section, &model, settings.hand_off.clone(), &settings.end_tag);
        }
        Source::File(_, manner) => {
            section.set("start_tag", &mut manner.start_tag);
            section.set("end_tag", &mut manner.end_tag);
            section.set("hand_off", &mut manner.settings.hand_off);
            model.hand_off = closing(section, &model, manner.settings.hand_off.clone(), &manner.end_tag);
        }
    }
    model.hand_off.overhead = count("overhead", 0, model.hand_off.overhead);
    check(section, &model);
    name.map(|_| Declared { served, model, line })
}

/// The hand-off that was configured, which must close the thought.
fn closing(section: &Section<'_>, model: &Model, text: String, end_tag: &str) -> HandOff {
    if !text.contains(end_tag) {
        let remedy = format!("write \"{end_tag}\" where the thought is to end");
        section.wrong("hand_off", Wrong::new("does not close the thought", remedy));
    }
    hand_off(base_class(model), text)
}

/// The strongest way to hold its thinking.
fn base_class(model: &Model) -> Class {
    model.classes.first().copied().unwrap_or(Class::Effort)
}

/// A token is one byte at least, so the hand-off's bytes bound its tokens; both tags and the end-of-text token
/// come on top. Nothing is handed over to a hidden thought; what is reserved there is the template's share.
fn hand_off(class: Class, text: String) -> HandOff {
    match class {
        Class::Effort => HandOff { text: String::new(), overhead: Tokens(16) },
        Class::Inline | Class::Continue | Class::Native | Class::Turn => {
            let overhead = Tokens(text.len() as u64 + 3);
            HandOff { text, overhead }
        }
    }
}

fn prices(section: &Section<'_>) -> Option<Prices> {
    let price = |key| section.get::<Money>(key).map(|per_million_tokens| Price { per_million_tokens });
    let (input, output) = (price("price_input"), price("price_output"));
    let missing = match (section.has("price_input"), section.has("price_output")) {
        (true, false) => "price_output",
        (false, true) => "price_input",
        _ => return Some(Prices { input: input?, output: output? }),
    };
    section.wrong(missing, Wrong::new("missing beside the other price", "a price of \"0\" is a price"));
    None
}

fn efforts(section: &Section<'_>) -> Vec<EffortLevel> {
    let levels = section.sections("efforts").into_iter().filter_map(|level| {
        let word = level.need::<String>("word", "write what the upstream calls it, like \"low\"");
        let usual = level.need::<Tokens>("usual", "write how many tokens it usually thinks at it, like 300");
        Some(EffortLevel { word: word?, usual: usual? })
    });
    let levels: Vec<EffortLevel> = levels.collect();
    if !levels.is_sorted_by(|lower, higher| lower.usual < higher.usual) {
        section.wrong(
            "efforts",
            Wrong::new("not in order", "write the lowest first, each with more tokens than the last"),
        );
    }
    levels
}

fn check(section: &Section<'_>, model: &Model) {
    let needed = model.thinking_max.max(Tokens(1)) + model.hand_off.overhead + model.solution_default;
    if needed >= model.context {
        let what = format!("{} tokens leave no room for a prompt", model.context);
        let remedy = format!(
            "thought, hand-off and answer take {needed}: raise it, or lower thinking_max or solution_default"
        );
        section.wrong("context", Wrong::new(what, remedy));
    }
    if !model.efforts.is_empty() && model.thinking_max == Tokens::ZERO {
        let remedy = "write the most that it can think, in tokens";
        section.wrong("thinking_max", Wrong::new("missing for a model with efforts", remedy));
    }
}
