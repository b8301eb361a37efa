//! How an upstream's chat completions are spoken to: what its kind says, and the flags of a model over it.

use crate::config::reader::Section;
use stint_backend::remote::openai::{
    BudgetMember, ChatScope, Dialect, EffortMember, MemberWord, ResumeMethod, Settings, ThinkingSwitch,
    ThoughtReplay, UsageMember,
};
use stint_types::catalog::{EnforcementClass, GoesOn, Model};

use super::declared_model::DeclaredModel;
use super::kind::BackendKind;
use super::model_source::ModelSource;

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

const RESUMES: [(&str, ResumeMethod); 4] = [
    ("prefix", ResumeMethod::PrefixReasoning),
    ("prefix_part", ResumeMethod::PrefixPart),
    ("final_message", ResumeMethod::FinalMessage),
    ("never", ResumeMethod::Never),
];

const USAGES: [(&str, UsageMember); 4] = [
    ("at_end", UsageMember::AtEnd),
    ("each_chunk", UsageMember::EachChunk),
    ("timings", UsageMember::Timings),
    ("unasked", UsageMember::Unasked),
];

const CHAT_SCOPES: [(&str, ChatScope); 4] = [
    ("all", ChatScope::All),
    ("unthinking_tools", ChatScope::UnthinkingTools),
    ("no_tools", ChatScope::NoTools),
    ("nothing", ChatScope::Nothing),
];

/// What is known of a kind.
pub(super) fn dialect_of(kind: BackendKind) -> Dialect {
    match kind {
        BackendKind::DeepSeek => Dialect::deepseek(),
        BackendKind::DashScope => Dialect::dashscope(),
        BackendKind::OpenRouter => Dialect::openrouter(),
        BackendKind::Vllm => Dialect::vllm(),
        BackendKind::Sglang => Dialect::sglang(),
        BackendKind::Mistral => Dialect::mistral(),
        BackendKind::Xai => Dialect::xai(),
        BackendKind::Ollama => Dialect::ollama(),
        BackendKind::LlamaCpp => Dialect::llamacpp(),
        BackendKind::OpenAi
        | BackendKind::Local
        | BackendKind::Anthropic
        | BackendKind::Gemini
        | BackendKind::Responses => Dialect::openai(),
    }
}

/// The flags of a section in place of what was known.
pub(super) fn apply(section: &Section<'_>, settings: &mut Settings) {
    section.set("start_tag", &mut settings.start_tag);
    section.set("end_tag", &mut settings.end_tag);
    section.set("starts_in_thinking", &mut settings.starts_in_thinking);
    section.set("turn", &mut settings.new_turn_prompt);
    if !settings.new_turn_prompt.contains("{thought}") {
        section.reject("turn", "does not quote the thought", "write \"{thought}\" where it is to stand");
    }
    let dialect = &mut settings.dialect;
    section.set("limit_has_thought", &mut dialect.limit_includes_thought);
    dialect.effort = section.word("effort_as", &EFFORTS).unwrap_or(dialect.effort);
    dialect.budget = section.word("budget_as", &BUDGETS).or(dialect.budget);
    if let Some(resume) = section.word("resume_as", &RESUMES) {
        (dialect.resume, dialect.prefill) = (resume, resume.prefill());
    }
    dialect.usage = section.word("usage_as", &USAGES).unwrap_or(dialect.usage);
    if let Some(switch) = switch(section) {
        dialect.switch = switch;
    }
    match section.get("thoughts_back") {
        Some(true) if dialect.thought_replay == ThoughtReplay::Never => {
            let is_part = dialect.resume == ResumeMethod::PrefixPart;
            dialect.thought_replay =
                if is_part { ThoughtReplay::AsPart } else { ThoughtReplay::AsReceived("reasoning_content") };
        }
        Some(false) => dialect.thought_replay = ThoughtReplay::Never,
        Some(true) | None => {}
    }
    if let Some(missing) = section.get::<String>("thought_missing") {
        dialect.thought_replay =
            ThoughtReplay::WithCalls { member: "reasoning_content", missing: missing.into() };
    }
    member_words(section, "omit", &mut dialect.omits);
    member_words(section, "omit_thinking", &mut dialect.omits_thinking);
    let rule = &mut settings.responses;
    rule.chat = section.word("chat_takes", &CHAT_SCOPES).unwrap_or(rule.chat);
    member_words(section, "responses_efforts", &mut rule.efforts);
    section.set("summaries", &mut rule.summaries);
}

