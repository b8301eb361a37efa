//! Warnings about models: settings that are valid but probably not intended, each at the model's own line.

use std::collections::BTreeMap;

use crate::config::reader::{Document, ValueError};
use stint_types::catalog::{AbilityGuess, Capability, Model, Prices, Service};
use stint_types::units::{Price, Tokens};

use super::declared_model::DeclaredModel;
use super::model_source::ModelSource;

/// Notes what of all models is not known, and what is assumed instead.
pub(super) fn warn_models(document: &Document<'_>, all: &[DeclaredModel]) {
    // Names that stand in one line have one note.
    let mut lines: BTreeMap<Option<usize>, Vec<&DeclaredModel>> = BTreeMap::new();
    // Of the embedded one everything is known.
    for declared in all.iter().filter(|declared| declared.config.kind.is_some()) {
        lines.entry(declared.line).or_default().push(declared);
    }
    // Where there is no choice, nobody asks which is the abler.
    let has_choice = lines.values().flatten().filter(|declared| answers(declared)).count() > 1;
    let doubts = if has_choice { &MODEL_WARNINGS[..] } else { &MODEL_WARNINGS[..MODEL_WARNINGS.len() - 1] };
    for (line, models) in lines {
        for (is_so, told) in doubts {
            let models: Vec<&DeclaredModel> =
                models.iter().copied().filter(|declared| is_so(declared)).collect();
            if !models.is_empty() {
                document.warn(line, "backend", told(&models));
            }
        }
    }
}

type ModelWarning = (fn(&DeclaredModel) -> bool, fn(&[&DeclaredModel]) -> ValueError);

/// The last is about choosing.
const MODEL_WARNINGS: [ModelWarning; 7] = [
    (is_reference_priced, reference_priced),
    (is_unpriced, unpriced),
    (is_price_odd, odd_price),
    (is_boundless, boundless),
    (is_thinking_unknown, thinking_unknown),
    (lacks_capabilities, no_capabilities),
    (is_ability_unknown, ability_unknown),
];

/// The remedy where nobody wrote a price.
const PRICES: &str = "write price_input and price_output; \"0\" is a price";

/// What a model without a price costs is a guess, and nothing is booked for it.
fn is_reference_priced(declared: &DeclaredModel) -> bool {
    declared.model.tariff.is_none() && declared.model.reference.is_some()
}

fn reference_priced(models: &[&DeclaredModel]) -> ValueError {
    let each: Vec<String> = models.iter().map(|declared| reference_price(&declared.model)).collect();
    let what = format!(
        "no price is known: {}; nothing is booked for such a model, and keys with a limit on money are refused it",
        each.join(", ")
    );
    ValueError::new(what, PRICES)
}

/// A model, and the price that it is weighed at.
fn reference_price(model: &Model) -> String {
    let list = model.reference.map(|reference| reference.rates.list);
    let dollars = |price: Price| price.per_million_tokens;
    list.map_or_else(String::new, |Prices { input, output }| {
        let (input, output) = (dollars(input), dollars(output));
        format!("{} is weighed at {input} and {output} dollars for a million tokens", model.name)
    })
}

fn is_unpriced(declared: &DeclaredModel) -> bool {
    declared.model.tariff.is_none() && declared.model.reference.is_none()
}

fn unpriced(models: &[&DeclaredModel]) -> ValueError {
    let what = format!(
        "no price is known of {}, not even by name: such a model serves requests that name it, is left out of auto and \
         of every other choice, and keys with a limit on money are refused it",
        names(models)
    );
    ValueError::new(what, PRICES)
}

/// From how many times as much or as little on a price is hardly meant: one for a thousand tokens, or for a single one, is further off.
const ODD_FACTOR: u64 = 200;

/// A limit on money would be used up at once, or never. On a server of one's own an open model may cost next to nothing.
fn is_price_odd(declared: &DeclaredModel) -> bool {
    let (Some(stated), Some(usual)) = (declared.model.tariff, declared.model.reference) else { return false };
    let (stated, usual) = (stated.rates.list, usual.rates.list);
    let may_be_low = declared.kind.is_self_hosted(declared.config.host.as_deref());
    let is_odd = |stated, usual| is_far_above(stated, usual) || (!may_be_low && is_far_above(usual, stated));
    declared.is_price_listed && (is_odd(stated.input, usual.input) || is_odd(stated.output, usual.output))
}

