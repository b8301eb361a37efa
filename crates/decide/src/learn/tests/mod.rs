//! What beliefs learn, seen from outside.

mod alarms;
mod joint;
mod judgements;
mod lengths;
mod pace;
mod repeats;
mod states;

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::learn::{BeliefStore, JudgementMark, LearnedState, OutcomeSample, Settings, StateError};
use stint_types::catalog::{
    Demand, LengthTails, LogNormal, MeasuredLengths, ModelDemand, RequestTraits, SolutionStopReason,
    TaskClass, ThinkingStopReason,
};
use stint_types::units::{Chance, Difficulty, SeededRng, Tokens};

/// What the prior says of a request: two models, of which the first is thought the worse.
fn prior() -> Demand {
    let model = |done: f64| ModelDemand {
        thinking: LogNormal { mu: 5.0, sigma: 0.6 },
        solution: Tokens(100),
        prompt: Tokens(200),
        done: Chance::new(done),
        blind: Chance::new(done - 0.2),
        bend: 1.0,
        saturation: 1.0,
        spread: 0.0,
        prompt_least: Tokens(200),
        prompt_usual: Tokens::ZERO,
        measured: MeasuredLengths::default(),
        tails: LengthTails::default(),
    };
    Demand {
        class: TaskClass::Math,
        difficulty: Difficulty::new(0.5),
        confidence: Chance::new(0.5),
        request: RequestTraits { words: vec![3, 77, 500], ..RequestTraits::default() },
        models: BTreeMap::from([("one".into(), model(0.6)), ("two".into(), model(0.8))]),
    }
}

fn believed(beliefs: &BeliefStore) -> Demand {
    let mut demand = prior();
    beliefs.adjust(&mut demand);
    demand
}

/// A finished thought of the model, judged.
fn lesson(model: &str, success: f64) -> OutcomeSample {
    let demand = prior();
    OutcomeSample {
        model: model.into(),
        class: demand.class,
        predicted: demand.models[model].clone(),
        request: demand.request.clone(),
        budget: Tokens(1000),
        effort: 1.0,
        thinking: Tokens(150),
        ended: ThinkingStopReason::Closed,
        solution: Tokens(100),
        solution_ended: SolutionStopReason::Stop,
        success: Some(Chance::new(success)),
        weight: 1.0,
        alarm: 1.0,
    }
}

fn taught(lessons: &[OutcomeSample]) -> BeliefStore {
    let mut beliefs = BeliefStore::new(Settings::default());
    lessons.iter().for_each(|lesson| beliefs.observe(lesson));
    beliefs
}

/// Outcomes of both models by the dice, cut thoughts and unjudged ones among them.
fn lessons(seed: u64, count: usize) -> Vec<OutcomeSample> {
    let mut dice = SeededRng::new(seed);
    let mut one = || {
        let name = if dice.next_f64() < 0.5 { "one" } else { "two" };
        let mut lesson = lesson(name, if dice.next_f64() < 0.7 { 1.0 } else { 0.0 });
        lesson.thinking = Tokens::round((5.0 + 0.6 * dice.standard_normal()).exp());
        lesson.solution = Tokens::round(50.0 + 100.0 * dice.next_f64());
        if lesson.thinking > Tokens(180) {
            (lesson.thinking, lesson.ended) = (Tokens(180), ThinkingStopReason::Cut);
        }
        lesson.request.words = vec![3 + u16::try_from(dice.below(5)).unwrap(), 77, 500];
        lesson.success = lesson.success.filter(|_| dice.next_f64() < 0.8);
        lesson
    };
    (0..count).map(|_| one()).collect()
}

/// Whether two books believe the same, to so much.
fn assert_alike(a: &BeliefStore, b: &BeliefStore, within: f64) {
    let (a, b) = (believed(a), believed(b));
    for (name, one) in &a.models {
        let other = &b.models[name];
        let pairs = [
            (one.done.get(), other.done.get()),
            (one.blind.get(), other.blind.get()),
            (one.spread, other.spread),
            (one.saturation, other.saturation),
            (one.thinking.mu, other.thinking.mu),
            (one.thinking.sigma, other.thinking.sigma),
        ];
        for (left, right) in pairs {
            assert!((left - right).abs() <= within, "{name}: {one:?} is not {other:?}");
        }
    }
}

