//! The rules of the shipped catalogue, each with a golden pair: what a caller sends, and what the model's provider gets, or what
//! the model writes, and how it is read. The pairs stand in `tests/fixtures/catalogue`, a file for each provider. What is sent
//! passes the provider's emulator, which refuses what the provider refuses; the emulators name their sources.

mod coverage;
mod pairs;
mod readings;
mod upstream;

use pairs::{Group, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn every_provider_gets_what_its_models_take_and_nothing_that_they_refuse() {
    let faults = Scene::new(Group::all()).await.faults().await;
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn what_models_write_is_read_by_the_rules_of_their_family() {
    let faults = readings::faults(&Group::all());
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_rule_of_the_catalogue_has_a_pair() {
    let groups = Group::all();
    let missing: Vec<String> = coverage::rules().iter().filter_map(|rule| rule.missing(&groups)).collect();
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn a_rule_without_a_pair_is_noticed() {
    let groups = Group::all();
    let noticed = |entry: &str| coverage::rules_of(entry).iter().all(|rule| rule.missing(&groups).is_some());
    assert!(noticed("match = ['*new-1*']\nefforts = [{ word = 'low', usual = 1 }]"));
    assert!(noticed("match = ['*gpt-5.1', '*new-1*']\nefforts = [{ word = 'low', usual = 1 }]"));
    assert!(noticed("match = ['*gpt-5.1']\nkinds = ['gemini']\nefforts = [{ word = 'low', usual = 1 }]"));
    assert!(noticed("match = ['*gpt-5.1']\nsampling = false"));
    assert!(!noticed("match = ['*gpt-5.1']\nefforts = [{ word = 'low', usual = 1 }]"));
}
