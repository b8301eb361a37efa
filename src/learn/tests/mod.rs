//! What a book learns, seen from outside.

mod alarms;
mod lengths;
mod pace;

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::catalog::{
    Demand, LogNormal, MeasuredLengths, ModelDemand, SolutionStopReason, TaskClass, ThinkingStopReason,
};
use crate::units::{Chance, Difficulty, SeededRng, Tokens};

use crate::learn::{
    BeliefStore, DemandSummary, JudgementMark, LearnedState, OutcomeSample, Settings, StateError,
};

/// What the prior says of a request: two models, of which the first is thought the worse.
fn prior() -> Demand {
    let model = |done: f64| ModelDemand {
        thinking: LogNormal { mu: 5.0, sigma: 0.6 },
        solution: Tokens(100),
        prompt: Tokens(200),
        done: Chance::new(done),
        blind: Chance::new(done - 0.2),
        bend: 1.0,
        spread: 0.0,
        prompt_least: Tokens(200),
        measured: MeasuredLengths::default(),
    };
    Demand {
        class: TaskClass::Math,
        difficulty: Difficulty::new(0.5),
        confidence: Chance::new(0.5),
        models: BTreeMap::from([("one".into(), model(0.6)), ("two".into(), model(0.8))]),
    }
}

fn believed(book: &BeliefStore) -> Demand {
    let mut demand = prior();
    book.adjust(&mut demand);
    demand
}

