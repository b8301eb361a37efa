//! Counts the answers and decides whether another sample is worth its price.

use stint_types::units::Chance;

use super::overtake_risk::{OvertakeRisk, VoteCounts};

/// What a vote is about, in dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// What a right answer is worth.
    pub worth: f64,
    /// What one more sample costs: its money at its shadow price, and the time that is waited for it.
    pub price: f64,
    /// The chance that more samples would change the winner at which none is asked for any more.
    pub stop_probability: Chance,
}

/// One answer and those who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerVotes {
    /// What makes it this answer and no other.
    pub key: String,
    /// How many samples gave it.
    pub votes: u32,
    /// The sample that gave it first: the one that is delivered.
    pub sample: u32,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteStep {
    /// More samples are wanted, so many at once. Fewer could not decide even if they all agreed.
    Sample(u32),
    /// No more samples are wanted.
    Stop(VoteStopReason),
}

/// Why a vote ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteStopReason {
    /// No further answers could change the winner.
    Uncatchable,
    /// Further answers would hardly change the winner, or not enough to be worth their price.
    NotWorth,
    /// Where one must be given by more than half: none can be any more.
    Torn,
    /// All samples were taken.
    Exhausted,
}

impl VoteStopReason {
    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            VoteStopReason::Uncatchable => "uncatchable",
            VoteStopReason::NotWorth => "not_worth",
            VoteStopReason::Torn => "torn",
            VoteStopReason::Exhausted => "exhausted",
        }
    }
}

/// A vote under way. The answer with most votes wins, of equals the one that came first.
#[derive(Debug, Clone)]
pub struct Ballot {
    samples_max: u32,
    /// How many votes the winner must have, where that is asked.
    quorum: Option<u32>,
    /// In the order in which they came first.
    answers: Vec<AnswerVotes>,
    /// Samples without an answer that can be compared.
    blank: u32,
}

impl Ballot {
    /// A vote of so many samples at most.
    pub fn new(most: u32) -> Ballot {
        Ballot { samples_max: most, quorum: None, answers: Vec::new(), blank: 0 }
    }

    /// One that finds out whether an answer is given by more than half of all samples, and ends when that is known.
    pub fn of_majority(most: u32) -> Ballot {
        Ballot { quorum: Some(most / 2 + 1), ..Ballot::new(most) }
    }

    /// False if a majority is asked for and no answer has it.
    pub fn has_quorum(&self) -> bool {
        let votes = self.winner().map_or(0, |winner| winner.votes);
        self.quorum.is_none_or(|quorum| votes >= quorum)
    }

    /// Counts a sample's answer; nothing if it cannot be compared.
    pub fn cast(&mut self, sample: u32, key: Option<String>) {
        let Some(key) = key else {
            self.blank += 1;
            return;
        };
        match self.answers.iter_mut().find(|answer| answer.key == key) {
            Some(answer) => answer.votes += 1,
            None => self.answers.push(AnswerVotes { key, votes: 1, sample }),
        }
    }

    /// How many samples it has at most.
    pub fn samples_max(&self) -> u32 {
        self.samples_max
    }

    /// How many samples were counted, blank ones included.
    pub fn votes_cast(&self) -> u32 {
        self.blank + self.answers.iter().map(|answer| answer.votes).sum::<u32>()
    }

    /// The answer that leads.
    pub fn winner(&self) -> Option<&AnswerVotes> {
        // Of equals, `max_by_key` takes the last.
        self.answers.iter().rev().max_by_key(|answer| answer.votes)
    }

    /// The answers that are left to choose from by other means than counting, best first: what only one sample gave is
    /// dropped where two or more agree on something else.
    pub fn common_answers(&self) -> Vec<&AnswerVotes> {
        let most = self.winner().map_or(0, |winner| winner.votes);
        let mut common: Vec<&AnswerVotes> =
            self.answers.iter().filter(|answer| answer.votes > 1 || most == 1).collect();
        common.sort_by_key(|answer| std::cmp::Reverse(answer.votes));
        common
    }

    /// What is to be done, where so many samples may run at once.
    pub fn next_step(&self, rule: &StoppingRule, at_once: u32) -> VoteStep {
        if let Some(decided) = self.stop_reason(rule) {
            return VoteStep::Stop(decided);
        }
        let mut hoped = self.clone();
        let mut wanted = 0;
        while wanted < at_once.max(1) {
            let leads = self.winner().map_or_else(String::new, |winner| winner.key.clone());
            hoped.cast(u32::MAX, Some(leads));
            wanted += 1;
            if hoped.stop_reason(rule).is_some() {
                break;
            }
        }
        VoteStep::Sample(wanted)
    }

    fn stop_reason(&self, rule: &StoppingRule) -> Option<VoteStopReason> {
        let left = self.samples_max.saturating_sub(self.votes_cast());
        if left == 0 {
            return Some(VoteStopReason::Exhausted);
        }
        if let Some(quorum) = self.quorum {
            let votes = self.winner().map_or(0, |winner| winner.votes);
            let torn = (votes + left < quorum).then_some(VoteStopReason::Torn);
            return if votes >= quorum { Some(VoteStopReason::Uncatchable) } else { torn };
        }
        let leader = self.winner()?;
        let doubt = self.overtake_risk(leader, left);
        let Some(fewest) = doubt.fewest else { return Some(VoteStopReason::Uncatchable) };
        let pays = rule.worth * doubt.gain >= rule.price * f64::from(fewest);
        let sure = doubt.change <= rule.stop_probability.get();
        (sure || !pays).then_some(VoteStopReason::NotWorth)
    }

    /// How far the leader is from being caught.
    fn overtake_risk(&self, leader: &AnswerVotes, left: u32) -> OvertakeRisk {
        let at = self.answers.iter().position(|answer| answer.key == leader.key).unwrap_or(0);
        let earlier = |other: usize| other < at;
        let others = self.answers.iter().enumerate().filter(|(other, _)| *other != at);
        OvertakeRisk::of(&VoteCounts {
            leader: leader.votes,
            others: others.map(|(other, answer)| (answer.votes, earlier(other))).collect(),
            blank: self.blank,
            left,
        })
    }
}
