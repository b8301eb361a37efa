//! Between which worths of a right answer the recipes of routes act, at the prices and levels in force: said at the start and by
//! `stint check`, so that nobody has to find a worth by trying.
//!
//! Three questions of the kind that a route compares answers of are planned over a grid of worths. Nobody is asked anything.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use stint_decide::estimate;
use stint_decide::plan::{OPENING_QUANTILE, PlanRequest, WorthRange, sweep};
use stint_prompt::token_estimate;
use stint_types::catalog::{
    Allowance, AnswerComparison, Calibration, Catalog, Demand, Market, Model, Needs, Recipe, Route, Service,
    Specialty,
};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::{Chance, Money, Tokens};

/// How hard a question is, in a word, and the question.
type Example = (&'static str, &'static str);

const NUMBERS: [Example; 3] = [
    ("an easy", "A box holds 12 eggs. How many eggs are in 7 boxes?"),
    (
        "a usual",
        "A train goes 60 km/h for 2.5 hours and then 84 km/h for 45 minutes. Another one leaves an hour later and goes \
         95 km/h on the same track. After how many minutes does it catch up?",
    ),
    (
        "a hard",
        "Let p be the least prime for which there is a positive integer n such that n^4+1 is divisible by p^2. Find the \
         least positive integer m such that m^4+1 is divisible by p^2.",
    ),
];

const CHOICES: [Example; 3] = [
    ("an easy", "Which animal barks? A) cat B) dog C) cow D) hen"),
    (
        "a usual",
        "Which of these lowers aggregate demand in the short run? A) a fall in the policy rate B) a rise in transfers \
         C) a rise in the required reserves of banks D) a depreciation of the currency",
    ),
    (
        "a hard",
        "A spin-1/2 particle in the state |+z> passes a Stern-Gerlach magnet at 60 degrees to z, whose lower beam is \
         blocked, and then one along x. With which probability is it found in |-x>, given that it passed the first? \
         A) 1/2 - sqrt(3)/4 B) 1/4 C) 1/2 D) 1/2 + sqrt(3)/4",
    ),
];

const TEXTS: [Example; 3] = [
    ("an easy", "Which country is Paris the capital of? Answer with its name alone."),
    (
        "a usual",
        "A contract signed in March says that notice is given three months before the end of a calendar quarter. Notice \
         arrived on 2 July. On which day does the contract end, and why?",
    ),
    (
        "a hard",
        "Two transactions under snapshot isolation each read both accounts of a customer and withdraw from one, as long \
         as the sum stays positive. Which anomaly can follow, and which is the weakest isolation level that rules it out?",
    ),
];

/// What a recipe does, a line for each route that has one.
pub(super) fn lines(
    catalog: &Catalog,
    calibration: &Calibration,
    learned: impl Fn(&mut Demand),
) -> Vec<String> {
    let routes = catalog.routes.values();
    routes.filter_map(|route| line(catalog, calibration, route, &learned)).collect()
}

fn line(
    catalog: &Catalog,
    calibration: &Calibration,
    route: &Route,
    learned: &impl Fn(&mut Demand),
) -> Option<String> {
    let recipe = route.recipe?;
    let head = format!("route {}: its recipe \"{}\"", route.name, recipe.as_str());
    if let Some(canary) = route.canary.as_ref().filter(|_| recipe == Recipe::Canary) {
        let percent = canary.fraction.get() * 100.0;
        let model = &canary.model;
        return Some(format!("{head} gives {percent} % of the conversations to {model}, at any worth"));
    }
    let each: Vec<(&str, Option<Vec<WorthRange>>)> = examples(route)
        .map(|(name, question)| (name, ranges(catalog, calibration, route, question, learned)))
        .into();
    let acting: Vec<String> =
        each.iter().filter_map(|(name, ranges)| acting(name, ranges.as_deref()?)).collect();
    let worth = route.worth;
    if acting.is_empty() {
        let why = each.last().and_then(|(_, ranges)| ranges.as_deref());
        return Some(format!("{head} acts at no worth from 0.00001 to 100 dollars: {}", alone(why)));
    }
    let acts_on = each.iter().filter(|(_, ranges)| ranges.as_ref().is_some_and(|all| acts_at(all, worth)));
    let acts_on: Vec<&str> = acts_on.map(|(name, _)| *name).collect();
    let now = match &*acts_on {
        [] => "none of these".to_owned(),
        [only] => format!("{only} one"),
        [first @ .., last] => format!("{} and {last} one", first.join(", ")),
    };
    Some(format!(
        "{head} acts at a worth of {}; at its worth of {worth} dollars on {now}",
        acting.join(", of ")
    ))
}

fn examples(route: &Route) -> [Example; 3] {
    match route.vote.as_ref().map(|vote| &vote.compare) {
        Some(AnswerComparison::Number) => NUMBERS,
        Some(AnswerComparison::Choice) => CHOICES,
        Some(AnswerComparison::Exact | AnswerComparison::Json(_)) | None => TEXTS,
    }
}

