//! How far an answer may go, and how much of it is set aside at first.
//!
//! What caller, operator and model allow is `bounds`' to say. Here money comes on top, and the tokens of a limit on thinking where a
//! thought is hidden, so that nobody can tell it from the answer. Where neither is limited nothing here takes anything away.

use stint_types::catalog::{ContinuationLimit, LimitedBy, Model};
use stint_types::units::Tokens;

use super::bounds::{AnswerHeadroom, TokenBounds};
use super::budgets::largest_fitting;
use super::spend_caps::SpendCaps;
use super::terms::ModelTerms;

/// Where all of an answer is reserved at once, it may take one part in so many of what is left, if that is more than it hardly
/// exceeds.
pub(super) const MONEY_PART: u64 = 4;

/// An answer that may come in one piece is set aside whole if it takes at most one part in so many of what is left: so many
/// open requests keep nobody else from their money.
const WHOLE_PART: u64 = 64;

/// How far an answer may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AnswerLimit {
    pub most: Tokens,
    pub by: LimitedBy,
    /// How much of it is set aside at first.
    pub opening: Tokens,
    /// How far it may go in further calls, where money alone limits the first one.
    pub continuation: Option<ContinuationLimit>,
    /// Whether the limit is sent even to an upstream that needs none.
    pub tells_limit: bool,
}

impl AnswerLimit {
    /// The answer beside a thinking budget of `t`.
    ///
    /// Where a hang-up stops the bill, what it hardly exceeds is set aside, and the rest as it is written; or all of it where
    /// that is little of what is left and it may come in one piece, which costs a fraction of a stream. Elsewhere whatever the
    /// upstream may write must be set aside beforehand, so the upstream is sent a limit: the larger of what the answer
    /// hardly exceeds and a part of what is left. Who can go on with an answer may get more in another call.
    pub(super) fn of(terms: &ModelTerms, bounds: &TokenBounds, caps: &SpendCaps, t: Tokens) -> AnswerLimit {
        let room = bounds.headroom(terms, t);
        if !caps.limits_answers(terms) {
            return AnswerLimit::unlimited(room);
        }
        let pays = |caps: &SpendCaps, s: Tokens| caps.fits(terms.worst_case(t, s));
        if terms.model.stops_billing {
            let likely = t + room.most.min(bounds.likely_max) + terms.overhead(t);
            let may_come_whole = likely <= bounds.whole_max;
            if may_come_whole && pays(&caps.part(WHOLE_PART), room.most) {
                return AnswerLimit::unlimited(room);
            }
            let most = room.most.min(bounds.likely_max);
            let opening = largest_fitting(bounds.least.min(most), most, |s| pays(caps, s));
            return AnswerLimit { opening, ..AnswerLimit::unlimited(room) };
        }
        let (part, ample) = (caps.part(MONEY_PART), bounds.likely_max.min(room.sure));
        // What money allows may be more than an upstream takes of which nobody knows how much it writes.
        let sure = if room.is_unknown { room.sure.min(Model::TOLD_MAX.max(ample)) } else { room.sure };
        let most = if pays(&part, ample) { largest_fitting(ample, sure, |s| pays(&part, s)) } else { ample };
        let most = largest_fitting(bounds.least.min(most), most, |s| pays(caps, s));
        let is_short = most < room.sure;
        let by = if is_short { LimitedBy::Money } else { room.by };
        let further =
            (is_short && terms.goes_on(t)).then_some(ContinuationLimit { max: room.sure, by: room.by });
        AnswerLimit { most, by, opening: most, continuation: further, tells_limit: true }
    }

    fn unlimited(room: AnswerHeadroom) -> AnswerLimit {
        AnswerLimit {
            most: room.most,
            by: room.by,
            opening: room.most,
            continuation: None,
            tells_limit: room.tells_limit,
        }
    }
}
