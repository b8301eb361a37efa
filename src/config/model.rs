//! `[[backend.model]]`: what is known about a model, over what its kind and the catalogue's files say of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::local;
use crate::backend::remote::{llamacpp, openai};
use crate::catalog::{Capability, EnforcementClass, GoesOn, HandOff, Model, Service};
use crate::prompt::tool_calls::ToolCallSyntax;
use crate::units::{Chance, Tokens};

use super::backend::{BackendDefaults, LocalModelSettings, ModelConfig, ModelSource};
use super::coherence;
use super::diagnostic::ValueError;
use super::dialect;
use super::efforts;
use super::kind::BackendKind;
use super::known_models::KnownModels;
use super::non_thinking;
use super::provider;
use super::reader::{Document, Section};
use super::route::ModelMap;
use super::tariff;
use super::value::AnyText;

/// The keys that models of only some kinds have.
const KIND_SPECIFIC_KEYS: [&str; 8] = [
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
pub(super) struct DeclaredModel {
    pub(super) kind: BackendKind,
    pub(super) config: ModelConfig,
    pub(super) model: Model,
    /// Whether anything tells how it thinks: the section itself, or an entry about it.
    pub(super) is_thinking_known: bool,
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

const SYNTAXES: [(&str, ToolCallSyntax); 6] = [
    ("hermes", ToolCallSyntax::Hermes),
    ("mistral", ToolCallSyntax::Mistral),
    ("llama", ToolCallSyntax::Llama),
    ("coder", ToolCallSyntax::Coder),
    ("deepseek", ToolCallSyntax::DeepSeek),
    ("harmony", ToolCallSyntax::Harmony),
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
    if models.is_empty() && !backend.has("models") && !backend.has("model") {
        let remedy = "name them, models = [\"…\"], or declare each as [[backend.model]]";
        backend.reject("models", ValueError::new("no models", remedy));
    }
    models
}

/// The catalog's models by name; two of one name are a mistake.
pub(super) fn catalog<'m>(document: &Document<'_>, all: impl Iterator<Item = &'m DeclaredModel>) -> ModelMap {
    let mut catalog = BTreeMap::new();
    for DeclaredModel { model, line, .. } in all {
        if catalog.insert(model.name.clone(), Arc::new(model.clone())).is_some() {
            let what = format!("a second model \"{}\"", model.name);
            let remedy = "give it another name, and say upstream = \"…\" for its name there";
            document.reject(*line, "backend.model.name".to_owned(), ValueError::new(what, remedy));
        }
    }
    catalog
}

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
        classes: classes.to_vec(),
        thinking_min: if base.kind == BackendKind::Anthropic { Tokens(1024) } else { Tokens::ZERO },
        thinks_always: false,
        thinking_max: if thinks { Tokens(8192) } else { Tokens::ZERO },
        thinking_usual: None,
        solution_max: None,
        output_max: None,
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
        specialty: None,
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
            context: None,
            deployments: base.deployments.clone(),
            reads_alike: None,
        },
        model,
        is_thinking_known: false,
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
        _ => dialect::possible_classes(&dialect::dialect_of(kind), kind == BackendKind::Vllm),
    }
}

fn source(name: &str, base: &BackendDefaults) -> ModelSource {
    if let Some(source) = provider::source(base.kind, name, base) {
        return source;
    }
    match base.kind {
        BackendKind::Local => {
            let settings = local::Settings { hand_off: HAND_OFF.to_owned(), ..local::Settings::default() };
            let (start_tag, end_tag) = (START_TAG.to_owned(), END_TAG.to_owned());
            ModelSource::File(base.file.clone(), LocalModelSettings { start_tag, end_tag, settings })
        }
        BackendKind::LlamaCpp => ModelSource::LlamaCpp(llamacpp::Settings {
            client: base.client.clone(),
            hand_off: HAND_OFF.to_owned(),
            ..llamacpp::Settings::default()
        }),
        BackendKind::Vllm => ModelSource::Vllm(chat(name, base)),
        _ => ModelSource::OpenAi(chat(name, base)),
    }
}

