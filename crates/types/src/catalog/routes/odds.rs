//! What a vote of several answers comes to, given the chance of one.
//!
//! The assumptions: of m answers to one question the number that are right is beta-binomial, so that answers are as much
//! alike as [`VoteAssumptions::correlation`] says; wrong ones fall evenly on [`VoteAssumptions::distinct_wrong`] different
//! answers; of answers that come equally often any is taken. The sums are over all ways that wrong answers can agree, so they
//! are exact under these assumptions. They are made once for a route, at steps of a chance, and read off between them.

use crate::units::Chance;

/// What is assumed of several answers to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoteAssumptions {
    /// Over how many different answers wrong ones spread, as if evenly: the fewer, the more often they agree.
    pub distinct_wrong: u32,
    /// How much alike answers to one question are, beyond what their chance says: the correlation between two of them
    /// being right. At 0 each is right or wrong by itself; at 1 all are, and a vote gains nothing.
    pub correlation: Chance,
}

/// Between so many steps of a chance they are read off.
const STEPS: usize = 64;
/// That answers are all alike is a limit, which the formulas do not reach.
const ALIKE_MAX: f64 = 0.999;

/// What comes of a vote of so many answers.
#[derive(Debug, Clone, PartialEq)]
pub struct VoteOdds {
    /// How many answers at most.
    pub samples: u32,
    at: Vec<VoteForecast>,
}

/// What a vote is expected to come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VoteForecast {
    /// The chance that the answer that comes most often is right.
    pub right: f64,
    /// How many answers are made until the leader cannot be caught.
    pub asked: f64,
    /// The chance that more than half of the answers are equal.
    pub agreed: f64,
    /// The chance that they are equal and right.
    pub agreed_right: f64,
    /// How many answers are made until more than half are equal, or cannot be any more.
    pub asked_agreeing: f64,
}

/// One way in which wrong answers agree.
struct AgreementPattern {
    chance: f64,
    /// How often the most frequent of them comes, and the next.
    top: u32,
    second: u32,
    /// How many of them come that often.
    ties: u32,
}

impl VoteOdds {
    /// A vote of so many.
    pub fn of(samples: u32, assumptions: VoteAssumptions) -> VoteOdds {
        let patterns: Vec<Vec<AgreementPattern>> =
            (0..=samples).map(|count| patterns(count, assumptions.distinct_wrong)).collect();
        let at = (0..=STEPS).map(|step| forecast_at(samples, chance(step), assumptions, &patterns)).collect();
        VoteOdds { samples, at }
    }

    /// What it comes to where one answer is right with that chance.
    pub fn forecast(&self, one: Chance) -> VoteForecast {
        let place = one.get() * chance(1).recip();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a step from 0 to STEPS")]
        let below = (place as usize).min(STEPS - 1);
        let (low, high, share) = (self.at[below], self.at[below + 1], place - count(below));
        let between = |low: f64, high: f64| low + (high - low) * share;
        VoteForecast {
            right: between(low.right, high.right),
            asked: between(low.asked, high.asked),
            agreed: between(low.agreed, high.agreed),
            agreed_right: between(low.agreed_right, high.agreed_right),
            asked_agreeing: between(low.asked_agreeing, high.asked_agreeing),
        }
    }
}

fn count(step: usize) -> f64 {
    u32::try_from(step).map_or(0.0, f64::from)
}

fn chance(step: usize) -> f64 {
    count(step) / count(STEPS)
}

