//! What a request is about, and what it wants of the accounts of its lineage.

use std::sync::Arc;

use serde::Serialize;

use crate::tenant::LimitSelector;
use crate::units::{Count, EpisodeId, Facet, Holder, Timestamp};

use super::{AccountId, Amounts, StepReservation};

/// What a request is about, as far as limits care.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RequestScope {
    /// Which model serves it.
    pub model: Option<Arc<str>>,
    /// Which end user it is for, as the caller names them.
    pub user: Option<Arc<str>>,
    /// The caller's own word for what it is for.
    pub tag: Option<Arc<str>>,
    /// Which run of an agent it is a step of.
    pub episode: Option<EpisodeId>,
    /// True where it is no turn of that run, but spends its money all the same.
    pub beside_turns: bool,
}

/// So much more for a request that was admitted then.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExtraDemand<'a> {
    /// The request's own account, which is the last of the lineage.
    pub(super) account: &'a AccountId,
    /// What the request was about until now, and what is set aside for it; nothing, for a new one.
    pub(super) previous: Option<(&'a RequestScope, Amounts)>,
    /// What it is about from now on.
    pub(super) about: &'a RequestScope,
    pub(super) more: Amounts,
    /// What it takes as a step; nothing, for more of one that is counted already.
    pub(super) step: Option<&'a StepReservation>,
    pub(super) admitted: Timestamp,
}

impl RequestScope {
    /// The same without the run that it is a step of: what sums are told apart by, or there would be as many as runs.
    #[must_use]
    pub fn without_episode(&self) -> RequestScope {
        RequestScope { episode: None, beside_turns: false, ..self.clone() }
    }

    /// What of that its run counts.
    pub(crate) fn episode_amounts(&self, amounts: Amounts) -> Amounts {
        let requests = if self.beside_turns { Count::ZERO } else { amounts.requests };
        Amounts { requests, ..amounts }
    }

    /// The part of an account that a limit of this scope counts it in.
    pub fn facet(&self, scope: &LimitSelector) -> Option<Facet> {
        scope.facet(self.model.as_ref(), self.user.as_ref(), self.tag.as_ref())
    }
}

impl ExtraDemand<'_> {
    /// What to call the holder of that account's limits.
    pub(super) fn holder(&self, account: &AccountId) -> Holder {
        if account == self.account { Holder::Key } else { Holder::Account(account.clone()) }
    }

    /// What it asks of a limit of this scope: all that is set aside, where it was not counted there before.
    pub(super) fn demand_under(&self, scope: &LimitSelector) -> Option<(Facet, Amounts)> {
        let facet = self.about.facet(scope)?;
        let more = match self.previous {
            Some((before, held)) if before.facet(scope).as_ref() != Some(&facet) => held + self.more,
            _ => self.more,
        };
        Some((facet, more))
    }
}
