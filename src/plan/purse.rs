//! What may be reserved: the caller's own cap on the cost, and what the allowance leaves.

use crate::catalog::{Left, WorstCase};
use crate::chat::Members;
use crate::units::{Amount, Limit, Money, Tokens};

use super::Ask;
use super::Refusal;
use super::terms::Terms;
use super::why::Reason;

/// One limit on a worst case.
#[derive(Debug, Clone, Copy)]
enum Cap<'a> {
    Cost(Money),
    Money(Money, &'a Left<Money>),
    Thinking(Tokens, &'a Left<Tokens>),
}

/// Limits on a worst case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purse<'a> {
    caps: [Option<Cap<'a>>; 5],
    /// What to say less of where it does not fit.
    member: &'static str,
    /// By what the caller limits the cost.
    cost: &'static str,
}

impl<'a> Purse<'a> {
    /// The caller's `cost_usd`, which lowers even a stated thinking budget.
    pub(super) fn stated(ask: &Ask<'a>) -> Purse<'a> {
        let Members { total, cost, .. } = ask.budget.members;
        Purse { caps: [ask.budget.cost.map(Cap::Cost), None, None, None, None], member: total, cost }
    }

    /// That, and what is left under limits, which refuse a stated thinking budget rather than lower it.
    pub(super) fn whole(ask: &Ask<'a>, model: &str) -> Purse<'a> {
        let (all, own) = (&ask.allowance.purse, ask.allowance.models.get(model));
        let Purse { caps: [stated, ..], member, cost } = Purse::stated(ask);
        Purse {
            caps: [
                stated,
                all.money.as_ref().map(Cap::money),
                all.thinking.as_ref().map(Cap::thinking),
                own.and_then(|own| own.money.as_ref()).map(Cap::money),
                own.and_then(|own| own.thinking.as_ref()).map(Cap::thinking),
            ],
            member,
            cost,
        }
    }

    /// True where nothing is limited, so that a worst case need not be reckoned.
    pub(super) fn is_bottomless(&self) -> bool {
        self.caps.iter().all(Option::is_none)
    }

    /// True where a longer answer is a larger worst case under one of the limits: one on money where it costs any, one on
    /// thinking where a thought may fill what is left to the answer.
    pub(super) fn limits_answers(&self, terms: &Terms) -> bool {
        self.caps.iter().flatten().any(|cap| match cap {
            Cap::Cost(_) | Cap::Money(..) => terms.is_priced(),
            Cap::Thinking(..) => terms.hides_thoughts(),
        })
    }

    /// The same with one part in so many of what limits leave; what the caller allows for this request alone stays whole.
    pub(super) fn part(self, part: u64) -> Purse<'a> {
        Purse { caps: self.caps.map(|cap| cap.map(|cap| cap.part(part))), ..self }
    }

    /// Whether all of the worst case can be reserved.
    pub(super) fn holds(&self, worst: WorstCase) -> bool {
        self.caps.iter().flatten().all(|cap| cap.holds(worst))
    }

    /// Which cap keeps a worst case out.
    pub(super) fn reason(&self, worst: WorstCase) -> Option<Reason<'a>> {
        self.caps.iter().flatten().find(|cap| !cap.holds(worst)).map(|cap| match cap {
            Cap::Cost(_) => Reason::Cost(self.cost),
            Cap::Money(_, left) => Reason::Left(&left.limit),
            Cap::Thinking(_, left) => Reason::Left(&left.limit),
        })
    }

    /// The refusal of a worst case, if it does not fit.
    pub(super) fn check(&self, worst: WorstCase) -> Result<(), Refusal> {
        let found = self.caps.iter().flatten().find(|cap| !cap.holds(worst));
        found.map_or(Ok(()), |cap| Err(self.refusal(cap, worst)))
    }

    fn refusal(&self, cap: &Cap<'_>, worst: WorstCase) -> Refusal {
        let lacks = |limit: &Limit, needed, left, resets_at| Refusal::DoesNotFit {
            limit: Box::new(limit.clone()),
            needed,
            left,
            resets_at,
            member: self.member,
        };
        match cap {
            Cap::Cost(cost) => Refusal::RequestCost { needed: worst.money, cost: *cost, member: self.cost },
            Cap::Money(_, Left { limit, amount, resets_at }) => {
                lacks(limit, Amount::Money(worst.money), Amount::Money(*amount), *resets_at)
            }
            Cap::Thinking(_, Left { limit, amount, resets_at }) => {
                lacks(limit, Amount::Thinking(worst.thinking), Amount::Thinking(*amount), *resets_at)
            }
        }
    }
}

impl<'a> Cap<'a> {
    fn money(left: &'a Left<Money>) -> Cap<'a> {
        Cap::Money(left.amount, left)
    }

    fn thinking(left: &'a Left<Tokens>) -> Cap<'a> {
        Cap::Thinking(left.amount, left)
    }

    /// The same with one part in so many of what is left; what the caller allows for this request alone stays whole.
    fn part(self, part: u64) -> Cap<'a> {
        match self {
            Cap::Cost(_) => self,
            Cap::Money(amount, left) => Cap::Money(Money(amount.0 / part), left),
            Cap::Thinking(amount, left) => Cap::Thinking(Tokens(amount.0 / part), left),
        }
    }

    fn holds(&self, worst: WorstCase) -> bool {
        match self {
            Cap::Cost(cost) => worst.money <= *cost,
            Cap::Money(amount, _) => worst.money <= *amount,
            Cap::Thinking(amount, _) => worst.thinking <= *amount,
        }
    }
}
