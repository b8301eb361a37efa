//! Which run a request is a step of: the one that its caller names, else the one whose history it goes on from, else a new
//! one.

use crate::agent::{Chain, Episode, EpisodesError, History, LastStep, Link, Twin};
use crate::chat::{EpisodeLimits, Request, ToolLimits};
use crate::gateway::{Gateway, Refusal};
use crate::tenant::Tenant;
use crate::units::{AccountId, EpisodeId, RequestId, Timestamp};

use super::Agents;
use super::agents::STORE_PATIENCE;
use super::handed_out::HandedOut;

/// So many of the model's replies are looked for, the latest first: behind the last there may be what the caller wrote in its
/// name.
const REPLIES_MAX: usize = 3;

/// The run that a request is a step of.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct Joined {
    pub(in crate::gateway) id: EpisodeId,
    /// What it may take altogether, with what the request says lowered into it.
    pub(super) limits: EpisodeLimits,
    /// True where the caller named it.
    pub(super) is_named: bool,
    /// True where nothing is known of it yet.
    pub(super) is_first: bool,
    /// The history that it goes on from.
    pub(super) from: Option<Link>,
    /// The request's own.
    pub(super) chain: Chain,
    pub(super) history: History,
    pub(super) last: Option<LastStep>,
    /// When it was last heard of.
    pub(super) used: Timestamp,
}

/// A run, and how it was found.
struct Found {
    episode: Episode,
    is_first: bool,
    from: Option<Link>,
    /// Until its step departs it is only lent, where it was found by that history.
    handed_out: Option<HandedOut>,
}

impl Gateway {
    /// The run of a request, and until its step departs what gives it back where it was found by its history. Where the store
    /// does not work, one that was not named is a new one.
    ///
    /// # Errors
    /// When the conversation is too long, or a named run's limits cannot be read.
    pub(super) async fn join(
        &self,
        tenant: &Tenant,
        request: &Request,
    ) -> Result<(Joined, Option<HandedOut>), Refusal> {
        let (agents, budget) = (&self.parts.agents, &request.budget);
        let is_named = budget.episode.is_some();
        let history = History::read(request, is_named, &agents.inner.settings)?;
        let (chain, now) = (Chain::read(&request.messages), self.now());
        let mut found = match &budget.episode {
            Some(id) => agents.named(&tenant.account, id, (&chain, &budget.run), now).await?,
            None => agents.by_history(&tenant.account, &chain, &budget.run, now).await?,
        };
        let handed_out = found.handed_out.take();
        Ok((Joined::of(found, is_named, chain, history), handed_out))
    }

    /// The same for a question about it: nothing is begun, lowered or handed out.
    /// What is known to hold for it comes beside.
    pub(super) async fn look_up(
        &self,
        tenant: &Tenant,
        request: &Request,
    ) -> Result<(Joined, EpisodeLimits), Refusal> {
        let (agents, budget) = (&self.parts.agents, &request.budget);
        let is_named = budget.episode.is_some();
        let history = History::read(request, is_named, &agents.inner.settings)?;
        let (chain, now) = (Chain::read(&request.messages), self.now());
        let known = agents.known(&tenant.account, budget.episode.as_ref(), &chain, now).await;
        let known = known.map_err(no_episode)?;
        let new = || budget.episode.clone().unwrap_or_else(invented);
        let is_first = known.is_none();
        let mut episode = known.unwrap_or_else(|| Episode::new(new(), EpisodeLimits::default(), now));
        let known = episode.limits.clone();
        episode.lower(&budget.run);
        let found = Found { episode, is_first, from: None, handed_out: None };
        Ok((Joined::of(found, is_named, chain, history), known))
    }
}

impl Joined {
    fn of(found: Found, is_named: bool, chain: Chain, history: History) -> Joined {
        let Found { episode, is_first, from, .. } = found;
        let Episode { id, limits, last, used, .. } = episode;
        Joined { id, limits, is_named, is_first, from, chain, history, last, used }
    }
}

