//! `[[backend.model]]`: what is known about a model, over what its kind and the catalogue's files say of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::local;
use crate::backend::remote::{llamacpp, openai};
use crate::catalog::{Capability, Class, GoesOn, HandOff, Model, Service};
use crate::prompt::calls::Syntax;
use crate::units::{Chance, Tokens};

use super::backend::{Base, Manner, Served, Source};
use super::coherence;
use super::dialect;
use super::efforts;
use super::kind::Kind;
use super::known::Known;
use super::mistake::Wrong;
use super::provider;
use super::reader::{Document, Section};
use super::route::Models;
use super::tariff;
use super::unthought;
use super::value::AnyText;

/// The keys that models of only some kinds have.
const OF_SOME: [&str; 8] = [
    "efforts",
    "upstream",
    "start_tag",
    "end_tag",
    "starts_in_thinking",
    "thoughts_back",
    "hand_off",
    "tool_syntax",
];

/// A model as its backend declares it.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) kind: Kind,
    pub(super) served: Served,
    pub(super) model: Model,
    /// Whether anything tells how it thinks: the section itself, or an entry about it.
    pub(super) is_told: bool,
    /// Where; none for the embedded one.
    pub(super) line: Option<usize>,
}

/// The hand-off where none is configured: the sentence that Qwen's makers recommend.
const HAND_OFF: &str = "\n\nConsidering the limited time by the user, I have to give the solution based on \
                        the thinking directly now.\n</think>\n\n";
const START_TAG: &str = "<think>";
const END_TAG: &str = "</think>";

/// The most tokens that anything here may count, which is less than what stands for an unknown context.
const TOKENS_MAX: Tokens = Tokens(10_000_000);

const SERVICES: [(&str, Service); 3] =
    [("chat", Service::Chat), ("completions", Service::Completions), ("embeddings", Service::Embeddings)];

const CAPABILITIES: [(&str, Capability); 5] = [
    ("tools", Capability::Tools),
    ("images", Capability::Images),
    ("schema", Capability::Schema),
    ("penalties", Capability::Penalties),
    ("logprobs", Capability::Logprobs),
];

const SYNTAXES: [(&str, Syntax); 6] = [
    ("hermes", Syntax::Hermes),
    ("mistral", Syntax::Mistral),
    ("llama", Syntax::Llama),
    ("coder", Syntax::Coder),
    ("deepseek", Syntax::DeepSeek),
    ("harmony", Syntax::Harmony),
];

