//! `EpisodeStore`: the trait of a store of episodes, with their limits and the histories by which they are found again.

use std::cmp::Reverse;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use stint_types::catalog::TaskClass;
use stint_types::chat::{EpisodeLimits, EpisodeRaise};
use stint_types::tenant::{KeyId, Tenant};
use stint_types::units::{AccountId, Count, EpisodeId, Timestamp, Tokens};

use super::{Addition, Additions, CountedPrompt, HistoryHash, RouteTurns};

/// Whose an episode is: a key, and no later one of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeOwner {
    /// The key's account.
    pub account: AccountId,
    /// The key's id.
    pub key: KeyId,
}

/// An episode of an agent as it is stored. What it has spent, the ledger knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEpisode {
    /// Its name, unique under its account.
    pub id: EpisodeId,
    /// The key that began it; none where an earlier version did. Then the first key of its account that goes on owns it.
    pub key: Option<KeyId>,
    /// What it may take altogether: what is stated, and what it was raised by.
    pub limits: EpisodeLimits,
    /// The least that its steps have stated.
    pub stated: EpisodeLimits,
    /// What was added to that since.
    pub raised: EpisodeRaise,
    /// The last of its steps that was answered.
    pub last: Option<LastStep>,
    /// How many were answered.
    pub steps: Count,
    /// What was added to its prompts.
    pub added: Additions,
    /// When it was last used.
    pub last_used: Timestamp,
}

/// The step of an episode that was answered last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastStep {
    /// Who answered it.
    pub model: Arc<str>,
    /// What kind of task it looked like.
    pub class: TaskClass,
    /// What its provider may still have in its cache: what it said that it put there or had there, or else how much its model read
    /// and wrote.
    pub context: Tokens,
    /// The provider's count of its prompt, if it reported one.
    pub reading: Option<CountedPrompt>,
    /// Whether that was the end of the episode, as far as is known.
    pub ended: EpisodeEnding,
    /// The turns that its route allowed, where that limits them.
    pub route_turns: Option<RouteTurns>,
}

/// How far an episode has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EpisodeEnding {
    /// Tools are to be called.
    #[default]
    Open,
    /// The agent gave its answer.
    Answered,
    /// It was made to give its answer.
    Capped,
}

/// A step of an episode that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredStep {
    /// Whose run it is.
    pub owner: EpisodeOwner,
    /// Which episode.
    pub id: EpisodeId,
    /// The history that it continued.
    pub from: Option<HistoryHash>,
    /// The histories that it ends with, one for each answer.
    pub to: Vec<HistoryHash>,
    /// Whether the episode is new, so that this step is all that can be known about it.
    pub is_first: bool,
    /// The step.
    pub last: LastStep,
    /// What was added to its prompt, once for each answer; and what was added before, where the episode did not have it.
    pub added: Vec<Addition>,
    /// What was kept of it when it began, and holds no longer: its answer came to its end.
    pub begun: Option<Addition>,
    /// When it was answered.
    pub at: Timestamp,
}

/// A step of an episode whose answer broke off, or that begins and may break off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenOffStep {
    /// Whose run it is.
    pub owner: EpisodeOwner,
    /// Which episode.
    pub id: EpisodeId,
    /// The history by which the episode is found, whatever its caller took for the answer.
    pub link: HistoryHash,
    /// What was added to its prompt; and what was added before, where the episode did not have it.
    pub added: Vec<Addition>,
    /// True while its answer may still come to its end. Then nobody is handed the episode before one that broke off.
    pub is_running: bool,
    /// When it broke off or began.
    pub at: Timestamp,
}

/// How long an episode took that went so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeLength {
    /// What kind of task it was.
    pub class: TaskClass,
    /// The model that was asked last.
    pub model: Arc<str>,
    /// How many steps were answered.
    pub steps: Count,
    /// Whether those were all that it took.
    pub ended: EpisodeEnding,
}

/// An episode that ends with some history, and how often that was gone on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdenticalEpisode {
    /// The episode.
    pub id: EpisodeId,
    /// How often it was gone on from.
    pub continued: Count,
    /// Since when it ends so.
    pub at: Timestamp,
}

/// Durable runs. `conformance` says in tests what a store must do. Nobody reaches the runs of another account.
pub trait EpisodeStore: Send + Sync {
    /// The episode of that name, begun if there is none, with its limits lowered to these; none is ever raised. One that another
    /// key owns stays as it is.
    fn open<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>>;

    /// Raises the limits of an episode by so much, or ends it, with an entry of that; nothing if there is no such episode.
    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>>;

    /// Episodes in the order of their accounts and names, those after this one, so many at most; of one account alone where that
    /// is named.
    fn list<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        after: Option<&'a (AccountId, EpisodeId)>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>>;

    /// The episodes that were used last, the latest first, so many at most; of one account alone where that is named.
    fn recent<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>>;

    /// The episode of that name, if there is one.
    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>>;

    /// An episode of this key that has ended with this history at `since` or later: of several, the one that was gone on from least often,
    /// and then the youngest: an older one that nobody went on from may have been given up. It counts as gone on from since.
    fn find<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>>;