fn forecast_at(
    samples: u32,
    one: f64,
    assumptions: VoteAssumptions,
    patterns: &[Vec<AgreementPattern>],
) -> VoteForecast {
    let majority = samples / 2 + 1;
    let mut sum = VoteForecast::default();
    for made in 0..=samples {
        let left = samples - made;
        for right in 0..=made {
            let rights = beta_binomial(made, right, one, assumptions.correlation.get());
            for pattern in &patterns[(made - right) as usize] {
                let chance = rights * pattern.chance;
                let most = right.max(pattern.top);
                if left == 0 {
                    sum.right += chance * wins(right, pattern);
                    sum.agreed += if most >= majority { chance } else { 0.0 };
                    sum.agreed_right += if right >= majority { chance } else { 0.0 };
                    continue;
                }
                // One more answer is made for each count after which the vote is still open.
                let next = if right > pattern.top { pattern.top } else { right.max(pattern.second) };
                sum.asked += if most - next <= left { chance } else { 0.0 };
                let open = most < majority && most + left >= majority;
                sum.asked_agreeing += if open { chance } else { 0.0 };
            }
        }
    }
    sum
}

/// The chance that the right answer is taken.
fn wins(right: u32, wrong: &AgreementPattern) -> f64 {
    match right.cmp(&wrong.top) {
        _ if right == 0 => 0.0,
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 1.0 / f64::from(1 + wrong.ties),
        std::cmp::Ordering::Less => 0.0,
    }
}

/// The chance of so many of so many (Skellam, *A probability distribution derived from the binomial distribution*, 1948),
/// in the form that becomes the binomial where answers are not alike.
fn beta_binomial(made: u32, right: u32, one: f64, alike: f64) -> f64 {
    let alike = alike.min(ALIKE_MAX);
    let step = alike / (1.0 - alike);
    let rising = |from: f64, count: u32| (0..count).map(|i| from + f64::from(i) * step).product::<f64>();
    let ways: f64 = (0..right).map(|i| f64::from(made - i) / f64::from(right - i)).product();
    ways * rising(one, right) * rising(1.0 - one, made - right) / rising(1.0, made)
}

/// All ways in which so many wrong answers fall on so many different ones, by how often each comes.
fn patterns(answers: u32, different: u32) -> Vec<AgreementPattern> {
    let mut found = Vec::new();
    parts(answers, answers, different.max(1), &mut Vec::new(), &mut |parts| {
        let times = |place: usize| parts.get(place).copied().unwrap_or(0);
        let ties = parts.iter().take_while(|part| **part == times(0)).count();
        found.push(AgreementPattern {
            chance: chance_of(parts, answers, different.max(1)),
            top: times(0),
            second: times(1),
            ties: u32::try_from(ties).unwrap_or(u32::MAX),
        });
    });
    found
}

/// Every way to write a number as a sum of at most so many others, none above `most`, falling.
fn parts(number: u32, most: u32, places: u32, taken: &mut Vec<u32>, found: &mut impl FnMut(&[u32])) {
    if number == 0 {
        return found(taken);
    }
    if places == 0 {
        return;
    }
    for part in (1..=most.min(number)).rev() {
        taken.push(part);
        parts(number - part, part, places - 1, taken, found);
        taken.pop();
    }
}

