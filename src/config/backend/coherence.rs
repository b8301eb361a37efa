//! Checks that the settings of a model are consistent.

use crate::config::reader::Section;
use stint_types::catalog::{Capability, EffortLevel, Model};
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;

/// Notes what does not go together in a section about a model.
pub(super) fn check(section: &Section<'_>, declared: &DeclaredModel) {
    room(section, &declared.model);
    uses(section, declared);
}

/// Each setting of a model must make sense together with its other settings.
fn uses(section: &Section<'_>, DeclaredModel { kind, model, .. }: &DeclaredModel) {
    let most = kind.possible_services();
    for service in model.services.iter().filter(|service| !most.contains(service)) {
        let what = format!("\"{}\" is not to be had from kind \"{}\"", service.as_str(), kind.as_str());
        let remedy = "take it out, or serve the model by a backend of another kind, like \"openai\"";
        section.reject("serves", what, remedy);
    }
    if section.has("tool_syntax") && !model.has_capability(Capability::Tools) {
        let remedy = "say that it calls tools, capabilities = [\"tools\"], or take it out";
        section.reject("tool_syntax", "of no use to a model that calls no tools", remedy);
    }
}

/// Its tokens must leave room for one another.
fn room(section: &Section<'_>, model: &Model) {
    let needed = model.thinking_max.max(Tokens(1)) + model.hand_off.overhead + Tokens(1);
    if needed >= model.context {
        let what = format!("{} tokens leave no room for a prompt", model.context);
        let remedy =
            format!("thought, hand-off and a token of answer take {needed}: raise it, or lower thinking_max");
        section.reject("context", what, remedy);
    }
    if model.thinking_min > model.thinking_max && model.thinking_max > Tokens::ZERO {
        let what = format!("{} is more than thinking_max", model.thinking_min);
        section.reject("thinking_min", what, format!("write at most {}", model.thinking_max));
    }
    let too_long =
        |level: &&EffortLevel| level.usual > model.thinking_max && model.thinking_max > Tokens::ZERO;
    if let Some(level) = model.efforts.iter().find(too_long) {
        let what = format!("\"{}\" usually thinks more than thinking_max", level.word);
        section.reject(
            "efforts",
            what,
            format!("{} is the most; lower it or raise that", model.thinking_max),
        );
    }
    if !model.efforts.is_empty() && model.thinking_max == Tokens::ZERO {
        let remedy = "write the most that it can think, in tokens";
        section.reject("thinking_max", "missing for a model with efforts", remedy);
    }
}
