//! Pays for continuations: an answer that ended only for lack of money continues in another call, which is reserved
//! before it is sent.
//!
//! If hanging up does not stop the bill, all that a call may write is reserved at first. When the call has written that, as
//! much again is reserved for the next call, plus what that one reads. This is a durable extension of the same reservation.
//! Money that other open requests hold may be released, so it is waited for. A ledger that does not answer does not count
//! as missing money.

use std::future::pending;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::execute::{
    ChoiceProgress, ContinuationNeed, ContinuationRequest, ContinuationSender, continuation_channel,
};
use crate::gateway::request::{ExtensionError, RequestContext, RequestReservation};
use stint_types::catalog::{Offer, SolutionStopReason};
use stint_types::units::{Money, Tokens};

/// How many times more is set aside at most.
pub(super) const STEPS_MAX: u32 = 8;
/// How often it is tried again if no more money was available.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// For fewer tokens than this no prompt is read once more.
const MIN_CONTINUATION: Tokens = Tokens(16);

/// What choices ask for of the money of another call.
pub(super) struct ContinuationFunding {
    /// Where they ask.
    sender: ContinuationSender,
    requests: mpsc::Receiver<ContinuationRequest>,
    /// The one that is looked at, since when, and when to look again.
    pending: Option<(ContinuationRequest, Instant)>,
    retry_at: Option<Instant>,
    /// How many calls were paid for.
    steps: u32,
    /// What was set aside for them beyond the offer's own worst case.
    extra: Money,
}

/// What comes of a request for another call's money.
enum FundingResult {
    Granted(Tokens),
    Never(SolutionStopReason),
    /// What others hold may come back, or the ledger may.
    Later,
}

impl ContinuationFunding {
    /// `None` if the offer's answers are not continued.
    pub(super) fn for_offer(offer: &Offer) -> Option<ContinuationFunding> {
        offer.continuation.map(|_| {
            let (sender, requests) = continuation_channel();
            ContinuationFunding {
                sender,
                requests,
                pending: None,
                retry_at: None,
                steps: 0,
                extra: Money::ZERO,
            }
        })
    }

    pub(super) fn attach(&self, progress: ChoiceProgress) -> ChoiceProgress {
        progress.with_continuations(&self.sender)
    }

    /// Waits until there is something to do. Cancellation safe: nothing is lost if this is dropped while it waits.
    pub(super) async fn ready(&mut self) {
        if self.pending.is_none() {
            match self.requests.recv().await {
                Some(ask) => (self.pending, self.retry_at) = (Some((ask, Instant::now())), None),
                None => pending().await,
            }
        }
        if let Some(again) = self.retry_at {
            tokio::time::sleep_until(again).await;
        }
    }

    /// How much more is wanted for an answer: as much again, and in the end all that it may take.
    fn amount_wanted(&self, need: ContinuationNeed) -> Tokens {
        let rest = need.max.saturating_sub(need.limit);
        if self.steps + 1 >= STEPS_MAX { rest } else { need.limit.max(MIN_CONTINUATION).min(rest) }
    }

    fn funded(&mut self, tokens: Tokens, extra: Money) -> FundingResult {
        self.steps += 1;
        self.extra = extra;
        FundingResult::Granted(tokens)
    }
}

/// Reserves another call for the choice that waits for it, as far as there is money.
pub(super) async fn fund_continuation(
    context: &RequestContext,
    offer: &Offer,
    funding: &mut ContinuationFunding,
    reservation: &mut RequestReservation,
) {
    let Some((ask, since)) = funding.pending.take() else { return };
    match extend_reservation(context, offer, ask.need, since, funding, reservation).await {
        FundingResult::Granted(tokens) => ask.respond(Ok(tokens)),
        FundingResult::Never(ended) => ask.respond(Err(ended)),
        FundingResult::Later => {
            (funding.pending, funding.retry_at) = (Some((ask, since)), Some(Instant::now() + LOOK_EVERY));
        }
    }
}

async fn extend_reservation(
    context: &RequestContext,
    offer: &Offer,
    need: ContinuationNeed,
    since: Instant,
    funding: &mut ContinuationFunding,
    reservation: &mut RequestReservation,
) -> FundingResult {
    let wanted = funding.amount_wanted(need);
    let Some(tariff) = context.model(offer).and_then(|model| model.tariff) else {
        // What has no price takes no money.
        return FundingResult::Granted(need.max.saturating_sub(need.limit));
    };
    let extra = funding.extra + tariff.worst_cost(need.read, wanted, context.request.cache_ttl());
    let left = match reservation.extend_for_growth(offer, extra).await {
        Ok(()) => return funding.funded(wanted, extra),
        Err(ExtensionError::RequestLimit { left }) => left,
        Err(ExtensionError::Shortfall(short)) => {
            let is_held = context.can_be_released(offer, &short, reservation.reserved_amounts());
            if is_held && since.elapsed() < context.parts().settings.wait_max {
                return FundingResult::Later;
            }
            short.money_left()
        }
        Err(ExtensionError::LedgerUnavailable) if since.elapsed() < context.parts().ledger.dispatch_max() => {
            return FundingResult::Later;
        }
        Err(ExtensionError::LedgerUnavailable) => {
            return FundingResult::Never(SolutionStopReason::Ledger);
        }
    };
    let read = tariff.worst_cost(need.read, Tokens::ZERO, context.request.cache_ttl());
    let tokens = tariff.output_for(left.saturating_sub(read)).min(wanted);
    let extra = funding.extra + read + tariff.output_cost_max(tokens);
    if tokens >= MIN_CONTINUATION && reservation.extend_for_growth(offer, extra).await.is_ok() {
        return funding.funded(tokens, extra);
    }
    FundingResult::Never(SolutionStopReason::Money)
}
