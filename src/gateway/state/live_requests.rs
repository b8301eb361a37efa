//! The requests that run now, and how far each has got: for those who watch. Nothing is decided by it.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::execute::Meter;
use stint_types::catalog::Offer;
use stint_types::units::{AccountId, Money, RequestId, Tokens};

/// The requests that run. There are no more than may be in flight.
#[derive(Debug, Default)]
pub(crate) struct LiveRequests(DashMap<RequestId, LiveRequest>);

/// One of them. Dropping it takes it off the list.
#[derive(Debug)]
pub(crate) struct LiveGuard {
    all: Arc<LiveRequests>,
    id: RequestId,
}

#[derive(Debug)]
struct LiveRequest {
    account: AccountId,
    route: Arc<str>,
    arrived: Instant,
    attempt: Option<LiveAttempt>,
}

/// What serves it.
#[derive(Debug)]
struct LiveAttempt {
    model: Arc<str>,
    reserved: Money,
    thinking: Tokens,
    solution: Tokens,
    meters: Vec<Meter>,
}

/// A request that runs, as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveRequestView {
    /// Its id.
    pub id: RequestId,
    /// Whose it is.
    pub account: AccountId,
    /// The route or model that was named, as metrics know it.
    pub route: Arc<str>,
    /// For how long it has run.
    pub seconds: f64,
    /// What serves it; nothing while it waits for a place.
    pub attempt: Option<LiveAttemptView>,
}

/// What serves a request, and what it has taken. Several choices or samples count together.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveAttemptView {
    /// The model.
    pub model: Arc<str>,
    /// What was set aside for it at first.
    pub reserved: Money,
    /// How many answers are written side by side.
    pub answers: usize,
    /// What each may think, and write.
    pub budgets: (Tokens, Tokens),
    /// What all have thought, and written.
    pub used: (Tokens, Tokens),
}

impl LiveRequests {
    /// A request begins.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: RequestId,
        account: &AccountId,
        route: &Arc<str>,
        arrived: Instant,
    ) -> LiveGuard {
        let request = LiveRequest { account: account.clone(), route: route.clone(), arrived, attempt: None };
        self.0.insert(id, request);
        LiveGuard { all: self.clone(), id }
    }

    /// An offer serves it from now on, and these meters show how far it is.
    pub(crate) fn watch(&self, id: RequestId, offer: &Offer, meters: &[Meter]) {
        if let Some(mut request) = self.0.get_mut(&id) {
            request.attempt = Some(LiveAttempt {
                model: offer.model.clone(),
                reserved: offer.worst.money,
                thinking: offer.thinking,
                solution: offer.solution,
                meters: meters.to_vec(),
            });
        }
    }

    /// So many of them at most, those that have run the longest first; and how many there are.
    pub(crate) fn list(&self, most: usize) -> (Vec<LiveRequestView>, usize) {
        let mut all: Vec<(Instant, RequestId)> =
            self.0.iter().map(|entry| (entry.value().arrived, *entry.key())).collect();
        all.sort_unstable();
        let count = all.len();
        all.truncate(most);
        let shown = all.into_iter().filter_map(|(_, id)| Some(self.0.get(&id)?.view(id)));
        (shown.collect(), count)
    }
}

impl LiveRequest {
    fn view(&self, id: RequestId) -> LiveRequestView {
        LiveRequestView {
            id,
            account: self.account.clone(),
            route: self.route.clone(),
            seconds: self.arrived.elapsed().as_secs_f64(),
            attempt: self.attempt.as_ref().map(LiveAttempt::view),
        }
    }
}

impl LiveAttempt {
    fn view(&self) -> LiveAttemptView {
        let mut used = (Tokens::ZERO, Tokens::ZERO);
        for taken in self.meters.iter().map(Meter::read) {
            used = (used.0 + taken.thinking_total(), used.1 + taken.solution);
        }
        LiveAttemptView {
            model: self.model.clone(),
            reserved: self.reserved,
            answers: self.meters.len(),
            budgets: (self.thinking, self.solution),
            used,
        }
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        self.all.0.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_on_the_list_until_it_ends() {
        let (all, start) = (Arc::new(LiveRequests::default()), Instant::now());
        let ids = [RequestId::new(), RequestId::new()];
        let begin = |id, arrived| all.begin(id, &AccountId::new("a"), &"auto".into(), arrived);
        let late = begin(ids[1], start + std::time::Duration::from_millis(1));
        let early = begin(ids[0], start);
        let listed = |most| {
            let (shown, count) = all.list(most);
            (shown.into_iter().map(|request| request.id).collect::<Vec<_>>(), count)
        };
        assert_eq!(listed(9), (ids.to_vec(), 2));
        assert_eq!(listed(1), (vec![ids[0]], 2));
        drop(early);
        assert_eq!(listed(9), (vec![ids[1]], 1));
        drop(late);
        assert_eq!(listed(9), (Vec::new(), 0));
    }
}
