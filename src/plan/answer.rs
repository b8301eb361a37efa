//! How far an answer may go, and how much of it is set aside at first.
//!
//! What caller, operator and model allow is `bounds`' to say. Here money comes on top, and the tokens of a limit on thinking where a
//! thought is hidden, so that nobody can tell it from the answer. Where neither is limited nothing here takes anything away.

use crate::catalog::{Further, LimitedBy, Model};
use crate::units::Tokens;

use super::bounds::{Bounds, Room};
use super::budgets::largest;
use super::purse::Purse;
use super::terms::Terms;

/// Where all of an answer is reserved at once, it may take one part in so many of what is left, if that is more than it hardly
/// exceeds.
pub(super) const MONEY_PART: u64 = 4;

/// How far an answer may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    pub most: Tokens,
    pub by: LimitedBy,
    /// How much of it is set aside at first.
    pub opening: Tokens,
    /// How far it may go in further calls, where money alone limits the first one.
    pub further: Option<Further>,
    /// Whether an upstream is told of the limit that needs none.
    pub told: bool,
}

impl Answer {
    /// The answer beside a thinking budget of `t`.
    ///
    /// Where a hang-up stops the bill, what it hardly exceeds is set aside, and the rest as it is written. Elsewhere whatever the
    /// upstream may write must be set aside beforehand, so that the upstream is told a limit: the larger of what the answer
    /// hardly exceeds and a part of what is left. Who can go on with an answer may get more in another call.
    pub(super) fn of(terms: &Terms, bounds: &Bounds, purse: &Purse, t: Tokens) -> Answer {
        let room = bounds.room(terms, t);
        if !purse.limits_answers(terms) {
            return Answer { opening: room.most, ..Answer::unlimited(room) };
        }
        let pays = |purse: &Purse, s: Tokens| purse.holds(terms.worst(t, s));
        if terms.model.stops_billing {
            let most = room.most.min(bounds.ample);
            let opening = largest(bounds.least.min(most), most, |s| pays(purse, s));
            return Answer { opening, ..Answer::unlimited(room) };
        }
        let (part, ample) = (purse.part(MONEY_PART), bounds.ample.min(room.sure));
        // What money allows may be more than an upstream takes of which nobody knows how much it writes.
        let sure = if room.is_unknown { room.sure.min(Model::TOLD_MAX.max(ample)) } else { room.sure };
        let most = if pays(&part, ample) { largest(ample, sure, |s| pays(&part, s)) } else { ample };
        let most = largest(bounds.least.min(most), most, |s| pays(purse, s));
        let is_short = most < room.sure;
        let by = if is_short { LimitedBy::Money } else { room.by };
        let further = (is_short && terms.goes_on(t)).then_some(Further { most: room.sure, by: room.by });
        Answer { most, by, opening: most, further, told: true }
    }

    fn unlimited(room: Room) -> Answer {
        Answer { most: room.most, by: room.by, opening: room.most, further: None, told: room.told }
    }
}
