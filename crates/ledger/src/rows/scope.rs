//! `RequestScope`: the model, user, tag and episode of a request, which limits can refer to.

use std::sync::Arc;

use serde::Serialize;

use stint_types::tenant::LimitSelector;
use stint_types::units::{Count, EpisodeId, Facet};

use super::amounts::Amounts;

/// What a request is about, as far as limits care.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RequestScope {
    /// Which model serves it.
    pub model: Option<Arc<str>>,
    /// Which end user it is for, as the caller names them.
    pub user: Option<Arc<str>>,
    /// The caller's own word for what it is for.
    pub tag: Option<Arc<str>>,
    /// Which episode it is a step of.
    pub episode: Option<EpisodeId>,
    /// True if it is no turn of that episode, but spends its money all the same.
    pub beside_turns: bool,
}

impl RequestScope {
    /// The same without its episode. Sums are grouped by this; else there would be as many sums as episodes.
    #[must_use]
    pub fn without_episode(&self) -> RequestScope {
        RequestScope { episode: None, beside_turns: false, ..self.clone() }
    }

    /// What its episode counts of these amounts.
    pub(crate) fn episode_amounts(&self, amounts: Amounts) -> Amounts {
        let requests = if self.beside_turns { Count::ZERO } else { amounts.requests };
        Amounts { requests, ..amounts }
    }

    /// The part of an account that a limit of this scope counts it in.
    pub fn facet(&self, scope: &LimitSelector) -> Option<Facet> {
        scope.facet(self.model.as_ref(), self.user.as_ref(), self.tag.as_ref())
    }
}
