//! What decided, in one line.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use stint_types::catalog::{EnforcementClass, LimitedBy, Model, Offer, Prices, Service};
use stint_types::units::Tokens;

use super::candidate_pool::CandidatePool;
use super::deciding_limit::deciding_limit;
use super::frontier::PlanObjective;
use super::reason::{BudgetReason, BudgetReasons, SelectedBy};
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::selection::PlanSelection;
use super::terms::usual_at;

/// One line on the chosen offer and the next best.
pub(super) fn explain(
    request: &PlanRequest,
    pool: &CandidatePool,
    selection: &PlanSelection,
    best: &Offer,
    next: Option<&Offer>,
) -> String {
    let first = &selection.ranked[0];
    let objective = PlanObjective::of(request, selection.success_min);
    let limit = (first.reason == BudgetReason::Value)
        .then(|| deciding_limit(request, pool, &first.candidate, &objective))
        .flatten();
    let reasons = pool.reasons(&first.candidate, limit.unwrap_or(first.reason));
    let BudgetReasons { thinking: reason, answer } = reasons;
    let mut why = String::with_capacity(160);
    // Writing to a text does not fail.
    let _ =
        write!(why, "{}, difficulty {:.2}: ", request.demand.class.as_str(), request.demand.difficulty.get());
    let _ = budget(&mut why, request, best);
    let _ = write!(why, " ({}), {reason}", best.success);
    let _ = wanted_more(&mut why, request, reason);
    let _ = ability_guessed(&mut why, request, best);
    let _ = price_unknown(&mut why, request, best);
    let _ = price_of_money(&mut why, request, reason);
    if let Some(answer) = answer.or_else(|| short_answer(request, best, reason)) {
        let _ = write!(why, "; its answer of up to {} tokens {answer}", best.solution);
    }
    let _ = samples(&mut why, request, best);
    let _ = circumstances(&mut why, request, best, selection.selected_by);
    let _ = weaker(&mut why, request, pool, selection);
    let _ = dearer(&mut why, pool, selection);
    if let Some(next) = next {
        let _ = write!(why, "; next: {} with {} ({})", next.model, next.thinking, next.success);
    }
    why
}

/// A model that a limit on money or time leaves out, and which limit that is.
pub(super) type ExcludedModel = (Arc<str>, String);

/// Keeps the first model that such a limit leaves out.
pub(super) fn note_excluded(excluded: &mut Option<ExcludedModel>, model: &Model, refusal: &PlanRefusal) {
    if excluded.is_none() {
        *excluded = refusal.limit().map(|limit| (model.name.clone(), limit));
    }
}

/// The same line, with the model that was left out.
pub(super) fn with_excluded(why: String, excluded: Option<ExcludedModel>) -> String {
    match excluded {
        Some((name, limit)) => format!("{why}; not {name}, since {limit}"),
        None => why,
    }
}

/// That the caller's limit leaves an answer less than it usually takes, where that is not said of its thought.
fn short_answer(
    request: &PlanRequest,
    best: &Offer,
    thought: BudgetReason<'_>,
) -> Option<BudgetReason<'static>> {
    let usual = request.demand.models.get(&best.model)?.solution;
    let is_short = best.solution_by == LimitedBy::Caller && best.solution < usual;
    let members = &request.budget.members;
    let is_own = request.budget.solution.is_some_and(|stated| stated <= best.solution);
    let member = if is_own { members.solution } else { members.total };
    let is_said = matches!(thought, BudgetReason::Total(said) if said == member);
    (is_short && !is_said).then_some(BudgetReason::Total(member))
}

/// The caller's member that asks for a thought, where one does.
fn thought_member(request: &PlanRequest) -> Option<&'static str> {
    let (budget, members) = (request.budget, &request.budget.members);
    let effort = budget.reasoning_effort.as_ref().map(|_| members.reasoning_effort);
    budget.thinking.map(|_| members.thinking).or(effort)
}

/// That the caller asks for more than the model can do, where it is the model that limits a stated thought.
fn wanted_more(why: &mut String, request: &PlanRequest, reason: BudgetReason<'_>) -> fmt::Result {
    let is_own = matches!(reason, BudgetReason::Provider | BudgetReason::Output | BudgetReason::Context);
    match thought_member(request).filter(|_| is_own) {
        Some(member) => write!(why, ", less than {member} asks for"),
        None => Ok(()),
    }
}

/// The better value that a stated thought may not lead to.
fn weaker(
    why: &mut String,
    request: &PlanRequest,
    pool: &CandidatePool,
    selection: &PlanSelection,
) -> fmt::Result {
    let Some((one, member)) = selection.weaker.zip(thought_member(request)) else { return Ok(()) };
    let (name, success) = (&pool.models[one.model_index].terms.model.name, one.success());
    let less = if request.budget.thinking.is_none() { " or with less of it" } else { "" };
    write!(
        why,
        ", not {name} ({success}), which costs less and is weaker than what is chosen without {member}{less}"
    )
}

/// The better value that is hardly better, and dearer.
fn dearer(why: &mut String, pool: &CandidatePool, selection: &PlanSelection) -> fmt::Result {
    let Some(one) = selection.dearer else { return Ok(()) };
    let (name, success) = (&pool.models[one.model_index].terms.model.name, one.success());
    write!(why, ", not {name} ({success}), which costs more and is hardly better")
}

fn budget(why: &mut String, request: &PlanRequest, offer: &Offer) -> fmt::Result {
    if let Some(word) = least_effort(request, offer) {
        return write!(why, "{} answers with its least effort, \"{word}\"", offer.model);
    }
    if offer.thinking == Tokens::ZERO {
        return write!(why, "{} answers without thinking", offer.model);
    }
    let usual = request.demand.models.get(&offer.model).map_or(0.0, |model| model.thinking.median());
    write!(why, "{} thinks up to {} tokens, usually about {usual:.0}", offer.model, offer.thinking)
}

/// The least word of a model that thinks at each of its words, where that is sent.
fn least_effort<'a>(request: &PlanRequest<'a>, offer: &Offer) -> Option<&'a str> {
    let model = request.models.iter().find(|model| model.name == offer.model)?;
    let least = model.efforts.first().filter(|level| offer.effort.as_ref() == Some(&level.word))?;
    let demand = request.demand.models.get(&offer.model)?;
    let is_all = least.usual > Tokens::ZERO && usual_at(least, model, demand) >= offer.thinking;
    let thinks = request.needs.service != Service::Completions;
    (offer.class == EnforcementClass::Effort && is_all && thinks).then_some(&least.word)
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