/// The chance that answers fall so: the ways to name the different answers, times the ways to deal the answers out.
fn chance_of(parts: &[u32], answers: u32, different: u32) -> f64 {
    let mut chance = 1.0;
    let mut dealt = 0;
    let mut equal = 0;
    for (place, part) in (0..).zip(parts) {
        equal = if place > 0 && parts[place as usize - 1] == *part { equal + 1 } else { 1 };
        chance *= f64::from(different - place) / f64::from(equal);
        for i in 1..=*part {
            dealt += 1;
            chance *= f64::from(dealt) / f64::from(i) / f64::from(different);
        }
    }
    debug_assert!(dealt == answers, "every answer falls somewhere");
    chance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SeededRng;

    fn odds(samples: u32, wrong: u32, alike: f64) -> VoteOdds {
        VoteOdds::of(samples, VoteAssumptions { distinct_wrong: wrong, correlation: Chance::new(alike) })
    }

    #[test]
    fn among_two_answers_it_is_the_majority_of_condorcet() {
        let outlook = odds(3, 1, 0.0).forecast(Chance::new(0.75));
        assert!((outlook.right - (0.75_f64.powi(3) + 3.0 * 0.75 * 0.75 * 0.25)).abs() < 1e-12);
        assert!((outlook.agreed - 1.0).abs() < 1e-12);
        // Two equal answers end it, a third is made where they differ.
        assert!((outlook.asked - (2.0 + 2.0 * 0.75 * 0.25)).abs() < 1e-12);
    }

    #[test]
    fn answers_that_are_all_alike_gain_nothing_and_scattered_wrong_ones_gain_much() {
        let gain = |wrong, alike| odds(9, wrong, alike).forecast(Chance::new(0.5)).right - 0.5;
        assert!(gain(6, 1.0).abs() < 1e-2);
        assert!(gain(1, 0.0).abs() < 1e-9);
        assert!(gain(6, 0.0) > gain(6, 0.5) && gain(12, 0.5) > gain(2, 0.5) && gain(2, 0.5) > 0.0);
    }

    /// Counts what happens in many votes, one by one.
    fn drawn(samples: u32, one: f64, wrong: usize) -> VoteForecast {
        let mut dice = SeededRng::new(5);
        let mut sum = VoteForecast::default();
        let rounds = 40_000;
        for _ in 0..rounds {
            let mut counts = vec![0_u32; wrong + 1];
            let (mut open, mut agreeing) = (true, true);
            let majority = samples / 2 + 1;
            for made in 0..samples {
                let mut sorted = counts.clone();
                sorted.sort_unstable_by(|a, b| b.cmp(a));
                open &= sorted[0] - sorted[1] <= samples - made;
                agreeing &= sorted[0] < majority && sorted[0] + samples - made >= majority;
                sum.asked += f64::from(u8::from(open));
                sum.asked_agreeing += f64::from(u8::from(agreeing));
                counts[if dice.next_f64() < one { 0 } else { 1 + dice.below(wrong) }] += 1;
            }
            let most = counts.iter().max().copied().unwrap();
            let ties = counts.iter().filter(|count| **count == most).count();
            sum.right += if counts[0] == most { 1.0 / count(ties) } else { 0.0 };
            sum.agreed += f64::from(u8::from(most >= majority));
            sum.agreed_right += f64::from(u8::from(counts[0] >= majority));
        }
        let mean = |sum: f64| sum / f64::from(rounds);
        VoteForecast {
            right: mean(sum.right),
            asked: mean(sum.asked),
            agreed: mean(sum.agreed),
            agreed_right: mean(sum.agreed_right),
            asked_agreeing: mean(sum.asked_agreeing),
        }
    }

    #[test]
    fn what_is_expected_is_what_many_votes_come_to() {
        for (samples, one, wrong) in [(5, 0.5, 6), (9, 0.6, 3), (4, 0.3, 2), (2, 0.8, 12)] {
            let expected = odds(samples, u32::try_from(wrong).unwrap(), 0.0).forecast(Chance::new(one));
            let drawn = drawn(samples, one, wrong);
            let pairs = [
                (expected.right, drawn.right, 0.012),
                (expected.asked, drawn.asked, 0.05),
                (expected.agreed, drawn.agreed, 0.012),
                (expected.agreed_right, drawn.agreed_right, 0.012),
                (expected.asked_agreeing, drawn.asked_agreeing, 0.05),
            ];
            assert!(
                pairs.iter().all(|(a, b, most)| (a - b).abs() < *most),
                "{samples} {one} {wrong}: {pairs:?}"
            );
        }
    }

    #[test]
    fn a_better_answer_makes_a_better_vote_that_ends_sooner_than_all() {
        let odds = odds(7, 6, 0.5);
        let all: Vec<VoteForecast> =
            (0..=100).map(|percent| odds.forecast(Chance::new(f64::from(percent) / 100.0))).collect();
        assert!(all.windows(2).all(|pair| pair[0].right <= pair[1].right + 1e-12));
        assert!(
            all.iter().all(|at| at.asked >= 4.0 - 1e-9 && at.asked <= 7.0 && at.agreed >= at.agreed_right)
        );
    }
}
