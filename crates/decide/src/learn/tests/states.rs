//! What was learned, stored, taken over and shared.

use super::*;

#[test]
fn a_book_that_was_stored_goes_on_where_it_was() {
    let all = lessons(3, 300);
    let before = taught(&all[..200]);
    let stored = serde_json::to_string(&before.own_state()).unwrap();
    let mut after = BeliefStore::resume(Settings::default(), serde_json::from_str(&stored).unwrap()).unwrap();
    all[200..].iter().for_each(|lesson| after.observe(lesson));
    // Words are written down in steps.
    assert_alike(&after, &taught(&all), 1e-3);
}

#[test]
fn a_state_from_other_settings_or_another_version_is_refused() {
    let state = taught(&lessons(1, 20)).own_state();
    let other = Settings { forget: 0.99, ..Settings::default() };
    assert!(matches!(BeliefStore::resume(other, state.clone()), Err(StateError::Forget { .. })));
    let mut text = serde_json::to_value(&state).unwrap();
    text["features"] = 7.into();
    let old: LearnedState = serde_json::from_value(text).unwrap();
    let mut beliefs = BeliefStore::new(Settings::default());
    assert!(matches!(beliefs.with_others(vec![old, state]), Err(StateError::Version { features: 7, .. })));
    assert!(
        believed(&beliefs).models["one"].done != prior().models["one"].done,
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
fn what_one_replica_finds_out_the_others_believe_too() {
    let steady = vec![lesson("two", 1.0); 500];
    let (mut one, mut other) = (taught(&steady), taught(&steady));
    one.with_others(vec![other.own_state()]).unwrap();
    vec![lesson("two", 0.0); 60].iter().for_each(|lesson| one.observe(lesson));
    other.with_others(vec![one.own_state()]).unwrap();
    let (here, there) = (believed(&one).models["two"].done.get(), believed(&other).models["two"].done.get());
    assert!(here < 0.6 && (here - there).abs() < 0.05, "{here} {there}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_order_in_which_others_are_heard_of_does_not_matter(seeds in proptest::collection::vec(0..1000u64, 3)) {
        let states: Vec<LearnedState> = seeds.iter().map(|&seed| taught(&lessons(seed, 60)).own_state()).collect();
        let merged = |order: [usize; 3]| {
            let mut beliefs = taught(&lessons(5, 40));
            beliefs.with_others(order.map(|at| states[at].clone()).to_vec()).unwrap();
            beliefs
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
        // Mostly within a hundredth; an alarm is raised some outcomes earlier or later, and that far they differ then: of these
        // thousand seeds 107 is the one beyond 0.15.
        assert_alike(&one, &taught(&all), 0.18);
        assert_alike(&two, &taught(&all), 0.18);
    }
}