impl Agents {
    async fn named(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        (chain, limits): (&Chain, &EpisodeLimits),
        now: Timestamp,
    ) -> Result<Found, Refusal> {
        let episode = self.begun(account, id, limits, now).await?;
        self.count(if episode.last.is_some() { "named" } else { "begun" });
        Ok(Found { episode, is_first: false, from: chain.replies.first().copied(), handed_out: None })
    }

    /// The run of that name, with these limits lowered into its own.
    pub(super) async fn begun(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Episode, Refusal> {
        let episode = self.patiently(self.lowered(account, id, limits, now)).await;
        episode.map_err(|error| {
            self.lost("a run's limits cannot be read", &error);
            no_episode(error)
        })?
    }

    /// Where the store does not say, it is a new one: its caller may get a budget anew, and nobody another's.
    async fn by_history(
        &self,
        account: &AccountId,
        chain: &Chain,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Found, Refusal> {
        let found = self.patiently(self.find(account, chain, limits, now)).await;
        match found.map(Option::transpose) {
            Ok(Ok(Some(found))) => {
                self.count("found");
                return Ok(found);
            }
            Ok(Err(too_many)) => return Err(too_many),
            Ok(Ok(None)) => self.count("begun"),
            Err(error) => self.lost("a run cannot be looked for, so it is taken for a new one", &error),
        }
        let id = invented();
        if !limits.is_empty() {
            let kept = self.patiently(self.inner.store.open(account, &id, limits, now)).await;
            if let Err(error) = kept {
                self.lost("a run's limits cannot be kept", &error);
            }
        }
        Ok(Found {
            episode: Episode::new(id, limits.clone(), now),
            is_first: limits.is_empty(),
            from: None,
            handed_out: None,
        })
    }

    /// The run with these limits lowered into its own; a refusal where it would have too many.
    async fn lowered(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Result<Episode, Refusal>, EpisodesError> {
        let store = &self.inner.store;
        if !limits.tools.each.is_empty()
            && let Some(known) = store.read(account, id).await?
        {
            let named = known.limits.tools.named_with(&limits.tools);
            if named > ToolLimits::NAMED_MAX {
                return Ok(Err(Refusal::TooManyTools { named }));
            }
        }
        store.open(account, id, limits, now).await.map(Ok)
    }

    /// The run that goes on from the latest reply that ends one, handed out to this step.
    async fn find(
        &self,
        account: &AccountId,
        chain: &Chain,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Option<Result<Found, Refusal>>, EpisodesError> {
        let since = now.before(self.inner.settings.expires_after);
        for link in chain.replies.iter().take(REPLIES_MAX) {
            // Whatever comes of it from here on, it is given back.
            if let Some(handed_out) = self.hand_out(account, link, since).await? {
                return Ok(Some(match self.lowered(account, handed_out.id(), limits, now).await? {
                    Ok(episode) => {
                        let handed_out = Some(handed_out);
                        Ok(Found { episode, is_first: false, from: Some(*link), handed_out })
                    }
                    Err(refusal) => {
                        handed_out.release().await;
                        Err(refusal)
                    }
                }));
            }
        }
        Ok(None)
    }

    async fn known(
        &self,
        account: &AccountId,
        named: Option<&EpisodeId>,
        chain: &Chain,
        now: Timestamp,
    ) -> Result<Option<Episode>, EpisodesError> {
        let (store, since) = (&self.inner.store, now.before(self.inner.settings.expires_after));
        let known = async {
            if let Some(id) = named {
                return store.read(account, id).await;
            }
            for link in chain.replies.iter().take(REPLIES_MAX) {
                if let Some(twin) = Twin::first(&mut store.twins(account, link, since).await?) {
                    return store.read(account, &twin.id).await;
                }
            }
            Ok(None)
        };
        self.patiently(known).await
    }

    fn count(&self, how: &str) {
        self.inner.metrics.agents.episodes.with_label_values(&[how]).inc();
    }
}

fn no_episode(source: EpisodesError) -> Refusal {
    Refusal::NoEpisode { source, retry_after: STORE_PATIENCE }
}

/// A name that nobody has.
fn invented() -> EpisodeId {
    let name = RequestId::new().to_string().replacen("req_", "ep_", 1);
    name.parse().unwrap_or_else(|_| unreachable!("an id is short and can be printed"))
}
