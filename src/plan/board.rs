//! Every way to serve a request, priced, as plain numbers: an offer in full is only made of the few that are taken.

use crate::catalog::{Capability, LimitedBy, Model, Odds, Outlook, Service, Vote};
use crate::units::{Chance, Tokens};

use super::answer::{Answer, MONEY_PART};
use super::bounds::{self, Bounds};
use super::budgets::Budgets;
use super::purse::Purse;
use super::terms::{Expected, Terms, rounded};
use super::why::{Reason, Reasons};
use super::{Ask, Refusal};

/// To so many models a cascade may lead: those of most value by themselves.
const SECONDS_MAX: usize = 3;
/// First steps of a cascade are answered so often at most.
const FIRSTS_MAX: u32 = 3;

/// One model that can serve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Serving<'a> {
    pub terms: Terms<'a>,
    pub bounds: Bounds<'a>,
    pub budgets: Budgets<'a>,
    pub purse: Purse<'a>,
}

/// One way to serve, priced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Which of the models that can serve.
    pub serving: usize,
    pub thinking: Tokens,
    /// How far its answer may go.
    pub answer: Answer,
    /// How many answers at most.
    pub samples: u32,
    /// Which candidate a cascade goes on with.
    pub second: Option<usize>,
    pub success: f64,
    pub dollars: f64,
    pub seconds: f64,
    /// λ·cost + ν·time, in dollars.
    pub burden: f64,
}

/// Models and candidates; those of one model stand together, but for votes and cascades, which come last.
#[derive(Debug)]
pub(super) struct Board<'a> {
    pub servings: Vec<Serving<'a>>,
    pub candidates: Vec<Candidate>,
}

impl<'a> Serving<'a> {
    fn of(ask: &Ask<'a>, model: &'a Model) -> Result<Serving<'a>, Refusal> {
        let terms = Terms::of(ask, model)?;
        let bounds = Bounds::of(ask, &terms)?;
        let purse = Purse::whole(ask, &model.name);
        let budgets = Budgets::of(ask, &terms, &bounds, &purse)?;
        Ok(Serving { terms, bounds, budgets, purse })
    }

    /// One answer under a thinking budget, where that can be reserved.
    pub(super) fn single(&self, ask: &Ask, serving: usize, thinking: Tokens) -> Option<Candidate> {
        let answer = Answer::of(&self.terms, &self.bounds, &self.purse, thinking);
        if !self.holds(thinking, answer.opening, 1) {
            return None;
        }
        let Expected { success, dollars, seconds } = self.terms.expected(thinking, answer.most);
        let burden = burden(ask, dollars, seconds);
        let (samples, second) = (1, None);
        Some(Candidate { serving, thinking, answer, samples, second, success, dollars, seconds, burden })
    }

    /// What keeps an answer from going as far as caller, operator and model allow.
    pub(super) fn answer_reason(&self, thinking: Tokens, answer: &Answer) -> Option<Reason<'a>> {
        if answer.by != LimitedBy::Money {
            return None;
        }
        let longer = self.terms.worst(thinking, answer.most + Tokens(1));
        self.purse.reason(longer).or_else(|| self.purse.part(MONEY_PART).reason(longer))
    }

    /// A vote among answers like one, where that can be reserved and is there in time.
    pub(super) fn voted(&self, ask: &Ask, one: &Candidate, odds: &Odds) -> Option<Candidate> {
        let samples = odds.samples;
        let Outlook { right, asked, .. } = odds.outlook(one.success());
        let slowest = one.seconds * f64::from(samples - samples / 2);
        if !self.holds(one.thinking, one.answer.opening, samples) || !in_time(ask, slowest) {
            return None;
        }
        // A majority's worth of answers is made side by side, the others one after another.
        let (dollars, seconds) = (one.dollars * asked, one.seconds * (asked - f64::from(samples / 2)));
        let burden = burden(ask, dollars, seconds);
        Some(Candidate { samples, success: rounded(right), dollars, seconds, burden, ..*one })
    }

    fn holds(&self, thinking: Tokens, opening: Tokens, samples: u32) -> bool {
        self.purse.is_bottomless() || self.purse.holds(self.terms.worst(thinking, opening) * samples)
    }
}