fn chat(name: &str, base: &BackendDefaults) -> openai::Settings {
    let mut dialect = dialect::dialect_of(base.kind);
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
    apply(section, &mut declared);
    declared.config.context = section.has("context").then_some(declared.model.context);
    // An effort scale comes with the most that it thinks, and only this kind can be said to think never.
    let is_told =
        section.has("thinking_max") || (base.kind == BackendKind::Responses && section.has("thinking"));
    declared.is_thinking_known |= is_told;
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

/// Puts what a section says in place of what was known before: an entry of the catalogue's files, or the operator's
/// own section.
pub(super) fn apply(section: &Section<'_>, declared: &mut DeclaredModel) {
    if let Some(ability) = section.within("ability", 0.0..=1.0) {
        declared.config.ability = Some(Chance::new(ability));
    }
    if let Some(reads_alike) = section.get("reads_alike") {
        declared.config.reads_alike = Some(reads_alike);
    }
    apply_model_keys(section, declared);
    apply_source_keys(section, declared);
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
        if model.classes == [EnforcementClass::Inline] && model.capabilities.contains(&Capability::Penalties)
        {
            let what = "the local engine takes no penalties";
            section.reject("capabilities", ValueError::new(what, "take \"penalties\" out"));
        }
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
                model.efforts = efforts::levels(section);
            }
            dialect::apply(section, settings);
            if *kind == BackendKind::Vllm {
                syntax(section, &mut settings.tool_syntax, model);
            }
            read_hand_off(section, &mut settings.hand_off);
            let is_empty = settings.hand_off.is_empty();
            if !section.has("hand_off") && !is_empty && !settings.hand_off.contains(&settings.end_tag) {
                settings.hand_off = HAND_OFF.replace(END_TAG, &settings.end_tag);
            }
            let said = ["hand_off", "turn", "classes"].into_iter().any(|key| section.has(key));
            take_hand_off(section, model, &settings.hand_off, &settings.end_tag);
            if said {
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
        ModelSource::File(_, manner) => {
            section.set("start_tag", &mut manner.start_tag);
            section.set("end_tag", &mut manner.end_tag);
            read_hand_off(section, &mut manner.settings.hand_off);
            syntax(section, &mut manner.settings.tool_syntax, model);
            take_hand_off(section, model, &manner.settings.hand_off, &manner.end_tag);
        }
    }
}

/// The ways in which its thinking is held, the strongest first, whatever their order here.
fn classes(section: &Section<'_>, kind: BackendKind) -> Vec<EnforcementClass> {
    let words: Vec<(&str, EnforcementClass)> =
        kind.possible_classes().iter().map(|class| (class.as_str(), *class)).collect();
    let mut classes = section.words("classes", &words);
    if classes.is_empty() {
        section
            .reject("classes", ValueError::new("none", "leave it out for all that this kind of backend has"));
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

/// What closes a thought, where that is said; an empty text puts nothing in.
fn read_hand_off(section: &Section<'_>, text: &mut String) {
    if let Some(AnyText(stated)) = section.get("hand_off") {
        *text = stated;
    }
}

/// Takes the hand-off where one is configured, which must close the thought.
fn take_hand_off(section: &Section<'_>, model: &mut Model, text: &str, end_tag: &str) {
    let says_nothing = text.is_empty() && !model.classes.contains(&EnforcementClass::Inline);
    if !text.contains(end_tag) && !says_nothing {
        let remedy = format!("write \"{end_tag}\" where the thought is to end");
        section.reject("hand_off", ValueError::new("does not close the thought", remedy));
    }
    if section.has("hand_off") {
        let class = model.classes.first().copied().unwrap_or(EnforcementClass::Effort);
        let overhead = overhead_bound(&model.classes, text, openai::NEW_TURN_PROMPT);
        model.hand_off = hand_off(class, text.to_owned(), overhead);
    }
}

/// Nothing is handed over to a hidden thought.
fn hand_off(class: EnforcementClass, text: String, overhead: Tokens) -> HandOff {
    match class {
        EnforcementClass::Effort => {
            HandOff { text: String::new(), overhead, overhead_without_thought: overhead }
        }
        // The end of the text; the engine says more once it runs.
        EnforcementClass::Inline => HandOff { text, overhead, overhead_without_thought: Tokens(1) },
        EnforcementClass::Continue | EnforcementClass::Native | EnforcementClass::Turn => {
            HandOff { text, overhead, overhead_without_thought: overhead }
        }
    }
}

/// What is reserved beside thought and answer. A token is one byte at least, so the bytes of what is put in bound its
/// tokens; both tags and the end-of-text token come on top. For a hidden thought it is the template's share.
fn overhead_bound(classes: &[EnforcementClass], hand_off: &str, turn: &str) -> Tokens {
    let bytes = |class: &EnforcementClass| match class {
        EnforcementClass::Effort => 16,
        EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Native => {
            hand_off.len() + 3
        }
        // The turn's own marks come on top.
        EnforcementClass::Turn => turn.len() + 16,
    };
    Tokens(classes.iter().map(bytes).max().unwrap_or(0) as u64)
}