/// What is chosen at which worth; nothing where none of the route's models can be planned with.
fn ranges(
    catalog: &Catalog,
    calibration: &Calibration,
    route: &Route,
    question: &str,
    learned: &impl Fn(&mut Demand),
) -> Option<Vec<WorthRange>> {
    let request = Request::new(&*route.name, vec![Message::text(Role::User, question)]);
    let serves = |model: &&Arc<Model>| model.services.contains(&Service::Chat) && is_for(model, &request);
    let models: Vec<&Model> = catalog.candidates(route).filter(serves).map(AsRef::as_ref).collect();
    let prompt = token_estimate::prompt_tokens(&request);
    let prompts: BTreeMap<Arc<str>, Tokens> =
        models.iter().map(|model| (model.name.clone(), prompt)).collect();
    let mut demand = estimate::estimate(&request, &prompts, calibration);
    learned(&mut demand);
    let ranges = sweep(&PlanRequest {
        demand: &demand,
        models: &models,
        route,
        market: &Market::default(),
        allowance: &Allowance::default(),
        budget: &request.budget,
        needs: &Needs::default(),
        choices: 1,
        streams: false,
        sticky: None,
        explore: None,
        opening_quantile: Chance::new(OPENING_QUANTILE),
    });
    ranges.ok()
}

fn is_for(model: &Model, request: &Request) -> bool {
    match model.specialty {
        Some(Specialty::Arithmetic) => estimate::is_arithmetic(request),
        None => true,
    }
}

/// Where it acts on a question: "0.002 to 0.31 dollars on a hard question"; neighbouring ranges are one.
fn acting(name: &str, ranges: &[WorthRange]) -> Option<String> {
    let mut joined: Vec<RangeInclusive<Money>> = Vec::new();
    let mut goes_on = false;
    for range in ranges {
        match joined.last_mut() {
            Some(last) if goes_on && range.acts() => *last = *last.start()..=*range.worth.end(),
            _ if range.acts() => joined.push(range.worth.clone()),
            _ => {}
        }
        goes_on = range.acts();
    }
    let spans: Vec<String> =
        joined.iter().map(|worth| format!("{} to {}", short(*worth.start()), short(*worth.end()))).collect();
    (!spans.is_empty()).then(|| format!("{} dollars on {name} question", spans.join(" and ")))
}

fn acts_at(ranges: &[WorthRange], worth: Money) -> bool {
    ranges.iter().any(|range| range.acts() && range.worth.contains(&worth))
}

/// Who answers where the recipe never acts.
fn alone(ranges: Option<&[WorthRange]>) -> String {
    let Some(ranges) = ranges else { return "none of its models can be planned with".to_owned() };
    let mut steps: Vec<(&str, Money)> = Vec::new();
    for range in ranges {
        if steps.last().is_none_or(|(model, _)| *model != &*range.model) {
            steps.push((&range.model, *range.worth.start()));
        }
    }
    let steps: Vec<String> = steps
        .iter()
        .enumerate()
        .map(
            |(at, (model, from))| {
                if at == 0 { (*model).to_owned() } else { format!("{model} from {}", short(*from)) }
            },
        )
        .collect();
    format!("one answer is always worth more, even to a hard question, by {}", steps.join(", then "))
}

/// Dollars with three digits that count.
fn short(money: Money) -> String {
    super::plan_cli::short_dollars(money.as_dollars())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn described(keys: &str) -> Vec<String> {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("stint.toml");
        let model = |name: &str, price: &str, ability: &str| {
            format!(
                "[[backend.model]]\nname = \"{name}\"\nprice_input = \"{price}\"\nprice_output = \"{price}\"\n\
                 ability = {ability}\n"
            )
        };
        let text = format!(
            "[engine]\nembedded = false\n[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\n{}{}[[route]]\nname = \"r\"\n{keys}\n",
            model("small", "0.1", "0.55"),
            model("large", "10", "0.85"),
        );
        std::fs::write(&file, text).unwrap();
        let environment = |name: &str| (name == "STINT_LEDGER").then(|| ":memory:".to_owned());
        let settings = config::load(Some(&file), &environment).unwrap();
        let calibration = super::super::config_snapshot::calibration(&settings).unwrap();
        lines(&settings.catalog, &calibration, |_| ())
    }

    #[test]
    fn a_recipe_is_told_between_which_worths_it_acts() {
        let vote = described("recipe = \"vote\"\nvote = { compare = \"number\" }");
        assert!(vote[0].starts_with("route r: its recipe \"vote\" acts at a worth of 0."), "{vote:?}");
        assert!(vote[0].contains(" dollars on a hard question; at its worth of 0.3 dollars on "), "{vote:?}");
        let cascade = described("recipe = \"cascade\"\nverifier = { url = \"http://127.0.0.1:9\" }");
        assert!(cascade[0].contains("\"cascade\" acts at a worth of 0."), "{cascade:?}");
    }

    #[test]
    fn a_recipe_that_never_acts_is_told_so_and_why() {
        let vote = "recipe = \"vote\"\nvote = { compare = \"number\", samples_max = 2 }";
        let described = described(vote);
        assert!(
            described[0]
                .contains("acts at no worth from 0.00001 to 100 dollars: one answer is always worth more"),
            "{described:?}"
        );
        assert!(described[0].contains("by small, then large from 0."), "{described:?}");
    }

    #[test]
    fn a_canary_needs_no_worth() {
        let described = described("recipe = \"canary\"\nmodels = [\"large\", \"small\"]");
        assert_eq!(
            described,
            ["route r: its recipe \"canary\" gives 5 % of the conversations to small, at any worth"]
        );
    }
}
