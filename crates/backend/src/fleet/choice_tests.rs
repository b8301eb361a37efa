use stint_types::chat::{Message, SignedThought, ThoughtSigner};

use super::*;

fn fleet(expected: &[f64]) -> Vec<TargetCandidate> {
    let named = |place: usize| name_hash(&format!("target {place}"));
    let one = |(place, &expected)| TargetCandidate {
        index: place,
        name_hash: named(place),
        origin: Some(SigningDomain(u32::try_from(place).unwrap())),
        expected_wait: expected,
    };
    expected.iter().enumerate().map(one).collect()
}

fn conversation(number: usize) -> AffinityKey {
    let message = |role, text: &str| Message::text(role, text);
    let turns = vec![message(Role::System, "Be brief."), message(Role::User, &format!("question {number}"))];
    AffinityKey::of(&Request::new("m", turns))
}

fn home(fleet: &[TargetCandidate], number: usize) -> usize {
    choose_target(fleet, conversation(number), &mut SeededRng::new(7)).unwrap()
}

#[test]
fn the_next_turn_of_a_conversation_begins_as_the_first() {
    let turn = |role, text: &str| Message::text(role, text);
    let first = vec![turn(Role::System, "Be brief."), turn(Role::User, "Hello")];
    let next = [first.clone(), vec![turn(Role::Assistant, "Hi"), turn(Role::User, "Go on")]].concat();
    let other = vec![turn(Role::System, "Be long."), turn(Role::User, "Hello")];
    let split = vec![turn(Role::System, "Be brief.H"), turn(Role::User, "ello")];
    let of = |messages: &[Message]| AffinityKey::of(&Request::new("m", messages.to_vec()));
    assert_eq!(of(&first), of(&next));
    assert_ne!(of(&first), of(&other));
    assert_ne!(of(&first), of(&split));
    let long =
        |end: &str| vec![turn(Role::System, &format!("{}{end}", "x".repeat(100_000))), first[1].clone()];
    assert_ne!(of(&long("a")), of(&long("b")), "however long the instructions are");
    assert_ne!(of(&long("a")), of(&[&long("a")[..1], &[turn(Role::User, "Bye")]].concat()));
}

#[test]
fn conversations_have_a_home_each_and_spread_evenly() {
    let fleet = fleet(&[0.1; 4]);
    let mut counts = [0_u32; 4];
    for number in 0..2_000 {
        let place = home(&fleet, number);
        assert_eq!(place, home(&fleet, number), "the same every time");
        counts[place] += 1;
    }
    assert!(counts.iter().all(|count| (400..600).contains(count)), "{counts:?}");
}

#[test]
fn a_target_that_leaves_moves_its_own_conversations_alone() {
    let whole = fleet(&[0.1; 4]);
    let without: Vec<TargetCandidate> =
        whole.iter().filter(|candidate| candidate.index != 2).copied().collect();
    for number in 0..500 {
        let before = home(&whole, number);
        if before != 2 {
            assert_eq!(home(&without, number), before);
        }
    }
}

#[test]
fn a_home_that_is_far_slower_is_left_for_the_better_of_two() {
    let check = |times: &[f64], leaves: bool| {
        let (usual, now) = (fleet(&[0.1; 3]), fleet(times));
        let all: Vec<usize> = (0..300).filter(|number| home(&usual, *number) == 0).collect();
        assert!(!all.is_empty());
        for number in all {
            assert_eq!(home(&now, number) != 0, leaves, "{times:?}");
        }
    };
    check(&[0.3, 0.1, 0.1], false);
    check(&[0.44, 0.1, 0.1], false);
    check(&[2.0, 0.1, 0.1], true);
    check(&[2.0, 1.5, 1.5], false);
}

#[test]
fn of_two_that_are_drawn_the_quicker_is_taken() {
    // Everybody's home is hopeless, so the choice is between the other three.
    let mut slowest = 0;
    for seed in 0..300 {
        let mut times = [0.1, 0.2, 0.3, 0.4];
        let number = usize::try_from(seed).unwrap();
        let at = home(&fleet(&times), number);
        times[at] = 100.0;
        let fleet = fleet(&times);
        let place = choose_target(&fleet, conversation(number), &mut SeededRng::new(seed)).unwrap();
        let worst =
            (0..4).filter(|other| *other != at).max_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap();
        slowest += u32::from(place == worst);
    }
    assert_eq!(slowest, 0, "the slowest of three is never the better of two");
}

#[test]
fn a_fleet_of_one_and_of_none() {
    assert_eq!(choose_target(&fleet(&[9.0]), conversation(1), &mut SeededRng::new(1)), Some(0));
    assert_eq!(choose_target(&[], conversation(1), &mut SeededRng::new(1)), None);
}

#[test]
fn a_thought_goes_back_to_where_it_was_signed_while_that_can_be_asked() {
    let all = fleet(&[0.1, 9.0, 0.1]);
    let without: Vec<TargetCandidate> =
        all.iter().filter(|candidate| candidate.index != 1).copied().collect();
    for number in 0..50 {
        let turn = |role, text: &str| Message::text(role, text);
        let mut last = turn(Role::Assistant, "");
        let signer = ThoughtSigner { model: "m".into(), domain: SigningDomain(1) };
        last.signed.push(SignedThought { signer, block: "{}".into() });
        let turns = vec![turn(Role::User, &format!("question {number}")), last];
        let beginning = AffinityKey::of(&Request::new("m", turns));
        let go = |fleet: &[TargetCandidate]| choose_target(fleet, beginning, &mut SeededRng::new(number));
        assert_eq!(go(&all), Some(1), "however slow it is");
        assert!(go(&without).is_some(), "elsewhere it goes without");
    }
}
