//! Finds the episode that a request is a step of: the one that its caller names, else the one whose history it continues,
//! else a new one.

use std::time::Duration;

use crate::gateway::request::RequestRefusal;
use stint_sessions::agent::{
    Addition, Additions, EpisodeOwner, EpisodesError, HashChain, History, HistoryHash, IdenticalEpisode,
    LastStep, PlacedAddition, StoredEpisode,
};
use stint_types::chat::{EpisodeLimits, Request, ToolLimits};
use stint_types::tenant::KeyId;
use stint_types::units::{Count, EpisodeId, RequestId, Timestamp};

use super::checkout::EpisodeCheckout;
use super::manager::{EpisodeManager, STORE_PATIENCE};

/// So many of the model's replies are looked for, the latest first: behind the last there may be what the caller wrote in its
/// name.
const REPLIES_MAX: usize = 3;

/// So long a caller that hung up may take to go on from what it heard.
const BROKEN_OFF_MAX: Duration = Duration::from_secs(600);

/// The episode that a request is a step of.
#[derive(Debug, Clone)]
pub(crate) struct JoinedEpisode {
    pub(crate) id: EpisodeId,
    /// The key of the request, whose it is.
    pub(crate) key: KeyId,
    /// What it may take altogether, lowered by the limits that the request states.
    pub(crate) limits: EpisodeLimits,
    /// True if the caller named it.
    pub(crate) is_named: bool,
    /// True if nothing is known of it yet.
    pub(crate) is_first: bool,
    /// The history that it goes on from.
    pub(crate) from: Option<HistoryHash>,
    /// The request's own.
    pub(crate) chain: HashChain,
    pub(crate) history: History,
    /// What was added to its prompts before.
    pub(crate) added: EpisodeAdditions,
    pub(crate) last: Option<LastStep>,
    /// When it was last used.
    pub(crate) last_used: Timestamp,
}

/// What was added to an episode's prompts before, as far as a request is concerned.
#[derive(Debug, Clone, Default)]
pub(crate) struct EpisodeAdditions {
    /// All of it.
    pub(crate) all: Additions,
    /// What belongs to the request's conversation, at its places.
    pub(crate) placed: Vec<PlacedAddition>,
    /// What comes from the episode that the conversation was with before, which this one does not have yet.
    pub(crate) carried: Vec<Addition>,
}

/// An episode, and how it was found.
struct FoundEpisode {
    episode: StoredEpisode,
    is_first: bool,
    from: Option<HistoryHash>,
    /// What was added by a step of another episode that may be the conversation's own.
    carried: Vec<Addition>,
    /// Until its step is reserved it is only lent, where it was found by that history.
    checkout: Option<EpisodeCheckout>,
}

impl EpisodeManager {
    /// The episode of a request, and until its step is reserved the checkout that gives it back, where it was found by its history.
    /// Where the store does not work, one that was not named is a new one.
    ///
    /// # Errors
    /// When the conversation is too long, or a named episode's limits cannot be read.
    pub(crate) async fn join(
        &self,
        owner: &EpisodeOwner,
        request: &Request,
        now: Timestamp,
    ) -> Result<(JoinedEpisode, Option<EpisodeCheckout>), RequestRefusal> {
        let budget = &request.budget;
        let is_named = budget.episode.is_some();
        let history = History::read(request, is_named, &self.inner.settings)?;
        let chain = HashChain::read(&request.messages);
        let mut found = match &budget.episode {
            Some(id) => self.join_named(owner, id, &chain, &budget.episode_limits, now).await?,
            None => self.join_by_history(owner, &chain, &budget.episode_limits, now).await?,
        };
        let checkout = found.checkout.take();
        let mut carried = std::mem::take(&mut found.carried);
        carried.extend(self.carried(owner, is_named, &found.episode, &chain, now).await);
        carried.retain(|addition| !found.episode.added.is_known(&addition.before));
        Ok((JoinedEpisode::of(found, owner, is_named, chain, history, carried), checkout))
    }

    /// The same for a question about it: nothing is begun, lowered or handed out. The limits that are known to hold for it come
    /// beside.
    pub(crate) async fn look_up(
        &self,
        owner: &EpisodeOwner,
        request: &Request,
        now: Timestamp,
    ) -> Result<(JoinedEpisode, EpisodeLimits), RequestRefusal> {
        let budget = &request.budget;
        let is_named = budget.episode.is_some();
        let history = History::read(request, is_named, &self.inner.settings)?;
        let chain = HashChain::read(&request.messages);
        let known = self.find_known(owner, budget.episode.as_ref(), &chain, now).await;
        let known = known.map_err(store_unavailable)?;
        if let Some(id) = known.as_ref().filter(|known| !owner.owns(known)).map(|known| known.id.clone()) {
            return Err(RequestRefusal::OtherKeysEpisode { id });
        }
        let new = || budget.episode.clone().unwrap_or_else(new_episode_id);
        let is_first = known.is_none();
        let mut episode = known
            .unwrap_or_else(|| StoredEpisode::new(new(), Some(owner.key), EpisodeLimits::default(), now));
        let known = episode.limits.clone();
        episode.lower(&budget.episode_limits);
        let carried = self.carried(owner, is_named, &episode, &chain, now).await;
        let found = FoundEpisode { episode, is_first, from: None, carried: Vec::new(), checkout: None };
        Ok((JoinedEpisode::of(found, owner, is_named, chain, history, carried), known))
    }