    /// An episode was handed out by [`find`](EpisodeStore::find) for a step that was refused: that counts no longer.
    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a HistoryHash,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>>;

    /// All episodes of this key that have ended with this history at `since` or later.
    fn identical_episodes<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>>;

    /// Keeps a step; an episode that is not there is begun without limits. By its beginning it is not found any more.
    fn record_step<'a>(&'a self, step: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>>;

    /// Keeps what is known of a step that came to no end, or not yet; nothing where there is no such episode.
    fn record_broken_off<'a>(&'a self, step: &'a BrokenOffStep) -> BoxFuture<'a, Result<(), EpisodesError>>;

    /// Takes back what was kept of a step that began and said nothing: its link, what was added, and where it is an episode's
    /// first, the episode, if there is no step and no limit of it.
    fn take_back<'a>(
        &'a self,
        step: &'a BrokenOffStep,
        is_first: bool,
    ) -> BoxFuture<'a, Result<(), EpisodesError>>;

    /// How long runs took lately, the latest first, so many at most.
    fn episode_lengths(&self, most: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>>;

    /// Forgets runs and histories of before, so many of each at most; returns how many of the more numerous.
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>>;
}

/// A store that did not do its work. Whether a change is in it is unknown; making it again is safe, but that a step may be
/// counted twice.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct EpisodesError {
    message: String,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl EpisodesError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> EpisodesError {
        EpisodesError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> EpisodesError {
        EpisodesError { message: message.into(), source: Some(Arc::new(source)) }
    }
}

impl EpisodeEnding {
    /// All of them.
    pub const ALL: [EpisodeEnding; 3] = [EpisodeEnding::Open, EpisodeEnding::Answered, EpisodeEnding::Capped];

    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            EpisodeEnding::Open => "open",
            EpisodeEnding::Answered => "answered",
            EpisodeEnding::Capped => "capped",
        }
    }
}

impl StoredEpisode {
    /// One that nothing is known of yet.
    pub fn new(id: EpisodeId, key: Option<KeyId>, limits: EpisodeLimits, now: Timestamp) -> StoredEpisode {
        StoredEpisode {
            id,
            key,
            stated: limits.clone(),
            limits,
            raised: EpisodeRaise::default(),
            last: None,
            steps: Count::ZERO,
            added: Additions::default(),
            last_used: now,
        }
    }

    /// The same with so much more.
    #[must_use]
    pub fn with_raise(self, raised: EpisodeRaise) -> StoredEpisode {
        StoredEpisode { limits: raised.applied_to(&self.stated), raised, ..self }
    }

    /// States limits; returns whether that changes anything.
    pub fn lower(&mut self, limits: &EpisodeLimits) -> bool {
        let before = self.stated.clone();
        self.stated.lower(limits);
        self.limits = self.raised.applied_to(&self.stated);
        self.stated != before
    }

    /// Raises it by so much.
    pub fn raise(&mut self, more: &EpisodeRaise) {
        self.raised.add(more);
        self.limits = self.raised.applied_to(&self.stated);
    }

    /// How long it took so far, once a step was answered.
    pub fn length(&self) -> Option<EpisodeLength> {
        let last = self.last.as_ref()?;
        let (class, model) = (last.class, last.model.clone());
        Some(EpisodeLength { class, model, steps: self.steps, ended: last.ended })
    }
}

impl EpisodeOwner {
    /// The key of a tenant.
    pub fn of(tenant: &Tenant) -> EpisodeOwner {
        EpisodeOwner { account: tenant.account.clone(), key: tenant.id }
    }

    /// Whether an episode of its account is this key's.
    pub fn owns(&self, episode: &StoredEpisode) -> bool {
        episode.key.is_none_or(|key| key == self.key)
    }
}

impl BrokenOffStep {
    /// How often its episode counts as gone on from by its link.
    pub fn continued(&self) -> Count {
        if self.is_running { IdenticalEpisode::RUNNING } else { Count::ZERO }
    }
}

impl IdenticalEpisode {
    /// The most episodes with the same end that are kept apart: of more, the least likely to go on are forgotten.
    pub const IDENTICAL_MAX: usize = 32;

    /// As often an episode counts as gone on from by the beginning of a step that runs: any other is handed out before it.
    pub const RUNNING: Count = Count(1 << 20);

    /// The least likely to go on, where there are too many.
    pub(super) fn surplus(identical: &[IdenticalEpisode]) -> Option<usize> {
        let last = identical.iter().enumerate().max_by(|(_, one), (_, other)| one.rank().cmp(&other.rank()));
        last.filter(|_| identical.len() > IdenticalEpisode::IDENTICAL_MAX).map(|(at, _)| at)
    }

    /// The one that is handed out first of some.
    pub fn first<'t>(
        identical: impl IntoIterator<Item = &'t mut IdenticalEpisode>,
    ) -> Option<&'t mut IdenticalEpisode> {
        identical.into_iter().min_by(|one, other| one.rank().cmp(&other.rank()))
    }

    fn rank(&self) -> (Count, Reverse<Timestamp>, &EpisodeId) {
        (self.continued, Reverse(self.at), &self.id)
    }
}