impl Candidate {
    pub(super) fn success(&self) -> Chance {
        Chance::new(self.success)
    }

    /// worth·success − λ·cost − ν·time.
    pub(super) fn value(&self, worth: f64) -> f64 {
        worth * self.success - self.burden
    }
}

impl<'a> Board<'a> {
    /// All ways; `refused` is told of each model that can do nothing, and why.
    pub(super) fn of(ask: &Ask<'a>, refused: impl FnMut(&Model, Refusal)) -> Board<'a> {
        let servings = servings(ask, refused);
        let most = servings.iter().map(|serving: &Serving| serving.budgets.each().len()).sum();
        let mut candidates = Vec::with_capacity(most);
        for (at, serving) in servings.iter().enumerate() {
            candidates.extend(serving.budgets.each().iter().filter_map(|&t| serving.single(ask, at, t)));
        }
        let mut board = Board { servings, candidates };
        if let Some(vote) = vote(ask) {
            board.add_votes(ask, vote);
        }
        board
    }

    /// What limits a candidate's thinking.
    pub(super) fn reason(&self, candidate: &Candidate) -> Reason<'a> {
        let ceiling = self.servings[candidate.serving].budgets.ceiling;
        if candidate.thinking == ceiling.most { ceiling.by } else { Reason::Value }
    }

