use proptest::prelude::*;

use stint_types::units::{Chance, SeededRng};

use super::overtake_risk::edge;
use super::*;

const FREE: StoppingRule = StoppingRule { worth: 1.0, price: 0.0, stop_probability: Chance::ZERO };

fn ballot(most: u32, answers: &[u8]) -> Ballot {
    let mut ballot = Ballot::new(most);
    for (sample, answer) in (0..).zip(answers) {
        ballot.cast(sample, (*answer != b'-').then(|| char::from(*answer).to_string()));
    }
    ballot
}

fn check(most: u32, answers: &str, rule: &StoppingRule, expected: VoteStep) {
    assert_eq!(ballot(most, answers.as_bytes()).next_step(rule, 3), expected, "{answers} of {most}");
}

#[test]
fn a_leader_that_cannot_be_caught_has_won() {
    check(5, "aa", &FREE, VoteStep::Sample(1));
    check(5, "aaa", &FREE, VoteStep::Stop(VoteStopReason::Uncatchable));
    check(5, "abab", &FREE, VoteStep::Sample(1));
    check(5, "ababb", &FREE, VoteStep::Stop(VoteStopReason::Exhausted));
    check(3, "a-", &FREE, VoteStep::Stop(VoteStopReason::Uncatchable));
    check(4, "aab", &FREE, VoteStep::Stop(VoteStopReason::Uncatchable));
    check(1, "a", &FREE, VoteStep::Stop(VoteStopReason::Exhausted));
}

#[test]
fn of_equals_the_first_to_come_wins() {
    for (answers, winner) in [("ab", "a"), ("abb", "b"), ("baab", "b"), ("-cc-dd", "c")] {
        assert_eq!(
            ballot(9, answers.as_bytes()).winner().map(|winner| &*winner.key),
            Some(winner),
            "{answers}"
        );
    }
    assert_eq!(ballot(9, b"--").winner(), None);
    // The leader came second, so a draw would be the other's.
    check(5, "abb", &FREE, VoteStep::Sample(1));
    check(4, "abb", &FREE, VoteStep::Sample(1));
}

#[test]
fn no_more_are_asked_for_at_once_than_could_decide() {
    check(9, "", &FREE, VoteStep::Sample(3));
    check(9, "aaaa", &FREE, VoteStep::Sample(1));
    check(
        9,
        "aaa",
        &StoppingRule { stop_probability: Chance::new(0.05), ..FREE },
        VoteStep::Stop(VoteStopReason::NotWorth),
    );
    check(9, "aa", &StoppingRule { stop_probability: Chance::new(0.05), ..FREE }, VoteStep::Sample(1));
}

#[test]
fn a_sample_is_asked_for_while_what_it_may_change_is_worth_its_price() {
    let dear = |price| StoppingRule { worth: 1.0, price, stop_probability: Chance::ZERO };
    check(9, "ab", &dear(0.001), VoteStep::Sample(3));
    check(9, "ab", &dear(0.5), VoteStep::Stop(VoteStopReason::NotWorth));
    check(9, "aaa", &dear(0.000_1), VoteStep::Sample(2));
    check(9, "aaa", &dear(0.01), VoteStep::Stop(VoteStopReason::NotWorth));
    check(9, "", &dear(100.0), VoteStep::Sample(1));
}

#[test]
fn rare_answers_are_dropped_where_others_agree() {
    let common = |answers: &str| {
        let ballot = ballot(9, answers.as_bytes());
        ballot.common_answers().into_iter().map(|standing| standing.key.clone()).collect::<String>()
    };
    assert_eq!(
        (common("abcbcc"), common("abc"), common("-a"), common("")),
        ("cb".into(), "abc".into(), "a".into(), String::new())
    );
}

#[test]
fn a_vote_for_a_majority_ends_when_there_is_one_or_can_be_none() {
    let check = |most, answers: &str, expected, carried| {
        let mut vote = Ballot::of_majority(most);
        (0..).zip(answers.chars()).for_each(|(sample, answer)| vote.cast(sample, Some(answer.to_string())));
        assert_eq!((vote.next_step(&FREE, 3), vote.has_quorum()), (expected, carried), "{answers} of {most}");
    };
    check(2, "a", VoteStep::Sample(1), false);
    check(2, "aa", VoteStep::Stop(VoteStopReason::Exhausted), true);
    check(3, "aa", VoteStep::Stop(VoteStopReason::Uncatchable), true);
    check(3, "ab", VoteStep::Sample(1), false);
    check(4, "ab", VoteStep::Sample(2), false);
    check(4, "abc", VoteStep::Stop(VoteStopReason::Torn), false);
}

