//! An alarm goes for what every replica learned before it, and for nothing after it.

use super::{BeliefStore, LearnedState, OutcomeSample, assert_alike, believed, lesson, taught};

const LONG: usize = 2000;

/// Right once in five.
fn fallen(count: usize) -> Vec<OutcomeSample> {
    (0..count).map(|at| lesson("two", if at % 5 == 4 { 1.0 } else { 0.0 })).collect()
}

/// Two replicas that have long seen the model do well, and know it of each other.
fn pair() -> [BeliefStore; 2] {
    let mut pair = [1, 2].map(|_| taught(&vec![lesson("two", 1.0); LONG]));
    exchange(&mut pair);
    pair
}

fn exchange(pair: &mut [BeliefStore; 2]) {
    let [one, other] = pair.each_ref().map(BeliefStore::own_state);
    pair[0].with_others(vec![other]).unwrap();
    pair[1].with_others(vec![one]).unwrap();
}

fn observe(beliefs: &mut BeliefStore, lessons: &[OutcomeSample]) {
    lessons.iter().for_each(|lesson| beliefs.observe(lesson));
}

fn done(beliefs: &BeliefStore) -> f64 {
    believed(beliefs).models["two"].done.get()
}

fn spread(beliefs: &BeliefStore) -> f64 {
    believed(beliefs).models["two"].spread
}

#[test]
fn who_notices_a_fall_believes_it_whatever_others_say_of_before() {
    let [mut one, other] = pair();
    observe(&mut one, &fallen(60));
    assert!(done(&one) < 0.35, "{}", done(&one));
    one.with_others(vec![other.own_state()]).unwrap();
    assert!(done(&one) < 0.35, "hearing the same again: {}", done(&one));
    let mut over = one.clone();
    over.with_others(Vec::new()).unwrap();
    over.take_over(&[other.own_state()]);
    assert!(done(&over) < 0.35, "taking over what the other left: {}", done(&over));
    let mut fresh = BeliefStore::new(super::Settings::default());
    fresh.take_over(&[other.own_state(), one.own_state()]);
    assert!(done(&fresh) < 0.35, "beginning with what both left: {}", done(&fresh));
}

#[test]
fn what_another_sees_after_it_has_heard_of_an_alarm_counts_in_full() {
    let mut pair = pair();
    observe(&mut pair[0], &fallen(60));
    exchange(&mut pair);
    assert!(done(&pair[1]) < 0.35, "{}", done(&pair[1]));
    let before = done(&pair[0]);
    observe(&mut pair[1], &vec![lesson("two", 0.35); 400]);
    exchange(&mut pair);
    let (before, after, there) = (before, done(&pair[0]), done(&pair[1]));
    assert!(before < 0.28 && after > 0.31, "{before} {after}");
    assert!((after - there).abs() < 0.01, "{after} {there}");
}

#[test]
fn an_alarm_that_two_raise_before_they_hear_of_each_other_counts_once() {
    let mut pair = pair();
    pair.iter_mut().for_each(|beliefs| observe(beliefs, &fallen(60)));
    let before = spread(&pair[0]);
    exchange(&mut pair);
    assert!(done(&pair[0]) < 0.35 && spread(&pair[0]) < before, "{} {before}", spread(&pair[0]));
}

#[test]
fn a_state_without_a_word_on_alarms_is_taken_for_one_that_heard_of_none() {
    let one = taught(&vec![lesson("two", 1.0); LONG]);
    let mut text = serde_json::to_value(one.own_state()).unwrap();
    text["models"]["two"].as_object_mut().unwrap().remove("alarms");
    let read = LearnedState::read(&text.to_string(), &super::Settings::default()).unwrap();
    assert_alike(
        &BeliefStore::resume(super::Settings::default(), read).unwrap(),
        &taught(&vec![lesson("two", 1.0); LONG]),
        1e-9,
    );
}