    /// What was added to the conversation in the episode that it was with before, where a named one begins with it: of others,
    /// the search by history has asked already. Where the store does not work, it is lost: a cache is not found again.
    async fn carried(
        &self,
        owner: &EpisodeOwner,
        is_named: bool,
        episode: &StoredEpisode,
        chain: &HashChain,
        now: Timestamp,
    ) -> Vec<Addition> {
        if !is_named || episode.last.is_some() || chain.replies().is_empty() {
            return Vec::new();
        }
        match self.find_known(owner, None, chain, now).await {
            Ok(Some(before)) if before.id != episode.id => before.added.iter().cloned().collect(),
            Ok(_) => Vec::new(),
            Err(error) => {
                self.report_lost("what was added to a conversation cannot be read", &error);
                Vec::new()
            }
        }
    }

    async fn join_named(
        &self,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        chain: &HashChain,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<FoundEpisode, RequestRefusal> {
        let episode = self.open_named(owner, id, limits, now).await?;
        self.count(if episode.last.is_some() { "named" } else { "begun" });
        let from = chain.links().next();
        Ok(FoundEpisode { episode, is_first: false, from, carried: Vec::new(), checkout: None })
    }

    /// The episode of that name, with these limits lowered into its own.
    pub(crate) async fn open_named(
        &self,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<StoredEpisode, RequestRefusal> {
        let episode = self.with_timeout(self.open_with_limits(owner, id, limits, now)).await;
        episode.map_err(|error| {
            self.report_lost("a run's limits cannot be read", &error);
            store_unavailable(error)
        })?
    }

    /// If the store does not answer, it is a new episode: its caller may get a new budget, but never the episode of
    /// another.
    async fn join_by_history(
        &self,
        owner: &EpisodeOwner,
        chain: &HashChain,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<FoundEpisode, RequestRefusal> {
        let found = self.with_timeout(self.check_out_by_history(owner, chain, limits, now)).await;
        let mut carried = Vec::new();
        match found.map(Option::transpose) {
            Ok(Ok(Some(found))) => {
                self.count("found");
                return Ok(found);
            }
            Ok(Err(too_many)) => return Err(too_many),
            Ok(Ok(None)) => {
                self.count("begun");
                carried = self.running_additions(owner, chain, now).await;
            }
            Err(error) => {
                self.report_lost("a run cannot be looked for, so it is taken for a new one", &error);
            }
        }
        let id = new_episode_id();
        if !limits.is_empty() {
            let opened = self.with_timeout(self.inner.store.open(owner, &id, limits, now)).await;
            if let Err(error) = opened {
                self.report_lost("a run's limits cannot be stored", &error);
            }
        }
        Ok(FoundEpisode {
            episode: StoredEpisode::new(id, Some(owner.key), limits.clone(), now),
            is_first: limits.is_empty(),
            from: None,
            carried,
            checkout: None,
        })
    }

    /// What was added to this conversation in the episode whose step runs at its last reply, there and before. Whether the
    /// conversation is that step's nobody knows, as others may have begun alike: so it gets the words, which are theirs too, and
    /// not the episode.
    async fn running_additions(
        &self,
        owner: &EpisodeOwner,
        chain: &HashChain,
        now: Timestamp,
    ) -> Vec<Addition> {
        let replies = chain.replies();
        let Some(place) = replies.last().map(|reply| reply.before) else { return Vec::new() };
        let (store, since) = (&self.inner.store, now.before(BROKEN_OFF_MAX));
        let known = async {
            let identical = store.identical_episodes(owner, &place.broken_off(), since).await?;
            let Some(latest) = identical.iter().max_by_key(|episode| episode.at) else { return Ok(None) };
            let known = store.read(&owner.account, &latest.id).await?;
            Ok(known.filter(|known| owner.owns(known)))
        };
        let known = self.with_timeout(known).await.inspect_err(|error| {
            self.report_lost("what was added to a conversation cannot be read", error);
        });
        let is_here = |addition: &&Addition| replies.iter().any(|reply| reply.before == addition.before);
        let known = known.ok().flatten();
        known.map(|known| known.added.iter().filter(is_here).cloned().collect()).unwrap_or_default()
    }

    /// The episode with these limits lowered into its own; a refusal where it would have too many.
    async fn open_with_limits(
        &self,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Result<StoredEpisode, RequestRefusal>, EpisodesError> {
        let store = &self.inner.store;
        if !limits.tools.each.is_empty()
            && let Some(known) = store.read(&owner.account, id).await?
            && owner.owns(&known)
        {
            let named = known.limits.tools.named_with(&limits.tools);
            if named > ToolLimits::NAMED_MAX {
                return Ok(Err(RequestRefusal::TooManyTools { named }));
            }
        }
        let episode = store.open(owner, id, limits, now).await?;
        let is_own = owner.owns(&episode);
        Ok(is_own.then_some(episode).ok_or_else(|| RequestRefusal::OtherKeysEpisode { id: id.clone() }))
    }

    /// The episode that goes on from the latest reply that ends one, handed out to this step.
    async fn check_out_by_history(
        &self,
        owner: &EpisodeOwner,
        chain: &HashChain,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Option<Result<FoundEpisode, RequestRefusal>>, EpisodesError> {
        let since = now.before(self.inner.settings.expires_after);
        for link in chain.links().take(REPLIES_MAX) {
            // Whatever comes of it from here on, it is given back.
            if let Some(handed_out) = self.check_out(owner, &link, since).await?
                && let Some(found) = self.open_checked_out(handed_out, link, owner, limits, now).await?
            {
                return Ok(Some(found));
            }
        }
        let Some((link, since)) = self.broken_off(owner, chain, now).await? else { return Ok(None) };
        match self.check_out(owner, &link, since).await? {
            Some(handed_out) => self.open_checked_out(handed_out, link, owner, limits, now).await,
            None => Ok(None),
        }
    }

    /// An episode that was handed out by this link, with these limits lowered into its own; nothing if it is another key's, which a
    /// store may say only now.
    async fn open_checked_out(
        &self,
        handed_out: EpisodeCheckout,
        link: HistoryHash,
        owner: &EpisodeOwner,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Option<Result<FoundEpisode, RequestRefusal>>, EpisodesError> {
        match self.open_with_limits(owner, handed_out.id(), limits, now).await? {
            Ok(episode) => {
                let (from, checkout) = (Some(link), Some(handed_out));
                Ok(Some(Ok(FoundEpisode { episode, is_first: false, from, carried: Vec::new(), checkout })))
            }
            Err(refusal) => {
                handed_out.release().await;
                let is_other = matches!(refusal, RequestRefusal::OtherKeysEpisode { .. });
                Ok((!is_other).then_some(Err(refusal)))
            }
        }
    }

    /// The link of an episode whose last answer broke off a moment ago where this conversation's does, and that nobody went on
    /// from since; with since when.
    async fn broken_off(
        &self,
        owner: &EpisodeOwner,
        chain: &HashChain,
        now: Timestamp,
    ) -> Result<Option<(HistoryHash, Timestamp)>, EpisodesError> {
        let Some(link) = chain.broken_off_links().next() else { return Ok(None) };
        let since = now.before(BROKEN_OFF_MAX);
        let identical = self.inner.store.identical_episodes(owner, &link, since).await?;
        Ok(identical.iter().any(|episode| episode.continued == Count::ZERO).then_some((link, since)))
    }

    async fn find_known(
        &self,
        owner: &EpisodeOwner,
        named: Option<&EpisodeId>,
        chain: &HashChain,
        now: Timestamp,
    ) -> Result<Option<StoredEpisode>, EpisodesError> {
        let (store, since) = (&self.inner.store, now.before(self.inner.settings.expires_after));
        let known = async {
            if let Some(id) = named {
                return store.read(&owner.account, id).await;
            }
            for link in chain.links().take(REPLIES_MAX) {
                if let Some(episode) =
                    IdenticalEpisode::first(&mut store.identical_episodes(owner, &link, since).await?)
                {
                    let known = store.read(&owner.account, &episode.id).await?;
                    return Ok(known.filter(|known| owner.owns(known)));
                }
            }
            Ok(None)
        };
        self.with_timeout(known).await
    }

    fn count(&self, how: &str) {
        self.inner.metrics.episodes.steps.with_label_values(&[how]).inc();
    }
}

impl EpisodeAdditions {
    /// How many bytes count against the room for additions: those of this conversation; and those of all its branches, which
    /// have eight times the room.
    pub(crate) fn bytes(&self) -> usize {
        let here: usize = self.placed.iter().map(|placed| placed.words.bytes()).sum();
        here.max(self.all.bytes() / 8)
    }
}

impl JoinedEpisode {
    fn of(
        found: FoundEpisode,
        owner: &EpisodeOwner,
        is_named: bool,
        chain: HashChain,
        history: History,
        carried: Vec<Addition>,
    ) -> JoinedEpisode {
        let FoundEpisode { episode, is_first, from, .. } = found;
        let StoredEpisode { id, limits, last, last_used: used, added: mut all, .. } = episode;
        all.extend(&carried);
        let added = EpisodeAdditions { placed: all.placed(&chain), all, carried };
        let key = owner.key;
        JoinedEpisode {
            id,
            key,
            limits,
            is_named,
            is_first,
            from,
            chain,
            history,
            added,
            last,
            last_used: used,
        }
    }
}

fn store_unavailable(source: EpisodesError) -> RequestRefusal {
    RequestRefusal::EpisodeUnavailable { source, retry_after: STORE_PATIENCE }
}

/// A name that nobody has.
fn new_episode_id() -> EpisodeId {
    let name = RequestId::new().to_string().replacen("req_", "ep_", 1);
    name.parse().unwrap_or_else(|_| unreachable!("an id is short and can be printed"))
}
