//! Judgements that come late, change, or are taken back.

use super::*;

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

#[test]
fn of_a_judgement_whose_time_nobody_knows_no_more_is_taken_back_than_may_be_left() {
    let after = vec![lesson("two", 1.0); 3000];
    let taken_back = |mark: fn(Option<JudgementMark>) -> Option<JudgementMark>| {
        let mut beliefs = taught(&[lesson("two", 0.0)]);
        let first = beliefs.judge(&lesson("two", 0.0));
        for lesson in &after {
            beliefs.observe(lesson);
        }
        let before = believed(&beliefs).models["two"].done.get();
        beliefs.amend(&lesson("two", 1.0), Chance::new(0.0), mark(first));
        believed(&beliefs).models["two"].done.get() - before
    };
    let (known, unknown) = (taken_back(|mark| mark), taken_back(|_| None));
    assert!(unknown > 0.0 && unknown <= 1.1 * known, "{unknown} of {known}");
}

#[test]
fn what_was_said_before_an_alarm_is_not_taken_back_from_what_came_after_it() {
    let mut beliefs = taught(&vec![lesson("one", 1.0); 500]);
    let mark = beliefs.judge(&lesson("one", 1.0));
    for _ in 0..60 {
        beliefs.observe(&lesson("one", 0.0));
    }
    let before = beliefs.clone();
    assert!(!beliefs.amend(&lesson("one", 0.0), Chance::new(1.0), mark));
    assert_alike(&beliefs, &before, 1e-12);
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
            let mut beliefs = BeliefStore::new(settings);
            beliefs.observe(&lesson("one", 1.0));
            let mark = beliefs.judge(&OutcomeSample { ended, ..lesson("one", success) });
            for at in 0..after {
                beliefs.observe(&lesson("one", if at % 4 == 0 { 0.0 } else { 1.0 }));
            }
            beliefs.with_others(others()).unwrap();
            (beliefs, mark)
        };
        let (mut changed, mark) = told(first);
        changed.amend(&OutcomeSample { ended, ..lesson("one", second) }, Chance::new(first), mark);
        // Each outcome is weighed by what was believed when it came, and so not quite as if the first word had never been.
        let within = if after == 0 { 1e-9 } else { 0.02 };
        assert_alike(&changed, &told(second).0, within);
    }
}
