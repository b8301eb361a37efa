//! What an operator sees of recipes.

use stint_types::catalog::{AnswerComparison, Canary, Recipe, Route};
use stint_types::units::Chance;

use super::*;

/// A cheap model and a dear one.
const TWO: &str = "[engine]\nembedded = false\n[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
    [[backend.model]]\nname = \"small\"\nprice_input = \"0.1\"\nprice_output = \"0.4\"\n\
    [[backend.model]]\nname = \"large\"\nprice_input = \"1\"\nprice_output = \"8\"\n[[route]]\nname = \"r\"\n";

fn route(keys: &str) -> Route {
    let settings = load_text(&format!("{TWO}{keys}\n")).unwrap_or_else(|errors| panic!("{errors}"));
    settings.catalog.routes["r"].clone()
}

fn refused(keys: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|error| format!("line 15: route.{error}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&format!("{TWO}{keys}\n"), &expected);
}

#[test]
fn a_vote_is_one_line_and_what_makes_two_answers_the_same() {
    let short = route("recipe = \"vote\"\nvote = { compare = \"choice\" }");
    let long = route("vote = { samples_max = 9, compare = \"choice\", temperature = 1.0 }");
    assert_eq!(short, Route { recipe: Some(Recipe::Vote), ..long });
}

#[test]
fn a_cascade_is_one_line_beside_a_verifier() {
    let verifier = "verifier = { url = \"http://127.0.0.1:9\" }";
    let short = route(&format!("recipe = \"cascade\"\n{verifier}"));
    let long =
        route(&format!("cascade = true\nvote = {{ samples_max = 2, compare = \"exact\" }}\n{verifier}"));
    assert_eq!(short, Route { recipe: Some(Recipe::Cascade), ..long });
}

#[test]
fn what_is_written_beside_a_recipe_counts_for_more() {
    let vote =
        route("recipe = \"vote\"\nvote = { compare = \"json:/a\", samples_max = 3, temperature = 0.7 }");
    let vote = vote.vote.unwrap();
    assert_eq!((vote.samples_max, vote.policy.temperature), (3, Some(0.7)));
    assert_eq!(vote.compare, AnswerComparison::Json("/a".into()));
    let canary = route("recipe = \"canary\"\ncanary = { model = \"small\", share = 0.2 }").canary;
    assert_eq!(canary, Some(Canary { model: "small".into(), fraction: Chance::new(0.2) }));
}

#[test]
fn a_canary_is_the_last_of_the_models() {
    let canary = route("recipe = \"canary\"\nmodels = [\"large\", \"small\"]").canary;
    assert_eq!(canary, Some(Canary { model: "small".into(), fraction: Chance::new(0.05) }));
}

#[test]
fn a_recipe_says_what_it_lacks() {
    refused(
        "recipe = \"vote\"",
        &[
            "recipe: a vote has to know when two answers are the same; write vote = { compare = \"number\" } beside it, or \
           \"choice\", \"json:/member\" or \"exact\"",
        ],
    );
    refused(
        "recipe = \"cascade\"",
        &[
            "recipe: a cascade has to know when the first model's answer is in doubt; write a verifier = { … } that scores \
           its answer, or write vote = { compare = \"number\" } beside it, or \"choice\", \"json:/member\" or \"exact\"",
        ],
    );
    refused(
        "recipe = \"cascade\"\nvote = { compare = \"number\" }\nmodels = [\"small\"]",
        &[
            "recipe: a cascade needs two models, and small alone serves this route; name a cheaper and a dearer model in \
           models, each with its prices",
        ],
    );
    refused(
        "recipe = \"canary\"",
        &[
            "recipe: a canary has to know which model is new; write models = [\"the usual one\", \"the new one\"], the new \
           one last",
        ],
    );
    refused(
        "recipe = \"canary\"\nmodels = [\"small\"]",
        &[
            "recipe: small is to be tried beside others of the route, and it has none; write models = [\"the usual one\", \
           \"the new one\"]",
        ],
    );
    refused("recipe = \"votes\"", &["recipe: \"votes\" is unknown; did you mean \"vote\"?"]);
    refused(
        "canary = { share = 0.1 }",
        &["canary: no recipe that reads it; write recipe = \"canary\", or take it out"],
    );
}

#[test]
fn models_of_one_price_make_no_cascade() {
    let same = TWO.replace("\"1\"", "\"0.1\"").replace("\"8\"", "\"0.4\"");
    check(
        &format!("{same}recipe = \"cascade\"\nvote = {{ compare = \"number\" }}\n"),
        &[
            "line 15: route.recipe: a cascade needs a cheaper and a dearer model, and all of this route's cost the same; name \
           a cheaper and a dearer model in models, each with its prices",
        ],
    );
}
