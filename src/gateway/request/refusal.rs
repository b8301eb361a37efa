//! `RequestRefusal`: why a request is not served.

use std::sync::Arc;
use std::time::Duration;

use stint_backend::Failure;
use stint_decide::plan;
use stint_ledger as ledger;
use stint_sessions::agent::{EpisodesError, HistoryTooLong};
use stint_sessions::idempotency;
use stint_types::chat::ToolLimits;
use stint_types::units::EpisodeId;

/// When to try again after waiting in vain.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What an answer that the end of this process cuts off has as its error, on every API and in the log.
pub const SHUTTING_DOWN: &str = "shutting_down";

/// A request that is not served.
#[derive(Debug)]
pub struct Denial {
    /// Why not.
    pub refusal: Box<RequestRefusal>,
    /// The run that it would have been a step of, where there is one.
    pub episode: Option<EpisodeId>,
}

impl From<RequestRefusal> for Denial {
    fn from(refusal: RequestRefusal) -> Denial {
        Denial { refusal: Box::new(refusal), episode: None }
    }
}

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub enum RequestRefusal {
    /// No model or route has that name.
    #[error("there is no model {name:?}; {}GET /v1/models lists them", meant(nearest.as_deref()))]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// What was probably meant, of all that the caller may name.
        nearest: Option<Box<str>>,
    },
    /// Several models make vectors under that name, and those of one do not compare with those of another.
    #[error(
        "{0} stands for several models that make embeddings, whose vectors do not compare: name one of them"
    )]
    SeveralEmbedders(String),
    /// More answers were asked for than one request may have.
    #[error("n may be {most} at most: one request gives no more answers than that")]
    TooManyChoices {
        /// How many there may be.
        most: u32,
    },
    /// The only model that there is was made for other questions.
    #[error(
        "the only model here, {model}, is a small one that knows whole-number arithmetic and nothing else (try \
         \"What is 12+34*2?\"; asked by its name, \"model\": \"{model}\", it answers anything, though with a number or \
         nothing); for real questions add a model of yours to the configuration:\n\n[[backend]]\nbase_url = \"http://127.0.0.1:8000/v1\"\n\
         models = [\"your-model\"]"
    )]
    WrongSpecialty {
        /// The model.
        model: Arc<str>,
    },
    /// No offer serves it.
    #[error(transparent)]
    Plan(#[from] plan::PlanRefusal),
    /// The ledger does not set the money aside.
    #[error(transparent)]
    LimitExceeded(#[from] ledger::ReserveError),
    /// The ledger cannot make anything durable now.
    #[error("the ledger cannot record new requests right now; try again shortly")]
    Ledger(#[source] ledger::LedgerError),
    /// Its idempotency key could not be begun: nothing was sent.
    #[error(transparent)]
    Idempotency(#[from] idempotency::BeginError),
    /// Too much is in flight.
    #[error("too many requests are in flight; try again shortly")]
    Overloaded {
        /// When to try again.
        retry_after: Duration,
    },
    /// Everything that could serve it is left alone for a while.
    #[error("every suitable model failed lately and is left alone; try again in {} s", seconds(*retry_after))]
    CoolingDown {
        /// When to try again.
        retry_after: Duration,
    },
    /// The providers of everything that could serve it refuse what this gateway presents to them.
    #[error(
        "the provider of every suitable model refuses this gateway's own key or account; only its operator can mend that"
    )]
    CredentialRefused,
    /// The providers of everything that could serve it have asked for a pause, which is too long to wait for.
    #[error(
        "the provider of every suitable model has reached its rate limit; try again in {} s",
        seconds(*retry_after)
    )]
    RateLimited {
        /// When to try again.
        retry_after: Duration,
    },
    /// The backend failed before anything was delivered.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The model turned out to be unable to do what a member of the request asks for.
    #[error("{failure}")]
    Incapable {
        /// The backend's message.
        #[source]
        failure: Box<Failure>,
        /// The member.
        member: &'static str,
    },
    /// What a step needs of its run is set aside by parallel steps, which have not given it back in time.
    #[error("{what} set aside by parallel steps of this run; try again when they are over")]
    EpisodeBusy {
        /// What is.
        what: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// What it needs under a limit is set aside by other open requests, which have not given it back in time.
    #[error(
        "what is left under the account's limits is set aside by other requests in flight; try again when they are over"
    )]
    FundsReserved {
        /// The limit that leaves too little; nothing, where others came before.
        shortfall: Option<Box<ledger::Shortfall>>,
        /// When to try again.
        retry_after: Duration,
    },
    /// What a run may take cannot be read, so nothing is served under its name.
    #[error("the limits of this run cannot be read right now; try again shortly")]
    EpisodeUnavailable {
        /// Why not.
        #[source]
        source: EpisodesError,
        /// When to try again.
        retry_after: Duration,
    },
    /// The conversation is too long to be read at every step.
    #[error(transparent)]
    TooLong(#[from] HistoryTooLong),
    /// The limits that a run has by now are too many.
    #[error(
        "the run limits {named} tools by name with those of its earlier steps; at most {most} can be limited by name",
        most = ToolLimits::NAMED_MAX
    )]
    TooManyTools {
        /// How many tools that would be.
        named: usize,
    },
    /// It names an episode that an earlier key of the same name began.
    #[error("{id} is an episode of an earlier key of this key's name: choose another name for the episode")]
    OtherKeysEpisode {
        /// The episode.
        id: EpisodeId,
    },
    /// The gateway is shutting down.
    #[error("the gateway is shutting down; try another one")]
    Stopping,
    /// The gateway ends before the answer did.
    #[error("the gateway is shutting down and has cut this answer off; what it used is charged; ask again")]
    CutOff,
}

impl RequestRefusal {
    /// Others who came before wait for the same money.
    pub(crate) fn behind_in_queue() -> RequestRefusal {
        RequestRefusal::FundsReserved { shortfall: None, retry_after: RETRY_AFTER }
    }
}

/// What was probably meant.
fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("did you mean {nearest:?}? "))
}

/// A time in whole seconds, as `Retry-After` has it.
fn seconds(time: Duration) -> u128 {
    time.as_millis().div_ceil(1_000).max(1)
}
