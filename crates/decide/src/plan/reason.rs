//! What limits the budgets of an offer, and how its model was found.

use std::fmt;

use stint_types::units::Limit;

/// What limits a thinking budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BudgetReason<'a> {
    /// The thinking budget that the caller stated, by this member.
    Stated(&'static str),
    /// The caller's effort, by this member.
    Effort(&'static str),
    /// The caller's effort by this member asks for no thought, and the model always thinks.
    LeastEffort(&'static str),
    /// The caller's limit on thought and answer, by this member.
    Total(&'static str),
    /// A text goes on without a thought.
    Text,
    /// The caller's limit on the cost, by this member.
    Cost(&'static str),
    /// The deadline, which the caller states by this member.
    Deadline(&'static str),
    /// The model's context.
    Context,
    /// The most that its provider lets it write in one call.
    Output,
    /// The most that the model can think.
    Provider,
    /// The model cannot think for this request, for this reason.
    RuledOut(&'static str),
    /// What the caller stated by this member does nothing, since the model is not known to think.
    NoThinking(&'static str),
    /// The caller's effort by this member says nothing of tokens, since it is not known how long the model usually thinks.
    Unknown(&'static str),
    /// The least that a provider takes.
    Least,
    /// What is left under a limit.
    Remaining(&'a Limit),
    /// More thinking was possible, and not worth its price.
    Value,
    /// All that is possible, so that whole lengths are seen.
    Uncapped,
}

/// How the model was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SelectedBy {
    /// By its worth.
    Valued,
    /// By a draw.
    Drawn,
}

impl BudgetReason<'_> {
    /// True for a limit that leaves less than the model could do.
    pub(super) fn is_limit(self) -> bool {
        matches!(
            self,
            BudgetReason::Total(_)
                | BudgetReason::Cost(_)
                | BudgetReason::Deadline(_)
                | BudgetReason::Context
                | BudgetReason::Output
                | BudgetReason::Remaining(_)
        )
    }

    /// The caller's member that would have to say more; nothing if it is none of theirs.
    pub(super) fn member(self) -> Option<&'static str> {
        match self {
            BudgetReason::Stated(member)
            | BudgetReason::Effort(member)
            | BudgetReason::LeastEffort(member)
            | BudgetReason::Total(member)
            | BudgetReason::Cost(member)
            | BudgetReason::Deadline(member) => Some(member),
            _ => None,
        }
    }
}

impl fmt::Display for BudgetReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BudgetReason::Stated(member) => return write!(f, "stated as {member}"),
            BudgetReason::Effort(member) => return write!(f, "by {member}"),
            BudgetReason::LeastEffort(member) => {
                return write!(
                    f,
                    "its least effort since it always thinks, though {member} asks for no thought"
                );
            }
            BudgetReason::Total(member) | BudgetReason::Cost(member) => {
                return write!(f, "limited by {member}");
            }
            BudgetReason::RuledOut(why) => return write!(f, "since {why}"),
            BudgetReason::NoThinking(member) => {
                return write!(f, "{member} has no effect since the model is not known to think");
            }
            BudgetReason::Unknown(member) => {
                return write!(f, "{member} cuts nothing since its usual thoughts are not known");
            }
            BudgetReason::Text => "as texts go on",
            BudgetReason::Deadline(_) => "limited by the deadline",
            BudgetReason::Context => "limited by the context",
            BudgetReason::Output => "limited by what its provider lets it write",
            BudgetReason::Provider => "the most that the model thinks",
            BudgetReason::Least => "less is no thought to its provider",
            BudgetReason::Remaining(limit) => return write!(f, "limited by what {limit} has left"),
            BudgetReason::Value => "chosen by value",
            BudgetReason::Uncapped => "left uncapped",
        })
    }
}

/// What limits the two budgets of an offer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BudgetReasons<'a> {
    pub thinking: BudgetReason<'a>,
    /// Of the answer only where it is money.
    pub answer: Option<BudgetReason<'a>>,
}
