//! What may be reserved: the caller's own cap on the cost, and what the allowance leaves.

use stint_types::catalog::{RemainingQuota, WorstCase};
use stint_types::chat::MemberNames;
use stint_types::units::{Amount, Limit, Money, Tokens};

use super::reason::BudgetReason;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::terms::ModelTerms;

/// One limit on a worst case.
#[derive(Debug, Clone, Copy)]
enum SpendCap<'a> {
    Cost(Money),
    Money(Money, &'a RemainingQuota<Money>),
    Thinking(Tokens, &'a RemainingQuota<Tokens>),
}

/// Limits on a worst case.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpendCaps<'a> {
    caps: [Option<SpendCap<'a>>; 5],
    /// What to say less of where it does not fit.
    member: &'static str,
    /// By what the caller limits the cost.
    cost: &'static str,
}

impl<'a> SpendCaps<'a> {
    /// The caller's `cost_usd`, which lowers even a stated thinking budget.
    pub(super) fn stated(request: &PlanRequest<'a>) -> SpendCaps<'a> {
        let MemberNames { total, cost, .. } = request.budget.members;
        SpendCaps {
            caps: [request.budget.cost.map(SpendCap::Cost), None, None, None, None],
            member: total,
            cost,
        }
    }

    /// That, and what is left under limits, which refuse a stated thinking budget rather than lower it.
    pub(super) fn all(request: &PlanRequest<'a>, model: &str) -> SpendCaps<'a> {
        let (all, own) = (&request.allowance.overall, request.allowance.models.get(model));
        let SpendCaps { caps: [stated, ..], member, cost } = SpendCaps::stated(request);
        SpendCaps {
            caps: [
                stated,
                all.money.as_ref().map(SpendCap::money),
                all.thinking.as_ref().map(SpendCap::thinking),
                own.and_then(|own| own.money.as_ref()).map(SpendCap::money),
                own.and_then(|own| own.thinking.as_ref()).map(SpendCap::thinking),
            ],
            member,
            cost,
        }
    }

    /// True if nothing is limited, so that a worst case need not be reckoned.
    pub(super) fn is_unlimited(&self) -> bool {
        self.caps.iter().all(Option::is_none)
    }

    /// True if a longer answer is a larger worst case under one of the limits: one on money where it costs any, one on
    /// thinking where a thought may fill what is left to the answer.
    pub(super) fn limits_answers(&self, terms: &ModelTerms) -> bool {
        self.caps.iter().flatten().any(|cap| match cap {
            SpendCap::Cost(_) | SpendCap::Money(..) => terms.is_priced(),
            SpendCap::Thinking(..) => terms.hides_thoughts(),
        })
    }

    /// The same with one part in so many of what limits leave; what the caller allows for this request alone stays whole.
    pub(super) fn part(self, part: u64) -> SpendCaps<'a> {
        SpendCaps { caps: self.caps.map(|cap| cap.map(|cap| cap.part(part))), ..self }
    }

    /// The same with half of each, of what the caller allows for this request too.
    pub(super) fn halved(self) -> SpendCaps<'a> {
        let half = |cap: SpendCap<'a>| match cap {
            SpendCap::Cost(cost) => SpendCap::Cost(Money(cost.0 / 2)),
            SpendCap::Money(..) | SpendCap::Thinking(..) => cap.part(2),
        };
        SpendCaps { caps: self.caps.map(|cap| cap.map(half)), ..self }
    }

    /// Whether all of the worst case can be reserved.
    pub(super) fn fits(&self, worst: WorstCase) -> bool {
        self.caps.iter().flatten().all(|cap| cap.fits(worst))
    }

    /// Which cap keeps a worst case out.
    pub(super) fn reason(&self, worst: WorstCase) -> Option<BudgetReason<'a>> {
        self.caps.iter().flatten().find(|cap| !cap.fits(worst)).map(|cap| match cap {
            SpendCap::Cost(_) => BudgetReason::Cost(self.cost),
            SpendCap::Money(_, left) => BudgetReason::Remaining(&left.limit),
            SpendCap::Thinking(_, left) => BudgetReason::Remaining(&left.limit),
        })
    }

    /// The refusal of a worst case, if it does not fit.
    pub(super) fn check(&self, worst: WorstCase) -> Result<(), PlanRefusal> {
        let found = self.caps.iter().flatten().find(|cap| !cap.fits(worst));
        found.map_or(Ok(()), |cap| Err(self.refusal(cap, worst)))
    }

    fn refusal(&self, cap: &SpendCap<'_>, worst: WorstCase) -> PlanRefusal {
        let lacks =
            |limit: &Limit, max: Amount, needed: Amount, left, resets_at| PlanRefusal::InsufficientQuota {
                limit: Box::new(limit.clone()),
                needed,
                left,
                resets_at,
                exceeds_limit: needed.size() > max.size(),
                member: self.member,
            };
        match cap {
            SpendCap::Cost(cost) => {
                PlanRefusal::CostBudgetTooSmall { needed: worst.money, cost: *cost, member: self.cost }
            }
            SpendCap::Money(_, RemainingQuota { limit, max, amount, resets_at }) => {
                lacks(limit, *max, Amount::Money(worst.money), Amount::Money(*amount), *resets_at)
            }
            SpendCap::Thinking(_, RemainingQuota { limit, max, amount, resets_at }) => {
                lacks(limit, *max, Amount::Thinking(worst.thinking), Amount::Thinking(*amount), *resets_at)
            }
        }
    }
}

impl<'a> SpendCap<'a> {
    fn money(left: &'a RemainingQuota<Money>) -> SpendCap<'a> {
        SpendCap::Money(left.amount, left)
    }

    fn thinking(left: &'a RemainingQuota<Tokens>) -> SpendCap<'a> {
        SpendCap::Thinking(left.amount, left)
    }

    /// The same with one part in so many of what is left; what the caller allows for this request alone stays whole.
    fn part(self, part: u64) -> SpendCap<'a> {
        match self {
            SpendCap::Cost(_) => self,
            SpendCap::Money(amount, left) => SpendCap::Money(Money(amount.0 / part), left),
            SpendCap::Thinking(amount, left) => SpendCap::Thinking(Tokens(amount.0 / part), left),
        }
    }

    fn fits(&self, worst: WorstCase) -> bool {
        match self {
            SpendCap::Cost(cost) => worst.money <= *cost,
            SpendCap::Money(amount, _) => worst.money <= *amount,
            SpendCap::Thinking(amount, _) => worst.thinking <= *amount,
        }
    }
}