/// Nothing is far from what costs nothing.
fn is_far_above(more: Price, less: Price) -> bool {
    let (more, less) = (more.per_million_tokens.0, less.per_million_tokens.0);
    more.checked_div(less).is_some_and(|times| times >= ODD_FACTOR)
}

fn odd_price(models: &[&DeclaredModel]) -> ValueError {
    let each: Vec<String> = models.iter().filter_map(|declared| both_prices(&declared.model)).collect();
    let what = format!("a price is far from what such models cost: {}", each.join(", "));
    ValueError::new(what, "prices are dollars for a million tokens: compare them with your provider's")
}

/// What is stated for a model, and what is known.
fn both_prices(model: &Model) -> Option<String> {
    let Prices { input, output } = model.tariff?.rates.list;
    let usual = model.reference?.rates.list;
    let [input, output, usual_input, usual_output] =
        [input, output, usual.input, usual.output].map(|price| price.per_million_tokens);
    let name = &model.name;
    Some(format!("{name} has {input} and {output}, in place of about {usual_input} and {usual_output}"))
}

fn names(models: &[&DeclaredModel]) -> String {
    let names: Vec<&str> = models.iter().map(|declared| &*declared.model.name).collect();
    names.join(", ")
}

/// Nothing is held against a context that nobody knows. Of a file it is read, and these servers are asked for it.
fn is_boundless(declared: &DeclaredModel) -> bool {
    let is_asked_for = match &declared.config.source {
        ModelSource::File(..) | ModelSource::Vllm(_) => true,
        // Where it is said whether the model thinks, nothing is asked.
        ModelSource::LlamaCpp(settings) => settings.thinks.is_none(),
        _ => false,
    };
    !is_asked_for && !declared.model.knows_context()
}

fn boundless(models: &[&DeclaredModel]) -> ValueError {
    let what = format!(
        "the context of {} is not known: prompts of any length are passed on, and no answer is limited by it",
        names(models)
    );
    ValueError::new(what, "say context, in tokens, as the server was given it")
}

/// A model of which only the name is known is taken for one that does not think, and what callers say of its thinking is
/// not passed on.
fn is_thinking_unknown(declared: &DeclaredModel) -> bool {
    !declared.is_thinking_known && declared.model.thinking_max == Tokens::ZERO && answers(declared)
}

fn thinking_unknown(models: &[&DeclaredModel]) -> ValueError {
    let names = names(models);
    let what = format!(
        "it is not known whether {names} can think: no thought is expected, so budgets and efforts stated for one have \
         no effect"
    );
    ValueError::new(what, "say thinking_max (0 for no thoughts) or efforts, or run `stint probe`")
}

/// A model that is not known to do anything but chat refuses tools, forms and images.
fn lacks_capabilities(declared: &DeclaredModel) -> bool {
    declared.model.capabilities.iter().all(|known| *known == Capability::Json) && answers(declared)
}

fn no_capabilities(models: &[&DeclaredModel]) -> ValueError {
    let names = names(models);
    if models.iter().all(|declared| declared.model.has_capability(Capability::Json)) {
        let what = format!(
            "nothing beside text and JSON is expected of {names}: requests with tools or images are refused, and a schema is \
             told in words"
        );
        return ValueError::new(what, "say capabilities = [\"tools\", \"json\"], as it is");
    }
    let what = format!(
        "nothing beside plain text is expected of {names}: requests with tools, a schema for the answer or images are refused"
    );
    ValueError::new(
        what,
        "say capabilities = [\"tools\", \"schema\", \"images\"], or [\"tools\"] alone, as it is",
    )
}

/// A model without scores, and without any that it is named like, is taken for a usual one or goes by its parameters.
fn is_ability_unknown(declared: &DeclaredModel) -> bool {
    let is_told = match &declared.model.ability_guess {
        None | Some(AbilityGuess::Family(_)) => true,
        Some(AbilityGuess::Size | AbilityGuess::Nothing) => false,
    };
    !is_told && answers(declared)
}

fn ability_unknown(models: &[&DeclaredModel]) -> ValueError {
    let names = names(models);
    let what = format!(
        "the ability of {names} is not known: `auto` goes by the parameters in the name, or takes the usual one"
    );
    ValueError::new(what, "say ability, the share of MMLU-Pro that is right, like 0.7")
}

fn answers(declared: &DeclaredModel) -> bool {
    declared.model.services.iter().any(|service| *service != Service::Embeddings)
}
