//! An answer that money alone ended goes on in another call, which is set aside before it is sent.
//!
//! Where nobody stops the bill by hanging up, all that a call may write is set aside at first. Once it has, as much again is set
//! aside for the next one, and what it reads: durably, as an extension of the same reservation. What other open requests hold may
//! come back, so it is waited for; a ledger that is silent is not missing money.

use std::future::pending;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::catalog::{Offer, SolutionEnded};
use crate::execute::{Need, Progress, Wish, Wishes, wishes};
use crate::units::{Money, Tokens};

use super::books::{Books, Uncovered};
use super::flying::Flying;
use super::growth::{LOOK_EVERY, STEPS_MAX};

/// For fewer tokens than this no prompt is read once more.
const WORTH_A_CALL: Tokens = Tokens(16);

/// What choices ask for of the money of another call.
pub(super) struct Further {
    /// Where they ask.
    wishes: Wishes,
    came: mpsc::Receiver<Wish>,
    /// The one that is looked at, since when, and when to look again.
    open: Option<(Wish, Instant)>,
    again: Option<Instant>,
    /// How many calls were paid for.
    steps: u32,
    /// What was set aside for them beyond the offer's own worst case.
    extra: Money,
}

/// What comes of a wish.
enum Paid {
    Granted(Tokens),
    Never(SolutionEnded),
    /// What others hold may come back, or the ledger may.
    Later,
}

impl Further {
    /// Nothing where an offer's answers are not gone on with.
    pub(super) fn of(offer: &Offer) -> Option<Further> {
        let (wishes, came) = wishes();
        offer.further.map(|_| Further { wishes, came, open: None, again: None, steps: 0, extra: Money::ZERO })
    }

    pub(super) fn join(&self, progress: Progress) -> Progress {
        progress.wishing(&self.wishes)
    }

    /// Waits until there is something to do. Nothing is lost where this is dropped while it waits.
    pub(super) async fn due(&mut self) {
        if self.open.is_none() {
            match self.came.recv().await {
                Some(wish) => (self.open, self.again) = (Some((wish, Instant::now())), None),
                None => pending().await,
            }
        }
        if let Some(again) = self.again {
            tokio::time::sleep_until(again).await;
        }
    }

    /// How much more is wanted for an answer: as much again, and in the end all that it may take.
    fn wanted(&self, need: Need) -> Tokens {
        let rest = need.most.saturating_sub(need.limit);
        if self.steps + 1 >= STEPS_MAX { rest } else { need.limit.max(WORTH_A_CALL).min(rest) }
    }

    fn paid(&mut self, tokens: Tokens, extra: Money) -> Paid {
        self.steps += 1;
        self.extra = extra;
        Paid::Granted(tokens)
    }
}

impl Flying {
    /// Sets another call aside for the choice that waits for it, as far as there is money.
    pub(super) async fn go_further(&self, offer: &Offer, further: &mut Further, books: &mut Books) {
        let Some((wish, since)) = further.open.take() else { return };
        match self.pay(offer, (wish.need, since), further, books).await {
            Paid::Granted(tokens) => wish.answer(Ok(tokens)),
            Paid::Never(ended) => wish.answer(Err(ended)),
            Paid::Later => {
                (further.open, further.again) = (Some((wish, since)), Some(Instant::now() + LOOK_EVERY));
            }
        }
    }

    async fn pay(
        &self,
        offer: &Offer,
        (need, since): (Need, Instant),
        further: &mut Further,
        books: &mut Books,
    ) -> Paid {
        let wanted = further.wanted(need);
        let Some(tariff) = self.model(offer).and_then(|model| model.tariff) else {
            // What has no price takes no money.
            return Paid::Granted(need.most.saturating_sub(need.limit));
        };
        let extra = further.extra + tariff.worst(need.read, wanted, self.request.keep());
        let left = match books.grow(offer, extra).await {
            Ok(()) => return further.paid(wanted, extra),
            Err(Uncovered::Own { left }) => left,
            Err(Uncovered::Short(short)) => {
                let about = self.about(offer);
                let is_held = self.parts.ledger.may_come_back(&self.account, &about, &short, books.held());
                if is_held && since.elapsed() < self.parts.settings.wait_max {
                    return Paid::Later;
                }
                short.money_left()
            }
            Err(Uncovered::Silent) if since.elapsed() < self.parts.ledger.dispatch_max() => {
                return Paid::Later;
            }
            Err(Uncovered::Silent) => return Paid::Never(SolutionEnded::Ledger),
        };
        let read = tariff.worst(need.read, Tokens::ZERO, self.request.keep());
        let tokens = tariff.output_for(left.saturating_sub(read)).min(wanted);
        let extra = further.extra + read + tariff.output_most(tokens);
        if tokens >= WORTH_A_CALL && books.grow(offer, extra).await.is_ok() {
            return further.paid(tokens, extra);
        }
        Paid::Never(SolutionEnded::Money)
    }
}
