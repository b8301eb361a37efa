//! What decided, in one line.

use std::fmt::{self, Write as _};

use stint_types::catalog::{Demand, Offer, Prices};
use stint_types::units::Tokens;

use super::reason::{BudgetReason, BudgetReasons, SelectedBy};
use super::request::PlanRequest;

/// One line on the chosen offer and the next best.
pub(super) fn explain(
    request: &PlanRequest,
    best: &Offer,
    reasons: BudgetReasons<'_>,
    selected_by: SelectedBy,
    next: Option<&Offer>,
) -> String {
    let BudgetReasons { thinking: reason, answer } = reasons;
    let mut why = String::with_capacity(160);
    // Writing to a text does not fail.
    let _ =
        write!(why, "{}, difficulty {:.2}: ", request.demand.class.as_str(), request.demand.difficulty.get());
    let _ = budget(&mut why, request.demand, best);
    let _ = write!(why, " ({}), {reason}", best.success);
    let _ = ability_guessed(&mut why, request, best);
    let _ = price_unknown(&mut why, request, best);
    let _ = price_of_money(&mut why, request, reason);
    if let Some(answer) = answer {
        let _ = write!(why, "; its answer of up to {} tokens {answer}", best.solution);
    }
    let _ = samples(&mut why, request, best);
    let _ = circumstances(&mut why, request, best, selected_by);
    if let Some(next) = next {
        let _ = write!(why, "; next: {} with {} ({})", next.model, next.thinking, next.success);
    }
    why
}

fn budget(why: &mut String, demand: &Demand, offer: &Offer) -> fmt::Result {
    if offer.thinking == Tokens::ZERO {
        return write!(why, "{} answers without thinking", offer.model);
    }
    let usual = demand.models.get(&offer.model).map_or(0.0, |model| model.thinking.median());
    write!(why, "{} thinks up to {} tokens, usually about {usual:.0}", offer.model, offer.thinking)
}

/// From this spread of its chance on, too little was learned of a model to forget that its ability was guessed.
const GUESSED_SPREAD: f64 = 0.15;

/// From what the model's ability is guessed, as long as nothing better is known.
fn ability_guessed(why: &mut String, request: &PlanRequest, offer: &Offer) -> fmt::Result {
    let is_unsure =
        request.demand.models.get(&offer.model).is_some_and(|model| model.spread >= GUESSED_SPREAD);
    let model = request.models.iter().find(|model| model.name == offer.model);
    match model.and_then(|model| model.ability_guess.as_ref()).filter(|_| is_unsure) {
        Some(guess) => write!(why, ", its ability guessed {guess}"),
        None => Ok(()),
    }
}

/// At what the model is weighed, where nobody wrote its price.
fn price_unknown(why: &mut String, request: &PlanRequest, offer: &Offer) -> fmt::Result {
    let unpriced = request.models.iter().find(|model| model.name == offer.model && model.tariff.is_none());
    match unpriced.map(|model| model.reference) {
        None => Ok(()),
        Some(None) => write!(why, ", price unknown"),
        Some(Some(reference)) => {
            let Prices { input, output } = reference.rates.list;
            let (input, output) = (input.per_million_tokens, output.per_million_tokens);
            write!(why, ", weighed at {input} and {output} dollars for a million tokens, price unknown")
        }
    }
}

/// From here on it is worth a word that money counts for more or less than its face.
const FACE: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// What money counts for, where value decided.
fn price_of_money(why: &mut String, request: &PlanRequest, reason: BudgetReason<'_>) -> fmt::Result {
    let price = request.market.shadow_price;
    if reason != BudgetReason::Value || FACE.contains(&price) {
        return Ok(());
    }
    write!(why, " while a dollar counts {price:.2}, so that the budget lasts")
}

fn samples(why: &mut String, request: &PlanRequest, offer: &Offer) -> fmt::Result {
    let verifier = request.route.verifier.as_ref();
    let Some(second) = &offer.escalate else {
        return match (offer.samples > 1, verifier) {
            (false, _) => Ok(()),
            (true, None) => write!(why, ", up to {} times with a vote, which pays", offer.samples),
            (true, Some(_)) => {
                write!(why, ", up to {} times until the verifier accepts one, which pays", offer.samples)
            }
        };
    };
    let times = if offer.samples > 1 { format!("{} times", offer.samples) } else { "once".to_owned() };
    match verifier {
        None => write!(why, ", {times}, and {} is asked where they do not agree, which pays", second.model),
        Some(verifier) => write!(
            why,
            ", {times}, and {} is asked where the verifier scores it below {}, which pays",
            second.model,
            verifier.floor.get()
        ),
    }
}

fn circumstances(
    why: &mut String,
    request: &PlanRequest,
    offer: &Offer,
    selected_by: SelectedBy,
) -> fmt::Result {
    if selected_by == SelectedBy::Drawn {
        why.push_str(", drawn to learn which model is best");
    }
    match request.sticky {
        Some(sticky) if *sticky.model == *offer.model && sticky.cached > Tokens::ZERO => {
            write!(why, ", stays where {} tokens of the prompt are cached", sticky.cached)
        }
        Some(sticky) if *sticky.model != *offer.model => write!(why, ", switched from {}", sticky.model),
        _ => Ok(()),
    }
}
