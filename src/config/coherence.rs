//! Whether what is said of a model goes together.

use crate::catalog::{Capability, EffortLevel, Model, Prices, Service};
use crate::units::{Price, Tokens};

use super::mistake::Wrong;
use super::model::Declared;
use super::reader::Section;
use super::route::Models;

/// Notes what does not go together in a section about a model.
pub(super) fn check(section: &Section<'_>, declared: &Declared) {
    room(section, &declared.model);
    uses(section, declared);
}

/// What a model without a price costs is a guess, and nothing is booked for it.
pub(super) fn warn_of_unpriced(root: &Section<'_>, models: &Models) {
    let unpriced = models.values().filter(|model| model.tariff.is_none());
    let (weighed, unknown): (Vec<_>, Vec<_>) = unpriced.partition(|model| model.reference.is_some());
    let remedy = "write price_input and price_output; \"0\" is a price";
    if !weighed.is_empty() {
        let each: Vec<String> = weighed.into_iter().map(|model| weighed_at(model)).collect();
        let what = format!(
            "no price is known: {}; nothing is booked for it, and keys with a limit on money are refused it",
            each.join(", ")
        );
        root.doubt("backend", Wrong::new(what, remedy));
    }
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.into_iter().map(|model| &*model.name).collect();
        let what = format!(
            "no price is known of {}, not even by its name: it serves whoever names it, is left out of auto and of every \
             other choice, and keys with a limit on money are refused it",
            names.join(", ")
        );
        root.doubt("backend", Wrong::new(what, remedy));
    }
}

/// A model, and the price that it is weighed at.
fn weighed_at(model: &Model) -> String {
    let list = model.reference.map(|reference| reference.rates.list);
    let dollars = |price: Price| price.per_million_tokens;
    list.map_or_else(String::new, |Prices { input, output }| {
        let (input, output) = (dollars(input), dollars(output));
        format!("{} is weighed at {input} and {output} dollars for a million tokens", model.name)
    })
}

/// A model of which only the name is known is taken for one that does not think, and what callers say of its thinking is
/// not passed on.
pub(super) fn warn_of_untold<'m>(root: &Section<'_>, all: impl Iterator<Item = &'m Declared>) {
    let is_untold = |declared: &&Declared| {
        let Declared { model, is_told, .. } = declared;
        !is_told
            && model.thinking_max == Tokens::ZERO
            && model.services.iter().any(|service| *service != Service::Embeddings)
    };
    let untold: Vec<&str> = all.filter(is_untold).map(|declared| &*declared.model.name).collect();
    if !untold.is_empty() {
        let what = format!(
            "nothing tells whether {} can think: taken for one that does not, so that budgets and efforts stated for its \
             thinking have no effect",
            untold.join(", ")
        );
        let remedy = "say thinking_max (0 if it does not) or efforts, or run `stint probe`";
        root.doubt("backend", Wrong::new(what, remedy));
    }
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