    /// What limits the budgets of one that was taken.
    pub(super) fn reasons(&self, (candidate, thinking): &(Candidate, Reason<'a>)) -> Reasons<'a> {
        let answer = self.servings[candidate.serving].answer_reason(candidate.thinking, &candidate.answer);
        Reasons { thinking: *thinking, answer }
    }

    /// A model's longest thought, where the caller left it open.
    pub(super) fn longest(&self, ask: &Ask, serving: usize) -> Option<Candidate> {
        let own = &self.servings[serving];
        let most = own.budgets.ceiling.most;
        (!own.budgets.fixed && most > Tokens::ZERO).then(|| own.single(ask, serving, most)).flatten()
    }

    fn add_votes(&mut self, ask: &Ask, vote: &Vote) {
        let singles = self.candidates.len();
        for at in 0..singles {
            let one = self.candidates[at];
            for odds in vote.odds().iter().filter(|odds| is_vote(odds)) {
                let voted = self.servings[one.serving].voted(ask, &one, odds);
                self.candidates.extend(voted.filter(|voted| voted.success > one.success));
            }
        }
        if ask.route.cascade {
            self.add_cascades(ask, vote, singles);
        }
    }

    fn add_cascades(&mut self, ask: &Ask, vote: &Vote, singles: usize) {
        let seconds = self.seconds(ask, singles);
        for at in 0..singles {
            for second in seconds.into_iter().flatten() {
                for odds in vote.odds().iter().take_while(|odds| odds.samples <= FIRSTS_MAX) {
                    self.candidates.extend(self.cascade(ask, vote, odds, (at, second)));
                }
            }
        }
    }

    /// What a cascade may go on with: the best offers of the models whose best are worth most.
    fn seconds(&self, ask: &Ask, singles: usize) -> [Option<usize>; SECONDS_MAX] {
        let worth = worth(ask);
        let mut seconds = [None; SECONDS_MAX];
        for place in 0..SECONDS_MAX {
            let taken = |serving: usize| {
                seconds.iter().flatten().any(|&at: &usize| self.candidates[at].serving == serving)
            };
            let left = (0..singles).filter(|&at| !taken(self.candidates[at].serving));
            let best = left
                .max_by(|&a, &b| self.candidates[a].value(worth).total_cmp(&self.candidates[b].value(worth)));
            seconds[place] = best;
        }
        seconds
    }

    /// Answers of one model and, where more than half of them do not agree, one of another. What the second reaches
    /// then is less than it does otherwise, since what one model is torn about is hard for others too: of different
    /// models half of [`Scatter::alike`](crate::catalog::Scatter) is assumed, as the correlation between agreement and a
    /// right second answer.
    fn cascade(
        &self,
        ask: &Ask,
        vote: &Vote,
        odds: &Odds,
        (first, second): (usize, usize),
    ) -> Option<Candidate> {
        let (one, next) = (self.candidates[first], self.candidates[second]);
        let serving = &self.servings[one.serving];
        if one.serving == next.serving || next.success <= one.success || next.dollars <= one.dollars {
            return None;
        }
        let samples = odds.samples;
        let Outlook { agreed, agreed_right, asked_agreeing: asked, .. } = odds.outlook(one.success());
        let on = 1.0 - agreed;
        let alike = vote.scatter.alike.get() / 2.0;
        let lost = alike * (agreed / on.max(1e-9) * next.success * (1.0 - next.success)).sqrt();
        let success = rounded(agreed_right + on * (next.success - lost).max(0.0));
        let slowest = one.seconds * f64::from(samples - samples / 2) + next.seconds;
        let last = &self.servings[next.serving];
        let worst = serving.terms.worst(one.thinking, one.answer.opening) * samples
            + last.terms.worst(next.thinking, next.answer.opening);
        let fits = serving.purse.holds(worst) && last.purse.holds(worst) && in_time(ask, slowest);
        if !fits || success <= one.success {
            return None;
        }
        let dollars = one.dollars * asked + on * next.dollars;
        let seconds = one.seconds * (asked - f64::from(samples / 2)) + on * next.seconds;
        let burden = burden(ask, dollars, seconds);
        Some(Candidate { samples, second: Some(second), success, dollars, seconds, burden, ..one })
    }
}

/// What a right answer is worth to the route now, in dollars.
pub(super) fn worth(ask: &Ask) -> f64 {
    ask.route.worth.as_dollars() * ask.market.worth_factor.max(0.0)
}

/// An odd number: a vote of one more gains nothing but a tie.
pub(super) fn is_vote(odds: &Odds) -> bool {
    odds.samples % 2 == 1
}

fn burden(ask: &Ask, dollars: f64, seconds: f64) -> f64 {
    ask.market.shadow_price.max(0.0) * dollars + ask.route.second.as_dollars() * seconds
}

fn in_time(ask: &Ask, seconds: f64) -> bool {
    bounds::deadline(ask).is_none_or(|left| seconds <= left.as_secs_f64())
}

/// The models that can serve; `refused` is told of each that cannot, and why.
pub(super) fn servings<'a>(ask: &Ask<'a>, mut refused: impl FnMut(&Model, Refusal)) -> Vec<Serving<'a>> {
    let mut servings = Vec::with_capacity(ask.models.len());
    for model in ask.models {
        match Serving::of(ask, model) {
            Ok(serving) => servings.push(serving),
            Err(refusal) => refused(model, refusal),
        }
    }
    if servings.iter().any(|serving: &Serving| serving.bounds.fits) {
        servings.retain(|serving| serving.bounds.fits);
    }
    stay(ask, &mut servings);
    servings
}

/// An episode that nothing went wrong with leaves its model for no dearer one.
fn stay(ask: &Ask, servings: &mut Vec<Serving>) {
    let Some(sticky) = ask.sticky.filter(|sticky| !sticky.evidence) else { return };
    let own = servings.iter().find(|serving| *serving.terms.model.name == *sticky.model);
    let Some(most) = own.map(|own| own.terms.list_dollars()) else { return };
    servings
        .retain(|serving| *serving.terms.model.name == *sticky.model || serving.terms.list_dollars() <= most);
}

/// The route's vote, where answers of this request can be compared and one of them be chosen before it is sent: not
/// among several choices, of which the caller wants each; not where tools may be called.
fn vote<'a>(ask: &Ask<'a>) -> Option<&'a Vote> {
    let vote = ask.route.vote.as_ref()?;
    let held = !ask.streams || ask.route.holds_streams;
    let calls = ask.needs.capabilities.contains(&Capability::Tools);
    (held && ask.choices <= 1 && !calls && ask.needs.service == Service::Chat).then_some(vote)
}