/// The models of a backend: the bare names of `models`, and each `[[backend.model]]`.
pub(super) fn declared(backend: &Section<'_>, base: &Base, known: &Known<'_>) -> Vec<Declared> {
    let bare = backend.or("models", Vec::<String>::new());
    let mut models: Vec<Declared> = bare
        .iter()
        .map(|name| known.tell(usual(name, base, backend.line_of("models")), base, name))
        .map(|mut declared| {
            unthought::fit(None, &mut declared);
            declared
        })
        .collect();
    models.extend(backend.sections("model").iter().filter_map(|section| declare(section, base, known)));
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
pub(super) fn usual(name: &str, base: &Base, line: Option<usize>) -> Declared {
    let classes = base.kind.classes();
    let source = source(name, base);
    let class = classes.first().copied().unwrap_or(Class::Effort);
    let thinks = class != Class::Effort;
    let model = Model {
        name: name.into(),
        tariff: None,
        context: Model::CONTEXT_UNKNOWN,
        classes: classes.to_vec(),
        thinking_min: if base.kind == Kind::Anthropic { Tokens(1024) } else { Tokens::ZERO },
        thinks_always: false,
        thinking_max: if thinks { Tokens(8192) } else { Tokens::ZERO },
        thinking_usual: None,
        solution_max: None,
        output_max: None,
        hand_off: provider::hand_off(&source).unwrap_or_else(|| {
            hand_off(class, HAND_OFF.to_owned(), reserve(classes, HAND_OFF, openai::TURN))
        }),
        services: base.kind.services().to_vec(),
        capabilities: base.kind.capabilities(base.is_self_hosted_server()).to_vec(),
        efforts: Vec::new(),
        members: base.client.members,
        resumes_tools: false,
        goes_on: GoesOn::Never,
        stops_billing: base.kind.stops_billing(),
        reference: None,
        specialty: None,
    };
    Declared {
        kind: base.kind,
        served: Served {
            name: model.name.clone(),
            kind: Some(base.kind.word()),
            upstream: name.to_owned(),
            host: base.host(),
            possible: possible(base.kind),
            source,
            ability: None,
            context: None,
            deployments: base.deployments.clone(),
            reads_alike: None,
        },
        model,
        is_told: false,
        line,
    }
}

/// Every way in which a kind of backend can hold a thought.
fn possible(kind: Kind) -> Vec<Class> {
    match kind {
        Kind::Local | Kind::LlamaCpp | Kind::Anthropic | Kind::Gemini | Kind::Responses => {
            kind.classes().to_vec()
        }
        _ => dialect::possible(&dialect::of(kind), kind == Kind::Vllm),
    }
}

fn source(name: &str, base: &Base) -> Source {
    if let Some(source) = provider::source(base.kind, name, base) {
        return source;
    }
    match base.kind {
        Kind::Local => {
            let settings = local::Settings { hand_off: HAND_OFF.to_owned(), ..local::Settings::default() };
            let (start_tag, end_tag) = (START_TAG.to_owned(), END_TAG.to_owned());
            Source::File(base.file.clone(), Manner { start_tag, end_tag, settings })
        }
        Kind::LlamaCpp => Source::LlamaCpp(llamacpp::Settings {
            client: base.client.clone(),
            hand_off: HAND_OFF.to_owned(),
            ..llamacpp::Settings::default()
        }),
        Kind::Vllm => Source::Vllm(chat(name, base)),
        _ => Source::OpenAi(chat(name, base)),
    }
}

fn chat(name: &str, base: &Base) -> openai::Settings {
    let mut dialect = dialect::of(base.kind);
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

fn declare(section: &Section<'_>, base: &Base, known: &Known<'_>) -> Option<Declared> {
    let name = section.need::<String>("name", "write the name that callers use");
    let line = section.line_of("name");
    if base.is_guess {
        section.allow(&OF_SOME);
    }
    let called = name.as_deref().unwrap_or_default();
    let upstream = section.get::<String>("upstream");
    let mut declared = known.tell(usual(called, base, line), base, upstream.as_deref().unwrap_or(called));
    let upstream = upstream.unwrap_or_else(|| called.to_owned());
    if let Some(model) = declared.served.source.model() {
        model.clone_from(&upstream);
    }
    declared.served.upstream = upstream;
    apply(section, &mut declared);
    declared.served.context = section.has("context").then_some(declared.model.context);
    // An effort scale comes with the most that it thinks, and only this kind can be said to think never.
    let is_told = section.has("thinking_max") || (base.kind == Kind::Responses && section.has("thinking"));
    declared.is_told |= is_told;
    unthought::fit(Some(section), &mut declared);
    provider::fit(Some(section), &mut declared);
    dialect::fit(Some(section), &mut declared);
    dialect::goes_on(&mut declared);
    coherence::check(section, &declared);
    if let Some(settings) = declared.served.source.chat() {
        declared.served.possible = dialect::possible(&settings.dialect, base.kind == Kind::Vllm);
        dialect::check(section, &mut declared.model, &declared.served.possible);
    }
    name.map(|_| declared)
}

/// Puts what a section says in place of what was known before: an entry of the catalogue's files, or the operator's
/// own section.
pub(super) fn apply(section: &Section<'_>, declared: &mut Declared) {
    if let Some(ability) = section.within("ability", 0.0..=1.0) {
        declared.served.ability = Some(Chance::new(ability));
    }
    if let Some(reads_alike) = section.get("reads_alike") {
        declared.served.reads_alike = Some(reads_alike);
    }
    of_the_model(section, declared);
    of_its_source(section, declared);
    let overhead = declared.model.hand_off.overhead;
    declared.model.hand_off.overhead = count(section, "overhead", 0, overhead);
}

/// A count of tokens, or what was known before.
fn count(section: &Section<'_>, key: &'static str, least: u64, known: Tokens) -> Tokens {
    section.within(key, Tokens(least)..=TOKENS_MAX).unwrap_or(known)
}

/// What is said of the model itself.
fn of_the_model(section: &Section<'_>, Declared { kind, model, .. }: &mut Declared) {
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
        if model.classes == [Class::Inline] && model.capabilities.contains(&Capability::Penalties) {
            let what = "the local engine takes no penalties";
            section.wrong("capabilities", Wrong::new(what, "take \"penalties\" out"));
        }
    }
}

/// What is said of how it is reached and spoken to.
fn of_its_source(section: &Section<'_>, Declared { kind, served, model, .. }: &mut Declared) {
    match &mut served.source {
        Source::Embedded(_) => {}
        Source::Anthropic(settings) => {
            served.possible = provider::anthropic(section, settings, model).to_vec();
        }
        Source::Gemini(settings) => served.possible = provider::gemini(section, settings, model).to_vec(),
        Source::Responses(settings) => {
            served.possible = provider::responses(section, settings, model).to_vec();
        }
        Source::OpenAi(settings) | Source::Vllm(settings) => {
            if section.has("efforts") {
                model.efforts = efforts::levels(section);
            }
            dialect::apply(section, settings);
            if *kind == Kind::Vllm {
                syntax(section, &mut settings.tool_syntax, model);
            }
            closing(section, &mut settings.hand_off);
            let is_empty = settings.hand_off.is_empty();
            if !section.has("hand_off") && !is_empty && !settings.hand_off.contains(&settings.end_tag) {
                settings.hand_off = HAND_OFF.replace(END_TAG, &settings.end_tag);
            }
            let said = ["hand_off", "turn", "classes"].into_iter().any(|key| section.has(key));
            close(section, model, &settings.hand_off, &settings.end_tag);
            if said {
                model.hand_off.overhead = reserve(&model.classes, &settings.hand_off, &settings.turn);
            }
        }
        Source::LlamaCpp(settings) => {
            section.set("start_tag", &mut settings.start_tag);
            section.set("end_tag", &mut settings.end_tag);
            closing(section, &mut settings.hand_off);
            syntax(section, &mut settings.tool_syntax, model);
            close(section, model, &settings.hand_off, &settings.end_tag);
        }
        Source::File(_, manner) => {
            section.set("start_tag", &mut manner.start_tag);
            section.set("end_tag", &mut manner.end_tag);
            closing(section, &mut manner.settings.hand_off);
            syntax(section, &mut manner.settings.tool_syntax, model);
            close(section, model, &manner.settings.hand_off, &manner.end_tag);
        }
    }
}

/// The ways in which its thinking is held, the strongest first, whatever their order here.
fn classes(section: &Section<'_>, kind: Kind) -> Vec<Class> {
    let words: Vec<(&str, Class)> = kind.classes_most().iter().map(|class| (class.word(), *class)).collect();
    let mut classes = section.words("classes", &words);
    if classes.is_empty() {
        section.wrong("classes", Wrong::new("none", "leave it out for all that this kind of backend has"));
        return kind.classes().to_vec();
    }
    classes.sort_unstable_by(|one, other| other.cmp(one));
    classes
}

/// How calls are written, where they can be read: then an answer that was resumed may be one.
fn syntax(section: &Section<'_>, known: &mut Option<Syntax>, model: &mut Model) {
    if let Some(stated) = section.word("tool_syntax", &SYNTAXES) {
        *known = Some(stated);
        model.resumes_tools = true;
    }
}

/// What closes a thought, where that is said; an empty text puts nothing in.
fn closing(section: &Section<'_>, text: &mut String) {
    if let Some(AnyText(stated)) = section.get("hand_off") {
        *text = stated;
    }
}

/// Takes the hand-off where one is configured, which must close the thought.
fn close(section: &Section<'_>, model: &mut Model, text: &str, end_tag: &str) {
    let says_nothing = text.is_empty() && !model.classes.contains(&Class::Inline);
    if !text.contains(end_tag) && !says_nothing {
        let remedy = format!("write \"{end_tag}\" where the thought is to end");
        section.wrong("hand_off", Wrong::new("does not close the thought", remedy));
    }
    if section.has("hand_off") {
        let class = model.classes.first().copied().unwrap_or(Class::Effort);
        let overhead = reserve(&model.classes, text, openai::TURN);
        model.hand_off = hand_off(class, text.to_owned(), overhead);
    }
}

/// Nothing is handed over to a hidden thought.
fn hand_off(class: Class, text: String, overhead: Tokens) -> HandOff {
    match class {
        Class::Effort => HandOff { text: String::new(), overhead, unthought: overhead },
        // The end of the text; the engine says more once it runs.
        Class::Inline => HandOff { text, overhead, unthought: Tokens(1) },
        Class::Continue | Class::Native | Class::Turn => HandOff { text, overhead, unthought: overhead },
    }
}

/// What is reserved beside thought and answer. A token is one byte at least, so the bytes of what is put in bound its
/// tokens; both tags and the end-of-text token come on top. For a hidden thought it is the template's share.
fn reserve(classes: &[Class], hand_off: &str, turn: &str) -> Tokens {
    let bytes = |class: &Class| match class {
        Class::Effort => 16,
        Class::Inline | Class::Continue | Class::Native => hand_off.len() + 3,
        // The turn's own marks come on top.
        Class::Turn => turn.len() + 16,
    };
    Tokens(classes.iter().map(bytes).max().unwrap_or(0) as u64)
}
