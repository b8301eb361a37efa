//! How an upstream's chat completions are spoken to: what its kind says, and the flags of a model over it.

use crate::backend::remote::openai::{
    BudgetMember, Dialect, EffortMember, Resume, Settings, Switch, ThoughtsBack, UsageMember, Word,
};
use crate::catalog::{Class, GoesOn, Model};

use super::backend::Source;
use super::kind::Kind;
use super::mistake::Wrong;
use super::model::Declared;
use super::reader::Section;

const EFFORTS: [(&str, EffortMember); 3] = [
    ("reasoning_effort", EffortMember::ReasoningEffort),
    ("reasoning", EffortMember::Reasoning),
    ("never", EffortMember::Never),
];

const BUDGETS: [(&str, BudgetMember); 5] = [
    ("thinking_token_budget", BudgetMember::ThinkingTokenBudget),
    ("custom_params", BudgetMember::CustomParams),
    ("thinking_budget_tokens", BudgetMember::ThinkingBudgetTokens),
    ("thinking_budget", BudgetMember::ThinkingBudget),
    ("reasoning", BudgetMember::ReasoningMaxTokens),
];

const RESUMES: [(&str, Resume); 4] = [
    ("prefix", Resume::PrefixReasoning),
    ("prefix_part", Resume::PrefixPart),
    ("final_message", Resume::FinalMessage),
    ("never", Resume::Never),
];

const USAGES: [(&str, UsageMember); 4] = [
    ("at_end", UsageMember::AtEnd),
    ("each_chunk", UsageMember::EachChunk),
    ("timings", UsageMember::Timings),
    ("unasked", UsageMember::Unasked),
];

/// What is known of a kind.
pub(super) fn of(kind: Kind) -> Dialect {
    match kind {
        Kind::DeepSeek => Dialect::deepseek(),
        Kind::DashScope => Dialect::dashscope(),
        Kind::OpenRouter => Dialect::openrouter(),
        Kind::Vllm => Dialect::vllm(),
        Kind::Sglang => Dialect::sglang(),
        Kind::Mistral => Dialect::mistral(),
        Kind::Xai => Dialect::xai(),
        Kind::Ollama => Dialect::ollama(),
        Kind::LlamaCpp => Dialect::llamacpp(),
        Kind::OpenAi | Kind::Local | Kind::Anthropic | Kind::Gemini | Kind::Responses => Dialect::openai(),
    }
}

/// The flags of a section in place of what was known.
pub(super) fn apply(section: &Section<'_>, settings: &mut Settings) {
    section.set("start_tag", &mut settings.start_tag);
    section.set("end_tag", &mut settings.end_tag);
    section.set("starts_in_thinking", &mut settings.starts_in_thinking);
    section.set("turn", &mut settings.turn);
    if !settings.turn.contains("{thought}") {
        section.wrong(
            "turn",
            Wrong::new("does not quote the thought", "write \"{thought}\" where it is to stand"),
        );
    }
    let dialect = &mut settings.dialect;
    section.set("limit_has_thought", &mut dialect.limit_has_thought);
    dialect.effort = section.word("effort_as", &EFFORTS).unwrap_or(dialect.effort);
    dialect.budget = section.word("budget_as", &BUDGETS).or(dialect.budget);
    dialect.resume = section.word("resume_as", &RESUMES).unwrap_or(dialect.resume);
    dialect.usage = section.word("usage_as", &USAGES).unwrap_or(dialect.usage);
    if let Some(switch) = switch(section) {
        dialect.switch = switch;
    }
    match section.get("thoughts_back") {
        Some(true) if dialect.thoughts_back == ThoughtsBack::Never => {
            dialect.thoughts_back = ThoughtsBack::Said("reasoning_content");
        }
        Some(false) => dialect.thoughts_back = ThoughtsBack::Never,
        Some(true) | None => {}
    }
    if section.has("omit") {
        dialect.omits = section.or("omit", Vec::<String>::new()).into_iter().map(Word::from).collect();
    }
}

/// `switch_as`, with the words that it needs.
fn switch(section: &Section<'_>) -> Option<Switch> {
    let argument = || section.or("switch_argument", "enable_thinking".to_owned()).into();
    let effort = || Switch::Effort {
        on: section.get::<String>("effort_on").map(Word::from),
        off: section.or("effort_off", "none".to_owned()).into(),
    };
    let known = [
        ("chat_template_kwargs", Switch::Template(argument())),
        ("enable_thinking", Switch::EnableThinking),
        ("thinking", Switch::ThinkingType),
        ("reasoning", Switch::Reasoning),
        ("reasoning_effort", effort()),
        ("never", Switch::Never),
    ];
    section.word("switch_as", &known)
}

/// Every way in which an upstream can hold a thought, the strongest first. `raw` where it has raw completions to resume
/// by besides.
pub(super) fn possible(dialect: &Dialect, raw: bool) -> Vec<Class> {
    let resumes = raw || (dialect.resume != Resume::Never && dialect.limit_has_thought);
    let has = [
        (Class::Continue, resumes),
        (Class::Native, dialect.budget.is_some()),
        (Class::Turn, dialect.switch != Switch::Never),
        (Class::Effort, true),
    ];
    has.into_iter().filter(|(_, has)| *has).map(|(class, _)| class).collect()
}

/// A model that cannot be kept from thinking is not asked for an answer without a thought.
pub(super) fn fit(section: Option<&Section<'_>>, Declared { served, model, .. }: &mut Declared) {
    if !model.thinks_always || served.source.chat().is_none() || !model.classes.contains(&Class::Turn) {
        return;
    }
    if let Some(section) = section.filter(|section| section.has("classes")) {
        let what = "\"turn\" asks for the answer with thinking off, and the model thinks always";
        section.wrong("classes", Wrong::new(what, "take \"turn\" out, or thinks_always"));
    }
    model.classes.retain(|class| *class != Class::Turn);
    if model.classes.is_empty() {
        model.classes.push(Class::Effort);
    }
}

/// How its answers are gone on with, as far as its API has words for that. Anthropic's newer models, which think as much as they
/// see fit, take no beginning of an answer.
pub(super) fn goes_on(Declared { served, model, .. }: &mut Declared) {
    model.goes_on = match &served.source {
        Source::OpenAi(settings) if settings.dialect.resume != Resume::Never => GoesOn::Resumed,
        Source::Anthropic(settings) if settings.goes_on() => GoesOn::Unthought,
        _ => GoesOn::Never,
    };
}

/// Each way in which the thinking is to be held must be one that the upstream has words for. Of those that nobody wrote,
/// the others are left out.
pub(super) fn check(section: &Section<'_>, model: &mut Model, possible: &[Class]) {
    if !section.has("classes") {
        model.classes.retain(|class| possible.contains(class));
        if model.classes.is_empty() {
            model.classes.extend(possible);
        }
        return;
    }
    for class in model.classes.iter().filter(|class| !possible.contains(class)) {
        let what = format!("\"{}\" is more than this upstream is known to have", class.word());
        let remedy = match class {
            Class::Native => "say what takes the budget, like budget_as = \"thinking_budget\"",
            Class::Continue => "say how a thought is resumed, like resume_as = \"final_message\"",
            Class::Turn => "say what turns thinking off, like switch_as = \"enable_thinking\"",
            Class::Effort | Class::Inline => "take it out",
        };
        section.wrong("classes", Wrong::new(what, remedy));
    }
}