/// A list of words in place of what was known.
fn member_words(section: &Section<'_>, key: &'static str, known: &mut Vec<MemberWord>) {
    if section.has(key) {
        *known = section.get_or(key, Vec::<String>::new()).into_iter().map(MemberWord::from).collect();
    }
}

/// `switch_as`, with the words that it needs.
fn switch(section: &Section<'_>) -> Option<ThinkingSwitch> {
    let argument = || section.get_or("switch_argument", "enable_thinking".to_owned()).into();
    let effort = || ThinkingSwitch::Effort {
        on: section.get::<String>("effort_on").map(MemberWord::from),
        off: section.get_or("effort_off", "none".to_owned()).into(),
    };
    let known = [
        ("chat_template_kwargs", ThinkingSwitch::Template(argument())),
        ("enable_thinking", ThinkingSwitch::EnableThinking),
        ("thinking", ThinkingSwitch::ThinkingType),
        ("reasoning", ThinkingSwitch::Reasoning),
        ("reasoning_effort", effort()),
        ("never", ThinkingSwitch::Never),
    ];
    section.word("switch_as", &known)
}

/// Every way in which an upstream can hold a thought, the strongest first. `raw` where it has raw completions to resume
/// by besides.
pub(super) fn possible_classes(dialect: &Dialect, raw: bool) -> Vec<EnforcementClass> {
    let resumes = raw || (dialect.resume != ResumeMethod::Never && dialect.limit_includes_thought);
    let has = [
        (EnforcementClass::Continue, resumes),
        (EnforcementClass::Native, dialect.budget.is_some()),
        (EnforcementClass::Turn, dialect.switch != ThinkingSwitch::Never),
        (EnforcementClass::Effort, true),
    ];
    has.into_iter().filter(|(_, has)| *has).map(|(class, _)| class).collect()
}

/// A model that cannot be kept from thinking is not asked for an answer without a thought.
pub(super) fn adjust_classes(
    section: Option<&Section<'_>>,
    DeclaredModel { config: served, model, .. }: &mut DeclaredModel,
) {
    if !model.thinks_always
        || served.source.chat_mut().is_none()
        || !model.classes.contains(&EnforcementClass::Turn)
    {
        return;
    }
    if let Some(section) = section.filter(|section| section.has("classes")) {
        let what = "\"turn\" asks for the answer with thinking off, and the model thinks always";
        section.reject("classes", what, "take \"turn\" out, or thinks_always");
    }
    model.classes.retain(|class| *class != EnforcementClass::Turn);
    if model.classes.is_empty() {
        model.classes.push(EnforcementClass::Effort);
    }
}

/// How its answers are continued, as far as its API supports that. Anthropic's newer models, which think as much as they
/// see fit, take no beginning of an answer.
pub(super) fn goes_on(DeclaredModel { config: served, model, .. }: &mut DeclaredModel) {
    model.goes_on = match &served.source {
        ModelSource::OpenAi(settings) if settings.dialect.resume != ResumeMethod::Never => GoesOn::Resumed,
        ModelSource::Anthropic(settings) if settings.goes_on() => GoesOn::Unthought,
        _ => GoesOn::Never,
    };
}

/// Each way in which the thinking is to be held must be one that the upstream has words for. Of those that nobody wrote,
/// the others are left out.
pub(super) fn check(section: &Section<'_>, model: &mut Model, possible: &[EnforcementClass]) {
    if !section.has("classes") {
        model.classes.retain(|class| possible.contains(class));
        if model.classes.is_empty() {
            model.classes.extend(possible);
        }
        return;
    }
    for class in model.classes.iter().filter(|class| !possible.contains(class)) {
        let what = format!("\"{}\" is more than this upstream is known to have", class.as_str());
        let remedy = match class {
            EnforcementClass::Native => "say what takes the budget, like budget_as = \"thinking_budget\"",
            EnforcementClass::Continue => "say how a thought is resumed, like resume_as = \"final_message\"",
            EnforcementClass::Turn => "say what turns thinking off, like switch_as = \"enable_thinking\"",
            EnforcementClass::Effort | EnforcementClass::Inline => "take it out",
        };
        section.reject("classes", what, remedy);
    }
}
