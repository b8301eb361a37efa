//! What is learned of one model and of all, from what requests look like.

use super::*;

const TOPIC: [u16; 3] = [10, 20, 30];
const OTHER: [u16; 3] = [40, 50, 60];

/// A request of such words, for which the prior predicts this of both models.
fn asked(words: &[u16], weak: f64, strong: f64) -> Demand {
    let mut demand = prior();
    demand.request.words = words.to_vec();
    for (name, chance) in [("one", weak), ("two", strong)] {
        if let Some(model) = demand.models.get_mut(name) {
            (model.done, model.blind, model.spread) = (Chance::new(chance), Chance::new(chance), 0.15);
        }
    }
    demand
}

fn outcome(demand: &Demand, model: &str, success: f64) -> OutcomeSample {
    OutcomeSample {
        predicted: demand.models[model].clone(),
        request: demand.request.clone(),
        ..lesson(model, success)
    }
}

/// How much better the second model is believed to be.
fn gain(beliefs: &BeliefStore, mut demand: Demand) -> f64 {
    beliefs.adjust(&mut demand);
    demand.models["two"].done.get() - demand.models["one"].done.get()
}

#[test]
fn what_is_said_of_one_model_called_by_its_name_leaves_the_choice_among_all_sound() {
    // A model that is right half of the time, however hard the prior takes a question.
    let mut dice = SeededRng::new(3);
    let mut beliefs = BeliefStore::new(Settings::default());
    for _ in 0..1000 {
        let chance = 0.1 + 0.6 * dice.next_f64();
        let mut demand = asked(&TOPIC, chance, 0.0);
        demand.models.remove("two");
        beliefs.observe(&outcome(&demand, "one", if dice.next_f64() < 0.5 { 1.0 } else { 0.0 }));
    }
    let gain = |weak: f64, strong: f64| gain(&beliefs, asked(&TOPIC, weak, strong));
    assert!((0.15..0.45).contains(&gain(0.3, 0.8)), "an easy one: {}", gain(0.3, 0.8));
    assert!((0.0..0.35).contains(&gain(0.2, 0.6)), "a usual one: {}", gain(0.2, 0.6));
}

#[test]
fn what_one_model_is_worse_at_by_its_words_is_expected_of_it_again() {
    let mut beliefs = BeliefStore::new(Settings::default());
    for at in 0..600 {
        let words = if at % 2 == 0 { TOPIC } else { OTHER };
        let demand = asked(&words, 0.5, 0.5);
        let (weak, strong) = if at % 2 == 0 { (0.2, 0.8) } else { (0.5, 0.5) };
        beliefs.observe(&outcome(&demand, "one", weak));
        beliefs.observe(&outcome(&demand, "two", strong));
    }
    let gain = |words: &[u16]| gain(&beliefs, asked(words, 0.5, 0.5));
    assert!(gain(&TOPIC) > gain(&OTHER) + 0.2, "{} {}", gain(&TOPIC), gain(&OTHER));
}

#[test]
fn a_model_that_was_never_judged_profits_from_what_others_said_of_such_requests() {
    let mut beliefs = BeliefStore::new(Settings::default());
    for _ in 0..300 {
        beliefs.observe(&outcome(&asked(&TOPIC, 0.5, 0.5), "one", 0.9));
        beliefs.observe(&outcome(&asked(&OTHER, 0.5, 0.5), "one", 0.1));
    }
    let done = |words: &[u16]| {
        let mut demand = asked(words, 0.5, 0.5);
        beliefs.adjust(&mut demand);
        demand.models["two"].done.get()
    };
    assert!(done(&TOPIC) > done(&OTHER) + 0.1, "{} {}", done(&TOPIC), done(&OTHER));
}

#[test]
fn two_hundred_outcomes_are_enough_to_know_how_often_a_model_is_right() {
    let mut dice = SeededRng::new(8);
    let mut beliefs = BeliefStore::new(Settings::default());
    let truth = |words: &[u16]| if words == TOPIC { 0.75 } else { 0.55 };
    for at in 0..200 {
        let words = if at % 2 == 0 { TOPIC } else { OTHER };
        let right = dice.next_f64() < truth(&words);
        beliefs.observe(&outcome(&asked(&words, 0.3, 0.5), "one", if right { 1.0 } else { 0.0 }));
    }
    for words in [TOPIC, OTHER] {
        let mut demand = asked(&words, 0.3, 0.5);
        beliefs.adjust(&mut demand);
        let done = demand.models["one"].done.get();
        assert!((done - truth(&words)).abs() < 0.08, "{done} {}", truth(&words));
    }
}

#[test]
fn what_is_stored_of_a_model_that_met_every_word_stays_below_a_hundred_kilobytes() {
    let mut beliefs = BeliefStore::new(Settings::default());
    let mut demand = asked(&TOPIC, 0.5, 0.5);
    for at in 0..64 {
        demand.request.words = (64 * at..64 * (at + 1)).collect();
        beliefs.observe(&outcome(&demand, "one", 1.0));
    }
    let stored = serde_json::to_string(&beliefs.own_state()).unwrap();
    assert!(stored.len() < 100_000, "{}", stored.len());
    assert!(serde_json::from_str::<LearnedState>(&stored).unwrap().check(&Settings::default()).is_ok());
}
