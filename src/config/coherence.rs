//! Whether what is said of a model goes together.

use crate::catalog::{Capability, EffortLevel, Model};
use crate::units::Tokens;

use super::mistake::Wrong;
use super::model::Declared;
use super::reader::Section;

/// Notes what does not go together in a section about a model.
pub(super) fn check(section: &Section<'_>, declared: &Declared) {
    room(section, &declared.model);
    uses(section, declared);
}

/// What is said of a model must be of use with all else that is said.
fn uses(section: &Section<'_>, Declared { kind, model, .. }: &Declared) {
    let most = kind.services_most();
    for service in model.services.iter().filter(|service| !most.contains(service)) {
        let what = format!("\"{}\" is not to be had from kind \"{}\"", service.word(), kind.word());
        let remedy = "take it out, or serve the model by a backend of another kind, like \"openai\"";
        section.wrong("serves", Wrong::new(what, remedy));
    }
    if section.has("tool_syntax") && !model.can(Capability::Tools) {
        let remedy = "say that it calls tools, capabilities = [\"tools\"], or take it out";
        section.wrong("tool_syntax", Wrong::new("of no use to a model that calls no tools", remedy));
    }
}

/// Its tokens must leave room for one another.
fn room(section: &Section<'_>, model: &Model) {
    let needed = model.thinking_max.max(Tokens(1)) + model.hand_off.overhead + Tokens(1);
    if needed >= model.context {
        let what = format!("{} tokens leave no room for a prompt", model.context);
        let remedy =
            format!("thought, hand-off and a token of answer take {needed}: raise it, or lower thinking_max");
        section.wrong("context", Wrong::new(what, remedy));
    }
    if model.thinking_min > model.thinking_max && model.thinking_max > Tokens::ZERO {
        let what = format!("{} is more than thinking_max", model.thinking_min);
        section.wrong("thinking_min", Wrong::new(what, format!("write at most {}", model.thinking_max)));
    }
    let too_long =
        |level: &&EffortLevel| level.usual > model.thinking_max && model.thinking_max > Tokens::ZERO;
    if let Some(level) = model.efforts.iter().find(too_long) {
        let what = format!("\"{}\" usually thinks more than thinking_max", level.word);
        section.wrong(
            "efforts",
            Wrong::new(what, format!("{} is the most; lower it or raise that", model.thinking_max)),
        );
    }
    if !model.efforts.is_empty() && model.thinking_max == Tokens::ZERO {
        let remedy = "write the most that it can think, in tokens";
        section.wrong("thinking_max", Wrong::new("missing for a model with efforts", remedy));
    }
}