#[test]
fn without_outcomes_the_prior_is_believed_with_a_spread() {
    let (prior, now) = (prior(), believed(&BeliefStore::new(Settings::default())));
    assert_eq!(now.models["one"].done, prior.models["one"].done);
    assert_eq!(now.models["one"].thinking, prior.models["one"].thinking);
    assert!((0.01..0.2).contains(&now.models["one"].spread), "{}", now.models["one"].spread);
}

#[test]
fn a_model_that_fails_is_believed_to_fail_and_the_other_is_not() {
    let beliefs = taught(&vec![lesson("two", 0.0); 200]);
    let now = believed(&beliefs);
    assert!(now.models["two"].done.get() < 0.1, "{:?}", now.models["two"]);
    assert!(now.models["two"].spread < prior_spread());
    let other = now.models["one"].done.get();
    assert!((0.45..=0.6).contains(&other), "a little goes for all models: {other}");
}

fn prior_spread() -> f64 {
    believed(&BeliefStore::new(Settings::default())).models["two"].spread
}

#[test]
fn a_prior_that_is_unsure_of_itself_gives_way_sooner() {
    let after = |spread: f64| {
        let mut lesson = lesson("two", 0.0);
        lesson.predicted.spread = spread;
        believed(&taught(&vec![lesson; 5])).models["two"].done.get()
    };
    assert!(after(0.3) < after(0.0) - 0.2, "{} {}", after(0.3), after(0.0));
}

#[test]
fn what_was_learned_after_a_finished_thought_says_less_of_none() {
    let now = believed(&taught(&vec![lesson("two", 0.0); 50]));
    let (done, blind) = (now.models["two"].done.get(), now.models["two"].blind.get());
    assert!(0.8 - done > 0.6 - blind && blind < 0.6, "{done} {blind}");
}

#[test]
fn cut_thoughts_say_that_they_would_have_been_longer() {
    // Truly ln L ~ N(5.6, 0.9), held to 200 tokens, of which about 37 % finish.
    let mut dice = SeededRng::new(7);
    let mut beliefs = BeliefStore::new(Settings::default());
    for _ in 0..4000 {
        let mut lesson = lesson("one", 1.0);
        lesson.success = None;
        lesson.thinking = Tokens::round((5.6 + 0.9 * dice.standard_normal()).exp().max(1.0));
        if lesson.thinking > Tokens(200) {
            (lesson.thinking, lesson.ended) = (Tokens(200), ThinkingStopReason::Cut);
        }
        beliefs.observe(&lesson);
    }
    let thinking = believed(&beliefs).models["one"].thinking;
    assert!((thinking.mu - 5.6).abs() < 0.2, "{thinking:?}");
    assert!((thinking.sigma - 0.9).abs() < 0.2, "{thinking:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_happens_beliefs_stay_numbers(seed in 0..1000u64, weight in 1e-6..10.0f64) {
        let mut dice = SeededRng::new(seed);
        let mut beliefs = BeliefStore::new(Settings::default());
        for mut lesson in lessons(seed, 200) {
            lesson.weight = weight;
            lesson.predicted.thinking.mu = 20.0 * dice.next_f64();
            lesson.predicted.thinking.sigma = 3.0 * dice.next_f64();
            lesson.predicted.bend = 4.0 * dice.next_f64();
            lesson.predicted.saturation = 8.0 * dice.next_f64();
            lesson.predicted.spread = dice.next_f64();
            beliefs.observe(&lesson);
        }
        for model in believed(&beliefs).models.values() {
            prop_assert!(model.spread.is_finite() && model.spread >= 0.0);
            prop_assert!(model.saturation.is_finite() && model.saturation >= 0.0);
            prop_assert!(model.thinking.mu.is_finite() && model.thinking.sigma > 0.0);
        }
    }
}