/// A finished thought of the model, judged.
fn lesson(model: &str, success: f64) -> OutcomeSample {
    let demand = prior();
    OutcomeSample {
        model: model.into(),
        class: demand.class,
        predicted: demand.models[model].clone(),
        context: DemandSummary::of(&demand),
        budget: Tokens(1000),
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
    let mut book = BeliefStore::new(Settings::default());
    lessons.iter().for_each(|lesson| book.observe(lesson));
    book
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
            (one.bend, other.bend),
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
    let book = taught(&vec![lesson("two", 0.0); 200]);
    let now = believed(&book);
    assert!(now.models["two"].done.get() < 0.1, "{:?}", now.models["two"]);
    assert!(now.models["two"].spread < prior_spread());
    assert_eq!(now.models["one"].done, prior().models["one"].done);
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
    let mut book = BeliefStore::new(Settings::default());
    for _ in 0..4000 {
        let mut lesson = lesson("one", 1.0);
        lesson.success = None;
        lesson.thinking = Tokens::round((5.6 + 0.9 * dice.standard_normal()).exp().max(1.0));
        if lesson.thinking > Tokens(200) {
            (lesson.thinking, lesson.ended) = (Tokens(200), ThinkingStopReason::Cut);
        }
        book.observe(&lesson);
    }
    let thinking = believed(&book).models["one"].thinking;
    assert!((thinking.mu - 5.6).abs() < 0.2, "{thinking:?}");
    assert!((thinking.sigma - 0.9).abs() < 0.2, "{thinking:?}");
}

#[test]
fn a_book_that_was_stored_goes_on_where_it_was() {
    let all = lessons(3, 300);
    let before = taught(&all[..200]);
    let stored = serde_json::to_string(&before.own_state()).unwrap();
    let mut after = BeliefStore::resume(Settings::default(), serde_json::from_str(&stored).unwrap()).unwrap();
    all[200..].iter().for_each(|lesson| after.observe(lesson));
    assert_alike(&after, &taught(&all), 1e-9);
}

#[test]
fn a_state_from_other_settings_or_another_version_is_refused() {
    let state = taught(&lessons(1, 20)).own_state();
    let other = Settings { forget: 0.99, ..Settings::default() };
    assert!(matches!(BeliefStore::resume(other, state.clone()), Err(StateError::Forget { .. })));
    let mut text = serde_json::to_value(&state).unwrap();
    text["features"] = 7.into();
    let old: LearnedState = serde_json::from_value(text).unwrap();
    let mut book = BeliefStore::new(Settings::default());
    assert!(matches!(book.with_others(vec![old, state]), Err(StateError::Version { features: 7, .. })));
    assert!(
        believed(&book).models["one"].done != prior().models["one"].done,
        "the sound one was left out too"
    );
}

#[test]
fn what_another_version_wrote_is_told_from_what_is_damaged() {
    let read = |text: &str| LearnedState::read(text, &Settings::default());
    let sound = taught(&lessons(1, 20)).own_state();
    let text = serde_json::to_string(&sound).unwrap();
    assert!(read(&text).is_ok());
    for of_others in [
        r#"{"version":1,"features":14,"forget":0.9998,"models":{"m":{"prior_weight":200.0}}}"#.to_owned(),
        r#"{"version":99,"models":[]}"#.to_owned(),
        text.replace("0.9998", "0.999"),
    ] {
        let error = read(&of_others).unwrap_err();
        assert!(error.is_of_others(), "{error}");
    }
    for damaged in ["{not json", "{}", &text.replace("prior_weight", "prior"), &text.replace("200.0", "-1.0")]
    {
        let error = read(damaged).unwrap_err();
        assert!(!error.is_of_others(), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_order_in_which_others_are_heard_of_does_not_matter(seeds in proptest::collection::vec(0..1000u64, 3)) {
        let states: Vec<LearnedState> = seeds.iter().map(|&seed| taught(&lessons(seed, 60)).own_state()).collect();
        let merged = |order: [usize; 3]| {
            let mut book = taught(&lessons(5, 40));
            book.with_others(order.map(|at| states[at].clone()).to_vec()).unwrap();
            book
        };
        assert_alike(&merged([0, 1, 2]), &merged([2, 0, 1]), 1e-12);
        let mut twice = merged([1, 2, 0]);
        twice.with_others(states.clone()).unwrap();
        assert_alike(&twice, &merged([0, 1, 2]), 1e-12);
    }

    #[test]
    fn two_replicas_that_share_believe_what_one_would_that_saw_all(seed in 0..1000u64) {
        let all = lessons(seed, 600);
        let mut replicas = [BeliefStore::new(Settings::default()), BeliefStore::new(Settings::default())];
        for (at, lesson) in all.iter().enumerate() {
            replicas[at % 2].observe(lesson);
            if at % 10 == 9 {
                let states = replicas.each_ref().map(BeliefStore::own_state);
                replicas[0].with_others(vec![states[1].clone()]).unwrap();
                replicas[1].with_others(vec![states[0].clone()]).unwrap();
            }
        }
        let [one, two] = replicas;
        // Mostly within a hundredth; an alarm is raised some outcomes earlier or later, and that far they differ then.
        assert_alike(&one, &taught(&all), 0.15);
        assert_alike(&two, &taught(&all), 0.15);
    }
}

#[test]
fn what_a_replica_had_learned_that_is_gone_goes_on_in_the_one_that_takes_it_over() {
    let gone = taught(&lessons(1, 60)).own_state();
    let mut beside = taught(&lessons(2, 40));
    beside.with_others(vec![gone.clone()]).unwrap();
    let mut over = taught(&lessons(2, 40));
    over.take_over(std::slice::from_ref(&gone));
    assert_alike(&beside, &over, 1e-9);
    let mut fresh = BeliefStore::new(Settings::default());
    fresh.take_over(std::slice::from_ref(&gone));
    assert_alike(&fresh, &BeliefStore::resume(Settings::default(), gone).unwrap(), 1e-9);
}

#[test]
fn a_judgement_that_comes_later_counts_and_one_that_is_changed_counts_as_the_new_one() {
    let unjudged = OutcomeSample { success: None, ..lesson("one", 0.0) };
    let mut late = taught(&[unjudged]);
    let mark = late.judge(&lesson("one", 1.0));
    assert_alike(&late, &taught(&[lesson("one", 1.0)]), 1e-9);
    assert!(late.amend(&lesson("one", 0.0), Chance::new(1.0), mark));
    let weightless = OutcomeSample { weight: 0.0, ..lesson("one", 1.0) };
    assert!(!late.amend(&weightless, Chance::new(0.0), mark));
    assert_alike(&late, &taught(&[lesson("one", 0.0)]), 1e-9);
}

proptest! {
    // Each case is a few hundred outcomes.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_taken_back_after_any_time_leaves_what_is_believed_as_if_it_had_never_been(
        after in 0usize..200,
        heard in 0usize..50,
        (first, second) in (0.0..=1.0, 0.0..=1.0),
        is_cut in any::<bool>(),
        forget in prop_oneof![Just(0.9998), 0.9..0.999],
    ) {
        let settings = Settings { forget, alarm: f64::INFINITY, ..Settings::default() };
        let ended = if is_cut { ThinkingStopReason::Cut } else { ThinkingStopReason::Closed };
        let others = || {
            let mut other = BeliefStore::new(settings);
            for _ in 0..heard {
                other.observe(&lesson("one", 1.0));
            }
            vec![other.own_state()]
        };
        let told = |success: f64| {
            let mut book = BeliefStore::new(settings);
            book.observe(&lesson("one", 1.0));
            let mark = book.judge(&OutcomeSample { ended, ..lesson("one", success) });
            for at in 0..after {
                book.observe(&lesson("one", if at % 4 == 0 { 0.0 } else { 1.0 }));
            }
            book.with_others(others()).unwrap();
            (book, mark)
        };
        let (mut changed, mark) = told(first);
        changed.amend(&OutcomeSample { ended, ..lesson("one", second) }, Chance::new(first), mark);
        assert_alike(&changed, &told(second).0, 1e-6);
    }
}

#[test]
fn of_a_judgement_whose_time_nobody_knows_no_more_is_taken_back_than_may_be_left() {
    let after = vec![lesson("one", 1.0); 3000];
    let taken_back = |mark: fn(Option<JudgementMark>) -> Option<JudgementMark>| {
        let mut book = taught(&[lesson("one", 0.0)]);
        let first = book.judge(&lesson("one", 0.0));
        for lesson in &after {
            book.observe(lesson);
        }
        let before = believed(&book).models["one"].done.get();
        book.amend(&lesson("one", 1.0), Chance::new(0.0), mark(first));
        believed(&book).models["one"].done.get() - before
    };
    let (known, unknown) = (taken_back(|mark| mark), taken_back(|_| None));
    assert!(unknown > 0.0 && unknown <= known, "{unknown} of {known}");
}

#[test]
fn what_was_said_before_an_alarm_is_not_taken_back_from_what_came_after_it() {
    let mut book = taught(&vec![lesson("one", 1.0); 500]);
    let mark = book.judge(&lesson("one", 1.0));
    for _ in 0..60 {
        book.observe(&lesson("one", 0.0));
    }
    let before = book.clone();
    assert!(!book.amend(&lesson("one", 0.0), Chance::new(1.0), mark));
    assert_alike(&book, &before, 1e-12);
}

#[test]
fn a_model_that_suddenly_fails_is_found_out_within_150_outcomes() {
    let mut dice = SeededRng::new(11);
    let mut book = BeliefStore::new(Settings::default());
    for _ in 0..3000 {
        book.observe(&lesson("two", if dice.next_f64() < 0.8 { 1.0 } else { 0.0 }));
    }
    assert!((believed(&book).models["two"].done.get() - 0.8).abs() < 0.05);
    for _ in 0..150 {
        book.observe(&lesson("two", if dice.next_f64() < 0.2 { 1.0 } else { 0.0 }));
    }
    assert!(believed(&book).models["two"].done.get() < 0.5, "{:?}", believed(&book).models["two"]);
}

#[test]
fn how_good_a_model_is_after_it_fell_is_known_within_60_outcomes() {
    let mut dice = SeededRng::new(12);
    let mut book = taught(&vec![lesson("two", 1.0); 2000]);
    for _ in 0..60 {
        book.observe(&lesson("two", if dice.next_f64() < 0.2 { 1.0 } else { 0.0 }));
    }
    let now = believed(&book).models["two"].done.get();
    assert!((now - 0.2).abs() < 0.15, "{now}");
}

#[test]
fn a_model_that_fell_goes_on_being_worse_at_what_it_was_worse_at() {
    // Right on the easy ones and wrong on the hard ones, of which the prior knows nothing but what there is to read.
    let ask = |prompt: u64, success: f64| {
        let mut lesson = lesson("two", success);
        lesson.context.prompt = if prompt > 500 { 1.0 } else { -1.0 };
        lesson
    };
    let mut book = taught(&vec![vec![ask(50, 1.0), ask(5000, 0.5)]; 1000].concat());
    vec![vec![ask(50, 0.3), ask(5000, 0.0)]; 15].concat().iter().for_each(|lesson| book.observe(lesson));
    let of = |prompt: u64| {
        let mut demand = prior();
        demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
        book.adjust(&mut demand);
        demand.models["two"].done.get()
    };
    assert!(of(50) > of(700) + 0.1, "{} {}", of(50), of(700));
}

#[test]
fn what_one_replica_finds_out_the_others_believe_too() {
    let steady = vec![lesson("two", 1.0); 500];
    let (mut one, mut other) = (taught(&steady), taught(&steady));
    one.with_others(vec![other.own_state()]).unwrap();
    vec![lesson("two", 0.0); 60].iter().for_each(|lesson| one.observe(lesson));
    other.with_others(vec![one.own_state()]).unwrap();
    let (here, there) = (believed(&one).models["two"].done.get(), believed(&other).models["two"].done.get());
    assert!(here < 0.6 && (here - there).abs() < 0.05, "{here} {there}");
}

#[test]
fn answers_that_ran_longer_are_expected_to_run_longer() {
    let mut long = lesson("one", 1.0);
    long.solution = Tokens(300);
    let now = believed(&taught(&vec![long; 200]));
    assert!((240..310).contains(&now.models["one"].solution.0), "{}", now.models["one"].solution);
    assert_eq!(now.models["two"].solution, Tokens(100));
}

#[test]
fn an_answer_is_expected_to_be_as_long_as_those_to_such_requests_were() {
    let asked = |prompt: u64, solution: u64| {
        let mut demand = prior();
        demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
        OutcomeSample {
            context: DemandSummary::of(&demand),
            solution: Tokens(solution),
            ..lesson("one", 1.0)
        }
    };
    let book = taught(&vec![vec![asked(50, 60), asked(800, 240)]; 200].concat());
    let expected = |prompt: u64| {
        let mut demand = prior();
        demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
        book.adjust(&mut demand);
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
    let book = taught(&vec![vec![cut, finished, none]; 200].concat());
    let now = believed(&book).models["two"].clone();
    assert!(now.bend < 0.6, "{now:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_happens_beliefs_stay_numbers(seed in 0..1000u64, weight in 1e-6..10.0f64) {
        let mut dice = SeededRng::new(seed);
        let mut book = BeliefStore::new(Settings::default());
        for mut lesson in lessons(seed, 200) {
            lesson.weight = weight;
            lesson.predicted.thinking.mu = 20.0 * dice.next_f64();
            lesson.predicted.thinking.sigma = 3.0 * dice.next_f64();
            lesson.predicted.bend = 4.0 * dice.next_f64();
            lesson.predicted.spread = dice.next_f64();
            book.observe(&lesson);
        }
        for model in believed(&book).models.values() {
            prop_assert!(model.spread.is_finite() && model.spread >= 0.0);
            prop_assert!(model.bend.is_finite() && model.bend > 0.0);
            prop_assert!(model.thinking.mu.is_finite() && model.thinking.sigma > 0.0);
        }
    }
}