/// I½(a, b) by the trapezoid rule, to check the sum against.
fn by_integration(first: u32, second: u32) -> f64 {
    let density = |x: f64| x.powi(first.cast_signed()) * (1.0 - x).powi(second.cast_signed());
    let sum = |to: f64| {
        (0..20_000).map(|step| density(to * (f64::from(step) + 0.5) / 20_000.0) * to / 20_000.0).sum::<f64>()
    };
    2.0 * sum(0.5) / sum(1.0) - 1.0
}

#[test]
fn how_much_likelier_one_answer_is_the_commoner_is_the_beta_distributions_median() {
    for (first, second) in [(0, 0), (0, 1), (3, 3), (4, 5), (2, 9)] {
        assert!((edge(first, second) - by_integration(first, second)).abs() < 1e-6, "{first} {second}");
    }
}

/// Adds one sample drawn from what is believed of the shares: of all answers given so far, and one not yet given.
fn draw(answers: &mut Vec<u8>, dice: &mut SeededRng) {
    let kinds: Vec<u8> = (b'a'..=b'z').filter(|kind| answers.contains(kind)).collect();
    let drawn = dice.below(answers.len() + kinds.len() + 1);
    let next = if drawn < answers.len() {
        answers[drawn]
    } else {
        let fresh = kinds.iter().max().map_or(b'a', |last| last + 1);
        kinds.get(drawn - answers.len()).copied().unwrap_or(fresh)
    };
    answers.push(next);
}

#[test]
fn a_vote_that_ended_early_would_have_ended_otherwise_as_seldom_as_it_says() {
    let mut dice = SeededRng::new(5);
    for doubt in [0.02, 0.05, 0.1] {
        let rule = StoppingRule { stop_probability: Chance::new(doubt), ..FREE };
        let (mut early, mut changed) = (0_u32, 0_u32);
        for _ in 0..4_000 {
            let mut answers = Vec::new();
            let decided = loop {
                draw(&mut answers, &mut dice);
                let ballot = ballot(9, &answers);
                if let VoteStep::Stop(decided) = ballot.next_step(&rule, 3) {
                    break (decided, ballot.winner().cloned());
                }
            };
            while answers.len() < 9 {
                draw(&mut answers, &mut dice);
            }
            let key = |winner: Option<AnswerVotes>| winner.map(|winner| winner.key);
            let is_other = key(ballot(9, &answers).winner().cloned()) != key(decided.1);
            match decided.0 {
                VoteStopReason::NotWorth => (early, changed) = (early + 1, changed + u32::from(is_other)),
                VoteStopReason::Uncatchable | VoteStopReason::Exhausted | VoteStopReason::Torn => {
                    assert!(!is_other, "{answers:?}");
                }
            }
        }
        let (share, margin) =
            (f64::from(changed) / f64::from(early), 3.0 * (doubt / f64::from(early)).sqrt());
        assert!(early > 500 && share <= doubt + margin, "{doubt}: {changed} of {early}");
    }
}

proptest! {
    #[test]
    fn without_a_price_or_a_doubt_a_vote_is_the_plain_majority(answers in proptest::collection::vec(0..6_u8, 1..=15)) {
        let most = u32::try_from(answers.len()).unwrap();
        let named: Vec<u8> = answers.iter().map(|answer| if *answer == 5 { b'-' } else { b'a' + answer }).collect();
        let stop = (0..=named.len()).find(|&taken| {
            matches!(ballot(most, &named[..taken]).next_step(&FREE, 3), VoteStep::Stop(_))
        });
        let taken = &named[..stop.unwrap()];
        let most_votes = (b'a'..=b'e').map(|kind| named.iter().filter(|other| **other == kind).count()).max().unwrap();
        let plain = named.iter().find(|kind| **kind != b'-' && named.iter().filter(|other| other == kind).count() == most_votes);
        prop_assert_eq!(
            ballot(most, taken).winner().map(|winner| winner.key.clone()),
            plain.map(|kind| char::from(*kind).to_string())
        );
    }

    #[test]
    fn a_vote_always_ends_and_never_asks_beyond_what_is_left(
        answers in proptest::collection::vec(0..4_u8, 15),
        (price, doubt, at_once) in (0.0..0.1_f64, 0.0..0.2_f64, 1..9_u32),
    ) {
        let rule = StoppingRule { worth: 1.0, price, stop_probability: Chance::new(doubt) };
        let mut vote = Ballot::new(15);
        for (sample, answer) in (0..).zip(&answers) {
            match vote.next_step(&rule, at_once) {
                VoteStep::Sample(more) => prop_assert!((1..=at_once.min(15 - sample)).contains(&more)),
                VoteStep::Stop(_) => return Ok(()),
            }
            vote.cast(sample, Some(answer.to_string()));
        }
        prop_assert_eq!(vote.next_step(&rule, at_once), VoteStep::Stop(VoteStopReason::Exhausted));
    }
}