#[test]
fn a_model_that_suddenly_fails_is_found_out_within_150_outcomes() {
    let mut dice = SeededRng::new(11);
    let mut beliefs = BeliefStore::new(Settings::default());
    for _ in 0..3000 {
        beliefs.observe(&lesson("two", if dice.next_f64() < 0.8 { 1.0 } else { 0.0 }));
    }
    assert!((believed(&beliefs).models["two"].done.get() - 0.8).abs() < 0.05);
    for _ in 0..150 {
        beliefs.observe(&lesson("two", if dice.next_f64() < 0.2 { 1.0 } else { 0.0 }));
    }
    assert!(believed(&beliefs).models["two"].done.get() < 0.5, "{:?}", believed(&beliefs).models["two"]);
}

#[test]
fn how_good_a_model_is_after_it_fell_is_known_within_60_outcomes() {
    let mut dice = SeededRng::new(12);
    let mut beliefs = taught(&vec![lesson("two", 1.0); 2000]);
    for _ in 0..60 {
        beliefs.observe(&lesson("two", if dice.next_f64() < 0.2 { 1.0 } else { 0.0 }));
    }
    let now = believed(&beliefs).models["two"].done.get();
    assert!((now - 0.2).abs() < 0.15, "{now}");
}

#[test]
fn a_model_that_fell_goes_on_being_worse_at_what_it_was_worse_at() {
    // Right on the easy ones and wrong on the hard ones, of which the prior knows nothing but what there is to read.
    let ask = |prompt: u64, success: f64| {
        let mut lesson = lesson("two", success);
        lesson.predicted.prompt = Tokens(prompt);
        lesson
    };
    let mut beliefs = taught(&vec![vec![ask(50, 1.0), ask(5000, 0.5)]; 1000].concat());
    vec![vec![ask(50, 0.3), ask(5000, 0.0)]; 15].concat().iter().for_each(|lesson| beliefs.observe(lesson));
    let of = |prompt: u64| {
        let mut demand = prior();
        demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
        beliefs.adjust(&mut demand);
        demand.models["two"].done.get()
    };
    assert!(of(50) > of(700) + 0.1, "{} {}", of(50), of(700));
}

#[test]
fn answers_that_ran_longer_are_expected_to_run_longer() {
    let mut long = lesson("one", 1.0);
    long.solution = Tokens(300);
    let now = believed(&taught(&vec![long; 200]));
    assert!((240..310).contains(&now.models["one"].solution.0), "{}", now.models["one"].solution);
    let other = now.models["two"].solution.0;
    assert!((110..150).contains(&other), "a little goes for a model that nobody asked: {other}");
}

#[test]
fn an_answer_is_expected_to_be_as_long_as_those_to_such_requests_were() {
    let asked = |prompt: u64, solution: u64| {
        let mut demand = prior();
        demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
        let predicted = demand.models["one"].clone();
        OutcomeSample { predicted, solution: Tokens(solution), ..lesson("one", 1.0) }
    };
    let beliefs = taught(&vec![vec![asked(50, 60), asked(800, 240)]; 200].concat());
    let expected = |prompt: u64| {
        let mut demand = prior();
        demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
        beliefs.adjust(&mut demand);
        demand.models["one"].solution.0
    };
    assert!((50..80).contains(&expected(50)) && (220..260).contains(&expected(800)));
    assert!((120..170).contains(&expected(200)), "{}", expected(200));
}

#[test]
fn a_cut_thought_that_succeeds_more_than_foretold_bends_the_curve_up() {
    let mut cut = lesson("two", 1.0);
    cut.ended = ThinkingStopReason::Cut;
    let mut finished = lesson("two", 0.8);
    finished.weight = 3.0;
    let mut none = lesson("two", 0.6);
    (none.ended, none.weight) = (ThinkingStopReason::None, 3.0);
    let beliefs = taught(&vec![vec![cut, finished, none]; 200].concat());
    let now = believed(&beliefs).models["two"].clone();
    assert!(now.saturation > 1.6, "{now:?}");
}
