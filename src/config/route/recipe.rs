//! `recipe` of a route: one word that stands for several of its settings. What is written beside it counts for more.

use std::sync::Arc;

use crate::config::backend::ModelMap;
use crate::config::reader::Section;
use stint_types::catalog::{AnswerComparison, Canary, Model, Recipe, Route, Service};
use stint_types::units::{Chance, Price};

use super::known_model::known_model;
use super::opinion::{self, VoteDefaults};

/// Votes of the recipe: nine answers, drawn warm, since what is always said alike needs no vote.
const VOTE: VoteDefaults = VoteDefaults { samples_max: 9, compare: None, temperature: Some(1.0) };

/// The first step of the recipe's cascade: two answers, so that no vote is held where the dearer model could be asked.
const CASCADE: VoteDefaults = VoteDefaults { samples_max: 2, compare: None, temperature: None };

/// The share of conversations that go to a new model.
const CANARY_SHARE: f64 = 0.05;

/// The remedy where nothing says when two answers are the same.
const COMPARE: &str =
    "write vote = { compare = \"number\" } beside it, or \"choice\", \"json:/member\" or \"exact\"";

/// The word of a route.
pub(super) fn read(section: &Section<'_>) -> Option<Recipe> {
    section.word("recipe", &Recipe::ALL.map(|recipe| (recipe.as_str(), recipe)))
}

/// The route with what its recipe stands for, where that is not written.
pub(super) fn expanded(section: &Section<'_>, route: Route, models: &ModelMap) -> Route {
    let canary = canary(section, &route, models);
    match route.recipe {
        None => Route { vote: opinion::vote(section), ..route },
        Some(Recipe::Vote) => voting(section, route),
        Some(Recipe::Cascade) => cascading(section, route, models),
        Some(Recipe::Canary) => Route { canary, vote: opinion::vote(section), ..route },
    }
}

fn voting(section: &Section<'_>, route: Route) -> Route {
    let vote = opinion::vote_with(section, VOTE);
    if vote.is_none() {
        section.reject("recipe", "a vote has to know when two answers are the same", COMPARE);
    }
    Route { vote, ..route }
}

fn cascading(section: &Section<'_>, route: Route, models: &ModelMap) -> Route {
    // Whoever has a verifier needs no two answers that agree.
    let compare = route.verifier.is_some().then_some(AnswerComparison::Exact);
    let vote = opinion::vote_with(section, VoteDefaults { compare, ..CASCADE });
    if vote.is_none() {
        let remedy = format!("write a verifier = {{ … }} that scores its answer, or {COMPARE}");
        section.reject("recipe", "a cascade has to know when the first model's answer is in doubt", remedy);
    }
    if section.has("cascade") && !route.cascade {
        section.reject("cascade", "false beside a recipe that is one", "take one of the two out");
    }
    reject_equal_prices(section, &route, models);
    Route { vote, cascade: true, ..route }
}

/// A cascade goes from a cheaper model to a dearer one.
fn reject_equal_prices(section: &Section<'_>, route: &Route, models: &ModelMap) {
    let own = answering(route, models);
    let price = |model: &Model| model.planning_tariff().map(|tariff| tariff.rates.list.output);
    let prices: Vec<Option<Price>> = own.iter().map(|model| price(model)).collect();
    let what = match (&*own, &*prices) {
        ([], _) => "a cascade needs two models, and none of the route's gives answers".to_owned(),
        ([only], _) => format!("a cascade needs two models, and {} alone serves this route", only.name),
        (_, [first, rest @ ..]) if rest.iter().all(|price| price == first) => {
            "a cascade needs a cheaper and a dearer model, and all of this route's cost the same".to_owned()
        }
        _ => return,
    };
    section.reject("recipe", what, "name a cheaper and a dearer model in models, each with its prices");
}

/// The route's models that give answers.
fn answering<'m>(route: &Route, models: &'m ModelMap) -> Vec<&'m Arc<Model>> {
    let is_own = |model: &&Arc<Model>| route.models.is_empty() || route.models.contains(&model.name);
    models.values().filter(is_own).filter(|model| model.services.contains(&Service::Chat)).collect()
}

/// Who is tried, and on how much: the last of the route's models, where nothing else is written.
fn canary(section: &Section<'_>, route: &Route, models: &ModelMap) -> Option<Canary> {
    let written = section.has("canary").then(|| section.section("canary"));
    if route.recipe != Some(Recipe::Canary) {
        if let Some(own) = &written {
            own.allow_all();
            section.reject("canary", "no recipe that reads it", "write recipe = \"canary\", or take it out");
        }
        return None;
    }
    let fraction = written.as_ref().and_then(|own| own.within("share", 0.001..=0.5)).unwrap_or(CANARY_SHARE);
    let named = written.as_ref().and_then(|own| Some((own, own.get::<String>("model")?)));
    let model = match named {
        Some((own, name)) => known_model(own, "model", &name, models)?,
        None => last_model(section, route)?,
    };
    let others = answering(route, models).iter().filter(|other| other.name != model).count();
    let is_own = route.models.is_empty() || route.models.contains(&model);
    if others == 0 || !is_own {
        let what = format!("{model} is to be tried beside others of the route, and it has none");
        let what = if is_own { what } else { format!("{model} is none of the route's models") };
        section.reject("recipe", what, "write models = [\"the usual one\", \"the new one\"]");
        return None;
    }
    Some(Canary { model, fraction: Chance::new(fraction) })
}

fn last_model(section: &Section<'_>, route: &Route) -> Option<Arc<str>> {
    let last = route.models.last().cloned();
    if last.is_none() {
        let remedy = "write models = [\"the usual one\", \"the new one\"], the new one last";
        section.reject("recipe", "a canary has to know which model is new", remedy);
    }
    last
}
